#!/usr/bin/env bash
# Latency while memory grows and while it does not, and while keys expire, are evicted, saved and rewritten: p99 and
# throughput of ember with one worker and redis-server, both on one core, the load on another. Settings: BENCH_REQUESTS
# (1000000 per measurement), BENCH_ROUNDS (3, the median counts; each begins with empty servers), BENCH_CLIENTS (50),
# BENCH_PIPELINE (16), ELEMENT_COUNT (1000000 keys or elements to choose from), VALUE_SIZE (64).
# With --ember-only, only ember is measured.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
choose_processors
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}
ELEMENT_COUNT=${ELEMENT_COUNT:-1000000}
VALUE_SIZE=${VALUE_SIZE:-64}

servers=(ember)
if has_peer "$redis_program"; then servers=(redis ember); fi
data=$(printf "%${VALUE_SIZE}s" "" | tr " " x)
declare -A words=(
    [LPUSH]="LPUSH list $data"
    [HSET]="HSET hash element:__rand_int__ $data"
    [SADD]="SADD set element:__rand_int__"
    [ZADD]="ZADD zset __rand_int__ element:__rand_int__"
    [SET]="SET key:__rand_int__ $data"
    [GET]="GET key:__rand_int__"
    [expiring]="SET expiring:__rand_int__ $data PX 200"
)
# The rows: a command, and the condition under which it is measured.
rows=("LPUSH growing" "HSET growing" "SADD growing" "ZADD growing" "SET growing" "HSET steady" "SADD steady" "ZADD steady"
    "SET steady" "GET steady" "SET expiring" "GET expiring" "SET evicting" "SET saving" "SET rewriting")

load() { # port, words of a command; prints requests per second and p99 in ms
    local port=$1
    shift
    taskset -c "$load_cpu" redis-benchmark -h 127.0.0.1 -p "$port" -n "$BENCH_REQUESTS" -c "$BENCH_CLIENTS" \
        -P "$BENCH_PIPELINE" -r "$ELEMENT_COUNT" --csv "$@" 2>/dev/null |
        awk -F '","' 'NR > 1 { sub(/\..*/, "", $(NF - 6)); print $(NF - 6), $(NF - 1); found = 1 } END { exit !found }' ||
        fail "redis-benchmark failed on port $port: $*"
}

measure() { # port, command, condition
    local command=$2
    if [ "$3" = expiring ]; then
        # The GETs run while the keys that were written last expire.
        [ "$command" = SET ] || load "$1" ${words[expiring]} >/dev/null
        [ "$command" = GET ] || command=expiring
    fi
    begin_condition "$1" "$3"
    # The words of a command contain no blanks.
    # shellcheck disable=SC2086
    load "$1" ${words[$command]}
    end_condition "$1" "$3"
}

for ((round = 0; round < BENCH_ROUNDS; round++)); do
    [ "${#servers[@]}" -eq 1 ] || start_pinned redis "$redis_program" --appendonly no
    start_pinned ember "$(ember_server)" --shards 1
    for row in "${rows[@]}"; do
        for server in "${servers[@]}"; do
            port="${server}_port"
            # shellcheck disable=SC2086
            figures=$(measure "${!port}" $row)
            read -r rate p99 <<<"$figures"
            echo "$rate" >>"$bench_work/$server-${row/ /-}-rate"
            echo "$p99" >>"$bench_work/$server-${row/ /-}-p99"
        done
    done
    bench_cleanup_servers
done

columns=("ember, p99 in ms" "ember, requests/s")
[ "${#servers[@]}" -eq 1 ] || columns=("redis-server, p99 in ms" "redis-server, requests/s" "${columns[@]}" "ratio of p99")
describe "requests=$BENCH_REQUESTS rounds=$BENCH_ROUNDS clients=$BENCH_CLIENTS pipeline=$BENCH_PIPELINE" \
    "elements=$ELEMENT_COUNT value-bytes=$VALUE_SIZE cores=$(nproc)"
table_begin "" measurement "${columns[@]}"
for row in "${rows[@]}"; do
    cells=()
    for server in "${servers[@]}"; do
        cells+=("$(median <"$bench_work/$server-${row/ /-}-p99")" "$(median <"$bench_work/$server-${row/ /-}-rate")")
    done
    [ "${#servers[@]}" -eq 1 ] || cells+=("$(ratio "${cells[2]}" "${cells[0]}")")
    table_row "${row/ /, }" "${cells[@]}"
done
