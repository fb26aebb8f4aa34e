#!/usr/bin/env bash
# Memory, and the server's CPU time per operation, of lists, hashes, sets, sorted sets, streams and scripts: ember with
# one worker and redis-server, both on one core, the load on another. Settings: ELEMENT_COUNT (1000000 in each value),
# BENCH_REQUESTS (1000000 per measurement), BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (50), BENCH_PIPELINE
# (16). With --ember-only, only ember is measured.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
choose_processors
ELEMENT_COUNT=${ELEMENT_COUNT:-1000000}
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}

servers=(ember)
if has_peer "$redis_program"; then servers=(redis ember); fi

# Starts the servers; sets ember_port, ember_pid and, where there is one, redis_port and redis_pid.
start_all() {
    [ "${#servers[@]}" -eq 1 ] || start_pinned redis "$redis_program" --appendonly no
    start_pinned ember "$(ember_server)" --shards 1
}

elements_of() { # what
    case $1 in
        five*) echo $((5 * ELEMENT_COUNT)) ;;
        *) echo "$ELEMENT_COUNT" ;;
    esac
}

# Prints the commands that create the values, one per line; n counts their elements, or the small hashes.
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

# Prints bytes per element, as counted by the allocator and by the system.
bytes_per_element() { # pid, port, what
    local used resident
    used=$(settled_number "$2" used_memory) resident=$(resident_kib "$1")
    fill "$2" "$3"
    used=$(($(settled_number "$2" used_memory) - used))
    awk -v used="$used" -v resident="$(($(resident_kib "$1") - resident))" \
        -v count="$(elements_of "$3")" 'BEGIN { printf "%.1f %.1f\n", used / count, resident * 1024 / count }'
}

columns=("ember, bytes per element" "ember, resident")
[ "${#servers[@]}" -eq 1 ] ||
    columns=("redis-server, bytes per element" "redis-server, resident" "${columns[@]}" ratio "ratio, resident")
echo "Memory per element, as counted by the allocator and by the system:"
echo
describe "elements=$ELEMENT_COUNT (and as many small hashes; five times as many in five lists or streams)"
table_begin memory value "${columns[@]}"
for what in "small hashes of 10 fields" "a hash" "a set" "a sorted set" "five lists" "five streams"; do
    start_all
    cells=()
    for server in "${servers[@]}"; do
        pid="${server}_pid" port="${server}_port"
        read -ra figures < <(bytes_per_element "${!pid}" "${!port}" "$what")
        [ "${#figures[@]}" -eq 2 ] || exit 1
        cells+=("${figures[@]}")
    done
    [ "${#servers[@]}" -eq 1 ] ||
        cells+=("$(ratio "${cells[2]}" "${cells[0]}")" "$(ratio "${cells[3]}" "${cells[1]}")")
    table_row "$what" "${cells[@]}"
    bench_cleanup_servers
done

load() { # port, requests, words of a command
    local port=$1 requests=$2
    shift 2
    taskset -c "$load_cpu" redis-benchmark -h 127.0.0.1 -p "$port" -P "$BENCH_PIPELINE" -n "$requests" -c "$BENCH_CLIENTS" \
        -r "$ELEMENT_COUNT" -q "$@" >/dev/null 2>&1 || fail "redis-benchmark failed on port $port: $*"
}

start_all
data=$(printf 'x%.0s' $(seq 64))
script="local old = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) redis.call('INCR', KEYS[2]) return old"
for server in "${servers[@]}"; do
    port="${server}_port"
    sha=$(redis-cli -p "${!port}" SCRIPT LOAD "$script")
    for what in "a hash" "a set" "a list"; do fill "${!port}" "$what"; done
    awk -v count="$ELEMENT_COUNT" 'BEGIN { for (n = 0; n < count; n++) printf "ZADD zset %d member:%012d\n", n, n }' |
        redis-cli -p "${!port}" --pipe >/dev/null
done
columns=(ember)
[ "${#servers[@]}" -eq 1 ] || columns=(redis-server ember "ember / redis-server")
echo
echo "CPU time of the server per operation, in ns:"
echo
describe "elements=$ELEMENT_COUNT requests=$BENCH_REQUESTS rounds=$BENCH_ROUNDS clients=$BENCH_CLIENTS" \
    "pipeline=$BENCH_PIPELINE cores=$(nproc)"
table_begin commands "command" "${columns[@]}"
middle=$((ELEMENT_COUNT / 2))
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
    "ZRANGE zset $middle $((middle + 9))"
    "LRANGE list 0 99"
    "EVALSHA $sha 2 {script}:__rand_int__ {script}:count $data"
    INFO
)
for row in "${rows[@]}"; do
    read -ra words <<<"$row"
    requests=$BENCH_REQUESTS
    case ${words[0]} in LRANGE | INFO) requests=$((requests / 5)) ;; esac
    rm -f "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        for server in "${servers[@]}"; do
            pid="${server}_pid" port="${server}_port"
            nanoseconds "${!pid}" "$requests" load "${!port}" "$requests" "${words[@]}" >>"$bench_work/$server-ns"
        done
    done
    row=${row//$data/64-bytes}
    cells=("${row//$sha/sha}")
    for server in "${servers[@]}"; do cells+=("$(median <"$bench_work/$server-ns")"); done
    [ "${#servers[@]}" -eq 1 ] || cells+=("$(ratio "${cells[2]}" "${cells[1]}")")
    table_row "${cells[@]}"
done
