#!/usr/bin/env bash
# Compliance with the memory limit while files are written: resident memory of a full cache, second by second, with an
# append-only file, rewrites and save rules, of ember, redis-server and valkey-server; then the same without files. The
# load is memtier_benchmark's: values of 10 to 3,000 bytes, one SET per three GETs, keys chosen around a middle that
# expire within 1 to 120 seconds. Settings: LIMIT (300mb), LIMIT_SECONDS (1800 with files, a quarter of that without),
# LIMIT_KEYS (3000000), LIMIT_ARGUMENTS (further arguments for ember), MEMTIER_THREADS (2), MEMTIER_CLIENTS (25 per
# thread), MEMTIER_PIPELINE (8). VALKEY_SERVER names another program than valkey-server.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need memtier_benchmark "install its package, or build it from source and put it in PATH"
need redis-cli "install the package redis-tools"
LIMIT=${LIMIT:-300mb}
LIMIT_SECONDS=${LIMIT_SECONDS:-1800}
LIMIT_KEYS=${LIMIT_KEYS:-3000000}
LIMIT_ARGUMENTS=${LIMIT_ARGUMENTS:-"--activedefrag yes"}
MEMTIER_THREADS=${MEMTIER_THREADS:-2}
MEMTIER_CLIENTS=${MEMTIER_CLIENTS:-25}
MEMTIER_PIPELINE=${MEMTIER_PIPELINE:-8}

declare -A programs=([redis]=$redis_program [valkey]=$valkey_program [ember]=$(ember_server))
servers=(ember)
for name in redis valkey; do
    if has_peer "${programs[$name]}"; then servers+=("$name"); fi
done

# Loads a full cache for this number of seconds. Prints resident MiB before the load, the mean of each third and the
# maximum, then the latency in ms (p99.9) and operations per second.
run_load() { # server, yes with files or no, seconds
    local name=$1 files=$2 seconds=$3 port base load arguments=(--maxmemory "$LIMIT" --maxmemory-policy allkeys-lru)
    if [ "$files" = yes ]; then
        arguments+=(--save "30 10000" --appendonly yes --auto-aof-rewrite-min-size 64mb)
    else
        arguments+=(--save "")
    fi
    # The arguments are separate words, as on a command line.
    # shellcheck disable=SC2206
    [ "$name" != ember ] || arguments+=($LIMIT_ARGUMENTS)
    port=$(free_port)
    start_server "$name" "$port" "${programs[$name]}" --port "$port" --bind 127.0.0.1 "${arguments[@]}"
    sleep 0.5
    base=$(resident_kib "$started_pid")
    memtier_benchmark --server 127.0.0.1 --port "$port" --threads "$MEMTIER_THREADS" --clients "$MEMTIER_CLIENTS" \
        --pipeline "$MEMTIER_PIPELINE" --ratio 1:3 --data-size-range 10-3000 --expiry-range 1-120 \
        --key-maximum "$LIMIT_KEYS" --key-pattern G:G --test-time "$seconds" --distinct-client-seed --hide-histogram \
        --print-percentiles 99.9 --json-out-file "$bench_work/memtier.json" >"$bench_work/memtier.log" 2>&1 &
    load=$!
    bench_pids+=("$load")
    while resident_kib "$started_pid" && sleep 1 && kill -0 "$load" 2>/dev/null; do
        :
    done >"$bench_work/samples"
    wait "$load" || fail "memtier_benchmark failed with $name: $(tail -n 3 "$bench_work/memtier.log")"
    awk -v base="$base" '
        { sample[NR] = $1; if ($1 > maximum) maximum = $1 }
        END {
            printf "%.0f", base / 1024
            for (third = 0; third < 3; third++) {
                sum = count = 0
                for (n = int(NR * third / 3) + 1; n <= int(NR * (third + 1) / 3); n++) { sum += sample[n]; count++ }
                if (count) printf " %.0f", sum / count / 1024; else printf " -"
            }
            printf " %.0f\n", maximum / 1024
        }' "$bench_work/samples" >"$bench_work/cells"
    awk -F : -v seconds="$seconds" '
        /"Totals"/ { inside = 1 }
        inside && count == "" && /"Count"/ { count = $2 }
        inside && /"p99.90"/ { p999 = $2 }
        END { if (count <= 0) exit 1; printf "%.2f %d\n", p999, count / seconds }' "$bench_work/memtier.json" \
        >>"$bench_work/cells" || fail "memtier_benchmark counted no requests with $name"
    mapfile -t cells < <(tr ' ' '\n' <"$bench_work/cells")
    bench_cleanup_servers
    rm -rf "${bench_work:?}/$name"
}

echo "A full cache with and without files:"
echo
describe "limit=$LIMIT seconds=$LIMIT_SECONDS keys=$LIMIT_KEYS threads=$MEMTIER_THREADS" \
    "clients-per-thread=$MEMTIER_CLIENTS pipeline=$MEMTIER_PIPELINE cores=$(nproc)"
table_begin "" "server and files" "resident before, MiB" "first third, MiB" "second third, MiB" "last third, MiB" \
    "maximum, MiB" "p99.9, ms" "ops/s"
for name in "${servers[@]}"; do
    run_load "$name" yes "$LIMIT_SECONDS"
    table_row "$name, files" "${cells[@]}"
done
for name in "${servers[@]}"; do
    run_load "$name" no $(((LIMIT_SECONDS + 3) / 4))
    table_row "$name, none" "${cells[@]}"
done
