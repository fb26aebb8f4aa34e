#!/usr/bin/env bash
# JSON documents of 1 KiB and Bloom filters: memory per document, and the server's CPU time per operation: ember with one
# worker and Redis Stack, both on one core, the load on another. Settings: BENCH_KEYS (100000 documents), BENCH_REQUESTS
# (1000000 per measurement), BENCH_ROUNDS (3, the median counts), BENCH_CLIENTS (50), BENCH_PIPELINE (16),
# REDIS_STACK_SERVER (the program that scripts/setup-redis-stack.sh installs). With --ember-only, only ember is measured.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-benchmark "install the package redis-tools"
need redis-cli "install the package redis-tools"
choose_processors
BENCH_KEYS=${BENCH_KEYS:-100000}
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
BENCH_ROUNDS=${BENCH_ROUNDS:-3}
BENCH_CLIENTS=${BENCH_CLIENTS:-50}
BENCH_PIPELINE=${BENCH_PIPELINE:-16}
stack_program=${REDIS_STACK_SERVER:-$bench_root/target/peers/redis-stack/redis-stack-server}

servers=(ember)
if has_peer "$stack_program"; then
    servers=(stack ember)
    start_pinned stack "$stack_program"
fi
start_pinned ember "$(ember_server)" --shards 1

# A document of 1,024 bytes: members of every type, an array of objects, and a text.
document='{"id":71234,"name":"Ann Example","age":30,"score":99.5,"active":true,"manager":null,'
document+='"address":{"street":"Main Street 12","city":"Bonn","zip":"53111","geo":{"lat":50.735851,"lon":7.10066}},'
document+='"tags":["a1","b2","c3","d4","e5","f6"],"orders":['
for order in 1 2 3 4 5 6; do
    document+='{"order":'$((10000 + order))',"total":'$order'9.95,"items":['$order',2,3,4],"paid":true},'
done
document=${document%,}'],"text":"'
document+=$(printf "%$((1024 - ${#document} - 2))s" "" | tr ' ' x)'"}'
[ "${#document}" -eq 1024 ] || fail "the document has ${#document} bytes"

fill() { # port
    awk -v count="$BENCH_KEYS" -v text="$document" 'BEGIN {
        for (number = 0; number < count; number++)
            printf "*4\r\n$8\r\nJSON.SET\r\n$16\r\ndoc:%012d\r\n$1\r\n$\r\n$%d\r\n%s\r\n", number, length(text), text
    }' | redis-cli -p "$1" --pipe >"$bench_work/pipe.log" 2>&1 || fail "load: $(cat "$bench_work/pipe.log")"
}

used_bytes() { # port
    redis-cli -p "$1" INFO memory | awk -F : '/^used_memory:/ { print int($2) }'
}

columns=(ember)
[ "${#servers[@]}" -eq 1 ] || columns=("Redis Stack" ember "ember / Redis Stack")
echo "Memory per document of 1,024 bytes, with its key, as counted by the allocator and by the system:"
echo
describe "keys=$BENCH_KEYS"
table_begin memory bytes "${columns[@]}"
used_cells=("used memory")
resident_cells=(resident)
for server in "${servers[@]}"; do
    pid="${server}_pid" port="${server}_port"
    used=$(used_bytes "${!port}") resident=$(resident_kib "${!pid}")
    fill "${!port}"
    used_cells+=("$((($(used_bytes "${!port}") - used) / BENCH_KEYS))")
    resident_cells+=("$((($(resident_kib "${!pid}") - resident) * 1024 / BENCH_KEYS))")
done
if [ "${#servers[@]}" -gt 1 ]; then
    used_cells+=("$(ratio "${used_cells[2]}" "${used_cells[1]}")")
    resident_cells+=("$(ratio "${resident_cells[2]}" "${resident_cells[1]}")")
fi
table_row "${used_cells[@]}"
table_row "${resident_cells[@]}"

load() { # port, word of the command…
    local port=$1
    shift
    taskset -c "$load_cpu" redis-benchmark -h 127.0.0.1 -p "$port" -P "$BENCH_PIPELINE" -n "$BENCH_REQUESTS" \
        -c "$BENCH_CLIENTS" -r "$BENCH_KEYS" -q "$@" >/dev/null 2>&1 || fail "redis-benchmark failed on port $port: $*"
}

echo
echo "CPU time of the server per operation, in ns:"
echo
describe "keys=$BENCH_KEYS requests=$BENCH_REQUESTS rounds=$BENCH_ROUNDS clients=$BENCH_CLIENTS pipeline=$BENCH_PIPELINE" \
    "cores=$(nproc)"
table_begin commands command "${columns[@]}"
for server in "${servers[@]}"; do
    port="${server}_port"
    redis-cli -p "${!port}" BF.RESERVE filter 0.01 "$BENCH_KEYS" >/dev/null
done
rows=(
    "JSON.SET doc:__rand_int__ $ $document"
    "JSON.GET doc:__rand_int__"
    "JSON.GET doc:__rand_int__ $.address.city"
    "JSON.NUMINCRBY doc:__rand_int__ $.age 1"
    "BF.ADD filter item:__rand_int__"
    "BF.EXISTS filter item:__rand_int__"
)
for row in "${rows[@]}"; do
    # The document has blanks.
    words=("${row%%"{"*}")
    read -ra words <<<"${words[0]}"
    case $row in *"{"*) words+=("$document") ;; esac
    rm -f "$bench_work"/*-ns
    for _ in $(seq "$BENCH_ROUNDS"); do
        for server in "${servers[@]}"; do
            pid="${server}_pid" port="${server}_port"
            nanoseconds "${!pid}" "$BENCH_REQUESTS" load "${!port}" "${words[@]}" >>"$bench_work/$server-ns"
        done
    done
    cells=("${row//"$document"/1-KiB}")
    for server in "${servers[@]}"; do cells+=("$(median <"$bench_work/$server-ns")"); done
    [ "${#servers[@]}" -eq 1 ] || cells+=("$(ratio "${cells[2]}" "${cells[1]}")")
    table_row "${cells[@]}"
done
[ "${#servers[@]}" -eq 1 ] || table_chart "CPU time per operation, 16 commands at once" ns "Redis Stack" ember
