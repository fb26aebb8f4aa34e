#!/usr/bin/env bash
# CPU time of the server for each operation: ember with one worker beside redis-server, both on CPU 0, the load on CPU 1.
# Unlike requests a second it does not depend on how fast the load generator is. Settings: BENCH_REQUESTS (3000000 for each
# measurement), BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (50). A million keys of 16 bytes, 64-byte values.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need taskset "install the package util-linux"
BENCH_REQUESTS=${BENCH_REQUESTS:-3000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
KEYS=1000000

load() { # port, test, bytes, pipeline, requests
    taskset -c 1 redis-benchmark -h 127.0.0.1 -p "$1" -t "$2" -d "$3" -P "$4" -n "$5" -c "$BENCH_CLIENTS" -r "$KEYS" -q \
        >/dev/null 2>&1 || fail "redis-benchmark failed on port $1"
}

redis_port=$(free_port)
start_server redis "$redis_port" taskset -c 0 redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --appendonly no
redis_pid=$started_pid
ember_port=$(free_port)
start_server ember "$ember_port" taskset -c 0 "$(ember_server)" --port "$ember_port" --bind 127.0.0.1 --save "" --shards 1
ember_pid=$started_pid
for port in "$redis_port" "$ember_port"; do load "$port" set 64 64 $((3 * KEYS)); done

echo "| workload | redis-server, ns an operation | ember | ember / redis-server |"
echo "|---|--:|--:|--:|"
for row in "get 64 1" "set 64 1" "get 64 16" "set 64 16" "get 64 64" "set 64 64" "set 1024 16" "get 1024 16"; do
    read -r test bytes pipeline <<<"$row"
    requests=$BENCH_REQUESTS
    [ "$pipeline" -gt 1 ] || requests=$((requests / 10))
    : >"$bench_work/redis-ns"
    : >"$bench_work/ember-ns"
    for _ in $(seq "$BENCH_ROUNDS"); do
        for server in redis ember; do
            pid="${server}_pid" port="${server}_port"
            nanoseconds "${!pid}" "$requests" load "${!port}" "$test" "$bytes" "$pipeline" "$requests" \
                >>"$bench_work/$server-ns"
        done
    done
    redis=$(median <"$bench_work/redis-ns")
    ember=$(median <"$bench_work/ember-ns")
    printf '| %s %s B, P=%s | %s | %s | %s |\n' "${test^^}" "$bytes" "$pipeline" "$redis" "$ember" \
        "$(ratio "$ember" "$redis")"
done
