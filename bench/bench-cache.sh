#!/usr/bin/env bash
# ember, redis-server and valkey-server as caches: the memory overhead of a key at many value sizes, and the hit rate of
# a full cache. Settings: KEY_COUNT (300000 keys of 16 bytes; a quarter of them above 500 bytes), CACHE_SIZES (value
# sizes), CACHE_LIMIT (60mb; the trace `shift`), CACHE_TRACE_LIMIT (12mb; other traces), CACHE_READS (900000, over
# CACHE_SECONDS, 30), CACHE_KEYS (400000 to choose from), CACHE_POLICIES, CACHE_TRACES (shift zipf twitter ycsb scan).
# VALKEY_SERVER names another program than valkey-server.
#
# Reads are cache-aside in one command, `SET key value NX GET`: it returns an existing value and stores a missing one.
# Reads are spread over half a minute, because eviction clocks count in seconds. Traces:
#
#   zipf     Zipf's law with the exponent 0.9
#   shift    the same; for the second third of the reads, other keys are popular
#   twitter  as "A large scale analysis of hundreds of in-memory cache clusters at Twitter" (Yang, Yue and Rashmi, 2020)
#            describes clusters: Zipf's law with the exponent 1, keys that expire (after 20 seconds), a fifth of the reads
#            of keys that are read once, and new keys that replace popular ones (one for 20 reads)
#   ycsb     as YCSB (Cooper and others, 2010): scrambled Zipf's law, exponent 0.99, and scans of up to 100 keys as in its
#            workload E (one read in two hundred begins one); after half of the reads, other keys are popular
#   scan     Zipf's law with the exponent 0.9, and four scans of 50,000 keys that are read once
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
KEY_COUNT=${KEY_COUNT:-300000}
CACHE_SIZES=${CACHE_SIZES:-"10 16 25 40 56 64 100 128 150 200 256 300 400 500 512 600 700 800 1000 1024 1200 1400 1600 1900
    2048 2400 2800 3000"}
CACHE_LIMIT=${CACHE_LIMIT:-60mb}
CACHE_TRACE_LIMIT=${CACHE_TRACE_LIMIT:-12mb}
CACHE_READS=${CACHE_READS:-900000}
CACHE_KEYS=${CACHE_KEYS:-400000}
CACHE_SECONDS=${CACHE_SECONDS:-30}
CACHE_POLICIES=${CACHE_POLICIES:-"allkeys-lru allkeys-lfu allkeys-ghosts"}
CACHE_TRACES=${CACHE_TRACES:-"shift zipf twitter ycsb scan"}
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

# Writes the reads of a trace as files of commands, one per portion.
write_reads() { # trace
    rm -f "$bench_work"/reads-*
    awk -v trace="$1" -v keys="$CACHE_KEYS" -v reads="$CACHE_READS" -v size="$CACHE_VALUE_BYTES" \
        -v portions="$PORTIONS" -v folder="$bench_work" '
    function draw(  wanted, low, high, middle) { # a rank from 1 on
        wanted = rand() * share[keys]
        low = 1; high = keys
        while (low < high) {
            middle = int((low + high) / 2)
            if (share[middle] < wanted) low = middle + 1; else high = middle
        }
        return low
    }
    function emit(key) {
        if (number == reads) return
        printf options "key:%012d\r\n$%d\r\n%s\r\n$2\r\nNX\r\n$3\r\nGET\r\n" expiry, key, size, value \
            >(folder "/reads-" int(portions * number / reads))
        number++
    }
    BEGIN {
        srand(7)
        value = sprintf("%" size "s", ""); gsub(/ /, "x", value)
        exponent = trace == "twitter" ? 1 : trace == "ycsb" ? 0.99 : 0.9
        for (rank = 1; rank <= keys; rank++) share[rank] = share[rank - 1] + rank ^ -exponent
        options = (trace == "twitter" ? "*7" : "*5") "\r\n$3\r\nSET\r\n$16\r\n"
        if (trace == "twitter") expiry = "$2\r\nEX\r\n$2\r\n20\r\n"
        fresh = keys
        scans = 0
        while (number < reads) {
            # Adjacent ranks do not have adjacent names.
            if (trace == "zipf") emit(draw() * 7919 % keys)
            else if (trace == "shift") emit((draw() + (int(3 * number / reads) == 1 ? keys / 2 : 0)) * 7919 % keys)
            else if (trace == "twitter") {
                if (number % 20 == 0) named[1 + int(rand() * keys)] = ++fresh
                if (rand() < 0.2) emit(++fresh)
                else { rank = draw(); emit(rank in named ? named[rank] : rank * 7919 % keys) }
            } else if (trace == "ycsb") {
                if (rand() < 0.005) {
                    first = int(rand() * keys)
                    for (last = first + int(rand() * 100); first <= last; first++) emit(first % keys)
                } else emit((draw() + int(2 * number / reads) * int(keys / 2)) * 7919 % keys)
            } else {
                if (number >= (scans + 0.8) * reads / 4) {
                    scans++
                    for (count = 0; count < 50000; count++) emit(++fresh)
                }
                emit(draw() * 7919 % keys)
            }
        }
    }'
}

# Sets cells: hits in percent, resident MiB before and after, and used MiB.
measure_hits() { # server, policy, memory limit
    start "$1" --maxmemory "$3" --maxmemory-policy "$2"
    local before portion next left hits misses
    before=$(resident_kib "$started_pid")
    for ((portion = 0; portion < PORTIONS; portion++)); do
        next=$((${EPOCHREALTIME/./} + CACHE_SECONDS * 1000000 / PORTIONS))
        redis-cli -p "$started_port" --pipe <"$bench_work/reads-$portion" >"$bench_work/pipe.log" 2>&1 ||
            fail "reads: $(cat "$bench_work/pipe.log")"
        left=$((next - ${EPOCHREALTIME/./}))
        [ "$left" -le 0 ] || sleep "$(awk -v left="$left" 'BEGIN { print left / 1000000 }')"
    done
    hits=$(info_number "$started_port" keyspace_hits) misses=$(info_number "$started_port" keyspace_misses)
    [ "$((hits + misses))" -eq "$CACHE_READS" ] || fail "$1 counted $((hits + misses)) reads"
    read -ra cells < <(awk -v hits="$hits" -v reads="$CACHE_READS" -v before="$before" \
        -v after="$(resident_kib "$started_pid")" -v used="$(info_number "$started_port" used_memory)" 'BEGIN {
        printf "%.1f\n%.1f\n%.1f\n%.1f\n", 100 * hits / reads, before / 1024, after / 1024, used / 1048576
    }' | paste -sd " ")
}

echo
echo "Hit rate of a full cache:"
echo
describe "limit=$CACHE_LIMIT limit-of-other-traces=$CACHE_TRACE_LIMIT reads=$CACHE_READS keys=$CACHE_KEYS" \
    "value-bytes=$CACHE_VALUE_BYTES"
table_begin hits "trace, server and policy" "hits, %" keys "resident before, MiB" "resident, MiB" "used, MiB"
for trace in $CACHE_TRACES; do
    write_reads "$trace"
    if [ "$trace" = shift ]; then limit=$CACHE_LIMIT; else limit=$CACHE_TRACE_LIMIT; fi
    for policy in $CACHE_POLICIES; do
        for name in "${servers[@]}"; do
            # Only ember has this policy.
            [ "$policy" != allkeys-ghosts ] || [ "$name" = ember ] || continue
            measure_hits "$name" "$policy" "$limit"
            table_row "$trace, $name, $policy" "${cells[0]}" "$(redis-cli -p "$started_port" DBSIZE)" "${cells[@]:1}"
            bench_cleanup_servers
        done
    done
done
