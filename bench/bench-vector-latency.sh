#!/usr/bin/env bash
# Latency under vector load: VADD at half of the rate at which vectors are linked, compared with SET of the same bytes;
# VSIM with and without additions; GET of a key of the same shard with either at full rate, and during a save; and the
# time to load a file of a vector set. Compares ember with one worker and a redis-server 8 with vector sets, if
# REDIS_SERVER is one: servers on one core, the load on another. Settings: VECTORS_FILE, VECTORS_DIM and VECTORS_COUNT
# as in bench-vectors.sh, which creates the file; BENCH_SECONDS (10, per measurement).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
need python3 "install the package python3"
choose_processors
VECTORS_FILE=${VECTORS_FILE:-$bench_root/target/peers/glove.f32}
VECTORS_DIM=${VECTORS_DIM:-100}
VECTORS_COUNT=${VECTORS_COUNT:-50000}
BENCH_SECONDS=${BENCH_SECONDS:-10}
[ -s "$VECTORS_FILE" ] || fail "$VECTORS_FILE does not exist: bench/bench-vectors.sh creates it"

# Starts a server in the folder in which it has saved, and sets seconds to the time until it replies.
restart() { # name, program, arguments
    local name=$1 began
    shift
    began=$(date +%s%N)
    start_pinned "$name" "$@"
    seconds=$(awk -v began="$began" -v ended="$(date +%s%N)" 'BEGIN { printf "%.2f", (ended - began) / 1e9 }')
}

measure() { # name, program, arguments
    local name=$1 port="$1_port" seconds
    start_pinned "$@"
    if redis-cli -p "${!port}" VCARD none 2>&1 | grep -q unknown; then
        echo "$2 has no vector sets: skipped" >&2
        return
    fi
    taskset -c "$load_cpu" python3 -B "$bench_root/bench/vector_latency.py" "${!port}" "$VECTORS_FILE" \
        "$VECTORS_DIM" "$VECTORS_COUNT" "$BENCH_SECONDS" >"$bench_work/$name-figures"
    bench_cleanup_servers
    restart "$@"
    # A server that is still loading replies with an error instead of PONG.
    [ "$(redis-cli -p "${!port}" VCARD set)" -gt 0 ] || fail "$name has not loaded its saved data"
    printf 'loading\t%s\n' "$seconds" >>"$bench_work/$name-figures"
    bench_cleanup_servers
    servers+=("$name")
}

servers=()
measure ember "$(ember_server)" --shards 1
if has_peer "$redis_program"; then measure redis "$redis_program" --appendonly no; fi

describe "vectors=$VECTORS_COUNT dimensions=$VECTORS_DIM quantization=int8 seconds=$BENCH_SECONDS cores=$(nproc)"
columns=()
for server in "${servers[@]}"; do columns+=("$server, p50 in ms" "$server, p99 in ms" "$server, maximum in ms"); done
table_begin "" measurement "${columns[@]}"
while IFS=$'\t' read -r measurement _; do
    cells=()
    for server in "${servers[@]}"; do
        IFS=$'\t' read -r _ p50 p99 maximum < <(grep -P "^$measurement\t" "$bench_work/$server-figures")
        cells+=("$p50" "$p99" "$maximum")
    done
    table_row "$measurement" "${cells[@]}"
done < <(grep -vE '^(capacity|loading)' "$bench_work/ember-figures")
echo
table_begin rates server "added and linked per second" "load time in s"
for server in "${servers[@]}"; do
    table_row "$server" "$(awk '/^capacity/ { print $2 }' "$bench_work/$server-figures")" \
        "$(awk '/^loading/ { print $2 }' "$bench_work/$server-figures")"
done
