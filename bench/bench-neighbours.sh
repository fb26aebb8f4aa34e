#!/usr/bin/env bash
# Effect of heavy commands on other clients: p99 and maximum latency of small SETs of eight connections at a fixed rate,
# while one more connection runs SINTERCARD, SDIFFSTORE and ZRANGEBYLEX of a million members in a loop. Compares ember
# in both modes, ember with long-call-elements 0, redis-server and valkey-server. Servers and load share all
# processors. Settings: BENCH_SECONDS (10 per measurement), BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (8),
# BENCH_RATE (4000 SETs per second), ELEMENT_COUNT (1000000 members of each set), BENCH_WORKERS (2, ember's workers).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
BENCH_SECONDS=${BENCH_SECONDS:-10}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-8}
BENCH_RATE=${BENCH_RATE:-4000}
ELEMENT_COUNT=${ELEMENT_COUNT:-1000000}
BENCH_WORKERS=${BENCH_WORKERS:-2}

names=(ember "ember, sharded" "ember, long-call-elements 0")
has_peer "$redis_program" && names+=(redis-server)
has_peer valkey-server && names+=(valkey-server)

# Creates two sets that share half of their members, and a sorted set whose members have the same score.
fill() { # port
    local script="for first = ARGV[2], ARGV[3], 1000 do local words = {} \
        for number = first, first + 999 do if ARGV[1] == 'ZADD' then words[#words + 1] = '0' end \
        words[#words + 1] = 'member:' .. number end redis.call(ARGV[1], KEYS[1], unpack(words)) end"
    local half=$((ELEMENT_COUNT / 2))
    redis-cli -p "$1" EVAL "$script" 1 one SADD 1 "$ELEMENT_COUNT" >/dev/null
    redis-cli -p "$1" EVAL "$script" 1 two SADD "$((half + 1))" "$((half + ELEMENT_COUNT))" >/dev/null
    redis-cli -p "$1" EVAL "$script" 1 sorted ZADD 1 "$ELEMENT_COUNT" >/dev/null
}

heavy_commands() {
    while true; do
        echo "SINTERCARD 2 one two"
        echo "SDIFFSTORE to one two"
        echo "ZRANGEBYLEX sorted - + LIMIT 0 $((ELEMENT_COUNT * 9 / 10))"
    done
}

start() { # name, port
    case $1 in
        ember) start_server ember "$2" "$(ember_server)" --port "$2" --shards "$BENCH_WORKERS" --save "" ;;
        "ember, sharded")
            start_server ember "$2" "$(ember_server)" --port "$2" --shards "$BENCH_WORKERS" --concurrent no --save "" ;;
        "ember, long-call-elements 0")
            start_server ember "$2" "$(ember_server)" --port "$2" --shards "$BENCH_WORKERS" --save "" \
                --long-call-elements 0 ;;
        redis-server) start_server redis "$2" "$redis_program" --port "$2" --save "" ;;
        *) start_server valkey "$2" "$1" --port "$2" --save "" ;;
    esac
}

for ((round = 0; round < BENCH_ROUNDS; round++)); do
    for name in "${names[@]}"; do
        port=$(free_port)
        start "$name" "$port"
        fill "$port"
        heavy_commands 2>/dev/null | redis-cli -p "$port" >"$bench_work/heavy" 2>&1 &
        bench_pids+=($!)
        "$(ember_cli)" benchmark -p "$port" -t set -d 20 -r 100000 -c "$BENCH_CLIENTS" -P 1 --rate "$BENCH_RATE" \
            --duration "$BENCH_SECONDS" --csv |
            awk -F '","' 'NR == 2 { sub(/".*/, "", $8); print $7, $8 }' >"$bench_work/figures"
        read -r p99 maximum <"$bench_work/figures" || fail "the load generator failed with $name"
        echo "$p99" >>"$bench_work/$name-p99"
        echo "$maximum" >>"$bench_work/$name-max"
        bench_cleanup_servers
    done
done

describe "members=$ELEMENT_COUNT rate=$BENCH_RATE clients=$BENCH_CLIENTS workers=$BENCH_WORKERS seconds=$BENCH_SECONDS" \
    "rounds=$BENCH_ROUNDS cores=$(nproc)"
table_begin "" server "p99, ms" "maximum, ms"
for name in "${names[@]}"; do
    table_row "$name" "$(median <"$bench_work/$name-p99")" "$(median <"$bench_work/$name-max")"
done
