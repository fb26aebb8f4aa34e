#!/usr/bin/env bash
# Latency at half of a server's maximum throughput, without other work and with continuous BGSAVEs, ember and
# redis-server: p99 of SET at a fixed rate (an open loop). Servers and load share all processors. Settings: KEY_COUNT
# (5000000 keys of 64-byte values), BENCH_CLIENTS (50), BENCH_SECONDS (5, per measurement), BENCH_ROUNDS (3, the median
# counts). With --ember-only, only ember is measured.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
KEY_COUNT=${KEY_COUNT:-5000000}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_SECONDS=${BENCH_SECONDS:-5}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}

# Measures SET once and prints a line of the columns rps,…,p99: set_figures PORT OPTION…
set_figures() {
    local port=$1
    shift
    "$(ember_cli)" benchmark -p "$port" -t set -d 64 -r "$KEY_COUNT" -c "$BENCH_CLIENTS" --csv "$@" |
        awk -F '","' 'NR == 2 { print $2, $7 }'
}

rate_of() { awk '{ printf "%d", $1 }'; }
p99_of() { awk '{ print $2 }'; }

programs=(ember)
if has_peer "$redis_program"; then programs=(redis ember); fi
describe "keys=$KEY_COUNT value-bytes=64 clients=$BENCH_CLIENTS seconds=$BENCH_SECONDS rounds=$BENCH_ROUNDS" \
    "cores=$(nproc)"
table_begin "" server "maximum, requests/s" "load, requests/s" "p99, ms" "p99 while saving, ms" ratio saves
for name in "${programs[@]}"; do
    port=$(free_port)
    command=("$redis_program")
    [ "$name" = redis ] || command=("$(ember_server)")
    start_server "$name" "$port" "${command[@]}" --port "$port" --bind 127.0.0.1 --save ""
    "$(ember_cli)" benchmark -p "$port" -t set -d 64 -r "$KEY_COUNT" -n "$KEY_COUNT" -P 50 \
        --key-pattern sequential -q >"$bench_work/$name-fill"
    maximum=$(set_figures "$port" --duration "$BENCH_SECONDS" | rate_of)
    saves=0
    for _ in $(seq "$BENCH_ROUNDS"); do
        set_figures "$port" --duration "$BENCH_SECONDS" --rate $((maximum / 2)) | p99_of >>"$bench_work/$name-quiet"
        # Errors of BGSAVE during a running save do not matter.
        redis-cli -p "$port" -r -1 -i 0.1 BGSAVE >"$bench_work/$name-saves" 2>&1 &
        saving=$!
        set_figures "$port" --duration "$BENCH_SECONDS" --rate $((maximum / 2)) | p99_of >>"$bench_work/$name-saving"
        kill "$saving"
        wait "$saving" 2>/dev/null || true
        saves=$((saves + $(grep -c started "$bench_work/$name-saves")))
        while [[ $(redis-cli -p "$port" INFO persistence) == *bgsave_in_progress:1* ]]; do sleep 0.1; done
        [[ $(redis-cli -p "$port" INFO persistence) == *rdb_last_bgsave_status:ok* ]] || fail "BGSAVE failed ($name)"
    done
    quiet=$(median <"$bench_work/$name-quiet")
    saving=$(median <"$bench_work/$name-saving")
    table_row "$name" "$maximum" $((maximum / 2)) "$quiet" "$saving" "$(ratio "$saving" "$quiet")" "$saves"
    bench_cleanup_servers
done
