#!/usr/bin/env bash
# A load of many connections with memtier_benchmark, as SET and GET 1:1 of values of 256 bytes: ember in both modes and
# the installed servers to compare with, one after the other. Prints Sets, Gets and Totals of each, a summary, and the
# throughput by number of workers as a table and a chart. Like memtier_benchmark by default, it reads keys that may not
# exist: the table has hits and misses. With --ember-only, only ember is measured. Settings: MEMTIER_THREADS (24),
# MEMTIER_CLIENTS (50 per thread), MEMTIER_REQUESTS (100000 per client) or MEMTIER_SECONDS (per server), MEMTIER_BYTES
# (256), MEMTIER_PIPELINE (1), MEMTIER_KEYS (10000000), WORKER_COUNTS (numbers of workers, separated by blanks),
# LOAD_SECONDS (10 per number of workers).
set -euo pipefail
source "$(dirname "$0")/common.sh"
[ -n "${MEMTIER_SECONDS:-}" ] || MEMTIER_REQUESTS=${MEMTIER_REQUESTS:-100000}
memtier_settings 24 50
MEMTIER_BYTES=${MEMTIER_BYTES:-256}
MEMTIER_PIPELINE=${MEMTIER_PIPELINE:-1}
MEMTIER_KEYS=${MEMTIER_KEYS:-10000000}
WORKER_COUNTS=${WORKER_COUNTS:-$(worker_counts | xargs)}
LOAD_SECONDS=${LOAD_SECONDS:-10}
read -ra counts <<<"$WORKER_COUNTS"
load=(--ratio 1:1 --data-size "$MEMTIER_BYTES" --pipeline "$MEMTIER_PIPELINE" --key-maximum "$MEMTIER_KEYS")
setup="threads=$MEMTIER_THREADS clients-per-thread=$MEMTIER_CLIENTS value-bytes=$MEMTIER_BYTES pipeline=$MEMTIER_PIPELINE"
setup="$setup keys=$MEMTIER_KEYS cores=$(nproc)"

installed_kinds
echo "SET and GET 1:1:"
echo
describe "$setup $memtier_length"
table_begin "" "server, operations" ops/s "average, ms" "p50, ms" "p99, ms" "p99.9, ms" "maximum, ms" hits/s misses/s KB/s
summary=()
redis_rate=0
for kind in "${kinds[@]}"; do
    port=$(free_port)
    start_threaded "$kind" "${kind// /-}" "$port" "$(default_threads "$kind")"
    measure_memtier "$port" "${load[@]}"
    for section in Sets Gets Totals; do
        figures=$(memtier_figures "$section" "$port")
        read -ra figures <<<"$figures"
        # Only GETs have hits and misses: memtier_benchmark repeats those of Gets in Totals.
        [ "$section" = Gets ] || figures[6]="-" figures[7]="-"
        table_row "$kind, $section" "${figures[@]:0:9}"
    done
    [ "$kind" != redis ] || redis_rate=${figures[0]}
    summary+=("$kind|${figures[9]}|${figures[0]}|${figures[1]}|${figures[2]}|${figures[3]}|${figures[4]}")
    stop_server "$started_pid"
done

echo
echo "Summary; the peak is the best second:"
echo
table_begin summary server "peak, ops/s" ops/s "average, ms" "p50, ms" "p99, ms" "p99.9, ms" "ops/s / redis"
for line in "${summary[@]}"; do
    IFS="|" read -ra cells <<<"$line"
    table_row "${cells[@]}" "$(ratio "${cells[2]}" "$redis_rate")"
done

echo
echo "Operations per second by number of workers:"
echo
memtier_amount=(--test-time "$LOAD_SECONDS")
describe "$setup seconds-per-test=$LOAD_SECONDS"
table_begin workers workers "${kinds[@]}"
for count in "${counts[@]}"; do
    cells=("$count")
    for kind in "${kinds[@]}"; do
        port=$(free_port)
        start_threaded "$kind" "${kind// /-}" "$port" "$count"
        measure_memtier "$port" "${load[@]}"
        figures=$(memtier_figures Totals "$port")
        cells+=("${figures%% *}")
        stop_server "$started_pid"
    done
    table_row "${cells[@]}"
done
table_chart "Throughput by number of workers" "operations/s" "${kinds[@]}"
