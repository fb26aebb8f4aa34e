#!/usr/bin/env bash
# What live queries take and how late they tell: memory for each watch, the time from the reply to a write to the last who
# is told, SETs beside many watches and of a key that many watch, and a watcher that does not read, with the others beside
# it. Each figure stands beside what is promised of two cores without other work. All share the processors there are: so
# fan-out.c tells how late the last is told by a program that does nothing else, where there is a compiler for it.
# Settings: BENCH_SECONDS (10 for each measurement), BENCH_ROUNDS (3, the median counts), ELEMENT_COUNT (1000000 watches),
# BENCH_CLIENTS (10000 connections that watch one key), BENCH_PIPELINE (16), BENCH_WORKERS (2, ember's workers).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
BENCH_SECONDS=${BENCH_SECONDS:-10}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
ELEMENT_COUNT=${ELEMENT_COUNT:-1000000}
BENCH_CLIENTS=${BENCH_CLIENTS:-10000}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}
BENCH_WORKERS=${BENCH_WORKERS:-2}

start() {
    port=$(free_port)
    start_server ember "$port" "$(ember_server)" --port "$port" --shards "$BENCH_WORKERS" --save "" --maxclients 20000 \
        --watch-max-memory 4gb
}

# Has connections watch keys until they are ended, and waits until they do: watch KEYS CONNECTIONS; sets watching.
watch() {
    "$(ember_cli)" benchmark -p "$port" --watch "$1" -c "$2" -d 64 >"$bench_work/watches" 2>&1 &
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

# The p99 of the time to the last of so many connections that watch one key, one write a second.
late() { # connections
    start
    "$(ember_cli)" benchmark -p "$port" --watch 1 -c "$1" -d 64 --rate 1 --duration "$BENCH_SECONDS" >"$bench_work/late"
    sed -n 's/.* \([0-9.]*\) ms (p99).*/\1/p' "$bench_work/late"
    bench_cleanup_servers
}

# The same for a program that only writes.
alone() { # connections
    "$bench_work/fan-out" "$1" "$BENCH_SECONDS"
}

# The p99 of what others ask while a key is changed as often as there is room for, up to 100000 times a second.
others() {
    "$(ember_cli)" benchmark -p "$port" -P "$BENCH_PIPELINE" --rate 100000 --duration "$BENCH_SECONDS" -q \
        INCR stalled >/dev/null &
    local writing=$!
    "$(ember_cli)" benchmark -p "$port" -t get -d 64 -c 8 -P 1 --rate 2000 --duration "$BENCH_SECONDS" --csv |
        awk -F '","' 'NR == 2 { print $7 }'
    wait "$writing"
}

# A watcher that reads nothing while its key is written: what the server keeps for it, how late others are answered beside
# it, and what the watcher reads at last.
stalled() {
    local line value="" without
    start
    without=$(others)
    exec {stalled}<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET.WATCH stalled\r\n' >&"$stalled"
    ratio "$(others)" "$without" >>"$bench_work/others"
    echo >>"$bench_work/others"
    redis-cli -p "$port" CLIENT LIST | sed -n 's/.* tot-mem=\([0-9]*\).* queries=1$/\1/p' >"$bench_work/stalled"
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
for ((round = 0; round < BENCH_ROUNDS; round++)); do
    start
    # The keys are there before either is measured.
    sets -t set -r "$ELEMENT_COUNT" >/dev/null
    # Without watches before and behind: a server that has just been filled gets faster for some seconds.
    before=$(sets -t set -r "$ELEMENT_COUNT")
    watch "$ELEMENT_COUNT" 1000
    sed 's/.* \([0-9]*\) bytes each/\1/' "$bench_work/watches" >>"$bench_work/bytes"
    watched=$(sets -t set -r "$ELEMENT_COUNT")
    unwatch
    ratio "$watched" "$(((before + $(sets -t set -r "$ELEMENT_COUNT")) / 2))" >>"$bench_work/beside"
    echo >>"$bench_work/beside"
    watch 1 100
    watched=$(sets SET watch:0000000000 value)
    unwatch
    ratio "$watched" "$(sets SET watch:0000000000 value)" >>"$bench_work/hot"
    echo >>"$bench_work/hot"
    bench_cleanup_servers
    late "$BENCH_CLIENTS" >>"$bench_work/many"
    late 100 >>"$bench_work/few"
    if [ -x "$bench_work/fan-out" ]; then
        alone "$BENCH_CLIENTS" >>"$bench_work/many_alone"
        alone 100 >>"$bench_work/few_alone"
    fi
    stalled
    cat "$bench_work/stalled" >>"$bench_work/kept"
done

describe "watches=$ELEMENT_COUNT clients=$BENCH_CLIENTS pipeline=$BENCH_PIPELINE workers=$BENCH_WORKERS" \
    "seconds=$BENCH_SECONDS rounds=$BENCH_ROUNDS cores=$(nproc)"
row() { # what is measured, its file, at-most or at-least, the promise
    local found
    found=$(median <"$bench_work/$2")
    table_row "$1" "$found" "${3/-/ } $4" "$(awk -v found="$found" -v promise="$4" -v side="$3" \
        'BEGIN { print (side == "at-most" ? found <= promise : found >= promise) ? "yes" : "no" }')"
}

table_begin "" figure ember promised kept
row "memory for each of $ELEMENT_COUNT watches of 1000 connections, bytes" bytes at-most 350
row "SET of other keys beside them, of those without" beside at-least 0.97
row "SET of one key that 100 watch, of those without" hot at-least 0.85
row "write's reply to the last of $BENCH_CLIENTS told, p99 in ms" many at-most 60
row "write's reply to the last of 100 told, p99 in ms" few at-most 1
if [ -x "$bench_work/fan-out" ]; then
    table_row "the first message to the last of $BENCH_CLIENTS by fan-out.c, p99 in ms" \
        "$(median <"$bench_work/many_alone")" "" ""
    table_row "the first message to the last of 100 by fan-out.c, p99 in ms" "$(median <"$bench_work/few_alone")" "" ""
fi
row "memory of a watcher that does not read, bytes" kept at-most 131072
row "p99 of others beside it, of that without" others at-most 1.10
