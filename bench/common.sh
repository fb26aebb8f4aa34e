# Functions that the benchmarks share: finding programs, starting servers, running one measurement, writing tables.
# Sourced, never run. Servers started here are stopped, by process ID, when the script ends. EMBER_SERVER, EMBER_CLI and
# REDIS_SERVER name other programs than the release build and redis-server; BENCH_RESULTS names another folder for the
# CSV files than bench/results.

bench_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench_work=$(mktemp -d)
bench_results=${BENCH_RESULTS:-$bench_root/bench/results}
bench_time=$(date -u +%Y%m%dT%H%M%SZ)
bench_setup=""
bench_files=()
bench_pids=()
# The prefix of the load generator's command, such as taskset.
bench_load=()
redis_program=${REDIS_SERVER:-redis-server}

# Stops one started server.
stop_server() { # pid
    local pid others=()
    { kill "$1" 2>/dev/null && wait "$1" 2>/dev/null; } || true
    for pid in "${bench_pids[@]}"; do
        [ "$pid" = "$1" ] || others+=("$pid")
    done
    bench_pids=("${others[@]}")
}

# Stops all started servers.
bench_cleanup_servers() {
    local pid
    for pid in "${bench_pids[@]}"; do stop_server "$pid"; done
}

bench_cleanup() {
    bench_cleanup_servers
    rm -rf "$bench_work"
    local file
    for file in "${bench_files[@]}"; do echo "written to $file" >&2; done
}
trap bench_cleanup EXIT

fail() {
    echo "$*" >&2
    exit 1
}

need() { # program, how to get it
    command -v "$1" >/dev/null || fail "$1 is required: $2"
}

# Returns whether a server to compare with is installed; prints a note if it is not.
has_peer() { # program
    command -v "$1" >/dev/null || { echo "$1 is not installed: skipped" >&2; return 1; }
}

ember_server() {
    if [ -n "${EMBER_SERVER:-}" ]; then
        echo "$EMBER_SERVER"
    else
        "$bench_root/scripts/server-path.sh" release
    fi
}

ember_cli() {
    local server
    server=$(ember_server)
    echo "${EMBER_CLI:-${server%/*}/ember-cli}"
}

# Checked here, because a script that waits for the program's effects would wait forever.
if [ -n "${EMBER_SERVER:-}${EMBER_CLI:-}" ]; then
    need "$(ember_cli)" "set EMBER_CLI, or install it in the directory of EMBER_SERVER"
fi

is_ready() { # port
    [ "$(redis-cli -p "$1" PING 2>/dev/null)" = PONG ]
}

# Prints a port without a listener, above the ports that tools use by default.
free_port() {
    local port
    for port in $(shuf -i 20000-29999 -n 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    fail "no free port"
}

# Starts a server in its own directory and waits for its PONG: start_server NAME PORT PROGRAM [ARGUMENT…]
# Sets started_pid. Call it in the script itself, not in $(…): a subshell would forget the server to stop.
start_server() {
    local name=$1 port=$2
    shift 2
    is_ready "$port" && fail "port $port is in use by another server"
    mkdir -p "$bench_work/$name"
    (cd "$bench_work/$name" && exec "$@") >"$bench_work/$name.log" 2>&1 &
    started_pid=$!
    bench_pids+=("$started_pid")
    local turn
    for turn in $(seq 1000); do
        is_ready "$port" && return
        kill -0 "$started_pid" 2>/dev/null || break
        sleep 0.01
    done
    cat "$bench_work/$name.log" >&2
    fail "$name does not reply on port $port after $turn tries"
}

start_ember() { # name, port, yes for concurrent mode or no for sharded
    start_server "$1" "$2" "$(ember_server)" --port "$2" --bind 127.0.0.1 --save "" --concurrent "$3"
}

start_redis() { # name, port
    start_server "$1" "$2" "$redis_program" --port "$2" --bind 127.0.0.1 --save "" --appendonly no
}

# Sets server_cpu and load_cpu, two of the processors this script may use, or the same one if there is only one.
choose_processors() {
    need taskset "install the package util-linux"
    local part allowed=()
    for part in $(awk '/^Cpus_allowed_list:/ { gsub(/,/, " ", $2); print $2 }' /proc/self/status); do
        mapfile -t -O "${#allowed[@]}" allowed < <(seq "${part%-*}" "${part#*-}")
    done
    server_cpu=${allowed[0]}
    load_cpu=${allowed[1]:-$server_cpu}
    [ "$load_cpu" != "$server_cpu" ] || echo "only one processor: servers and load share it" >&2
}

# Starts a server on server_cpu and a free port: start_pinned NAME PROGRAM [ARGUMENT…]
# Sets NAME_port and NAME_pid.
start_pinned() {
    local name=$1 port
    shift
    port=$(free_port)
    start_server "$name" "$port" taskset -c "$server_cpu" "$@" --port "$port" --bind 127.0.0.1 --save ""
    printf -v "${name}_port" %s "$port"
    printf -v "${name}_pid" %s "$started_pid"
}

# Prints, in the protocol, the commands that create the keys that redis-benchmark chooses from, of 16 bytes each.
set_commands() { # keys, bytes of each value
    awk -v count="$1" -v size="$2" 'BEGIN {
        value = sprintf("%" size "s", ""); gsub(/ /, "x", value)
        for (number = 0; number < count; number++)
            printf "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n", number, size, value
    }'
}

fill_keys() { # port, keys, bytes of each value
    set_commands "$2" "$3" | redis-cli -p "$1" --pipe >"$bench_work/pipe.log" 2>&1 ||
        fail "load: $(cat "$bench_work/pipe.log")"
}

# Prints the execution mode of the ember on a port, or "other".
mode_of() { # port
    redis-cli -p "$1" INFO server |
        awk -F : '/^ember_execution_mode:/ { sub(/\r/, "", $2); mode = $2 } END { print mode ? mode : "other" }'
}

# Uses the server on the port if it is the expected one (mode_of), else starts it there:
# use_or_start PORT WANTED FUNCTION [ARGUMENT…]
use_or_start() {
    local port=$1 wanted=$2 found
    shift 2
    if is_ready "$port"; then
        found=$(mode_of "$port")
        [ "$found" = "$wanted" ] || fail "port $port: expected $wanted, found $found"
        echo "using the running server on port $port" >&2
    else
        "$@"
    fi
}

# Measures once with redis-benchmark, in requests per second: requests_per_second PORT TEST BYTES PIPELINE
requests_per_second() {
    requests_and_p99 "$@" | cut -d " " -f 1
}

# Measures the same, and prints the 99th percentile of the latency in ms, too. With pipelines that is the time to the
# first reply.
requests_and_p99() {
    local threads=()
    [ "$BENCH_THREADS" -le 1 ] || threads=(--threads "$BENCH_THREADS")
    "${bench_load[@]}" redis-benchmark -h 127.0.0.1 -p "$1" -t "$2" -d "$3" -P "$4" --csv \
        -n "$BENCH_REQUESTS" -c "$BENCH_CLIENTS" "${threads[@]}" -r "$BENCH_KEYS" 2>/dev/null |
        awk -F '","' 'NR > 1 { sub(/\..*/, "", $2); print $2, $7; found = 1 } END { exit !found }' ||
        fail "redis-benchmark failed on port $1 ($2, $3 bytes, P=$4)"
}

cpu_ticks() { # pid
    # The name in brackets may contain blanks; user and system time are the 12th and 13th field after it.
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# The same in user mode only.
user_ticks() { # pid
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 }'
}

# Prints the CPU time of a server per request while a command sends the requests: nanoseconds PID REQUESTS COMMAND…
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

# Prints a dash if the measurement was too short for a divisor.
ratio() { # number, number to divide it by
    awk -v one="$1" -v other="$2" 'BEGIN { if (other > 0) printf "%.2f", one / other; else printf "-" }'
}

resident_kib() { # pid
    awk '/^VmRSS:/ { print $2 }' "/proc/$1/status"
}

# Prints the conditions of a run. Each line of the CSV files has them, too, in its last column: describe KEY=VALUE…
describe() {
    bench_setup="$*"
    echo "$*"
    echo
}

csv_line() { # cells
    local cell line=""
    for cell in "$@"; do
        case $cell in *[,\"]*) cell="\"${cell//\"/\"\"}\"" ;; esac
        line+=",$cell"
    done
    echo "${line:1}"
}

markdown_line() { # cells
    printf '|'
    printf ' %s |' "$@"
    printf '\n'
}

# Begins a table on standard output and in a CSV file: table_begin NAME COLUMN… The name of the file consists of the
# script's name, NAME unless it is empty, and the time.
table_begin() {
    local script name=$1 column
    shift
    script=$(basename "$0" .sh)
    mkdir -p "$bench_results"
    bench_csv="$bench_results/$script${name:+-$name}-$bench_time.csv"
    bench_files+=("$bench_csv")
    csv_line "$@" setup >"$bench_csv"
    markdown_line "$@"
    shift
    printf '|---'
    for column in "$@"; do printf '|--:'; done
    printf '|\n'
}

table_row() { # cells
    markdown_line "$@"
    csv_line "$@" "$bench_setup" >>"$bench_csv"
}

# Prints a table of requests per second: benchmark_table ROW… where a row is "test bytes pipeline"; columns come from
# bench_names and bench_ports. All keys exist before a GET, so that none is a miss.
benchmark_table() {
    local row test bytes pipeline port cells
    local -A filled=()
    table_begin "" test "${bench_names[@]}"
    for row in "$@"; do
        read -r test bytes pipeline <<<"$row"
        cells=("${test^^} ($bytes B, P=$pipeline)")
        for port in "${bench_ports[@]}"; do
            if [ "$test" = get ] && [ "${filled[$port]:-}" != "$bytes" ]; then
                fill_keys "$port" "$BENCH_KEYS" "$bytes"
                filled[$port]=$bytes
            elif [ "$test" = set ]; then
                # SET may change the size of the values, so the keys are filled again before a GET.
                [ "${filled[$port]:-}" = "$bytes" ] || filled[$port]=""
            fi
            cells+=("$(requests_per_second "$port" "$test" "$bytes" "$pipeline")")
        done
        table_row "${cells[@]}"
    done
}

# The settings of all scripts with redis-benchmark.
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
    if [ "$BENCH_THREADS" -gt 1 ] && [ "$BENCH_REQUESTS" -lt 1000000 ]; then
        # With threads, redis-benchmark checks for the end four times per second, so short runs give rounded figures.
        echo "durations are rounded to 250 ms: set BENCH_REQUESTS=5000000 or BENCH_THREADS=1 for finer figures" >&2
    fi
    echo "Requests per second:"
    echo
    describe "requests=$BENCH_REQUESTS clients=$BENCH_CLIENTS load-threads=$BENCH_THREADS keys=$BENCH_KEYS cores=$(nproc)"
}

# Sets the ports of the compared servers, from the environment, and the columns of the tables.
comparison_servers() {
    local concurrent=${EMBER_CONCURRENT_PORT:-6379} sharded=${EMBER_SHARDED_PORT:-6380}
    local redis=${REDIS_PORT:-6399} dragonfly=${DRAGONFLY_PORT:-6389}
    use_or_start "$concurrent" concurrent start_ember ember-concurrent "$concurrent" yes
    use_or_start "$sharded" sharded start_ember ember-sharded "$sharded" no
    bench_names=("ember concurrent" "ember sharded")
    bench_ports=("$concurrent" "$sharded")
    if is_ready "$redis" || has_peer "$redis_program"; then
        use_or_start "$redis" other start_redis redis "$redis"
        bench_names+=(redis)
        bench_ports+=("$redis")
    fi
    if is_ready "$dragonfly" || has_peer dragonfly; then
        use_or_start "$dragonfly" other start_server dragonfly "$dragonfly" \
            dragonfly --port "$dragonfly" --bind 127.0.0.1 --dbfilename ""
        bench_names+=(dragonfly)
        bench_ports+=("$dragonfly")
    fi
}
