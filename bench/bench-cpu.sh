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

cpu_ticks() { # pid
    # The name in brackets may hold blanks; user and system time are the 12th and 13th field behind it.
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

load() { # port, test, bytes, pipeline, requests
    taskset -c 1 redis-benchmark -h 127.0.0.1 -p "$1" -t "$2" -d "$3" -P "$4" -n "$5" -c "$BENCH_CLIENTS" -r "$KEYS" -q \
        >/dev/null 2>&1 || fail "redis-benchmark failed on port $1"
}

nanoseconds() { # pid, port, test, bytes, pipeline
    local requests=$BENCH_REQUESTS before
    [ "$5" -gt 1 ] || requests=$((requests / 10))
    before=$(cpu_ticks "$1")
    load "$2" "$3" "$4" "$5" "$requests"
    echo $((($(cpu_ticks "$1") - before) * 1000000000 / $(getconf CLK_TCK) / requests))
}

median() {
    sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

redis_port=$(free_port)
start_server redis "$redis_port" taskset -c 0 redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --appendonly no
redis_pid=$started_pid
ember_port=$(free_port)
start_server ember "$ember_port" taskset -c 0 "$(ember_server)" --port "$ember_port" --bind 127.0.0.1 --shards 1
ember_pid=$started_pid
for port in "$redis_port" "$ember_port"; do load "$port" set 64 64 $((3 * KEYS)); done

echo "| workload | redis-server, ns an operation | ember | ember / redis-server |"
echo "|---|--:|--:|--:|"
for row in "get 64 1" "set 64 1" "get 64 16" "set 64 16" "get 64 64" "set 64 64" "set 1024 16" "get 1024 16"; do
    read -r test bytes pipeline <<<"$row"
    : >"$bench_work/redis-ns"
    : >"$bench_work/ember-ns"
    for _ in $(seq "$BENCH_ROUNDS"); do
        nanoseconds "$redis_pid" "$redis_port" "$test" "$bytes" "$pipeline" >>"$bench_work/redis-ns"
        nanoseconds "$ember_pid" "$ember_port" "$test" "$bytes" "$pipeline" >>"$bench_work/ember-ns"
    done
    redis=$(median <"$bench_work/redis-ns")
    ember=$(median <"$bench_work/ember-ns")
    printf '| %s %s B, P=%s | %s | %s | %s |\n' "${test^^}" "$bytes" "$pipeline" "$redis" "$ember" \
        "$(awk -v ember="$ember" -v redis="$redis" 'BEGIN { printf "%.2f", ember / redis }')"
done
