#!/usr/bin/env bash
# Throughput of stores in files of an engine. Durable SETs, compared with an append-only file that syncs every write,
# over several checkpoints, with the slowest second; SETs without fsync and GETs of hot and cold keys, with four times
# as much data as memory; and keys per second at startup. `cargo bench -p ember-storage --bench engines` measures the
# engines alone on the same disk. Rates are medians of rounds in which the stores take turns. Settings: ENGINES (redb
# lmdb fjall), ENGINES_FOLDER (folder of the stores, which selects the disk; default: the folder of the results),
# ENGINES_MIB (128, the memory limit), KEY_COUNT (2000000 keys for the startup), BENCH_SECONDS (20, per measurement),
# BENCH_ROUNDS (3).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
ENGINES=${ENGINES:-redb lmdb fjall}
ENGINES_MIB=${ENGINES_MIB:-128}
KEY_COUNT=${KEY_COUNT:-2000000}
BENCH_SECONDS=${BENCH_SECONDS:-20}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
mkdir -p "$bench_results"
folder=$(mktemp -d -p "${ENGINES_FOLDER:-$bench_results}")
trap 'bench_cleanup; rm -rf "$folder"' EXIT

# Starts an ember with a store in a separate folder: start STORE [ARGUMENT…]. Sets port, STORE_port and STORE_pid.
start() {
    local store=$1
    shift
    port=$(free_port)
    start_server "$store" "$port" "$(ember_server)" --port "$port" --bind 127.0.0.1 --store "$store" \
        --path "$folder/$store" "$@"
    printf -v "${store}_port" %s "$port"
    printf -v "${store}_pid" %s "$started_pid"
}

remove_store() { # store
    local pid="$1_pid"
    stop_server "${!pid}"
    rm -rf "${folder:?}/$1" "${bench_work:?}/$1"
}

info() { # field of INFO
    redis-cli -p "$port" INFO everything | awk -F : -v name="$1" '$1 == name { sub(/\r/, "", $2); print $2 }'
}

load() { # options; prints requests per second
    load_at "$port" "$@"
}

load_at() { # port, options
    "$(ember_cli)" benchmark -p "$1" --timeout 300 --csv "${@:2}" |
        awk -F '","' 'NR == 2 { printf "%d\n", $2; found = 1 } END { exit !found }'
}

# Durable SETs: requests per second, the slowest second divided by the median one, and the number of checkpoints.
durable() { # clients, pipeline
    local checkpoints rate
    checkpoints=$(info aof_rewrites)
    (while info total_commands_processed; do sleep 1; done >"$bench_work/seconds" 2>/dev/null) &
    local sampling=$!
    bench_pids+=("$sampling")
    rate=$(load -t set -d 256 -r 1000000 -c "$1" -P "$2" --duration "$BENCH_SECONDS")
    stop_server "$sampling"
    awk 'NR > 2 { print $1 - before } { before = $1 }' "$bench_work/seconds" | sort -n >"$bench_work/rates"
    echo "$rate $(ratio "$(head -n 1 "$bench_work/rates")" "$(median <"$bench_work/rates")")" \
        $(($(info aof_rewrites) - checkpoints))
}

# A column of the rounds of a store: column NAME NUMBER.
column() {
    cut -d " " -f "$2" "$bench_work/$1-rounds" | median
}

describe "memory=${ENGINES_MIB}mb startup-keys=$KEY_COUNT seconds=$BENCH_SECONDS rounds=$BENCH_ROUNDS cores=$(nproc)"
table_begin durable "durable SETs of 256 bytes" "requests/s" "/ map" "slowest second / median" checkpoints
for row in "1 1" "256 1" "256 256"; do
    read -r clients pipeline <<<"$row"
    rm -f "$bench_work"/*-rounds
    for _ in $(seq "$BENCH_ROUNDS"); do
        for store in map $ENGINES; do
            start "$store" --fsync yes
            durable "$clients" "$pipeline" >>"$bench_work/$store-rounds"
            remove_store "$store"
        done
    done
    for store in map $ENGINES; do
        rate=$(column "$store" 1)
        table_row "$store, C=$clients P=$pipeline" "$rate" "$(ratio "$rate" "$(column map 1)")" "$(column "$store" 2)" \
            "$(column "$store" 3)"
    done
done

keys=$((ENGINES_MIB * 4 * 1024))
echo
echo "Values of 1 KiB; all data of map are resident, the others have four times as much data as memory ($keys keys):"
echo
table_begin larger store "SET without fsync" "GET of hot keys" "hot / map" "GET of cold keys"
# Puts all writes into the store.
checkpoint() {
    while [ "$(info aof_rewrite_in_progress)" = 1 ]; do sleep 0.2; done
    redis-cli -p "$port" BGREWRITEAOF >"$bench_work/checkpoint"
    sleep 0.5
    while [ "$(info aof_rewrite_in_progress)" = 1 ]; do sleep 0.2; done
}
sets() {
    load -t set -d 1024 -r "$keys" -n "$keys" -c 50 -P 16 --key-pattern sequential
}
# The load generator writes all keys before it measures, so a checkpoint may still be running.
gets() { # port, keys
    load_at "$1" --ratio 0:1 -d 1024 -r "$2" -c 50 -P 16 --warm-up 4 --duration "$BENCH_SECONDS"
}
start map --fsync no
written=$(sets)
# `start` sets these variables.
# shellcheck disable=SC2154
table_row map "$written" "$(gets "$map_port" 1000)" 1.00 "$(gets "$map_port" "$keys")"
for store in $ENGINES; do
    start "$store" --fsync no --maxmemory "${ENGINES_MIB}mb"
    written=$(sets)
    checkpoint
    rm -f "$bench_work"/*-rounds
    for _ in $(seq "$BENCH_ROUNDS"); do
        gets "$map_port" 1000 >>"$bench_work/map-rounds"
        gets "$port" 1000 >>"$bench_work/$store-rounds"
    done
    hot=$(column "$store" 1)
    table_row "$store" "$written" "$hot" "$(ratio "$hot" "$(column map 1)")" "$(gets "$port" "$keys")"
    remove_store "$store"
done
remove_store map

echo
echo "Startup with $KEY_COUNT keys and values of 64 bytes:"
echo
table_begin startup store "seconds" "keys/s" "file, MiB"
for store in $ENGINES; do
    start "$store" --fsync no
    load -t set -d 64 -r "$KEY_COUNT" -n "$KEY_COUNT" -c 50 -P 50 --key-pattern sequential >"$bench_work/fill"
    checkpoint
    bench_cleanup_servers
    start "$store" --fsync no
    while ! grep -q "loaded .* keys of the store" "$bench_work/$store.log"; do sleep 0.1; done
    seconds=$(sed -n 's/.* keys of the store in \([0-9.]*\) seconds.*/\1/p' "$bench_work/$store.log")
    table_row "$store" "$seconds" "$(awk -v keys="$KEY_COUNT" -v seconds="$seconds" \
        'BEGIN { printf "%d", keys / (seconds > 0 ? seconds : 0.001) }')" "$(du -sm "$folder/$store" | cut -f 1)"
    remove_store "$store"
done
