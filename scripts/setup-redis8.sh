#!/usr/bin/env bash
# Builds the redis-server 8 of Debian's source package, and prints its path: it is the yardstick for vector sets, and Debian
# 12 has none. It goes into target/peers ($PEERS_TOOLS); running it again costs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${PEERS_TOOLS:-$PWD/target/peers}/redis8
server=$folder/redis-server
if [ ! -x "$server" ]; then
    mkdir -p "$folder"/apt/{etc,lists/partial,cache/archives/partial}
    cd "$folder"
    printf '%s\n' "Types: deb-src" "URIs: http://deb.debian.org/debian" "Suites: sid" "Components: main" \
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" >apt/etc/sid.sources
    # Lists of its own: those of the system stay as they are.
    options=(-o "Dir::State::Lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache" -o Dir::Etc::SourceList=/dev/null
        -o "Dir::Etc::SourceParts=$folder/apt/etc" -o APT::Sandbox::User=root)
    {
        apt-get "${options[@]}" update
        apt-get "${options[@]}" source --download-only redis
        rm -rf source
        mkdir source
        tar xzf redis_8*.orig.tar.gz -C source --strip-components 1
        make -C source/src -j"$(nproc)" MALLOC=libc OPTIMIZATION=-O2 redis-server
    } >&2
    cp source/src/redis-server "$server"
fi
echo "$server"
