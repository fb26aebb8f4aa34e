#!/usr/bin/env bash
# Lists, hashes, sets, sorted sets, streams and scripts: memory and the server's CPU time for each operation, ember with
# one worker beside redis-server, both on CPU 0, the load on CPU 1. Settings: ELEMENT_COUNT (1000000 in each value),
# BENCH_REQUESTS (1000000 for each measurement), BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (50), BENCH_PIPELINE
# (16).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
need taskset "install the package util-linux"
ELEMENT_COUNT=${ELEMENT_COUNT:-1000000}
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}

# Starts both servers; sets redis_port, redis_pid, ember_port and ember_pid.
start_both() {
    redis_port=$(free_port)
    start_server redis "$redis_port" taskset -c 0 redis-server --port "$redis_port" --bind 127.0.0.1 --save "" \
        --appendonly no
    redis_pid=$started_pid
    ember_port=$(free_port)
    start_server ember "$ember_port" taskset -c 0 "$(ember_server)" --port "$ember_port" --bind 127.0.0.1 \
        --save "" --shards 1
    ember_pid=$started_pid
}

stop_both() {
    kill "$redis_pid" "$ember_pid"
    wait "$redis_pid" "$ember_pid" 2>/dev/null || true
}

elements_of() { # what
    case $1 in
        five*) echo $((5 * ELEMENT_COUNT)) ;;
        *) echo "$ELEMENT_COUNT" ;;
    esac
}

# The commands that make values, one a line; n counts their elements, or the hashes of few fields.
commands_for() { # what
    local line field
    case $1 in
        "small hashes of 10 fields")
            line='"HSET hash:" n'
            for field in $(seq 0 9); do line+=" \" f$field v\" n"; done ;;
        "a hash") line='"HSET hash field:" n " value:" n' ;;
        "a set") line='"SADD set member:" n' ;;
        "a sorted set") line='"ZADD zset " n " member:" n' ;;
        "a list") line='"RPUSH list element:" n' ;;
        "five lists") line='"RPUSH list:" int(n * 5 / count) " element:" n' ;;
        "five streams") line='"XADD stream:" int(n * 5 / count) " " n + 1 "-0 sensor " n % 100 " value " n' ;;
    esac
    awk -v count="$(elements_of "$1")" "BEGIN { for (n = 0; n < count; n++) print $line }"
}

fill() { # port, what
    commands_for "$2" | redis-cli -p "$1" --pipe >"$bench_work/pipe.log" 2>&1 || fail "load: $(cat "$bench_work/pipe.log")"
}

used_kib() { # port
    redis-cli -p "$1" INFO memory | awk -F : '/^used_memory:/ { print int($2 / 1024) }'
}

# Bytes for each element, as the allocator counts them and as the system does.
bytes_for_each() { # pid, port, what
    local used resident
    used=$(used_kib "$2") resident=$(resident_kib "$1")
    fill "$2" "$3"
    awk -v used="$(($(used_kib "$2") - used))" -v resident="$(($(resident_kib "$1") - resident))" \
        -v count="$(elements_of "$3")" 'BEGIN { printf "%.1f %.1f", used * 1024 / count, resident * 1024 / count }'
}

echo "$ELEMENT_COUNT elements in each value, and as many small hashes:"
echo
echo "| value | redis-server, bytes for each | resident | ember, bytes for each | resident | ratio | resident |"
echo "|---|--:|--:|--:|--:|--:|--:|"
for what in "small hashes of 10 fields" "a hash" "a set" "a sorted set" "five lists" "five streams"; do
    start_both
    read -ra redis <<<"$(bytes_for_each "$redis_pid" "$redis_port" "$what")"
    read -ra ember <<<"$(bytes_for_each "$ember_pid" "$ember_port" "$what")"
    echo "| $what | ${redis[0]} | ${redis[1]} | ${ember[0]} | ${ember[1]}" \
        "| $(ratio "${ember[0]}" "${redis[0]}") | $(ratio "${ember[1]}" "${redis[1]}") |"
    stop_both
done

load() { # port, requests, words of a command
    local port=$1 requests=$2
    shift 2
    taskset -c 1 redis-benchmark -h 127.0.0.1 -p "$port" -P "$BENCH_PIPELINE" -n "$requests" -c "$BENCH_CLIENTS" \
        -r "$ELEMENT_COUNT" -q "$@" >/dev/null 2>&1 || fail "redis-benchmark failed on port $port: $*"
}

start_both
data=$(printf 'x%.0s' $(seq 64))
script="local old = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) redis.call('INCR', KEYS[2]) return old"
for port in "$redis_port" "$ember_port"; do
    sha=$(redis-cli -p "$port" SCRIPT LOAD "$script")
    for what in "a hash" "a set" "a list"; do fill "$port" "$what"; done
    awk -v count="$ELEMENT_COUNT" 'BEGIN { for (n = 0; n < count; n++) printf "ZADD zset %d member:%012d\n", n, n }' |
        redis-cli -p "$port" --pipe >/dev/null
done
echo
echo "| command (P=$BENCH_PIPELINE) | redis-server, ns an operation | ember | ember / redis-server |"
echo "|---|--:|--:|--:|"
rows=(
    "LPUSH pushed $data"
    "RPOP pushed"
    "HSET fields element:__rand_int__ $data"
    "HGET fields element:__rand_int__"
    "SADD members element:__rand_int__"
    "SISMEMBER members element:__rand_int__"
    "ZADD scores __rand_int__ element:__rand_int__"
    "ZRANK zset member:__rand_int__"
    "ZRANGE zset __rand_int__ __rand_int__ BYSCORE LIMIT 0 10"
    "ZRANGE zset 500000 500009"
    "LRANGE list 0 99"
    "EVALSHA $sha 2 {script}:__rand_int__ {script}:count $data"
)
for row in "${rows[@]}"; do
    read -ra words <<<"$row"
    requests=$BENCH_REQUESTS
    [ "${words[0]}" != LRANGE ] || requests=$((requests / 5))
    : >"$bench_work/redis-ns"
    : >"$bench_work/ember-ns"
    for _ in $(seq "$BENCH_ROUNDS"); do
        for server in redis ember; do
            pid="${server}_pid" port="${server}_port"
            nanoseconds "${!pid}" "$requests" load "${!port}" "$requests" "${words[@]}" >>"$bench_work/$server-ns"
        done
    done
    redis=$(median <"$bench_work/redis-ns")
    ember=$(median <"$bench_work/ember-ns")
    row=${row//$data/64-bytes}
    echo "| ${row//$sha/sha} | $redis | $ember | $(ratio "$ember" "$redis") |"
done
