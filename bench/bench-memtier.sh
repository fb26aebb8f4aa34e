#!/usr/bin/env bash
# The full matrix driven by memtier_benchmark: operations a second and the 99th percentile of latency in milliseconds.
# Settings: EMBER_CONCURRENT_PORT (6379), EMBER_SHARDED_PORT (6380), REDIS_PORT (6399), DRAGONFLY_PORT (6389),
# MEMTIER_THREADS (4), MEMTIER_CLIENTS (12 for each thread), MEMTIER_REQUESTS (10000 for each client),
# MEMTIER_PIPELINE (16).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need memtier_benchmark "it is not a Debian 12 package; build it from its source and put it in PATH"
need redis-cli "install the package redis-tools"
MEMTIER_THREADS=${MEMTIER_THREADS:-4}
MEMTIER_CLIENTS=${MEMTIER_CLIENTS:-12}
MEMTIER_REQUESTS=${MEMTIER_REQUESTS:-10000}
MEMTIER_PIPELINE=${MEMTIER_PIPELINE:-16}

memtier() { # port, ratio of SET to GET, bytes, pipeline
    memtier_benchmark --server 127.0.0.1 --port "$1" --protocol redis --ratio "$2" --data-size "$3" --pipeline "$4" \
        --threads "$MEMTIER_THREADS" --clients "$MEMTIER_CLIENTS" --requests "$MEMTIER_REQUESTS" \
        --key-maximum 100000 --hide-histogram --print-percentiles 99 2>/dev/null |
        awk '/^Totals/ { printf "%d (%.2f)", $2, $6; found = 1 } END { exit !found }' ||
        fail "memtier_benchmark failed on port $1"
}

comparison_servers
echo "threads $MEMTIER_THREADS, clients a thread $MEMTIER_CLIENTS, requests a client $MEMTIER_REQUESTS, cores $(nproc)"
echo
printf '| operations a second (p99 ms)'
for name in "${bench_names[@]}"; do printf ' | %s' "$name"; done
printf ' |\n|---'
for name in "${bench_names[@]}"; do printf '|--:'; done
printf '|\n'
P=$MEMTIER_PIPELINE
for row in "SET 1:0 64 $P" "GET 0:1 64 $P" "1:10 1:10 64 $P" "1:1 1:1 64 $P" "SET 1:0 1024 $P" "GET 0:1 1024 $P" \
    "SET 1:0 64 1" "GET 0:1 64 1"; do
    read -r label ratio bytes pipeline <<<"$row"
    printf '| %s (%s B, P=%s)' "$label" "$bytes" "$pipeline"
    for port in "${bench_ports[@]}"; do
        printf ' | %s' "$(memtier "$port" "$ratio" "$bytes" "$pipeline")"
    done
    printf ' |\n'
done
