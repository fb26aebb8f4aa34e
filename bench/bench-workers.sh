#!/usr/bin/env bash
# Throughput of SET and GET by number of workers, from one to the number of cores: ember in both modes, and the
# installed servers to compare with, with as many threads. Prints the throughput, the scaling factors compared with one
# worker, and draws a chart. With --ember-only, only ember is measured. Settings: WORKER_COUNTS (numbers of workers,
# separated by blanks), BENCH_REQUESTS (1000000 per measurement), BENCH_CLIENTS (50), BENCH_PIPELINE (16), BENCH_THREADS
# (load threads; number of cores), BENCH_KEYS (100000), BENCH_VALUE_BYTES (64).
set -euo pipefail
source "$(dirname "$0")/common.sh"
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
benchmark_settings
WORKER_COUNTS=${WORKER_COUNTS:-$(worker_counts | xargs)}
BENCH_VALUE_BYTES=${BENCH_VALUE_BYTES:-64}
read -ra counts <<<"$WORKER_COUNTS"

installed_kinds
print_setup
table_begin "" "test, workers" "${kinds[@]}"
declare -A measured=()
for count in "${counts[@]}"; do
    for kind in "${kinds[@]}"; do
        port=$(free_port)
        start_threaded "$kind" "${kind// /-}" "$port" "$count"
        for test in set get; do
            [ "$test" = set ] || fill_keys "$port" "$BENCH_KEYS" "$BENCH_VALUE_BYTES"
            measured[$test,$count,$kind]=$(requests_per_second "$port" "$test" "$BENCH_VALUE_BYTES" "$BENCH_PIPELINE")
        done
        stop_server "$started_pid"
    done
done
for test in set get; do
    for count in "${counts[@]}"; do
        cells=()
        for kind in "${kinds[@]}"; do cells+=("${measured[$test,$count,$kind]}"); done
        table_row "${test^^}, $count" "${cells[@]}"
    done
done
table_chart "Throughput by number of workers" "requests/s" "${kinds[@]}"

echo
echo "Compared with ${counts[0]} worker(s):"
echo
table_begin scaling "test, workers" "${kinds[@]}"
for test in set get; do
    for count in "${counts[@]}"; do
        cells=()
        for kind in "${kinds[@]}"; do
            cells+=("$(ratio "${measured[$test,$count,$kind]}" "${measured[$test,${counts[0]},$kind]}")")
        done
        table_row "${test^^}, $count" "${cells[@]}"
    done
done
