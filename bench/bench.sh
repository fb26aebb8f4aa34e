#!/usr/bin/env bash
# Throughput, latencies and ratios of ember in both modes, of redis-server and of the other servers that are installed, on
# free ports. With --ember-only, only ember is measured. Settings: BENCH_REQUESTS, BENCH_CLIENTS, BENCH_PIPELINE,
# BENCH_THREADS, BENCH_KEYS.
set -euo pipefail
source "$(dirname "$0")/common.sh"
benchmark_settings
EMBER_CONCURRENT_PORT=$(free_port)
EMBER_SHARDED_PORT=$(free_port)
REDIS_PORT=$(free_port)
VALKEY_PORT=$(free_port)
KEYDB_PORT=$(free_port)
DRAGONFLY_PORT=$(free_port)
comparison_servers
print_setup
benchmark_table "set 64 1" "get 64 1" "set 64 $BENCH_PIPELINE" "get 64 $BENCH_PIPELINE" "incr 3 $BENCH_PIPELINE" \
    "mset 64 1"
latency_table p50 p99 p100
ratio_table
