#!/usr/bin/env bash
# The cost of tiers, and of data larger than memory: the server's CPU time per operation with tiers while all values are
# resident, compared with a memory limit without tiers (which has clocks and accounting, too), with no limit, and with
# an older server; GETs and SETs of four times as much data as memory compared with all data resident, and GETs of hot
# keys meanwhile; resident memory, second by second, while ten times as much data is loaded and then used; and the bytes
# written for it. Values have 1 KiB; 95 of 100 requests are GETs of keys drawn by Zipf's law. Settings: TIERS_MIB (256,
# the memory limit), TIERS_FOLDER (folder of the tiers, which selects the disk; default: the folder of the results),
# TIERS_BEFORE (none: an older ember-server to compare with), BENCH_SECONDS (10, per measurement), BENCH_ROUNDS (3, the
# median counts), BENCH_CLIENTS (50).
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
choose_processors
TIERS_MIB=${TIERS_MIB:-256}
BENCH_SECONDS=${BENCH_SECONDS:-10}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
mkdir -p "$bench_results"
tiers=$(mktemp -d -p "${TIERS_FOLDER:-$bench_results}")
trap 'bench_cleanup; rm -rf "$tiers"' EXIT
bytes=1024

# Starts an ember with a memory limit in MiB and with values in $tiers/NAME; 0 means no limit and all values in memory:
# start NAME MIB [ARGUMENT…]. Sets NAME_port and NAME_pid.
start() {
    local name=$1 mib=$2 port arguments=()
    shift 2
    port=$(free_port)
    [ "$mib" = 0 ] || arguments=(--maxmemory "${mib}mb" --tiered-path "$tiers/$name" --activedefrag yes)
    start_server "$name" "$port" "$(ember_server)" --port "$port" --bind 127.0.0.1 --save "" "${arguments[@]}" "$@"
    printf -v "${name}_port" %s "$port"
    printf -v "${name}_pid" %s "$started_pid"
}

fill() { # port, keys
    "$(ember_cli)" benchmark -p "$1" -t set -d "$bytes" -r "$2" -n "$2" -P 50 --key-pattern sequential --timeout 300 \
        -q >"$bench_work/fill"
}

# Prints throughput and p99 in ms of the load: figures PORT KEYS PIPELINE [SECONDS]
figures() {
    local port=$1 keys=$2 pipeline=$3 seconds=${4:-$BENCH_SECONDS}
    "$(ember_cli)" benchmark -p "$port" --ratio 5:95 -d "$bytes" -r "$keys" --key-pattern zipf -c "$BENCH_CLIENTS" \
        -P "$pipeline" --duration "$seconds" --timeout 300 --csv |
        awk -F '","' 'NR == 2 { print $2, $7; found = 1 } END { exit !found }'
}

figure() { # port, name in INFO
    redis-cli -p "$1" INFO everything | awk -F : -v name="$2" '$1 == name { sub(/\r/, "", $2); print $2 }'
}

# Prints the server's CPU time per operation of GETs and SETs of resident keys: cpu_ns NAME PIPELINE
cpu_ns() {
    local port="$1_port" pid="$1_pid" requests=$((200000 * $2)) keys=$((TIERS_MIB * 2000))
    [ "$requests" -le 3000000 ] || requests=3000000
    # These keys take less than half of the memory.
    [ "$keys" -le 100000 ] || keys=100000
    nanoseconds "${!pid}" "$requests" taskset -c "$load_cpu" "$(ember_cli)" benchmark -p "${!port}" --ratio 5:95 -d 64 \
        -r "$keys" -n "$requests" -c "$BENCH_CLIENTS" -P "$2" -q >"$bench_work/cpu"
    tail -n 1 "$bench_work/cpu"
}

# Prints the p99 in ms of reads of 4 KiB at random places of a file that the system has not cached.
raw_read_p99() {
    command -v python3 >/dev/null || { echo "-"; return; }
    python3 - "$tiers/raw" <<'PYTHON'
import os, random, sys, time
path, size = sys.argv[1], 256 << 20
with open(path, "wb") as file:
    for _ in range(size >> 20):
        file.write(os.urandom(1 << 20))
    file.flush()
    os.fsync(file.fileno())
file = os.open(path, os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
times = []
for _ in range(2000):
    place = random.randrange(size // 4096) * 4096
    begun = time.perf_counter()
    os.pread(file, 4096, place)
    times.append(time.perf_counter() - begun)
os.unlink(path)
print("%.3f" % (sorted(times)[1980] * 1000))
PYTHON
}

echo "CPU time per operation, ns, while all values are resident:"
echo
describe "clients=$BENCH_CLIENTS rounds=$BENCH_ROUNDS memory=${TIERS_MIB}mb seconds=$BENCH_SECONDS cores=$(nproc)"
servers=(off limited on)
columns=("no limit" "maxmemory alone" "with tiers" "with tiers / maxmemory alone" "with tiers / no limit")
start_pinned off "$(ember_server)" --shards 1
start_pinned limited "$(ember_server)" --shards 1 --maxmemory "${TIERS_MIB}mb"
start_pinned on "$(ember_server)" --shards 1 --maxmemory "${TIERS_MIB}mb" --tiered-path "$tiers/on"
if [ -n "${TIERS_BEFORE:-}" ]; then
    start_pinned before "$TIERS_BEFORE" --shards 1
    servers+=(before)
    columns+=("older server" "no limit / older server")
fi
table_begin cpu pipeline "${columns[@]}"
for pipeline in 1 16 64; do
    rm -f "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        for name in "${servers[@]}"; do cpu_ns "$name" "$pipeline" >>"$bench_work/$name-ns"; done
    done
    off=$(median <"$bench_work/off-ns")
    limited=$(median <"$bench_work/limited-ns")
    on=$(median <"$bench_work/on-ns")
    cells=("P=$pipeline" "$off" "$limited" "$on" "$(ratio "$on" "$limited")" "$(ratio "$on" "$off")")
    if [ -n "${TIERS_BEFORE:-}" ]; then
        before=$(median <"$bench_work/before-ns")
        cells+=("$before" "$(ratio "$off" "$before")")
    fi
    table_row "${cells[@]}"
done
bench_cleanup_servers

keys=$((TIERS_MIB * 4 * 1024))
raw=$(raw_read_p99)
echo
echo "Four times as much data as memory ($keys keys), compared with all data resident; p99 of a raw disk read: $raw ms:"
echo
start memory 0
start quarter "$TIERS_MIB"
# `start` sets these variables.
# shellcheck disable=SC2154
fill "$memory_port" "$keys"
# shellcheck disable=SC2154
fill "$quarter_port" "$keys"
table_begin load test "all resident, requests/s" "a quarter resident, requests/s" ratio "all resident, p99 in ms" \
    "a quarter resident, p99 in ms"
for pipeline in 1 16; do
    rm -f "$bench_work"/*-load
    # The warm-up brings the popular values into memory.
    figures "$quarter_port" "$keys" "$pipeline" >"$bench_work/warm"
    for _ in $(seq "$BENCH_ROUNDS"); do
        figures "$memory_port" "$keys" "$pipeline" >>"$bench_work/memory-load"
        figures "$quarter_port" "$keys" "$pipeline" >>"$bench_work/quarter-load"
    done
    all=$(cut -d " " -f 1 "$bench_work/memory-load" | median)
    part=$(cut -d " " -f 1 "$bench_work/quarter-load" | median)
    table_row "P=$pipeline" "$all" "$part" "$(ratio "$part" "$all")" \
        "$(cut -d " " -f 2 "$bench_work/memory-load" | median)" \
        "$(cut -d " " -f 2 "$bench_work/quarter-load" | median)"
done
# Hot keys are the first ones of Zipf's law; both servers have the same other load meanwhile.
hot() { # port
    figures "$1" "$keys" 1 $((BENCH_SECONDS * BENCH_ROUNDS)) >"$bench_work/background" &
    local background=$!
    for _ in $(seq "$BENCH_ROUNDS"); do
        "$(ember_cli)" benchmark -p "$1" -t get -d "$bytes" -r 100 -c 4 --rate 2000 \
            --duration "$((BENCH_SECONDS / 2 + 1))" --csv |
            awk -F '","' 'NR == 2 { print $7 }'
    done | median
    wait "$background" || true
}
all=$(hot "$memory_port")
part=$(hot "$quarter_port")
table_row "GETs of hot keys meanwhile, p99 in ms" - - "$(ratio "$part" "$all")" "$all" "$part"
bench_cleanup_servers
rm -rf "${tiers:?}"/*

keys=$((TIERS_MIB * 10 * 1024))
echo
echo "Ten times as much data as memory ($keys keys): memory second by second, and bytes written:"
echo
start tenth "$TIERS_MIB"
sleep 1
# shellcheck disable=SC2154
base=$(resident_kib "$tenth_pid")
(while resident_kib "$tenth_pid" 2>/dev/null; do sleep 1; done >"$bench_work/resident") &
sampling=$!
bench_pids+=("$sampling")
(while figure "$tenth_port" used_memory_dataset 2>/dev/null; do sleep 1; done >"$bench_work/account") &
bench_pids+=("$!")
table_begin memory phase "maximum resident, MiB" "resident / (limit + base)" "maximum accounted / limit" \
    "written, MiB" "demoted, MiB" "written / demoted"
# Prints the samples since the last row; the background loops append further ones.
since() { # samples
    tail -n "+$((${seen[$1]:-0} + 1))" "$bench_work/$1" | tee "$bench_work/$1-now"
    seen[$1]=$((${seen[$1]:-0} + $(wc -l <"$bench_work/$1-now")))
}

row() { # name
    local written demoted
    written=$(figure "$tenth_port" tier_bytes_written)
    demoted=$(($(figure "$tenth_port" tier_demotions) * (bytes + 64)))
    since resident >"$bench_work/residents"
    since account >"$bench_work/accounts"
    table_row "$1" "$(awk '$1 > most { most = $1 } END { printf "%.0f", most / 1024 }' "$bench_work/residents")" \
        "$(awk -v limit=$((TIERS_MIB * 1024)) -v base="$base" '$1 > most { most = $1 }
            END { printf "%.2f", most / (limit + base) }' "$bench_work/residents")" \
        "$(awk -v limit=$((TIERS_MIB << 20)) '$1 > most { most = $1 }
            END { printf "%.2f", most / limit }' "$bench_work/accounts")" \
        $(((written - written_before) >> 20)) $(((demoted - demoted_before) >> 20)) \
        "$(ratio $((written - written_before)) $((demoted - demoted_before)))"
    written_before=$written
    demoted_before=$demoted
}
declare -A seen=()
written_before=0
demoted_before=0
fill "$tenth_port" "$keys"
row load
figures "$tenth_port" "$keys" 16 $((BENCH_SECONDS * BENCH_ROUNDS)) >"$bench_work/steady"
row "95 % GET, P=16"
"$(ember_cli)" benchmark -p "$tenth_port" -t get -d "$bytes" -r "$keys" --key-pattern zipf -c "$BENCH_CLIENTS" -P 16 \
    --timeout 300 --duration $((BENCH_SECONDS * BENCH_ROUNDS)) -q >"$bench_work/reads"
row "GET only"
