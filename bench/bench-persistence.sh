#!/usr/bin/env bash
# What keeping data costs, beside redis-server: SET with an append-only file (requests a second and the server's CPU
# time), and how long saving and loading many keys takes. Servers are on CPU 0 and the load on CPU 1 for the first table;
# saving and loading use all cores. Settings: BENCH_REQUESTS (300000 for each measurement, ten times as many with
# pipelines), BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (50), KEY_COUNT (5000000 keys of 64-byte values to save).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
need redis-server "install the package redis-server"
need taskset "install the package util-linux"
BENCH_REQUESTS=${BENCH_REQUESTS:-300000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
KEY_COUNT=${KEY_COUNT:-5000000}

start_pinned() { # name, program, arguments; sets the port and process of that name
    local name=$1 port
    shift
    port=$(free_port)
    start_server "$name" "$port" taskset -c 0 "$@" --port "$port" --bind 127.0.0.1 --save ""
    printf -v "${name}_port" %s "$port"
    printf -v "${name}_pid" %s "$started_pid"
}

measure() { # name, pipeline, requests: requests a second and CPU time of an operation
    local port="$1_port" pid="$1_pid" before rate
    before=$(cpu_ticks "${!pid}")
    rate=$(taskset -c 1 redis-benchmark -h 127.0.0.1 -p "${!port}" -t set -d 64 -P "$2" -n "$3" -c "$BENCH_CLIENTS" \
        -r 200000 --csv 2>/dev/null | awk -F '","' 'NR > 1 { sub(/\..*/, "", $2); print $2 }')
    echo "$rate" >>"$bench_work/$1-rate"
    echo $((($(cpu_ticks "${!pid}") - before) * 1000000000 / $(getconf CLK_TCK) / $3)) >>"$bench_work/$1-ns"
}

file=(--appendonly yes --auto-aof-rewrite-percentage 0 --appendfsync)
start_pinned redis_none redis-server
start_pinned redis_everysec redis-server "${file[@]}" everysec
start_pinned redis_always redis-server "${file[@]}" always
start_pinned ember_none "$(ember_server)" --shards 1
start_pinned ember_everysec "$(ember_server)" --shards 1 "${file[@]}" everysec
start_pinned ember_always "$(ember_server)" --shards 1 "${file[@]}" always
echo "SET of 64 bytes, $BENCH_CLIENTS clients, median of $BENCH_ROUNDS; requests a second (CPU ns an operation):"
echo
echo "| | redis-server, none | everysec | always | ember, none | everysec | always |"
echo "|---|--:|--:|--:|--:|--:|--:|"
servers=(redis_none redis_everysec redis_always ember_none ember_everysec ember_always)
for pipeline in 1 16; do
    requests=$((pipeline == 1 ? BENCH_REQUESTS : BENCH_REQUESTS * 10))
    rm -f "$bench_work"/*-rate "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        for name in "${servers[@]}"; do measure "$name" "$pipeline" "$requests"; done
    done
    printf '| P=%s' "$pipeline"
    for name in "${servers[@]}"; do
        printf ' | %s (%s)' "$(median <"$bench_work/$name-rate")" "$(median <"$bench_work/$name-ns")"
    done
    echo " |"
done
bench_cleanup_servers

seconds() { # command
    local begun
    begun=$(date +%s.%N)
    "$@" >/dev/null
    awk -v begun="$begun" -v ended="$(date +%s.%N)" 'BEGIN { printf "%.2f", ended - begun }'
}

save() { # port
    redis-cli -p "$1" BGSAVE >/dev/null
    while [[ $(redis-cli -p "$1" INFO persistence) == *bgsave_in_progress:1* ]]; do sleep 0.02; done
}

load() { # name, port, program, arguments
    start_server "$@"
    while [ "$(redis-cli -p "$2" DBSIZE 2>/dev/null)" != "$KEY_COUNT" ]; do sleep 0.02; done
}

echo
echo "$KEY_COUNT keys, in s; resident memory in MiB:"
echo
echo "| | BGSAVE | start | memory | most memory while saving |"
echo "|---|--:|--:|--:|--:|"
for name in redis ember; do
    port=$(free_port)
    if [ "$name" = redis ]; then
        command=(redis-server --port "$port" --bind 127.0.0.1 --save "" --enable-debug-command yes)
    else
        command=("$(ember_server)" --port "$port" --bind 127.0.0.1 --save "" --enable-debug-command yes)
    fi
    start_server "$name-save" "$port" "${command[@]}"
    pid=$started_pid
    redis-cli -p "$port" DEBUG POPULATE "$KEY_COUNT" key 64 >/dev/null
    before=$(resident_kib "$pid")
    echo "$before" >"$bench_work/most"
    (while sleep 0.05; do
        children=$(pgrep -P "$pid" || true)
        total=$(resident_kib "$pid")
        for child in $children; do total=$((total + $(awk '/^Private_Dirty:/ { sum += $2 } END { print sum + 0 }' \
            "/proc/$child/smaps_rollup" 2>/dev/null || echo 0))); done
        [ "$total" -le "$(cat "$bench_work/most")" ] || echo "$total" >"$bench_work/most"
    done) &
    watcher=$!
    saved=$(seconds save "$port")
    kill "$watcher" 2>/dev/null
    redis-cli -p "$port" SHUTDOWN NOSAVE >/dev/null 2>&1 || true
    wait "$pid" 2>/dev/null || true
    loaded=$(seconds load "$name-save" "$port" "${command[@]}")
    echo "| $name | $saved | $loaded | $((before / 1024)) | $(($(cat "$bench_work/most") / 1024)) |"
    bench_cleanup_servers
done
