#!/usr/bin/env bash
# The full matrix with redis-benchmark: requests per second, latencies and ratios of ember, redis-server, valkey-server,
# keydb-server and dragonfly where they are installed. Servers that already listen on the ports are used, others are
# started there. With --ember-only, only ember is measured. Settings: EMBER_CONCURRENT_PORT (6379), EMBER_SHARDED_PORT
# (6380), REDIS_PORT (6399), DRAGONFLY_PORT (6389), VALKEY_PORT (6409), KEYDB_PORT (6419), BENCH_REQUESTS (100000),
# BENCH_CLIENTS (50), BENCH_PIPELINE (16), BENCH_THREADS (number of cores), BENCH_KEYS (100000).
set -euo pipefail
source "$(dirname "$0")/common.sh"
benchmark_settings
comparison_servers
print_setup
rows=()
for bytes in 3 64 1024; do
    rows+=("set $bytes $BENCH_PIPELINE" "get $bytes $BENCH_PIPELINE")
done
benchmark_table "${rows[@]}" "set 64 1" "get 64 1"
latency_table p50 p99 p100
ratio_table
