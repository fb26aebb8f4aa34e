#!/usr/bin/env bash
# The full matrix with redis-benchmark: ember, redis-server, and dragonfly where there is one. Servers that already
# listen on the ports are used, others are started there. Settings: EMBER_CONCURRENT_PORT (6379), EMBER_SHARDED_PORT
# (6380), REDIS_PORT (6399), DRAGONFLY_PORT (6389), BENCH_REQUESTS (100000), BENCH_CLIENTS (50), BENCH_PIPELINE (16),
# BENCH_THREADS (number of cores).
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
