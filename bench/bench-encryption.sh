#!/usr/bin/env bash
# The cost of encryption at rest: SET and GET with an append-only file (everysec), plain and encrypted, in both execution
# modes, the server on one core and the load on another. Settings: BENCH_REQUESTS (2000000 per measurement),
# BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (50), BENCH_VALUE_BYTES (64), BENCH_KEYS (100000).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
choose_processors
BENCH_REQUESTS=${BENCH_REQUESTS:-2000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_VALUE_BYTES=${BENCH_VALUE_BYTES:-64}
BENCH_KEYS=${BENCH_KEYS:-100000}
BENCH_THREADS=1
bench_load=(taskset -c "$load_cpu")

head -c 32 /dev/urandom | base64 >"$bench_work/keys"
chmod 600 "$bench_work/keys"

measure() { # name, test, pipeline: requests per second and CPU time per operation
    local port="$1_port" pid="$1_pid" before
    before=$(cpu_ticks "${!pid}")
    requests_per_second "${!port}" "$2" "$BENCH_VALUE_BYTES" "$3" >>"$bench_work/$1-rate"
    echo $((($(cpu_ticks "${!pid}") - before) * 1000000000 / $(getconf CLK_TCK) / BENCH_REQUESTS)) >>"$bench_work/$1-ns"
}

file=(--shards 1 --appendonly yes --appendfsync everysec)
for mode in concurrent sharded; do
    command=("$(ember_server)" "${file[@]}" --concurrent "$([ "$mode" = concurrent ] && echo yes || echo no)")
    start_pinned "plain_$mode" "${command[@]}"
    start_pinned "encrypted_$mode" "${command[@]}" --encryption-key-file "$bench_work/keys"
done
echo "Requests per second, and CPU time of the server per operation, in ns:"
echo
describe "requests=$BENCH_REQUESTS rounds=$BENCH_ROUNDS clients=$BENCH_CLIENTS value-bytes=$BENCH_VALUE_BYTES" \
    "keys=$BENCH_KEYS cores=$(nproc)"
table_begin "" "test, mode" "plain, requests/s" encrypted ratio "plain, CPU ns per operation" "encrypted, CPU ns" "CPU ratio"
for mode in concurrent sharded; do
    plain="plain_$mode" encrypted="encrypted_$mode"
    for name in "$plain" "$encrypted"; do
        port="${name}_port"
        fill_keys "${!port}" "$BENCH_KEYS" "$BENCH_VALUE_BYTES"
    done
    for row in "set 1" "set 16" "get 1" "get 16"; do
        read -r test pipeline <<<"$row"
        rm -f "$bench_work"/*-rate "$bench_work"/*-ns
        for _ in $(seq "$BENCH_ROUNDS"); do
            measure "$plain" "$test" "$pipeline"
            measure "$encrypted" "$test" "$pipeline"
        done
        plain_rate=$(median <"$bench_work/$plain-rate") encrypted_rate=$(median <"$bench_work/$encrypted-rate")
        plain_ns=$(median <"$bench_work/$plain-ns") encrypted_ns=$(median <"$bench_work/$encrypted-ns")
        table_row "${test^^} (P=$pipeline), $mode" "$plain_rate" "$encrypted_rate" \
            "$(ratio "$encrypted_rate" "$plain_rate")" "$plain_ns" "$encrypted_ns" "$(ratio "$encrypted_ns" "$plain_ns")"
    done
done
