#!/usr/bin/env bash
# Throughput of ember alone in about ten seconds. Settings: BENCH_REQUESTS, BENCH_CLIENTS, BENCH_PIPELINE,
# BENCH_THREADS, BENCH_KEYS.
set -euo pipefail
source "$(dirname "$0")/common.sh"
benchmark_settings
concurrent=$(free_port)
start_ember ember-concurrent "$concurrent" yes
sharded=$(free_port)
start_ember ember-sharded "$sharded" no
bench_names=("ember concurrent" "ember sharded")
bench_ports=("$concurrent" "$sharded")
print_setup
benchmark_table "set 64 1" "get 64 1" "set 64 $BENCH_PIPELINE" "get 64 $BENCH_PIPELINE"
