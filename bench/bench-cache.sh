#!/usr/bin/env bash
# ember, redis-server and valkey-server as caches: the memory overhead of a key at many value sizes, and the hit rate of
# a full cache. Settings: KEY_COUNT (300000 keys of 16 bytes; a quarter of them above 500 bytes), CACHE_SIZES (value
# sizes), CACHE_LIMIT (60mb), CACHE_READS (900000, over CACHE_SECONDS, 30), CACHE_KEYS (400000 to choose from),
# CACHE_POLICIES. VALKEY_SERVER names another program than valkey-server.
#
# Reads are cache-aside in one command, `SET key value NX GET`: it returns an existing value and stores a missing one.
# Keys are chosen by Zipf's law with the exponent 0.9; for the second third of the reads, other keys are popular. Reads
# are spread over half a minute, because eviction clocks count in seconds.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
KEY_COUNT=${KEY_COUNT:-300000}
CACHE_SIZES=${CACHE_SIZES:-"10 16 25 40 56 64 100 128 150 200 256 300 400 500 512 600 700 800 1000 1024 1200 1400 1600 1900
    2048 2400 2800 3000"}
CACHE_LIMIT=${CACHE_LIMIT:-60mb}
CACHE_READS=${CACHE_READS:-900000}
CACHE_KEYS=${CACHE_KEYS:-400000}
CACHE_SECONDS=${CACHE_SECONDS:-30}
CACHE_POLICIES=${CACHE_POLICIES:-"allkeys-lru allkeys-lfu"}
CACHE_VALUE_BYTES=500
PORTIONS=60

declare -A programs=([redis]=$redis_program [valkey]=$valkey_program [ember]=$(ember_server))
servers=()
for name in redis valkey; do
    if has_peer "${programs[$name]}"; then servers+=("$name"); fi
done
servers+=(ember)

start() { # server, further arguments
    local name=$1 port
    shift
    port=$(free_port)
    start_server "$name" "$port" "${programs[$name]}" --port "$port" --bind 127.0.0.1 --save "" "$@"
    started_port=$port
}

# Stores values of one size, or of all sizes from 20 to 1,400 bytes in turn; prints the bytes of all keys and values.
fill_values() { # port, keys, bytes of each value or "mix"
    awk -v count="$2" -v size="$3" 'BEGIN {
        longest = sprintf("%3000s", ""); gsub(/ /, "x", longest)
        for (number = 0; number < count; number++) {
            bytes = size == "mix" ? 20 + number * 7919 % 1381 : size
            printf "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n", number, bytes, substr(longest, 1, bytes)
            total += 16 + bytes
        }
        print total >"/dev/stderr"
    }' 2>"$bench_work/total" | redis-cli -p "$1" --pipe >"$bench_work/pipe.log" 2>&1 ||
        fail "load: $(cat "$bench_work/pipe.log")"
}

# Sets allocated and resident: bytes per key beyond key and value, as counted by the allocator and by the system.
measure_overhead() { # server, bytes of each value or "mix"
    local count=$KEY_COUNT used before
    [ "$2" = mix ] || [ "$2" -le 500 ] || count=$((KEY_COUNT / 4))
    start "$1"
    used=$(settled_number "$started_port" allocator_allocated) before=$(resident_kib "$started_pid")
    fill_values "$started_port" "$count" "$2"
    used=$(($(settled_number "$started_port" allocator_allocated) - used))
    before=$((($(resident_kib "$started_pid") - before) * 1024))
    read -r allocated resident < <(awk -v used="$used" -v resident="$before" -v total="$(cat "$bench_work/total")" \
        -v count="$count" 'BEGIN { printf "%.0f %.0f\n", (used - total) / count, (resident - total) / count }')
    bench_cleanup_servers
}

columns=()
for name in "${servers[@]}"; do columns+=("$name, allocated" "$name, resident"); done
echo "Bytes per key beyond key and value, as counted by the allocator and by the system:"
echo
describe "keys=$KEY_COUNT (a quarter above 500 bytes) key-bytes=16"
table_begin overhead "value bytes" "${columns[@]}"
for size in $CACHE_SIZES mix; do
    cells=()
    for name in "${servers[@]}"; do
        measure_overhead "$name" "$size"
        cells+=("$allocated" "$resident")
    done
    table_row "${size/mix/20–1,400}" "${cells[@]}"
done

# Writes the reads as files of commands, one per portion.
write_reads() {
    awk -v keys="$CACHE_KEYS" -v reads="$CACHE_READS" -v size="$CACHE_VALUE_BYTES" -v portions="$PORTIONS" \
        -v folder="$bench_work" 'BEGIN {
        srand(7)
        value = sprintf("%" size "s", ""); gsub(/ /, "x", value)
        for (rank = 1; rank <= keys; rank++) share[rank] = share[rank - 1] + rank ^ -0.9
        for (read = 0; read < reads; read++) {
            wanted = rand() * share[keys]
            low = 1; high = keys
            while (low < high) {
                middle = int((low + high) / 2)
                if (share[middle] < wanted) low = middle + 1; else high = middle
            }
            third = int(3 * read / reads)
            # Adjacent ranks do not have adjacent names.
            key = ((low + (third == 1 ? keys / 2 : 0)) * 7919) % keys
            printf "*5\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n$2\r\nNX\r\n$3\r\nGET\r\n", key, size, value \
                >(folder "/reads-" int(portions * read / reads))
        }
    }'
}

echo
echo "Hit rate of a full cache:"
echo
describe "limit=$CACHE_LIMIT reads=$CACHE_READS keys=$CACHE_KEYS value-bytes=$CACHE_VALUE_BYTES zipf=0.9"
table_begin hits "server and policy" "hits, %" keys "resident before, MiB" "resident, MiB" "used, MiB"
write_reads
for policy in $CACHE_POLICIES; do
    for name in "${servers[@]}"; do
        start "$name" --maxmemory "$CACHE_LIMIT" --maxmemory-policy "$policy"
        before=$(resident_kib "$started_pid")
        for ((portion = 0; portion < PORTIONS; portion++)); do
            next=$((${EPOCHREALTIME/./} + CACHE_SECONDS * 1000000 / PORTIONS))
            redis-cli -p "$started_port" --pipe <"$bench_work/reads-$portion" >"$bench_work/pipe.log" 2>&1 ||
                fail "reads: $(cat "$bench_work/pipe.log")"
            left=$((next - ${EPOCHREALTIME/./}))
            [ "$left" -le 0 ] || sleep "$(awk -v left="$left" 'BEGIN { print left / 1000000 }')"
        done
        hits=$(info_number "$started_port" keyspace_hits) misses=$(info_number "$started_port" keyspace_misses)
        [ "$((hits + misses))" -eq "$CACHE_READS" ] || fail "$name counted $((hits + misses)) reads"
        read -ra cells < <(awk -v hits="$hits" -v reads="$CACHE_READS" -v before="$before" \
            -v after="$(resident_kib "$started_pid")" -v used="$(info_number "$started_port" used_memory)" 'BEGIN {
            printf "%.1f\n%.1f\n%.1f\n%.1f\n", 100 * hits / reads, before / 1024, after / 1024, used / 1048576
        }' | paste -sd " ")
        table_row "$name, $policy" "${cells[0]}" "$(redis-cli -p "$started_port" DBSIZE)" "${cells[@]:1}"
        bench_cleanup_servers
    done
done
