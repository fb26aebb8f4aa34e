#!/usr/bin/env bash
# The full matrix with memtier_benchmark: operations per second, latencies and ratios of ember, redis-server,
# valkey-server, keydb-server and dragonfly where they are installed or run. With --ember-only, only ember is measured.
# Settings: EMBER_CONCURRENT_PORT (6379), EMBER_SHARDED_PORT (6380), REDIS_PORT (6399), DRAGONFLY_PORT (6389),
# VALKEY_PORT (6409), KEYDB_PORT (6419), MEMTIER_THREADS (4), MEMTIER_CLIENTS (12 per thread), MEMTIER_SECONDS (5 per
# test) or MEMTIER_REQUESTS (per client), MEMTIER_PIPELINE (16), MEMTIER_KEYS (100000), MEMTIER_BYTES (values of this
# size instead of 64 and 1024 bytes: only SET, GET and 1:1, with pipelines and without).
set -euo pipefail
source "$(dirname "$0")/common.sh"
memtier_settings 4 12
MEMTIER_PIPELINE=${MEMTIER_PIPELINE:-16}
MEMTIER_KEYS=${MEMTIER_KEYS:-100000}
MEMTIER_BYTES=${MEMTIER_BYTES:-}
P=$MEMTIER_PIPELINE
if [ -n "$MEMTIER_BYTES" ]; then
    rows=()
    for pipeline in 1 "$P"; do
        rows+=("SET 1:0 $MEMTIER_BYTES $pipeline" "GET 0:1 $MEMTIER_BYTES $pipeline" "1:1 1:1 $MEMTIER_BYTES $pipeline")
    done
else
    rows=("SET 1:0 64 $P" "GET 0:1 64 $P" "1:10 1:10 64 $P" "1:1 1:1 64 $P" "SET 1:0 1024 $P" "GET 0:1 1024 $P"
        "SET 1:0 64 1" "GET 0:1 64 1" "1:1 1:1 64 1")
fi
keys=(--key-minimum 1 --key-maximum "$MEMTIER_KEYS")

comparison_servers
echo "Operations per second:"
echo
describe "threads=$MEMTIER_THREADS clients-per-thread=$MEMTIER_CLIENTS $memtier_length keys=$MEMTIER_KEYS" \
    "cores=$(nproc)"
table_begin "" test "${bench_names[@]}"
filled=""
for row in "${rows[@]}"; do
    read -r label ratio bytes pipeline <<<"$row"
    label="$label ($bytes B, P=$pipeline)"
    cells=("$label")
    for index in "${!bench_ports[@]}"; do
        port=${bench_ports[$index]} name=${bench_names[$index]}
        # Sets every key once, so that no GET is a miss.
        [ "$filled" = "$bytes" ] || run_memtier "$port" "${keys[@]}" --data-size "$bytes" --ratio 1:0 --pipeline 100 \
            --threads 1 --clients 1 --requests allkeys --key-pattern P:P >/dev/null
        measure_memtier "$port" "${keys[@]}" --data-size "$bytes" --ratio "$ratio" --pipeline "$pipeline"
        figures=$(memtier_figures Totals "$port")
        read -r rate latencies <<<"$figures"
        rate_of[$label,$name]=$rate
        latencies_of[$label,$name]=$(cut -d " " -f 1-5 <<<"$latencies")
        cells+=("$rate")
    done
    filled=$bytes
    compared_tests+=("$label")
    table_row "${cells[@]}"
done
latency_table average p50 p99 p99.9 maximum
ratio_table
