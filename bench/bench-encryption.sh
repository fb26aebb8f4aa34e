#!/usr/bin/env bash
# What encryption at rest costs: SET and GET with an append-only file (everysec), plain beside encrypted, the server on CPU 0
# and the load on CPU 1. Settings: BENCH_REQUESTS (2000000 for each measurement), BENCH_ROUNDS (3, the median counts),
# BENCH_CLIENTS (50), BENCH_VALUE_BYTES (64), BENCH_KEYS (100000). EMBER_SERVER names another program.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
need taskset "install the package util-linux"
BENCH_REQUESTS=${BENCH_REQUESTS:-2000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_VALUE_BYTES=${BENCH_VALUE_BYTES:-64}
BENCH_KEYS=${BENCH_KEYS:-100000}
BENCH_THREADS=1

head -c 32 /dev/urandom | base64 >"$bench_work/keys"
chmod 600 "$bench_work/keys"

start_with() { # name, arguments; sets the port and process of that name
    local name=$1 port
    shift
    port=$(free_port)
    start_server "$name" "$port" taskset -c 0 "$(ember_server)" --port "$port" --bind 127.0.0.1 --save "" --shards 1 \
        --appendonly yes --appendfsync everysec "$@"
    printf -v "${name}_port" %s "$port"
    printf -v "${name}_pid" %s "$started_pid"
}

measure() { # name, test, pipeline: requests a second and CPU time of an operation
    local port="$1_port" pid="$1_pid" before rate
    before=$(cpu_ticks "${!pid}")
    rate=$(taskset -c 1 bash -c "$(declare -f requests_per_second fail)
        BENCH_THREADS=1 BENCH_REQUESTS=$BENCH_REQUESTS BENCH_CLIENTS=$BENCH_CLIENTS BENCH_KEYS=$BENCH_KEYS
        requests_per_second ${!port} $2 $BENCH_VALUE_BYTES $3")
    echo "$rate" >>"$bench_work/$1-rate"
    echo $((($(cpu_ticks "${!pid}") - before) * 1000000000 / $(getconf CLK_TCK) / BENCH_REQUESTS)) >>"$bench_work/$1-ns"
}

start_with plain
start_with encrypted --encryption-key-file "$bench_work/keys"
echo "$BENCH_REQUESTS requests, $BENCH_CLIENTS clients, values of $BENCH_VALUE_BYTES bytes, median of $BENCH_ROUNDS:"
echo
echo "| test | plain, requests/s | encrypted | ratio | plain, CPU ns an operation | encrypted | ratio |"
echo "|---|--:|--:|--:|--:|--:|--:|"
for row in "set 1" "set 16" "get 1" "get 16"; do
    read -r test pipeline <<<"$row"
    rm -f "$bench_work"/*-rate "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        measure plain "$test" "$pipeline"
        measure encrypted "$test" "$pipeline"
    done
    for name in plain encrypted; do
        printf -v "${name}_rate" %s "$(median <"$bench_work/$name-rate")"
        printf -v "${name}_ns" %s "$(median <"$bench_work/$name-ns")"
    done
    echo "| ${test^^} (P=$pipeline) | $plain_rate | $encrypted_rate | $(ratio "$encrypted_rate" "$plain_rate")" \
        "| $plain_ns | $encrypted_ns | $(ratio "$encrypted_ns" "$plain_ns") |"
done
