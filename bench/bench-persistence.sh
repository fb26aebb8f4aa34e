#!/usr/bin/env bash
# The cost of persistence, ember and redis-server: SET with an append-only file (throughput, p99 and the server's CPU
# time; ember in both modes), and the time to save and load many keys. For the first table servers are on one core and the
# load on another; saving and loading use all cores. With --ember-only, only ember is measured. Settings: BENCH_REQUESTS
# (300000 per measurement, ten times as many with pipelines), BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (50),
# BENCH_KEYS (200000 distinct keys), KEY_COUNT (5000000 keys of 64-byte values to save).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
choose_processors
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_KEYS=${BENCH_KEYS:-200000}
BENCH_THREADS=1
KEY_COUNT=${KEY_COUNT:-5000000}
bench_load=(taskset -c "$load_cpu")
requests=${BENCH_REQUESTS:-300000}

measure() { # name, pipeline: requests per second, p99 and CPU time per operation
    local port="$1_port" pid="$1_pid" before rate p99
    before=$(cpu_ticks "${!pid}")
    read -r rate _ p99 _ < <(requests_and_latencies "${!port}" set 64 "$2")
    echo "$rate" >>"$bench_work/$1-rate"
    echo "$p99" >>"$bench_work/$1-p99"
    echo $((($(cpu_ticks "${!pid}") - before) * 1000000000 / $(getconf CLK_TCK) / BENCH_REQUESTS)) >>"$bench_work/$1-ns"
}

programs=(ember)
if has_peer "$redis_program"; then programs=(redis ember); fi
servers=()
columns=()
for program in "${programs[@]}" sharded; do
    case $program in
        redis) command=("$redis_program") title=redis ;;
        ember) command=("$(ember_server)" --shards 1 --concurrent yes) title=ember ;;
        sharded) command=("$(ember_server)" --shards 1 --concurrent no) title="ember sharded" ;;
    esac
    for policy in none everysec always; do
        file=(--appendonly yes --auto-aof-rewrite-percentage 0 --appendfsync "$policy")
        [ "$policy" != none ] || file=(--appendonly no)
        start_pinned "${program}_$policy" "${command[@]}" "${file[@]}"
        servers+=("${program}_$policy")
        columns+=("$title, $policy")
    done
done
echo "SET of 64 bytes with an append-only file, by appendfsync:"
echo
describe "requests=$requests (P=16: $((requests * 10))) rounds=$BENCH_ROUNDS clients=$BENCH_CLIENTS keys=$BENCH_KEYS" \
    "cores=$(nproc)"
table_begin appendfsync test "${columns[@]}"
for pipeline in 1 16; do
    BENCH_REQUESTS=$((pipeline == 1 ? requests : requests * 10))
    rm -f "$bench_work"/*-rate "$bench_work"/*-p99 "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        for name in "${servers[@]}"; do measure "$name" "$pipeline"; done
    done
    rates=("P=$pipeline, requests/s")
    latencies=("P=$pipeline, p99 in ms")
    times=("P=$pipeline, CPU ns per operation")
    ratios=("P=$pipeline, requests/s compared with none")
    for name in "${servers[@]}"; do
        rates+=("$(median <"$bench_work/$name-rate")")
        ratios+=("$(ratio "${rates[-1]}" "$(median <"$bench_work/${name%_*}_none-rate")")")
        latencies+=("$(median <"$bench_work/$name-p99")")
        times+=("$(median <"$bench_work/$name-ns")")
    done
    table_row "${rates[@]}"
    table_row "${ratios[@]}"
    table_row "${latencies[@]}"
    table_row "${times[@]}"
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
    [[ $(redis-cli -p "$1" INFO persistence) == *rdb_last_bgsave_status:ok* ]] || fail "BGSAVE failed on port $1"
}

load() { # name, port, program, arguments
    start_server "$@"
    while [ "$(redis-cli -p "$2" DBSIZE 2>/dev/null)" != "$KEY_COUNT" ]; do
        kill -0 "$started_pid" 2>/dev/null || fail "$1 does not load: $(cat "$bench_work/$1.log")"
        sleep 0.02
    done
}

# Records the maximum of the resident memory of a process plus the memory that its children have copied, in KiB, until
# it is killed.
watch_memory() { # pid
    local maximum=0 total child
    while sleep 0.05; do
        total=$(resident_kib "$1")
        for child in $(pgrep -P "$1" || true); do
            total=$((total + $(awk '/^Private_Dirty:/ { sum += $2 } END { print sum + 0 }' \
                "/proc/$child/smaps_rollup" 2>/dev/null || echo 0)))
        done
        [ "$total" -le "$maximum" ] || { maximum=$total; echo "$maximum" >"$bench_work/maximum"; }
    done
}

echo
echo "Saving and loading:"
echo
describe "keys=$KEY_COUNT value-bytes=64 cores=$(nproc)"
table_begin files server "BGSAVE, s" "startup, s" "resident before saving, MiB" "maximum while saving, MiB"
for name in "${programs[@]}"; do
    port=$(free_port)
    command=("$redis_program")
    [ "$name" = redis ] || command=("$(ember_server)")
    command+=(--port "$port" --bind 127.0.0.1 --save "" --enable-debug-command yes)
    start_server "$name-save" "$port" "${command[@]}"
    pid=$started_pid
    redis-cli -p "$port" DEBUG POPULATE "$KEY_COUNT" key 64 >/dev/null
    before=$(resident_kib "$pid")
    echo "$before" >"$bench_work/maximum"
    watch_memory "$pid" &
    watcher=$!
    saved=$(seconds save "$port")
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    redis-cli -p "$port" SHUTDOWN NOSAVE >/dev/null 2>&1 || true
    wait "$pid" 2>/dev/null || true
    begun=$(date +%s.%N)
    load "$name-save" "$port" "${command[@]}"
    loaded=$(awk -v begun="$begun" -v ended="$(date +%s.%N)" 'BEGIN { printf "%.2f", ended - begun }')
    maximum=$(cat "$bench_work/maximum")
    [ "$maximum" -ge "$before" ] || maximum=$before
    table_row "$name" "$saved" "$loaded" "$((before / 1024))" "$((maximum / 1024))"
    bench_cleanup_servers
done
