#!/usr/bin/env bash
# Installs the requirements of the benchmarks on a new Debian or Ubuntu machine: a compiler, Rust, redis-server and its
# tools, memtier_benchmark (built from source where there is no package), valkey-server and keydb-server where there are
# packages, and dragonfly where a binary for this machine exists; then builds the server. Programs that are not packages
# are installed in target/bench-tools ($BENCH_TOOLS), where the scripts find them. Repeated runs do nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=${BENCH_TOOLS:-$PWD/target/bench-tools}
PATH="$PATH:$tools"
memtier_origin=https://github.com/RedisLabs/memtier_benchmark
# Version 2.3.0.
memtier_commit=1655c39a2be50914d87cf450bb54aa8475293e77
dragonfly_origin=https://github.com/dragonflydb/dragonfly/releases/latest/download
mkdir -p "$tools"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

has() { command -v "$1" >/dev/null; }

has_package() { apt-cache show "$1" >/dev/null 2>&1; }

packages=()
has cc || packages+=(gcc libc6-dev)
has make || packages+=(make)
has redis-server || packages+=(redis-server)
has redis-benchmark || packages+=(redis-tools)
has cargo || has rustup || packages+=(rustup)
for server in valkey-server keydb-server; do
    if ! has "$server" && has_package "$server"; then packages+=("$server"); fi
done
if ! has memtier_benchmark && has_package memtier-benchmark; then packages+=(memtier-benchmark); fi
[ "${#packages[@]}" -eq 0 ] || scripts/install-packages.sh "${packages[@]}"
has cargo || rustup default stable

build_memtier() {
    local packages=()
    has git || packages+=(git)
    has autoreconf || packages+=(autoconf automake)
    has c++ || packages+=(g++)
    has pkg-config || packages+=(pkg-config)
    { has pkg-config && pkg-config --exists libevent openssl zlib; } || packages+=(libevent-dev libssl-dev zlib1g-dev)
    [ "${#packages[@]}" -eq 0 ] || scripts/install-packages.sh "${packages[@]}" || return 1
    mkdir "$work/memtier"
    (
        cd "$work/memtier"
        git init --quiet . && git fetch --quiet --depth 1 "$memtier_origin" "$memtier_commit" &&
            git checkout --quiet FETCH_HEAD && autoreconf --force --install && ./configure &&
            make -j "$(nproc)"
    ) >"$work/memtier.log" 2>&1 || { tail -n 20 "$work/memtier.log" >&2; return 1; }
    cp "$work/memtier/memtier_benchmark" "$tools/"
}

download_dragonfly() {
    local name
    case $(uname -m) in
        x86_64 | aarch64) name=dragonfly-$(uname -m) ;;
        *) return 1 ;;
    esac
    has curl || scripts/install-packages.sh curl ca-certificates || return 1
    curl --fail --silent --show-error --location --output "$work/dragonfly.tar.gz" "$dragonfly_origin/$name.tar.gz" &&
        tar -xzf "$work/dragonfly.tar.gz" -C "$work" "$name" && mv "$work/$name" "$tools/dragonfly"
}

has memtier_benchmark || build_memtier ||
    echo "memtier_benchmark is not installed: bench/bench-memtier.sh and bench/bench-load.sh need it"
has dragonfly || download_dragonfly || echo "dragonfly is not installed: the tables omit it"
cargo build --release -p ember-server
