#!/usr/bin/env bash
# Throughput of SET with one load process and with several at once, each a redis-benchmark with one thread: ember in
# both modes, and the installed servers to compare with. The rate is that of all requests from the start of the first
# process to the end of the last. With --ember-only, only ember is measured. Settings: BENCH_PROCESSES (8),
# BENCH_REQUESTS (1000000 per process), BENCH_CLIENTS (50 per process), BENCH_PIPELINE (16), BENCH_KEYS (100000),
# BENCH_VALUE_BYTES (64).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
BENCH_PROCESSES=${BENCH_PROCESSES:-8}
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}
BENCH_KEYS=${BENCH_KEYS:-100000}
BENCH_VALUE_BYTES=${BENCH_VALUE_BYTES:-64}

together() { # port, processes; prints requests per second
    local port=$1 processes=$2 begun pid loads=()
    begun=$(date +%s.%N)
    for _ in $(seq "$processes"); do
        redis-benchmark -h 127.0.0.1 -p "$port" -t set -d "$BENCH_VALUE_BYTES" -P "$BENCH_PIPELINE" -n "$BENCH_REQUESTS" \
            -c "$BENCH_CLIENTS" -r "$BENCH_KEYS" -q >/dev/null 2>&1 &
        loads+=("$!")
    done
    for pid in "${loads[@]}"; do wait "$pid" || fail "redis-benchmark failed on port $port"; done
    awk -v begun="$begun" -v ended="$(date +%s.%N)" -v count="$((processes * BENCH_REQUESTS))" \
        'BEGIN { printf "%d\n", count / (ended - begun) }'
}

installed_kinds
echo "SET requests per second:"
echo
describe "requests-per-process=$BENCH_REQUESTS clients-per-process=$BENCH_CLIENTS pipeline=$BENCH_PIPELINE" \
    "value-bytes=$BENCH_VALUE_BYTES keys=$BENCH_KEYS cores=$(nproc)"
table_begin "" server "one process" "$BENCH_PROCESSES processes" ratio
for kind in "${kinds[@]}"; do
    port=$(free_port)
    start_threaded "$kind" "${kind// /-}" "$port" "$(default_threads "$kind")"
    one=$(together "$port" 1)
    all=$(together "$port" "$BENCH_PROCESSES")
    table_row "$kind" "$one" "$all" "$(ratio "$all" "$one")"
    stop_server "$started_pid"
done
