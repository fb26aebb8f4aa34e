#!/usr/bin/env bash
# The full matrix with memtier_benchmark: operations per second and the 99th percentile of latency in milliseconds.
# Settings: EMBER_CONCURRENT_PORT (6379), EMBER_SHARDED_PORT (6380), REDIS_PORT (6399), DRAGONFLY_PORT (6389),
# MEMTIER_THREADS (4), MEMTIER_CLIENTS (12 per thread), MEMTIER_SECONDS (5 per test), MEMTIER_PIPELINE (16).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need memtier_benchmark "install its package, or build it from source and put it in PATH"
need redis-cli "install the package redis-tools"
MEMTIER_THREADS=${MEMTIER_THREADS:-4}
MEMTIER_CLIENTS=${MEMTIER_CLIENTS:-12}
MEMTIER_SECONDS=${MEMTIER_SECONDS:-5}
MEMTIER_PIPELINE=${MEMTIER_PIPELINE:-16}
KEYS=100000

run_memtier() { # port, bytes, arguments
    local port=$1 bytes=$2
    shift 2
    memtier_benchmark --server 127.0.0.1 --port "$port" --protocol redis --data-size "$bytes" --hide-histogram \
        --print-percentiles 99 --key-minimum 1 --key-maximum "$KEYS" "$@" 2>"$bench_work/memtier.log" ||
        fail "memtier_benchmark failed on port $port: $(tail -n 3 "$bench_work/memtier.log")"
}

# Sets every key once, so that no GET is a miss.
fill_memtier() { # port, bytes
    run_memtier "$1" "$2" --ratio 1:0 --pipeline 100 --threads 1 --clients 1 --requests allkeys --key-pattern P:P >/dev/null
}

# The totals come last in the file: the count, the count and latencies of each second, and the latencies of all. The
# rate is computed with the requested duration: the duration that memtier_benchmark reports is sometimes zero, sometimes
# twice as long.
memtier() { # port, ratio of SET to GET, bytes, pipeline; prints operations per second and milliseconds
    local json=$bench_work/memtier.json
    run_memtier "$1" "$3" --ratio "$2" --pipeline "$4" --threads "$MEMTIER_THREADS" --clients "$MEMTIER_CLIENTS" \
        --test-time "$MEMTIER_SECONDS" --json-out-file "$json" >/dev/null
    awk -F : -v seconds="$MEMTIER_SECONDS" '
        /"Totals"/ { inside = 1 }
        inside && count == "" && /"Count"/ { count = $2 }
        inside && /"p99.00"/ { p99 = $2 }
        END { if (count <= 0) exit 1; printf "%d %.2f\n", count / seconds, p99 }' "$json" ||
        fail "memtier_benchmark counted no requests on port $1"
}

comparison_servers
columns=()
for name in "${bench_names[@]}"; do columns+=("$name, ops/s" "$name, p99 ms"); done
echo "Operations per second and the 99th percentile of latency:"
echo
describe "threads=$MEMTIER_THREADS clients-per-thread=$MEMTIER_CLIENTS seconds-per-test=$MEMTIER_SECONDS keys=$KEYS" \
    "cores=$(nproc)"
table_begin "" test "${columns[@]}"
P=$MEMTIER_PIPELINE
filled=""
for row in "SET 1:0 64 $P" "GET 0:1 64 $P" "1:10 1:10 64 $P" "1:1 1:1 64 $P" "SET 1:0 1024 $P" "GET 0:1 1024 $P" \
    "SET 1:0 64 1" "GET 0:1 64 1"; do
    read -r label ratio bytes pipeline <<<"$row"
    cells=("$label ($bytes B, P=$pipeline)")
    for port in "${bench_ports[@]}"; do
        [ "$filled" = "$bytes" ] || fill_memtier "$port" "$bytes"
        read -ra figures < <(memtier "$port" "$ratio" "$bytes" "$pipeline")
        [ "${#figures[@]}" -eq 2 ] || exit 1
        cells+=("${figures[@]}")
    done
    filled=$bytes
    table_row "${cells[@]}"
done
