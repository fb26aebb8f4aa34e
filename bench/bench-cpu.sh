#!/usr/bin/env bash
# CPU time of the server per operation: ember with one worker and redis-server, both on one core, the load on another.
# Unlike throughput, this figure does not depend on the speed of the load generator. Settings: BENCH_REQUESTS (3000000
# per measurement), BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (50), BENCH_KEYS (1000000, of 16 bytes).
# With --ember-only, only ember is measured.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
choose_processors
BENCH_REQUESTS=${BENCH_REQUESTS:-3000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_KEYS=${BENCH_KEYS:-1000000}

load() { # port, test, bytes, pipeline, requests
    taskset -c "$load_cpu" redis-benchmark -h 127.0.0.1 -p "$1" -t "$2" -d "$3" -P "$4" -n "$5" -c "$BENCH_CLIENTS" \
        -r "$BENCH_KEYS" -q >/dev/null 2>&1 || fail "redis-benchmark failed on port $1"
}

servers=(ember)
columns=(ember)
start_pinned ember "$(ember_server)" --shards 1
if has_peer "$redis_program"; then
    start_pinned redis "$redis_program" --appendonly no
    servers=(redis ember)
    columns=(redis-server ember "ember / redis-server")
fi

echo "CPU time of the server per operation, in ns:"
echo
describe "requests=$BENCH_REQUESTS rounds=$BENCH_ROUNDS clients=$BENCH_CLIENTS keys=$BENCH_KEYS cores=$(nproc)"
table_begin "" workload "${columns[@]}"
filled=""
for row in "get 64 1" "set 64 1" "get 64 16" "set 64 16" "get 64 64" "set 64 64" "set 1024 16" "get 1024 16"; do
    read -r test bytes pipeline <<<"$row"
    requests=$BENCH_REQUESTS
    [ "$pipeline" -gt 1 ] || requests=$((requests / 10))
    rm -f "$bench_work"/*-ns
    for server in "${servers[@]}"; do
        port="${server}_port"
        [ "$filled" = "$bytes" ] || fill_keys "${!port}" "$BENCH_KEYS" "$bytes"
    done
    filled=$bytes
    for _ in $(seq "$BENCH_ROUNDS"); do
        for server in "${servers[@]}"; do
            pid="${server}_pid" port="${server}_port"
            nanoseconds "${!pid}" "$requests" load "${!port}" "$test" "$bytes" "$pipeline" "$requests" \
                >>"$bench_work/$server-ns"
        done
    done
    cells=("${test^^} $bytes B, P=$pipeline")
    for server in "${servers[@]}"; do cells+=("$(median <"$bench_work/$server-ns")"); done
    [ "${#servers[@]}" -eq 1 ] || cells+=("$(ratio "${cells[2]}" "${cells[1]}")")
    table_row "${cells[@]}"
done
