#!/usr/bin/env bash
# Installs the requirements of the benchmarks on a new Debian or Ubuntu machine: a compiler, Rust, redis-server and its
# tools, and memtier_benchmark where there is a package; then builds the server.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=()
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v make >/dev/null || packages+=(make)
command -v redis-server >/dev/null || packages+=(redis-server)
command -v redis-benchmark >/dev/null || packages+=(redis-tools)
command -v cargo >/dev/null || command -v rustup >/dev/null || packages+=(rustup)
[ "${#packages[@]}" -eq 0 ] || scripts/install-packages.sh "${packages[@]}"
command -v cargo >/dev/null || rustup default stable
if ! command -v memtier_benchmark >/dev/null && apt-cache show memtier-benchmark >/dev/null 2>&1; then
    scripts/install-packages.sh memtier-benchmark
fi
command -v memtier_benchmark >/dev/null || echo "memtier_benchmark is not installed: bench/bench-memtier.sh needs it"
command -v dragonfly >/dev/null || echo "dragonfly is not installed: the tables omit it"
cargo build --release -p ember-server
