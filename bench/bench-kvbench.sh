#!/usr/bin/env bash
# KVBench itself (github.com/tidwall/kvbench) and ember, store by store, on the same disk: SETs of random keys and GETs
# of existing keys, in lower case, because KVBench rejects GET in upper case as unknown. Settings: KVBENCH (path of its
# program; required), STORES_SECONDS (3 per test), STORES_FOLDER (folder of the stores; default: the folder of the
# results), KEY_COUNT (100000), BENCH_CLIENTS (50), BENCH_PIPELINE (16).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
[ -n "${KVBENCH:-}" ] || fail "KVBENCH is required: build github.com/tidwall/kvbench and set the path of its program"
STORES_SECONDS=${STORES_SECONDS:-3}
STORES_FOLDER=${STORES_FOLDER:-$bench_results}
KEY_COUNT=${KEY_COUNT:-100000}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}
mkdir -p "$STORES_FOLDER"
stores=$(mktemp -d -p "$STORES_FOLDER")
trap 'bench_cleanup; rm -rf "$stores"' EXIT

rate() { # port, pipeline, command; prints requests per second; all GETs must hit
    "$(ember_cli)" -p "$1" benchmark -c "$BENCH_CLIENTS" -P "$2" -r "$KEY_COUNT" -d 64 --duration "$STORES_SECONDS" --csv \
        --command "$3" |
        awk -F '","' 'NR > 1 && $11 == 0 && ($13 == "" || $13 == 1) { print int($2); found = 1 } END { exit !found }' ||
        fail "port $1: errors or misses in $3"
}

measure() { # port, pipeline; sets sets and gets, the rates per second, and stops the server
    sets=$(rate "$1" "$2" 'set key:__rand_int__ __data__')
    gets=$(rate "$1" "$2" 'get key:__rand_int__')
    bench_cleanup_servers
}

describe "seconds-per-test=$STORES_SECONDS keys=$KEY_COUNT clients=$BENCH_CLIENTS bytes=64 cores=$(nproc)"
table_begin "" "store (KVBench, ember), fsync, pipeline" \
    "SET/s, KVBench" "SET/s, ember" ratio "GET/s, KVBench" "GET/s, ember" ratio
for pair in "map map" "btree btree" "bolt redb" "leveldb fjall"; do
    read -r theirs ours <<<"$pair"
    for fsync in no yes; do
        flag=false
        [ "$fsync" = no ] || flag=true
        for pipeline in 1 "$BENCH_PIPELINE"; do
            folder=$(mktemp -d -p "$stores")
            port=$(free_port)
            start_server kvbench "$port" "$KVBENCH" -p "$port" -store "$theirs" -path "$folder/kvbench.db" -fsync="$flag"
            measure "$port" "$pipeline"
            their_sets=$sets their_gets=$gets
            port=$(free_port)
            start_server ember "$port" "$(ember_server)" --port "$port" --bind 127.0.0.1 --save "" \
                --store "$ours" --path "$folder/ember.db" --fsync "$fsync"
            measure "$port" "$pipeline"
            rm -rf "$folder"
            table_row "$theirs, $ours, fsync $fsync, P=$pipeline" "$their_sets" "$sets" \
                "$(ratio "$sets" "$their_sets")" "$their_gets" "$gets" "$(ratio "$gets" "$their_gets")"
        done
    done
done
