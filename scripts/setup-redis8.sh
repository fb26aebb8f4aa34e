#!/usr/bin/env bash
# Builds redis-server 8 from Debian's source package, and prints its path: it is the reference for vector sets, and Debian
# 12 does not have it. It is installed in target/peers ($PEERS_TOOLS); repeated runs do nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${PEERS_TOOLS:-$PWD/target/peers}/redis8
server=$folder/redis-server
if [ ! -x "$server" ]; then
    mkdir -p "$folder"/apt/{etc,lists/partial,cache/archives/partial}
    cd "$folder"
    printf '%s\n' "Types: deb-src" "URIs: http://deb.debian.org/debian" "Suites: sid" "Components: main" \
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" >apt/etc/sid.sources
    # Separate package lists: those of the system are not changed.
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
