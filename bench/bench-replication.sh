#!/usr/bin/env bash
# What replication costs and how fast it is: SET with and without a replica, with and without an append-only file; replies
# that wait for the replica; how late it has what was written; how fast it applies; a copy of all data, and how long
# commands wait meanwhile, beside redis-server. The primary is on one core, the replica and the load on another. Settings:
# BENCH_REQUESTS (1000000 for each measurement at P=16, a tenth of that at P=1), BENCH_ROUNDS (3, the median counts),
# BENCH_CLIENTS (50), BENCH_VALUE_BYTES (64), BENCH_KEYS (100000), KEY_COUNT (5000000).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
choose_processors
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_VALUE_BYTES=${BENCH_VALUE_BYTES:-64}
BENCH_KEYS=${BENCH_KEYS:-100000}
KEY_COUNT=${KEY_COUNT:-5000000}
all_requests=$BENCH_REQUESTS
BENCH_THREADS=1
bench_load=(taskset -c "$load_cpu")
replica_with=("${bench_load[@]}")

info() { # port, field
    redis-cli -p "$1" INFO everything | awk -F : -v name="$2" '$1 == name { sub(/\r/, "", $2); print $2 }'
}

seconds_since() { # time as date +%s.%N gives it
    awk -v then="$1" -v now="$(date +%s.%N)" 'BEGIN { printf "%.2f", now - then }'
}

# Waits until a replica has all that its primary has, which is not written to: wait_for_replica PRIMARY_PORT REPLICA_PORT
wait_for_replica() {
    until [ "$(info "$1" master_repl_offset)" = "$(info "$2" slave_repl_offset)" ]; do sleep 0.02; done
}

start_replica() { # name, program, port of the primary
    local port
    port=$(free_port)
    start_server "$1" "$port" "${replica_with[@]}" "$2" --port "$port" --bind 127.0.0.1 --save "" \
        --replicaof "127.0.0.1 $3"
    printf -v "${1}_port" %s "$port"
    printf -v "${1}_pid" %s "$started_pid"
    until [ "$(info "$port" master_link_status)" = up ]; do sleep 0.02; done
}

measure() { # name, pipeline: requests a second and CPU time of an operation
    local port="$1_port" pid="$1_pid" before
    BENCH_REQUESTS=$(($2 == 1 ? all_requests / 10 : all_requests))
    before=$(cpu_ticks "${!pid}")
    requests_per_second "${!port}" set "$BENCH_VALUE_BYTES" "$2" >>"$bench_work/$1-rate"
    echo $((($(cpu_ticks "${!pid}") - before) * 1000000000 / $(getconf CLK_TCK) / BENCH_REQUESTS)) >>"$bench_work/$1-ns"
}

describe "requests=$all_requests rounds=$BENCH_ROUNDS clients=$BENCH_CLIENTS value-bytes=$BENCH_VALUE_BYTES" \
    "keys=$BENCH_KEYS copied-keys=$KEY_COUNT cores=$(nproc)"

start_pinned alone "$(ember_server)" --shards 1
start_pinned led "$(ember_server)" --shards 1 --repl-diskless-sync-delay 0
start_pinned kept "$(ember_server)" --shards 1 --appendonly yes
start_pinned both "$(ember_server)" --shards 1 --repl-diskless-sync-delay 0 --appendonly yes
start_replica follower "$(ember_server)" "$led_port"
start_replica other_follower "$(ember_server)" "$both_port"
table_begin cost test "none, requests/s" "one replica" ratio "CPU ns an operation" "with a replica, CPU ns" "CPU ratio"
compare() { # what, without, with, pipeline
    local name
    rm -f "$bench_work"/*-rate "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        for name in "$2" "$3"; do measure "$name" "$4"; done
    done
    local rate other_rate ns other_ns
    rate=$(median <"$bench_work/$2-rate") other_rate=$(median <"$bench_work/$3-rate")
    ns=$(median <"$bench_work/$2-ns") other_ns=$(median <"$bench_work/$3-ns")
    table_row "$1 (P=$4)" "$rate" "$other_rate" "$(ratio "$other_rate" "$rate")" "$ns" "$other_ns" \
        "$(ratio "$other_ns" "$ns")"
    [ "$1" != SET ] || set_rate=$other_rate
}
for pipeline in 1 16; do
    compare SET alone led "$pipeline"
    compare "SET with an AOF" kept both "$pipeline"
done
fastest=$set_rate
kill "$both_pid" "$kept_pid" "$other_follower_pid"

echo
table_begin sync "SET, $BENCH_CLIENTS clients" "async, requests/s" "sync-replicas 1" ratio
rm -f "$bench_work"/*-rate
for _ in $(seq "$BENCH_ROUNDS"); do
    for replicas in 0 1; do
        redis-cli -p "$led_port" CONFIG SET sync-replicas "$replicas" >/dev/null
        measure led 1
        tail -n 1 "$bench_work/led-rate" >>"$bench_work/sync$replicas-rate"
    done
done
async=$(median <"$bench_work/sync0-rate") sync=$(median <"$bench_work/sync1-rate")
table_row "P=1" "$async" "$sync" "$(ratio "$sync" "$async")"

# With sync-replicas a reply is as late as the replica is, and the way there and back.
echo
table_begin lag load "requests/s" "p50 until confirmed, ms" "p99, ms"
half=$((async / 2))
line=$("${bench_load[@]}" "$(ember_cli)" -p "$led_port" benchmark --csv --rate "$half" -n "$((half * 5))" \
    -c "$BENCH_CLIENTS" -d "$BENCH_VALUE_BYTES" -t set | tail -n 1)
redis-cli -p "$led_port" CONFIG SET sync-replicas 0 >/dev/null
table_row "SET at half of P=1" "$half" "$(cut -d , -f 5 <<<"$line" | tr -d '"')" "$(cut -d , -f 7 <<<"$line" | tr -d '"')"

# What is written while the replica stands still comes from the backlog when it goes on.
echo
table_begin apply "SET, P=16" "primary writes, requests/s" "replica applies" ratio
kill -STOP "$follower_pid"
BENCH_REQUESTS=$all_requests
requests_per_second "$led_port" set "$BENCH_VALUE_BYTES" 16 >/dev/null
begun=$(date +%s.%N)
kill -CONT "$follower_pid"
wait_for_replica "$led_port" "$follower_port"
applied=$(awk -v count="$all_requests" -v seconds="$(seconds_since "$begun")" 'BEGIN { printf "%d", count / seconds }')
table_row "behind by $all_requests" "$fastest" "$applied" "$(ratio "$applied" "$fastest")"
bench_cleanup_servers

echo
table_begin copy "a copy of $KEY_COUNT keys" "seconds" "longest wait of SET, ms" "longest wait without, ms"
# The waits are to be those for the primary, and not those of the load for its core, on which the replica loads the data.
replica_with+=(nice -n 10)
copy() { # name, program, arguments…
    local name=$1 program=$2 without load begun seconds
    shift 2
    start_pinned source "$program" "$@" --repl-diskless-sync-delay 0
    fill_keys "$source_port" "$KEY_COUNT" "$BENCH_VALUE_BYTES"
    waits() { # requests
        "${bench_load[@]}" redis-benchmark -p "$source_port" -c 1 -n "$1" -r "$BENCH_KEYS" -t set --csv 2>/dev/null |
            tail -n 1 | awk -F '","' '{ sub(/"/, "", $NF); print $NF }'
    }
    without=$(waits 20000)
    rm -f "$bench_work/copied" "$bench_work/longest"
    while [ ! -e "$bench_work/copied" ]; do waits 20000; done >"$bench_work/longest" &
    load=$!
    begun=$(date +%s.%N)
    start_replica target "$program" "$source_port"
    seconds=$(seconds_since "$begun")
    touch "$bench_work/copied"
    wait "$load"
    table_row "$name" "$seconds" "$(sort -n "$bench_work/longest" | tail -n 1)" "$without"
    bench_cleanup_servers
}
copy ember "$(ember_server)"
if has_peer "$redis_program"; then copy redis-server "$redis_program" --appendonly no; fi
