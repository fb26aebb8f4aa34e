#!/usr/bin/env bash
# Runs the test programs of ember-peers: test-peers.sh PROGRAM…
# `clients` runs concurrently with the others: it mostly waits for programs in other languages.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
log=$(mktemp)
clients_job=
trap 'kill $clients_job 2>/dev/null || true; rm -f "$log"' EXIT

run() {
    local arguments=() name
    for name in "$@"; do arguments+=(--test "$name"); done
    "$cargo" test --workspace "${arguments[@]}" --no-fail-fast
}

others=()
for name in "$@"; do
    if [[ $name == clients ]]; then
        RUST_TEST_THREADS=$(nproc) run clients >"$log" 2>&1 &
        clients_job=$!
    else
        others+=("$name")
    fi
done
status=0
if ((${#others[@]})); then run "${others[@]}" || status=$?; fi
if [[ $clients_job ]]; then
    wait "$clients_job" || status=$?
    cat "$log"
    clients_job=
fi
exit "$status"
