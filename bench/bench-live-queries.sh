#!/usr/bin/env bash
# What live queries take and how late they tell: memory for each watch, the time from the reply to a write to the last who
# is told, SETs beside many watches and of a key that many watch, and a watcher that does not read, with the others beside
# it. Each figure stands beside what is promised of two cores without other work. All share the processors there are: so
# fan-out.c tells how late the last is told by a program that does nothing else, where there is a compiler for it.
# A server that has just been filled gets faster for some seconds, so what SETs cost is measured after a warm-up, with and
# without watches in turn, and by the server's processor time: the load shares the processors with it.
# Settings: BENCH_SECONDS (10 for each measurement), BENCH_ROUNDS (3, the median counts), ELEMENT_COUNT (1000000 watches),
# BENCH_CLIENTS (10000 connections that watch one key), BENCH_PIPELINE (16), BENCH_WORKERS (2, ember's workers),
# WRITE_COUNT (60 writes or more, whose p99 counts), WARM_UP_SECONDS (20), TURN_COUNT (5 with and 5 without watches),
# STALLED_SECONDS (60), DICEDB (none: the program of DiceDB: how late it tells is measured, too. Under a load of several
# connections it stops to answer. It sends reports to its makers: run it where it reaches nobody).
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

# Has connections watch keys until they are ended, and waits until they do: watch KEYS CONNECTIONS; sets watching.
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

sets() { # what the load generator is told; prints SETs a second
    "$(ember_cli)" benchmark -p "$port" -d 64 -P "$BENCH_PIPELINE" --duration "$BENCH_SECONDS" --csv "$@" |
        awk -F '","' 'NR == 2 { sub(/\..*/, "", $2); print $2 }'
}

# The server's processor time for each SET of keys that are there, in ns, and what of it is the server's own, without the
# system's: set_cost.
set_cost() {
    local ticks own calls nanoseconds
    calls=$(set_calls)
    ticks=$(cpu_ticks "$started_pid")
    own=$(own_ticks "$started_pid")
    sets -t set -r "$ELEMENT_COUNT" >/dev/null
    ticks=$(($(cpu_ticks "$started_pid") - ticks))
    own=$(($(own_ticks "$started_pid") - own))
    calls=$(($(set_calls) - calls))
    nanoseconds=$((1000000000 / $(getconf CLK_TCK)))
    echo $((ticks * nanoseconds / calls)) $((own * nanoseconds / calls))
}

set_calls() {
    redis-cli -p "$port" INFO commandstats | sed -n 's/^cmdstat_set:calls=\([0-9]*\),.*/\1/p'
}

# The p99 of the time to the last of so many connections that watch one key, with so many writes a second.
late() { # connections, writes a second
    "$(ember_cli)" benchmark -p "$port" --watch 1 -c "$1" -d 64 --rate "$2" --duration "$WRITE_COUNT" >"$bench_work/late"
    sed -n 's/.* \([0-9.]*\) ms (p99).*/\1/p' "$bench_work/late"
}

start_dicedb() {
    port=$(free_port)
    start_server dicedb "$port" "$DICEDB" -host 127.0.0.1 -port "$port" -enable-watch -enable-multithreading \
        -keys-limit 2000000 -log-dir "$bench_work/dicedb"
}

# It may not end when it is asked to.
end_dicedb() {
    kill -KILL "$started_pid"
    bench_cleanup_servers
}

# How late DiceDB tells the last one; nothing where it does not.
dicedb_late() { # connections, writes a second
    start_dicedb
    late "$1" "$2" || true
    end_dicedb
}

# The same for a program that only writes.
alone() { # connections
    "$bench_work/fan-out" "$1" "$WRITE_COUNT"
}

# The p99 of what others ask while a key is changed as often as there is room for, up to 100000 times a second; how often it
# was is written to a file.
others() { # file
    "$(ember_cli)" benchmark -p "$port" -P "$BENCH_PIPELINE" --rate 100000 --duration "$STALLED_SECONDS" --csv \
        INCR stalled >"$bench_work/incr" &
    local writing=$!
    "$(ember_cli)" benchmark -p "$port" -t get -d 64 -c 8 -P 1 --rate 2000 --duration "$STALLED_SECONDS" --csv |
        awk -F '","' 'NR == 2 { print $7 }'
    wait "$writing"
    awk -F '","' 'NR == 2 { sub(/\..*/, "", $2); print $2 }' "$bench_work/incr" >>"$bench_work/$1"
}

# A watcher that reads nothing while its key is written: what the server keeps for it, by its own account and by how much the
# process grows, how late others are answered beside it, and what the watcher reads at last.
stalled() {
    local line value="" without resident
    start
    without=$(others changes_without)
    exec {stalled}<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET.WATCH stalled\r\n' >&"$stalled"
    resident=$(resident_kib "$started_pid")
    ratio "$(others changes)" "$without" >>"$bench_work/others"
    echo >>"$bench_work/others"
    echo $((($(resident_kib "$started_pid") - resident) * 1024)) >>"$bench_work/grown"
    redis-cli -p "$port" CLIENT LIST | sed -n 's/.* tot-mem=\([0-9]*\).* queries=1$/\1/p' >>"$bench_work/kept"
    local last
    last=$(redis-cli -p "$port" GET stalled)
    while [ "$value" != "$last" ]; do
        read -r -t 10 -u "$stalled" line || fail "the last state has not come"
        value=${line%$'\r'}
    done
    exec {stalled}>&-
    bench_cleanup_servers
}

if command -v cc >/dev/null; then
    cc -O2 -o "$bench_work/fan-out" "$bench_root/bench/fan-out.c" -lpthread
fi
start
# The keys are there before anything is measured.
sets -t set -r "$ELEMENT_COUNT" >/dev/null
BENCH_SECONDS=$WARM_UP_SECONDS sets -t set -r "$ELEMENT_COUNT" >/dev/null
for ((turn = 0; turn < TURN_COUNT; turn++)); do
    read -r without own_without < <(set_cost)
    watch "$ELEMENT_COUNT" 1000
    sed 's/.* \([0-9]*\) bytes each/\1/' "$bench_work/watches" >>"$bench_work/bytes"
    read -r with own < <(set_cost)
    unwatch
    echo "$without" >>"$bench_work/cost_without"
    echo "$with" >>"$bench_work/cost"
    echo "$own_without" >>"$bench_work/own_without"
    echo "$own" >>"$bench_work/own"
    ratio "$without" "$with" >>"$bench_work/beside"
    echo >>"$bench_work/beside"
    ratio "$own_without" "$own" >>"$bench_work/own_beside"
    echo >>"$bench_work/own_beside"
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
    late "$BENCH_CLIENTS" 1 >>"$bench_work/many"
    bench_cleanup_servers
    start
    late 100 20 >>"$bench_work/few"
    bench_cleanup_servers
    if [ -x "$bench_work/fan-out" ]; then
        alone "$BENCH_CLIENTS" >>"$bench_work/many_alone"
        alone 100 >>"$bench_work/few_alone"
    fi
    stalled
    if [ -n "$DICEDB" ]; then
        dicedb_late "$BENCH_CLIENTS" 1 >>"$bench_work/dicedb_many"
        dicedb_late 100 20 >>"$bench_work/dicedb_few"
    fi
done

describe "watches=$ELEMENT_COUNT clients=$BENCH_CLIENTS pipeline=$BENCH_PIPELINE workers=$BENCH_WORKERS" \
    "seconds=$BENCH_SECONDS rounds=$BENCH_ROUNDS writes=$WRITE_COUNT warm_up=$WARM_UP_SECONDS turns=$TURN_COUNT" \
    "stalled_seconds=$STALLED_SECONDS cores=$(nproc)"
row() { # what is measured, its file, at-most or at-least, the promise
    local found dicedb
    found=$(median <"$bench_work/$2")
    dicedb=""
    if [ -s "$bench_work/dicedb_$2" ]; then dicedb=$(median <"$bench_work/dicedb_$2"); fi
    table_row "$1" "$found" "$dicedb" "${3/-/ } $4" "$(awk -v found="$found" -v promise="$4" -v side="$3" \
        'BEGIN { print (side == "at-most" ? found <= promise : found >= promise) ? "yes" : "no" }')"
}

table_begin "" figure ember DiceDB promised kept
row "memory for each of $ELEMENT_COUNT watches of 1000 connections, bytes" bytes at-most 350
row "SET of other keys beside them, of those without, by the server's processor time" beside at-least 0.97
row "the same, by what of that is the server's own" own_beside at-least 0.97
table_row "processor time of a SET beside them, ns" "$(median <"$bench_work/cost")" "" "" ""
table_row "the same without, ns" "$(median <"$bench_work/cost_without")" "" "" ""
table_row "what of it is the server's own, ns" "$(median <"$bench_work/own")" "" "" ""
table_row "the same without, ns" "$(median <"$bench_work/own_without")" "" "" ""
row "SET of one key that 100 watch, of those without" hot at-least 0.85
row "write's reply to the last of $BENCH_CLIENTS told, p99 in ms" many at-most 60
row "write's reply to the last of 100 told, p99 in ms" few at-most 1
if [ -x "$bench_work/fan-out" ]; then
    table_row "the first message to the last of $BENCH_CLIENTS by fan-out.c, p99 in ms" \
        "$(median <"$bench_work/many_alone")" "" "" ""
    table_row "the first message to the last of 100 by fan-out.c, p99 in ms" "$(median <"$bench_work/few_alone")" "" "" ""
fi
row "memory of a watcher that does not read, bytes" kept at-most 131072
table_row "growth of the process meanwhile, bytes" "$(median <"$bench_work/grown")" "" "" ""
table_row "changes of its key a second" "$(median <"$bench_work/changes")" "" "" ""
table_row "the same without it" "$(median <"$bench_work/changes_without")" "" "" ""
row "p99 of others beside it, of that without" others at-most 1.10
