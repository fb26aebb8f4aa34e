#!/usr/bin/env bash
# Runs every fuzz target of every crate for some seconds: scripts/fuzz-short.sh [seconds]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}
cargo +nightly fuzz --version >/dev/null 2>&1 || {
    echo "cargo-fuzz and a nightly compiler are required: cargo install cargo-fuzz" >&2
    exit 1
}
found=0
for targets in crates/*/fuzz/fuzz_targets; do
    [ -d "$targets" ] || continue
    for target in "$targets"/*.rs; do
        found=$((found + 1))
        name=$(basename "$target" .rs)
        echo "== $name"
        (cd "$targets/../.." && cargo +nightly fuzz run "$name" -- -max_total_time="$seconds")
    done
done
[ "$found" -gt 0 ] || { echo "no fuzz targets found" >&2; exit 1; }
