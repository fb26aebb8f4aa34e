#!/usr/bin/env bash
# Cost and speed of replication: SET with and without a replica, with and without an append-only file; replies that wait
# for the replica; the lag of a replica; its speed of applying with as many cores as its primary; and a full sync and
# the time for which commands wait for it, compared with redis-server. The primary is on one core, the replica and the
# load on another. Settings: BENCH_REQUESTS (1000000 per measurement at P=16, a tenth of that at P=1), BENCH_ROUNDS (3,
# the median counts), BENCH_CLIENTS (50), BENCH_VALUE_BYTES (64), BENCH_KEYS (100000), BENCH_SECONDS (5, duration of the
# lag measurement), KEY_COUNT (5000000), EMBER_BEFORE (none: an older ember-server to compare with, both without
# replicas).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
need python3 "install the package python3"
choose_processors
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_VALUE_BYTES=${BENCH_VALUE_BYTES:-64}
BENCH_KEYS=${BENCH_KEYS:-100000}
BENCH_SECONDS=${BENCH_SECONDS:-5}
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

# Waits until a replica has all data of its primary, to which no client writes: wait_for_replica PRIMARY_PORT
# REPLICA_PORT
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

measure() { # name, pipeline, test: requests per second and CPU time per operation
    local port="$1_port" pid="$1_pid" before
    BENCH_REQUESTS=$(($2 == 1 ? all_requests / 10 : all_requests))
    before=$(cpu_ticks "${!pid}")
    requests_per_second "${!port}" "${3:-set}" "$BENCH_VALUE_BYTES" "$2" >>"$bench_work/$1-rate"
    echo $((($(cpu_ticks "${!pid}") - before) * 1000000000 / $(getconf CLK_TCK) / BENCH_REQUESTS)) >>"$bench_work/$1-ns"
}

describe "requests=$all_requests rounds=$BENCH_ROUNDS clients=$BENCH_CLIENTS value-bytes=$BENCH_VALUE_BYTES" \
    "keys=$BENCH_KEYS full-sync-keys=$KEY_COUNT cores=$(nproc)"

compare() { # what, without, with, pipeline, test
    local name
    rm -f "$bench_work"/*-rate "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        for name in "$2" "$3"; do measure "$name" "$4" "${5:-set}"; done
    done
    local rate ns other_ns
    rate=$(median <"$bench_work/$2-rate") other_rate=$(median <"$bench_work/$3-rate")
    ns=$(median <"$bench_work/$2-ns") other_ns=$(median <"$bench_work/$3-ns")
    table_row "$1 (P=$4)" "$rate" "$other_rate" "$(ratio "$other_rate" "$rate")" "$ns" "$other_ns" \
        "$(ratio "$other_ns" "$ns")"
}

# Compares a server with and without a replica. The replica takes CPU time from the load, so the server without a
# replica is measured once more while another program takes as much:
# compare_replica WHAT WITHOUT WITH PIPELINE REPLICA
compare_replica() {
    local port="$2_port" pid="$2_pid" replica="$5_pid" ticks begun share busy
    rm -f "$bench_work"/*-rate "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        measure "$2" "$4"
        ticks=$(cpu_ticks "${!replica}") begun=$(date +%s.%N)
        measure "$3" "$4"
        share=$(awk -v ticks="$(($(cpu_ticks "${!replica}") - ticks))" -v hz="$(getconf CLK_TCK)" \
            -v seconds="$(seconds_since "$begun")" \
            'BEGIN { printf "%.3f", (seconds > 0 ? ticks / hz / seconds : 0) + 0.001 }')
        "${bench_load[@]}" python3 "$bench_root/bench/busy.py" "$share" &
        busy=$!
        bench_pids+=("$busy")
        busy_program_port=${!port} busy_program_pid=${!pid}
        measure busy_program "$4"
        kill "$busy"
        wait "$busy" 2>/dev/null || true
    done
    local rate with_busy ns other_ns
    rate=$(median <"$bench_work/$2-rate") other_rate=$(median <"$bench_work/$3-rate")
    with_busy=$(median <"$bench_work/busy_program-rate")
    ns=$(median <"$bench_work/$2-ns") other_ns=$(median <"$bench_work/$3-ns")
    table_row "$1 (P=$4)" "$rate" "$other_rate" "$(ratio "$other_rate" "$rate")" "$with_busy" \
        "$(ratio "$other_rate" "$with_busy")" "$ns" "$other_ns" "$(ratio "$other_ns" "$ns")"
}

start_pinned unreplicated "$(ember_server)" --shards 1
if [ -n "${EMBER_BEFORE:-}" ]; then
    start_pinned before "$EMBER_BEFORE" --shards 1
    table_begin before "without replicas" "older server, requests/s" "this server" ratio "CPU ns per operation" \
        "this server, CPU ns" "CPU ratio"
    for pipeline in 1 16; do
        for test in set get; do compare "${test^^}" before unreplicated "$pipeline" "$test"; done
    done
    kill "$before_pid"
    echo
fi

start_pinned replicated "$(ember_server)" --shards 1 --repl-diskless-sync-delay 0
start_pinned with_aof "$(ember_server)" --shards 1 --appendonly yes
start_pinned replicated_aof "$(ember_server)" --shards 1 --repl-diskless-sync-delay 0 --appendonly yes
start_replica replica "$(ember_server)" "$replicated_port"
start_replica aof_replica "$(ember_server)" "$replicated_aof_port"
table_begin cost test "no replica, requests/s" "one replica" ratio "no replica, busy program" \
    "replica / busy program" "CPU ns per operation" "with a replica, CPU ns" "CPU ratio"
for pipeline in 1 16; do
    compare_replica SET unreplicated replicated "$pipeline" replica
    fastest=$other_rate
    compare_replica "SET with an AOF" with_aof replicated_aof "$pipeline" aof_replica
done
kill "$replicated_aof_pid" "$with_aof_pid" "$aof_replica_pid"

echo
table_begin sync "SET, $BENCH_CLIENTS clients" "async, requests/s" "sync-replicas 1" ratio
rm -f "$bench_work"/*-rate
for _ in $(seq "$BENCH_ROUNDS"); do
    for replicas in 0 1; do
        redis-cli -p "$replicated_port" CONFIG SET sync-replicas "$replicas" >/dev/null
        measure replicated 1
        tail -n 1 "$bench_work/replicated-rate" >>"$bench_work/sync$replicas-rate"
    done
done
async=$(median <"$bench_work/sync0-rate") sync=$(median <"$bench_work/sync1-rate")
table_row "P=1" "$async" "$sync" "$(ratio "$sync" "$async")"

# With sync-replicas, the latency of a reply includes the lag and the round trip. Without, the lag is measured with a
# marker.
echo
table_begin lag load "requests/s" "p50, ms" "p99, ms"
load() { # requests per second, pipeline
    "${bench_load[@]}" "$(ember_cli)" -p "$replicated_port" benchmark --csv --rate "$1" -n "$(($1 * BENCH_SECONDS))" \
        -P "$2" -c "$BENCH_CLIENTS" -d "$BENCH_VALUE_BYTES" -r "$BENCH_KEYS" -t set
}
half=$((async / 2))
line=$(load "$half" 1 | tail -n 1)
redis-cli -p "$replicated_port" CONFIG SET sync-replicas 0 >/dev/null
table_row "SET at half the rate of P=1, until confirmed" "$half" "$(cut -d , -f 5 <<<"$line" | tr -d '"')" \
    "$(cut -d , -f 7 <<<"$line" | tr -d '"')"
half=$((fastest / 2))
load "$half" 16 >"$bench_work/load.csv" &
running=$!
# Samples during the load, not at its start or end.
sleep "$(awk -v seconds="$BENCH_SECONDS" 'BEGIN { print seconds / 10 }')"
read -r p50 p99 _ < <("${bench_load[@]}" python3 "$bench_root/bench/replica-lag.py" "$replicated_port" "$replica_port" \
    "$(awk -v seconds="$BENCH_SECONDS" 'BEGIN { print seconds * 0.8 }')") || fail "cannot measure the lag"
wait "$running" || fail "the load has failed: $(cat "$bench_work/load.csv")"
table_row "SET at half the rate of P=16, asynchronous" "$half" "$p50" "$p99"
bench_cleanup_servers

# The primary writes while its replica is stopped, and the replica then applies the writes from the backlog, so each has
# the same cores in turn. Where the load shares them, the primary gets a smaller part; the CPU time shows it.
echo
table_begin apply "SET (P=16)" "primary writes, requests/s" "replica applies" ratio "primary, CPU ns" "replica, CPU ns" \
    "CPU ratio"
apply() { # what, processors, workers, how to apply
    local begun before primary_ns rate applied replica_ns port
    for name in writer applier; do
        port=$(free_port)
        start_server "$name" "$port" taskset -c "$2" "$(ember_server)" --port "$port" --bind 127.0.0.1 --save "" \
            --shards "$3" --replica-apply "$4" --repl-diskless-sync-delay 0
        printf -v "${name}_port" %s "$port"
        printf -v "${name}_pid" %s "$started_pid"
    done
    redis-cli -p "$applier_port" REPLICAOF 127.0.0.1 "$writer_port" >/dev/null
    until [ "$(info "$applier_port" master_link_status)" = up ]; do sleep 0.02; done
    rm -f "$bench_work"/writes "$bench_work"/applies "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        wait_for_replica "$writer_port" "$applier_port"
        kill -STOP "$applier_pid"
        BENCH_REQUESTS=$all_requests
        before=$(cpu_ticks "$writer_pid")
        requests_per_second "$writer_port" set "$BENCH_VALUE_BYTES" 16 >>"$bench_work/writes"
        echo $((($(cpu_ticks "$writer_pid") - before) * 1000000000 / $(getconf CLK_TCK) / all_requests)) \
            >>"$bench_work/primary-ns"
        before=$(cpu_ticks "$applier_pid")
        begun=$(date +%s.%N)
        kill -CONT "$applier_pid"
        wait_for_replica "$writer_port" "$applier_port"
        awk -v count="$all_requests" -v seconds="$(seconds_since "$begun")" \
            'BEGIN { printf "%d\n", count / (seconds > 0 ? seconds : 0.01) }' >>"$bench_work/applies"
        echo $((($(cpu_ticks "$applier_pid") - before) * 1000000000 / $(getconf CLK_TCK) / all_requests)) \
            >>"$bench_work/replica-ns"
    done
    rate=$(median <"$bench_work/writes") applied=$(median <"$bench_work/applies")
    primary_ns=$(median <"$bench_work/primary-ns") replica_ns=$(median <"$bench_work/replica-ns")
    table_row "$1" "$rate" "$applied" "$(ratio "$applied" "$rate")" "$primary_ns" "$replica_ns" \
        "$(ratio "$replica_ns" "$primary_ns")"
    bench_cleanup_servers
}
apply "one core each" "$server_cpu" 1 serial
if [ "$load_cpu" != "$server_cpu" ]; then
    apply "two cores each, serial" "$server_cpu,$load_cpu" 2 serial
    apply "two cores each, parallel" "$server_cpu,$load_cpu" 2 parallel
fi

echo
table_begin full-sync "full sync of $KEY_COUNT keys" "seconds" "maximum latency of SET, ms" \
    "maximum without a full sync, ms" "difference, ms" "stall that the server reports, ms"
# The measured waits should be for the primary, not for the core of the load, on which the replica loads the data.
replica_with+=(nice -n 10)
max_latency() { # prints the maximum latency of 20,000 SETs of one connection, in ms
    "${bench_load[@]}" redis-benchmark -p "$source_port" -c 1 -n 20000 -r "$BENCH_KEYS" -t set --csv 2>/dev/null |
        tail -n 1 | awk -F '","' '{ sub(/"/, "", $NF); print $NF }'
}
# Prints the longest stall of all commands for a full sync, as the server reports it: ember in its log, Redis for its
# last fork.
reported_stall() {
    local forked
    forked=$(info "$source_port" latest_fork_usec)
    if [ "${forked:-0}" -gt 0 ]; then
        awk -v us="$forked" 'BEGIN { printf "%.3f\n", us / 1000 }'
    else
        sed -n 's/.*a full sync starts; commands waited \([0-9.]*\) ms for it.*/\1/p' \
            "$bench_work/source.log" | sort -n | tail -n 1
    fi
}
full_sync() { # name, program, arguments…
    local name=$1 program=$2 load begun file
    shift 2
    start_pinned source "$program" "$@" --repl-diskless-sync-delay 0
    fill_keys "$source_port" "$KEY_COUNT" "$BENCH_VALUE_BYTES"
    for file in seconds with without differences; do rm -f "$bench_work/$file"; done
    # Each full sync is compared with as many SETs without one.
    for _ in $(seq "$BENCH_ROUNDS"); do
        rm -f "$bench_work/synced"
        while [ ! -e "$bench_work/synced" ]; do max_latency; done >"$bench_work/longest" &
        load=$!
        begun=$(date +%s.%N)
        start_replica target "$program" "$source_port"
        seconds_since "$begun" >>"$bench_work/seconds"
        echo >>"$bench_work/seconds"
        touch "$bench_work/synced"
        wait "$load"
        kill "$target_pid"
        wait "$target_pid" 2>/dev/null || true
        for _ in $(seq "$(wc -l <"$bench_work/longest")"); do max_latency; done >"$bench_work/longest-without"
        for file in longest longest-without; do sort -n "$bench_work/$file" | tail -n 1 >"$bench_work/$file-of-all"; done
        cat "$bench_work/longest-of-all" >>"$bench_work/with"
        cat "$bench_work/longest-without-of-all" >>"$bench_work/without"
        paste "$bench_work/longest-of-all" "$bench_work/longest-without-of-all" |
            awk '{ printf "%.3f\n", $1 - $2 }' >>"$bench_work/differences"
    done
    table_row "$name" "$(median <"$bench_work/seconds")" "$(median <"$bench_work/with")" \
        "$(median <"$bench_work/without")" "$(median <"$bench_work/differences")" "$(reported_stall)"
    bench_cleanup_servers
}
full_sync ember "$(ember_server)"
if has_peer "$redis_program"; then full_sync redis-server "$redis_program" --appendonly no; fi
