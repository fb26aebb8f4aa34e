# What the benchmarks share: finding programs, starting servers, running one measurement, printing tables.
# Sourced, never run. Servers started here are stopped, by process ID, when the script ends.

bench_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench_work=$(mktemp -d)
bench_pids=()

# Stops all servers that were started.
bench_cleanup_servers() {
    local pid
    for pid in "${bench_pids[@]:-}"; do
        [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    bench_pids=()
}

bench_cleanup() {
    bench_cleanup_servers
    rm -rf "$bench_work"
}
trap bench_cleanup EXIT

fail() {
    echo "$*" >&2
    exit 1
}

need() { # program, what brings it
    command -v "$1" >/dev/null || fail "$1 is needed: $2"
}

ember_server() {
    if [ -n "${EMBER_SERVER:-}" ]; then
        echo "$EMBER_SERVER"
    else
        "$bench_root/scripts/server-path.sh" release
    fi
}

answers() { # port
    [ "$(redis-cli -p "$1" PING 2>/dev/null)" = PONG ]
}

# A port nobody listens on, above the ones tools use by default.
free_port() {
    local port
    for port in $(shuf -i 20000-29999 -n 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    fail "no free port"
}

# Starts a server in a directory of its own and waits for its PONG: start_server NAME PORT PROGRAM [ARGUMENT…]
# Sets started_pid. Call it in the script itself, not in $(…): a subshell would forget what to stop.
start_server() {
    local name=$1 port=$2
    shift 2
    answers "$port" && fail "port $port is taken by a running server"
    mkdir -p "$bench_work/$name"
    (cd "$bench_work/$name" && exec "$@") >"$bench_work/$name.log" 2>&1 &
    started_pid=$!
    bench_pids+=("$started_pid")
    local turn
    for turn in $(seq 1000); do
        answers "$port" && return
        kill -0 "$started_pid" 2>/dev/null || break
        sleep 0.01
    done
    cat "$bench_work/$name.log" >&2
    fail "$name does not answer on port $port after $turn tries"
}

start_ember() { # name, port, yes for concurrent mode or no for sharded
    start_server "$1" "$2" "$(ember_server)" --port "$2" --bind 127.0.0.1 --save "" --concurrent "$3"
}

start_redis() { # name, port
    need redis-server "install the package redis-server"
    start_server "$1" "$2" redis-server --port "$2" --bind 127.0.0.1 --save "" --appendonly no
}

# Uses what answers on the port, or starts it there: use_or_start PORT FUNCTION [ARGUMENT…]
use_or_start() {
    local port=$1
    shift
    if answers "$port"; then
        echo "using the server that runs on port $port" >&2
    else
        "$@"
    fi
}

# One measurement with redis-benchmark, in requests a second: requests_per_second PORT TEST BYTES PIPELINE
requests_per_second() {
    local threads=()
    [ "$BENCH_THREADS" -le 1 ] || threads=(--threads "$BENCH_THREADS")
    redis-benchmark -h 127.0.0.1 -p "$1" -t "$2" -d "$3" -P "$4" --csv \
        -n "$BENCH_REQUESTS" -c "$BENCH_CLIENTS" "${threads[@]}" -r "$BENCH_KEYS" 2>/dev/null |
        awk -F '","' 'NR > 1 { sub(/\..*/, "", $2); print $2; found = 1 } END { exit !found }' ||
        fail "redis-benchmark failed on port $1 ($2, $3 bytes, P=$4)"
}

cpu_ticks() { # pid
    # The name in brackets may hold blanks; user and system time are the 12th and 13th field behind it.
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# CPU time that a server takes for each of so many requests while they are made: nanoseconds PID REQUESTS COMMAND…
nanoseconds() {
    local pid=$1 requests=$2 before
    shift 2
    before=$(cpu_ticks "$pid")
    "$@"
    echo $((($(cpu_ticks "$pid") - before) * 1000000000 / $(getconf CLK_TCK) / requests))
}

median() {
    sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

ratio() { # number, number to divide it by
    awk -v one="$1" -v other="$2" 'BEGIN { printf "%.2f", one / other }'
}

resident_kib() { # pid
    awk '/^VmRSS:/ { print $2 }' "/proc/$1/status"
}

# A table of requests a second: benchmark_table ROW… where a row is "test bytes pipeline"; columns come from
# bench_names and bench_ports.
benchmark_table() {
    local row test bytes pipeline port name
    printf '| test'
    for name in "${bench_names[@]}"; do printf ' | %s' "$name"; done
    printf ' |\n|---'
    for name in "${bench_names[@]}"; do printf '|--:'; done
    printf '|\n'
    for row in "$@"; do
        read -r test bytes pipeline <<<"$row"
        printf '| %s (%s B, P=%s)' "${test^^}" "$bytes" "$pipeline"
        for port in "${bench_ports[@]}"; do
            printf " | %'d" "$(requests_per_second "$port" "$test" "$bytes" "$pipeline")"
        done
        printf ' |\n'
    done
}

# The settings every redis-benchmark script understands.
benchmark_settings() {
    need redis-benchmark "install the package redis-tools"
    need redis-cli "install the package redis-tools"
    BENCH_REQUESTS=${BENCH_REQUESTS:-100000}
    BENCH_CLIENTS=${BENCH_CLIENTS:-50}
    BENCH_PIPELINE=${BENCH_PIPELINE:-16}
    BENCH_THREADS=${BENCH_THREADS:-$(nproc)}
    BENCH_KEYS=${BENCH_KEYS:-100000}
}

print_setup() {
    echo "requests $BENCH_REQUESTS, clients $BENCH_CLIENTS, load threads $BENCH_THREADS, keys $BENCH_KEYS," \
        "cores $(nproc)"
    if [ "$BENCH_THREADS" -gt 1 ] && [ "$BENCH_REQUESTS" -lt 1000000 ]; then
        # With threads redis-benchmark looks for the end four times a second, so short runs give rounded figures.
        echo "(for figures finer than steps of 250 ms: BENCH_REQUESTS=5000000, or BENCH_THREADS=1)"
    fi
    echo
}

# Ports of the servers compared, from the environment, and the columns of the tables.
comparison_servers() {
    local concurrent=${EMBER_CONCURRENT_PORT:-6379} sharded=${EMBER_SHARDED_PORT:-6380}
    local redis=${REDIS_PORT:-6399} dragonfly=${DRAGONFLY_PORT:-6389}
    use_or_start "$concurrent" start_ember ember-concurrent "$concurrent" yes
    use_or_start "$sharded" start_ember ember-sharded "$sharded" no
    use_or_start "$redis" start_redis redis "$redis"
    bench_names=("ember concurrent" "ember sharded" redis)
    bench_ports=("$concurrent" "$sharded" "$redis")
    if ! answers "$dragonfly" && command -v dragonfly >/dev/null; then
        start_server dragonfly "$dragonfly" dragonfly --port "$dragonfly" --bind 127.0.0.1 --dbfilename ""
    fi
    if answers "$dragonfly"; then
        bench_names+=(dragonfly)
        bench_ports+=("$dragonfly")
    else
        echo "dragonfly is not installed: left out" >&2
    fi
}
