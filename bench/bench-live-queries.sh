#!/usr/bin/env bash
# Cost and latency of live queries: memory per watch, the time from the reply to a write until the last watcher is
# notified, SETs with many watches, SETs of a key with many watchers, and a watcher that does not read and its effect on
# other clients. Each figure has a target for two cores without other work. Servers and load share all processors, so
# fan-out.c, where there is a C compiler, measures the same notification time of a program that does nothing else.
#
# A server that has just been filled gets faster for some seconds, so the cost of SETs is measured after a warm-up, with
# and without watches in turn, and as the server's CPU time, because the load shares the processors with it.
#
# Settings: BENCH_SECONDS (10 per measurement), BENCH_ROUNDS (3, the median counts), ELEMENT_COUNT (1000000 watches),
# BENCH_CLIENTS (10000 connections that watch one key), BENCH_PIPELINE (16), BENCH_WORKERS (2, ember's workers),
# WRITE_COUNT (60 writes or more, whose p99 counts), WARM_UP_SECONDS (20), TURN_COUNT (5 with and 5 without watches),
# STALLED_SECONDS (60), DICEDB (none: path of the DiceDB program, whose notification time is measured, too; under a load
# of several connections DiceDB stops replying. It sends reports to its makers: run it without network access).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
BENCH_SECONDS=${BENCH_SECONDS:-10}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
ELEMENT_COUNT=${ELEMENT_COUNT:-1000000}
BENCH_CLIENTS=${BENCH_CLIENTS:-10000}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}
BENCH_WORKERS=${BENCH_WORKERS:-2}
WRITE_COUNT=${WRITE_COUNT:-60}
WARM_UP_SECONDS=${WARM_UP_SECONDS:-20}
TURN_COUNT=${TURN_COUNT:-5}
STALLED_SECONDS=${STALLED_SECONDS:-60}

DICEDB=${DICEDB:-}

start() {
    port=$(free_port)
    start_server ember "$port" "$(ember_server)" --port "$port" --shards "$BENCH_WORKERS" --save "" --maxclients 20000 \
        --watch-max-memory 4gb
}

# Starts connections that watch keys until they are stopped, and waits until all watch: watch KEYS CONNECTIONS; sets
# watching.
watch() {
    "$(ember_cli)" benchmark -p "$port" --watch "$1" -c "$2" -d 64 -P 1000 >"$bench_work/watches" 2>&1 &
    watching=$!
    bench_pids+=("$watching")
    until [ -s "$bench_work/watches" ]; do
        kill -0 "$watching" 2>/dev/null || fail "$(cat "$bench_work/watches")"
        sleep 0.1
    done
}

unwatch() {
    kill "$watching"
    until redis-cli -p "$port" INFO stats | grep -q '^ember_live_watchers:0'; do sleep 0.1; done
}

sets() { # options of the load generator; prints SETs per second
    "$(ember_cli)" benchmark -p "$port" -d 64 -P "$BENCH_PIPELINE" --duration "$BENCH_SECONDS" --csv "$@" |
        awk -F '","' 'NR == 2 { sub(/\..*/, "", $2); print $2 }'
}

# Prints the server's CPU time per SET of existing keys, in ns: the total, and the part in user mode: set_cost.
set_cost() {
    local ticks user calls nanoseconds
    calls=$(set_calls)
    ticks=$(cpu_ticks "$started_pid")
    user=$(user_ticks "$started_pid")
    sets -t set -r "$ELEMENT_COUNT" >/dev/null
    ticks=$(($(cpu_ticks "$started_pid") - ticks))
    user=$(($(user_ticks "$started_pid") - user))
    calls=$(($(set_calls) - calls))
    nanoseconds=$((1000000000 / $(getconf CLK_TCK)))
    echo $((ticks * nanoseconds / calls)) $((user * nanoseconds / calls))
}

set_calls() {
    redis-cli -p "$port" INFO commandstats | sed -n 's/^cmdstat_set:calls=\([0-9]*\),.*/\1/p'
}

# Prints the p99 of the time until the last watcher of one key is notified.
notification_p99() { # connections, writes per second
    "$(ember_cli)" benchmark -p "$port" --watch 1 -c "$1" -d 64 --rate "$2" --duration "$WRITE_COUNT" >"$bench_work/notified"
    sed -n 's/.* \([0-9.]*\) ms (p99).*/\1/p' "$bench_work/notified"
}

start_dicedb() {
    port=$(free_port)
    start_server dicedb "$port" "$DICEDB" -host 127.0.0.1 -port "$port" -enable-watch -enable-multithreading \
        -keys-limit 2000000 -log-dir "$bench_work/dicedb"
}

# DiceDB may ignore a request to stop.
kill_dicedb() {
    kill -KILL "$started_pid"
    bench_cleanup_servers
}

# Prints the same p99 for DiceDB; nothing where DiceDB does not notify.
dicedb_notification_p99() { # connections, writes per second
    start_dicedb
    notification_p99 "$1" "$2" || true
    kill_dicedb
}

# Prints the same p99 for a program that only writes.
fan_out_p99() { # connections
    "$bench_work/fan-out" "$1" "$WRITE_COUNT"
}

# Prints the p99 of other clients' GETs while a key is changed as often as possible, up to 100000 times per second;
# appends the actual rate of changes to a file.
other_clients_p99() { # file
    "$(ember_cli)" benchmark -p "$port" -P "$BENCH_PIPELINE" --rate 100000 --duration "$STALLED_SECONDS" --csv \
        INCR stalled >"$bench_work/incr" &
    local writing=$!
    "$(ember_cli)" benchmark -p "$port" -t get -d 64 -c 8 -P 1 --rate 2000 --duration "$STALLED_SECONDS" --csv |
        awk -F '","' 'NR == 2 { print $7 }'
    wait "$writing"
    awk -F '","' 'NR == 2 { sub(/\..*/, "", $2); print $2 }' "$bench_work/incr" >>"$bench_work/$1"
}

# Measures a watcher that does not read while its key is written: the memory that the server keeps for it, by the
# server's own figures and by the growth of the process, the latency of other clients meanwhile, and the state that the
# watcher reads at last.
stalled() {
    local line value="" without resident
    start
    without=$(other_clients_p99 changes_without)
    exec {stalled}<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET.WATCH stalled\r\n' >&"$stalled"
    resident=$(resident_kib "$started_pid")
    ratio "$(other_clients_p99 changes)" "$without" >>"$bench_work/other_clients"
    echo >>"$bench_work/other_clients"
    echo $((($(resident_kib "$started_pid") - resident) * 1024)) >>"$bench_work/grown"
    redis-cli -p "$port" CLIENT LIST | sed -n 's/.* tot-mem=\([0-9]*\).* queries=1$/\1/p' >>"$bench_work/kept"
    local last
    last=$(redis-cli -p "$port" GET stalled)
    while [ "$value" != "$last" ]; do
        read -r -t 10 -u "$stalled" line || fail "the watcher has not received the last state"
        value=${line%$'\r'}
    done
    exec {stalled}>&-
    bench_cleanup_servers
}

if command -v cc >/dev/null; then
    cc -O2 -o "$bench_work/fan-out" "$bench_root/bench/fan-out.c" -lpthread
fi
start
# All keys exist before the measurements.
sets -t set -r "$ELEMENT_COUNT" >/dev/null
BENCH_SECONDS=$WARM_UP_SECONDS sets -t set -r "$ELEMENT_COUNT" >/dev/null
for ((turn = 0; turn < TURN_COUNT; turn++)); do
    read -r without user_without < <(set_cost)
    watch "$ELEMENT_COUNT" 1000
    sed 's/.* \([0-9]*\) bytes each/\1/' "$bench_work/watches" >>"$bench_work/bytes"
    read -r with user < <(set_cost)
    unwatch
    echo "$without" >>"$bench_work/cost_without"
    echo "$with" >>"$bench_work/cost"
    echo "$user_without" >>"$bench_work/user_without"
    echo "$user" >>"$bench_work/user"
    ratio "$without" "$with" >>"$bench_work/sets_ratio"
    echo >>"$bench_work/sets_ratio"
    ratio "$user_without" "$user" >>"$bench_work/user_ratio"
    echo >>"$bench_work/user_ratio"
done
bench_cleanup_servers
for ((round = 0; round < BENCH_ROUNDS; round++)); do
    start
    watch 1 100
    watched=$(sets SET watch:0000000000 value)
    unwatch
    ratio "$watched" "$(sets SET watch:0000000000 value)" >>"$bench_work/hot"
    echo >>"$bench_work/hot"
    bench_cleanup_servers
    start
    notification_p99 "$BENCH_CLIENTS" 1 >>"$bench_work/many"
    bench_cleanup_servers
    start
    notification_p99 100 20 >>"$bench_work/few"
    bench_cleanup_servers
    if [ -x "$bench_work/fan-out" ]; then
        fan_out_p99 "$BENCH_CLIENTS" >>"$bench_work/many_alone"
        fan_out_p99 100 >>"$bench_work/few_alone"
    fi
    stalled
    if [ -n "$DICEDB" ]; then
        dicedb_notification_p99 "$BENCH_CLIENTS" 1 >>"$bench_work/dicedb_many"
        dicedb_notification_p99 100 20 >>"$bench_work/dicedb_few"
    fi
done

describe "watches=$ELEMENT_COUNT clients=$BENCH_CLIENTS pipeline=$BENCH_PIPELINE workers=$BENCH_WORKERS" \
    "seconds=$BENCH_SECONDS rounds=$BENCH_ROUNDS writes=$WRITE_COUNT warm_up=$WARM_UP_SECONDS turns=$TURN_COUNT" \
    "stalled_seconds=$STALLED_SECONDS cores=$(nproc)"
row() { # measurement, its file, at-most or at-least, the target
    local found dicedb
    found=$(median <"$bench_work/$2")
    dicedb=""
    if [ -s "$bench_work/dicedb_$2" ]; then dicedb=$(median <"$bench_work/dicedb_$2"); fi
    table_row "$1" "$found" "$dicedb" "${3/-/ } $4" "$(awk -v found="$found" -v target="$4" -v side="$3" \
        'BEGIN { print (side == "at-most" ? found <= target : found >= target) ? "yes" : "no" }')"
}

table_begin "" figure ember DiceDB target met
row "memory per watch, $ELEMENT_COUNT watches of 1000 connections, bytes" bytes at-most 350
row "SETs of other keys, with these watches / without, by CPU time" sets_ratio at-least 0.97
row "the same, by CPU time in user mode" user_ratio at-least 0.97
table_row "CPU time of a SET with these watches, ns" "$(median <"$bench_work/cost")" "" "" ""
table_row "CPU time of a SET without watches, ns" "$(median <"$bench_work/cost_without")" "" "" ""
table_row "user-mode CPU time of a SET with these watches, ns" "$(median <"$bench_work/user")" "" "" ""
table_row "user-mode CPU time of a SET without watches, ns" "$(median <"$bench_work/user_without")" "" "" ""
row "SETs of one key, with 100 watchers / without" hot at-least 0.85
row "reply to a write until $BENCH_CLIENTS watchers are notified, p99 in ms" many at-most 60
row "reply to a write until 100 watchers are notified, p99 in ms" few at-most 1
if [ -x "$bench_work/fan-out" ]; then
    table_row "first to last of $BENCH_CLIENTS messages of fan-out.c, p99 in ms" \
        "$(median <"$bench_work/many_alone")" "" "" ""
    table_row "first to last of 100 messages of fan-out.c, p99 in ms" "$(median <"$bench_work/few_alone")" "" "" ""
fi
row "memory of a watcher that does not read, bytes" kept at-most 131072
table_row "growth of the process meanwhile, bytes" "$(median <"$bench_work/grown")" "" "" ""
table_row "changes of its key per second" "$(median <"$bench_work/changes")" "" "" ""
table_row "changes per second without such a watcher" "$(median <"$bench_work/changes_without")" "" "" ""
row "p99 of other clients, with such a watcher / without" other_clients at-most 1.10
