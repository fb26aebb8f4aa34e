#!/usr/bin/env bash
# The threads of ember on one core under full load: the processor time and the longest run of each, and for how long each
# delays a worker. The load is on another core. Needs perf and the right to trace the scheduler. Settings: BENCH_SECONDS (3
# per measurement), BENCH_CLIENTS (50), BENCH_PIPELINE (16), ELEMENT_COUNT (1000000 keys to choose from), VALUE_SIZE (64).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
need perf "install the package linux-perf"
need python3 "install the package python3"
choose_processors
BENCH_SECONDS=${BENCH_SECONDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}
ELEMENT_COUNT=${ELEMENT_COUNT:-1000000}
VALUE_SIZE=${VALUE_SIZE:-64}

data=$(printf "%${VALUE_SIZE}s" "" | tr " " x)
declare -A words=(
    [GET]="GET key:__rand_int__"
    [SET]="SET key:__rand_int__ $data"
    [HSET]="HSET hash element:__rand_int__ $data"
    [expiring]="SET expiring:__rand_int__ $data PX 200"
)
# The rows: a command, and the condition under which it is measured.
rows=("SET growing" "HSET growing" "SET steady" "GET steady" "expiring keys" "SET evicting" "SET saving" "SET rewriting")

# Traces the server's core during a load; prints the lines of threads.py.
measure() { # port, pid, command
    local load
    # The words of a command contain no blanks. The load is stopped when the trace ends.
    # shellcheck disable=SC2086
    taskset -c "$load_cpu" redis-benchmark -p "$1" -n 1000000000 -c "$BENCH_CLIENTS" -P "$BENCH_PIPELINE" \
        -r "$ELEMENT_COUNT" -q ${words[$3]} >/dev/null 2>&1 &
    load=$!
    taskset -c "$load_cpu" perf sched record -q -C "$server_cpu" -o "$bench_work/trace" -- sleep "$BENCH_SECONDS" \
        >"$bench_work/perf.log" 2>&1 || fail "perf cannot trace the scheduler: $(tail -n 3 "$bench_work/perf.log")"
    kill "$load"
    wait "$load" 2>/dev/null || true
    perf sched timehist --state -i "$bench_work/trace" 2>/dev/null | python3 "$bench_root/bench/threads.py" "$2" ||
        fail "the trace has no worker of the server"
}

start_pinned ember "$(ember_server)" --shards 1
describe "seconds=$BENCH_SECONDS clients=$BENCH_CLIENTS pipeline=$BENCH_PIPELINE elements=$ELEMENT_COUNT" \
    "value-bytes=$VALUE_SIZE cores=$(nproc)"
table_begin "" "load, thread" "ms per second" "longest run, µs" "longest delay of a worker, µs"
for row in "${rows[@]}"; do
    read -r command condition <<<"$row"
    begin_condition "$ember_port" "$condition"
    measure "$ember_port" "$ember_pid" "$command" >"$bench_work/threads"
    end_condition "$ember_port" "$condition"
    while IFS=$'\t' read -r thread time longest delay; do
        table_row "$row, $thread" "$time" "$longest" "$delay"
    done <"$bench_work/threads"
done
