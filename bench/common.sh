# Functions that the benchmarks share: finding programs, starting servers, running one measurement, writing tables.
# Sourced, never run. Servers started here are stopped, by process ID, when the script ends. EMBER_SERVER, EMBER_CLI and
# REDIS_SERVER name other programs than the release build and redis-server; BENCH_RESULTS names another folder for the
# CSV and Markdown files than bench/results. A script has the settings that its head names, and the option --ember-only if
# its head names that; others are refused.

bench_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench_work=$(mktemp -d)
bench_results=${BENCH_RESULTS:-$bench_root/bench/results}
bench_time=$(date -u +%Y%m%dT%H%M%SZ)
bench_setup=""
bench_files=()
bench_pids=()
# The prefix of the load generator's command, such as taskset.
bench_load=()
# Programs that setup-vm.sh has built or downloaded.
PATH="$PATH:${BENCH_TOOLS:-$bench_root/target/bench-tools}"
redis_program=${REDIS_SERVER:-redis-server}
valkey_program=${VALKEY_SERVER:-valkey-server}
keydb_program=${KEYDB_SERVER:-keydb-server}

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

# Returns whether the head of the script names a setting or an option.
head_names() { # name
    sed -n '/^[^#]/q; p' "$0" | grep -E -- "(^|[^A-Z_])$1([^A-Z_]|$)" >/dev/null
}

# Refuses unknown settings and options: if they were ignored, the conditions of the figures would not be those that the
# caller requested.
ember_only=no
for argument in "$@"; do
    [ "$argument" = --ember-only ] && head_names --ember-only || fail "$(basename "$0") has no option $argument"
    ember_only=yes
done
for name in $(compgen -e); do
    case $name in
        BENCH_RESULTS) ;;
        BENCH_* | MEMTIER_* | KEY_COUNT | VALUE_SIZE | ELEMENT_COUNT)
            head_names "$name" || fail "$(basename "$0") has no setting $name" ;;
    esac
done

# Returns whether a server to compare with is installed, unless only ember is to be measured; prints a note if it is not
# installed.
has_peer() { # program
    [ "$ember_only" = no ] || return 1
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

# Prints a port without a listener, above the ports that tools and tests use, and below the ephemeral ones.
free_port() {
    local port
    for port in $(shuf -i 30000-32767 -n 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    fail "no free port"
}

# Starts a server in its own directory and waits for its PONG: start_server NAME PORT PROGRAM [ARGUMENT…]
# Sets started_pid. Call it in the script itself, not in $(…): a subshell would lose the list of servers to stop.
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
    start_threaded redis "$1" "$2" "$(default_threads redis)"
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
    requests_and_latencies "$@" | cut -d " " -f 1
}

# Like requests_per_second, but also prints the median, the 99th percentile and the maximum of the latency in ms. With
# pipelines, latency ends at the first reply.
requests_and_latencies() {
    local threads=()
    [ "$BENCH_THREADS" -le 1 ] || threads=(--threads "$BENCH_THREADS")
    "${bench_load[@]}" redis-benchmark -h 127.0.0.1 -p "$1" -t "$2" -d "$3" -P "$4" --csv \
        -n "$BENCH_REQUESTS" -c "$BENCH_CLIENTS" "${threads[@]}" -r "$BENCH_KEYS" 2>/dev/null |
        awk -F '","' '
            NR > 1 { sub(/\..*/, "", $2); sub(/"$/, "", $8); print $2, $5, $7, $8; found = 1 }
            END { exit !found }' ||
        fail "redis-benchmark failed on port $1 ($2, $3 bytes, P=$4)"
}

# Sends a command repeatedly until it is stopped; sets repeating.
repeat_command() { # port, words of a command
    redis-cli -p "$1" -r -1 -i 0.1 "${@:2}" >/dev/null 2>&1 &
    repeating=$!
}

wait_for_background_saves() { # port
    while redis-cli -p "$1" INFO persistence | grep -qE '^(rdb_bgsave|aof_rewrite)_in_progress:1'; do sleep 0.1; done
}

# Begins background work that a load is measured together with, or nothing for other conditions: evicting (a tenth of
# the memory), saving or rewriting (repeatedly): begin_condition PORT CONDITION
begin_condition() {
    local used
    repeating=""
    case $2 in
        evicting)
            used=$(redis-cli -p "$1" INFO memory | awk -F : '/^used_memory:/ { print $2 + 0 }')
            redis-cli -p "$1" CONFIG SET maxmemory-policy allkeys-lru >/dev/null
            redis-cli -p "$1" CONFIG SET maxmemory $((used * 9 / 10)) >/dev/null ;;
        saving) repeat_command "$1" BGSAVE ;;
        rewriting)
            redis-cli -p "$1" CONFIG SET appendonly yes >/dev/null
            wait_for_background_saves "$1"
            repeat_command "$1" BGREWRITEAOF ;;
    esac
}

# Ends the background work of begin_condition: end_condition PORT CONDITION
end_condition() {
    if [ -n "$repeating" ]; then
        kill "$repeating"
        wait "$repeating" 2>/dev/null || true
        wait_for_background_saves "$1"
    fi
    case $2 in
        evicting) redis-cli -p "$1" CONFIG SET maxmemory 0 >/dev/null ;;
        rewriting) redis-cli -p "$1" CONFIG SET appendonly no >/dev/null ;;
    esac
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

# Prints a number of INFO once it differs by less than 1 KiB from its value half a second before: servers free memory of
# their startup and of closed connections some time later, and some read their allocator's counters only at intervals.
# After 20 attempts, the last value counts. Caches of the allocator's threads, 200 KB of ember's, are freed over several
# seconds more: measure data that take some MB.
settled_number() { # port, name
    local before after
    after=$(info_number "$1" "$2")
    for _ in $(seq 20); do
        before=$after
        sleep 0.5
        after=$(info_number "$1" "$2")
        [ "$((after > before ? after - before : before - after))" -ge 1024 ] || break
    done
    echo "$after"
}

# Prints resident_kib once it differs by less than 64 KiB from its value half a second before: the memory of hash tables
# that were replaced by larger ones returns to the system some tenths of a second later. After 20 attempts, the last value
# counts.
settled_resident_kib() { # pid
    local before after
    after=$(resident_kib "$1")
    for _ in $(seq 20); do
        before=$after
        sleep 0.5
        after=$(resident_kib "$1")
        [ "$((after > before ? after - before : before - after))" -ge 64 ] || break
    done
    echo "$after"
}

info_number() { # port, name
    redis-cli -p "$1" INFO | awk -F : -v field="$2" '$1 == field { sub(/\r/, "", $2); print $2 }'
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

# Begins a table on standard output, in a CSV file and in a Markdown file: table_begin NAME COLUMN… The names of the files
# consist of the script's name, NAME unless it is empty, and the time.
table_begin() {
    local script name=$1 column line
    shift
    script=$(basename "$0" .sh)
    mkdir -p "$bench_results"
    bench_csv="$bench_results/$script${name:+-$name}-$bench_time.csv"
    bench_markdown="${bench_csv%.csv}.md"
    bench_files+=("$bench_csv" "$bench_markdown")
    csv_line "$@" setup >"$bench_csv"
    printf '%s\n\n' "$bench_setup" >"$bench_markdown"
    markdown_line "$@" | tee -a "$bench_markdown"
    line='|---'
    shift
    for column in "$@"; do line+='|--:'; done
    echo "$line|" | tee -a "$bench_markdown"
}

table_row() { # cells
    markdown_line "$@" | tee -a "$bench_markdown"
    csv_line "$@" "$bench_setup" >>"$bench_csv"
}

# Draws the chart of the last table next to its files: table_chart TITLE UNIT COLUMN…
table_chart() {
    local title=$1 unit=$2 chart="${bench_csv%.csv}.svg"
    shift 2
    { echo "# title: $title"; echo "# unit: $unit"; cat "$bench_csv"; } >"$bench_work/chart.csv"
    "$bench_root/bench/chart.sh" "$bench_work/chart.csv" "$@" >"$chart"
    bench_files+=("$chart")
}

# The figures of the comparisons, by test and server: requests per second and latencies in ms.
declare -A rate_of=() latencies_of=()
compared_tests=()

# Prints a table of requests per second: benchmark_table ROW… where a row is "test bytes pipeline"; columns come from
# bench_names and bench_ports. All keys exist before a GET, so that none is a miss.
benchmark_table() {
    local row test bytes pipeline port cells label index rate latencies
    local -A filled=()
    table_begin "" test "${bench_names[@]}"
    for row in "$@"; do
        read -r test bytes pipeline <<<"$row"
        label="${test^^} ($bytes B, P=$pipeline)"
        cells=("$label")
        for index in "${!bench_ports[@]}"; do
            port=${bench_ports[$index]}
            if [ "$test" = get ] && [ "${filled[$port]:-}" != "$bytes" ]; then
                fill_keys "$port" "$BENCH_KEYS" "$bytes"
                filled[$port]=$bytes
            elif [ "$test" = set ]; then
                # SET may change the size of the values, so the keys are filled again before a GET.
                [ "${filled[$port]:-}" = "$bytes" ] || filled[$port]=""
            fi
            read -r rate latencies < <(requests_and_latencies "$port" "$test" "$bytes" "$pipeline")
            [ -n "${latencies:-}" ] || exit 1
            rate_of[$label,${bench_names[$index]}]=$rate
            latencies_of[$label,${bench_names[$index]}]=$latencies
            cells+=("$rate")
        done
        compared_tests+=("$label")
        table_row "${cells[@]}"
    done
}

# Prints the latencies of the tests that were compared: latency_table COLUMN… where the columns name the figures in
# latencies_of.
latency_table() {
    local test name figures
    echo
    echo "Latency in ms:"
    echo
    table_begin latency "test, server" "$@"
    for test in "${compared_tests[@]}"; do
        for name in "${bench_names[@]}"; do
            read -ra figures <<<"${latencies_of[$test,$name]}"
            table_row "$test, $name" "${figures[@]}"
        done
    done
}

# Prints ember's requests per second as a multiple of those of each other server.
ratio_table() {
    local test name other columns=() cells
    for other in "${bench_names[@]}"; do
        [[ $other != ember* ]] || continue
        for name in "ember concurrent" "ember sharded"; do columns+=("$name / $other"); done
    done
    [ "${#columns[@]}" -gt 0 ] || return 0
    echo
    echo "Ratios of throughput:"
    echo
    table_begin ratio test "${columns[@]}"
    for test in "${compared_tests[@]}"; do
        cells=("$test")
        for name in "${columns[@]}"; do
            cells+=("$(ratio "${rate_of[$test,${name% / *}]}" "${rate_of[$test,${name#* / }]}")")
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

# Prints the number of threads with which a server serves clients by default.
default_threads() { # kind
    case $1 in
        redis | valkey) echo 1 ;;
        *) nproc ;;
    esac
}

# Starts a server with a number of threads: start_threaded KIND NAME PORT THREADS
# The threads of redis-server and valkey-server wait in loops, so at least one core remains for the load, as Redis
# recommends.
start_threaded() {
    local kind=$1 name=$2 port=$3 threads=$4 cores plain
    cores=$(nproc)
    case $kind in
        redis | valkey) [ "$threads" -lt "$cores" ] || threads=$((cores > 1 ? cores - 1 : 1)) ;;
    esac
    plain=(--port "$port" --bind 127.0.0.1 --save "" --appendonly no)
    case $kind in
        redis) start_server "$name" "$port" "$redis_program" "${plain[@]}" --io-threads "$threads" \
            --io-threads-do-reads yes ;;
        valkey) start_server "$name" "$port" "$valkey_program" "${plain[@]}" --io-threads "$threads" ;;
        keydb) start_server "$name" "$port" "$keydb_program" "${plain[@]}" --server-threads "$threads" ;;
        dragonfly)
            start_server "$name" "$port" dragonfly --port "$port" --bind 127.0.0.1 --dbfilename "" \
                --proactor_threads "$threads" ;;
        *)
            start_server "$name" "$port" "$(ember_server)" --port "$port" --bind 127.0.0.1 --save "" \
                --shards "$threads" --concurrent "$([ "$kind" = "ember sharded" ] && echo no || echo yes)" ;;
    esac
}

# Sets kinds: ember in both modes, and the installed servers to compare with, for start_threaded.
installed_kinds() {
    kinds=("ember concurrent" "ember sharded")
    if has_peer "$redis_program"; then kinds+=(redis); fi
    if has_peer "$valkey_program"; then kinds+=(valkey); fi
    if has_peer "$keydb_program"; then kinds+=(keydb); fi
    if has_peer dragonfly; then kinds+=(dragonfly); fi
}

# Adds a server to the comparison if it listens on its port or is installed.
compare_with() { # kind, port, program
    [ "$ember_only" = no ] || return 0
    if is_ready "$2" || has_peer "$3"; then
        use_or_start "$2" other start_threaded "$1" "$1" "$2" "$(default_threads "$1")"
        bench_names+=("$1")
        bench_ports+=("$2")
    fi
}

# Sets the ports of the compared servers, from the environment, and the columns of the tables.
comparison_servers() {
    local concurrent=${EMBER_CONCURRENT_PORT:-6379} sharded=${EMBER_SHARDED_PORT:-6380}
    local redis=${REDIS_PORT:-6399} dragonfly=${DRAGONFLY_PORT:-6389}
    local valkey=${VALKEY_PORT:-6409} keydb=${KEYDB_PORT:-6419}
    use_or_start "$concurrent" concurrent start_ember ember-concurrent "$concurrent" yes
    use_or_start "$sharded" sharded start_ember ember-sharded "$sharded" no
    bench_names=("ember concurrent" "ember sharded")
    bench_ports=("$concurrent" "$sharded")
    compare_with redis "$redis" "$redis_program"
    compare_with valkey "$valkey" "$valkey_program"
    compare_with keydb "$keydb" "$keydb_program"
    compare_with dragonfly "$dragonfly" dragonfly
}

# Prints the numbers of workers to measure: all up to the number of cores, or powers of two and that number if there are
# more than eight.
worker_counts() {
    local cores count
    cores=$(nproc)
    if [ "$cores" -le 8 ]; then
        seq "$cores"
    else
        for ((count = 1; count < cores; count *= 2)); do echo "$count"; done
        echo "$cores"
    fi
}

# The settings of all scripts with memtier_benchmark: memtier_settings THREADS CLIENTS. Sets memtier_amount, its option
# for the length of a test: MEMTIER_REQUESTS per connection or MEMTIER_SECONDS.
memtier_settings() {
    need memtier_benchmark "install its package, or build it with bench/setup-vm.sh"
    need redis-cli "install the package redis-tools"
    MEMTIER_THREADS=${MEMTIER_THREADS:-$1}
    MEMTIER_CLIENTS=${MEMTIER_CLIENTS:-$2}
    if [ -n "${MEMTIER_REQUESTS:-}" ]; then
        [ -z "${MEMTIER_SECONDS:-}" ] || fail "set MEMTIER_REQUESTS or MEMTIER_SECONDS, not both"
        memtier_amount=(--requests "$MEMTIER_REQUESTS")
        memtier_length="requests-per-client=$MEMTIER_REQUESTS"
    else
        MEMTIER_SECONDS=${MEMTIER_SECONDS:-5}
        memtier_amount=(--test-time "$MEMTIER_SECONDS")
        memtier_length="seconds-per-test=$MEMTIER_SECONDS"
    fi
}

run_memtier() { # port, arguments
    local port=$1
    shift
    memtier_benchmark --server 127.0.0.1 --port "$port" --protocol redis --hide-histogram \
        --print-percentiles 50,99,99.9 "$@" 2>"$bench_work/memtier.log" ||
        fail "memtier_benchmark failed on port $port: $(tail -n 3 "$bench_work/memtier.log")"
}

# Measures once and writes the figures to $bench_work/memtier.json: measure_memtier PORT [ARGUMENT…] Sets
# memtier_elapsed, the seconds that the program ran.
measure_memtier() {
    local begun
    rm -f "$bench_work/memtier.json"
    begun=$(date +%s.%N)
    run_memtier "$@" "${memtier_amount[@]}" --threads "$MEMTIER_THREADS" --clients "$MEMTIER_CLIENTS" \
        --json-out-file "$bench_work/memtier.json" >/dev/null
    memtier_elapsed=$(awk -v begun="$begun" -v ended="$(date +%s.%N)" 'BEGIN { print ended - begun }')
}

# Prints the figures of Sets, Gets or Totals of the last test: operations per second; average, p50, p99, p99.9 and
# maximum of the latency in ms; hits and misses per second, KB per second, and the operations of the best whole second
# (or a dash). The duration that memtier_benchmark reports is sometimes zero, sometimes twice as long: rates are computed
# with the requested duration, or else with the reported one if the program has run for so long. The program runs for
# whole seconds. In its file, the figures of each second come before those of all, and the average of the totals is
# missing.
memtier_figures() { # section, port
    local requested=0
    [ "${memtier_amount[0]}" != --test-time ] || requested=${memtier_amount[1]}
    awk -v section="\"$1\"" -v requested="$requested" -v elapsed="$memtier_elapsed" '
        function number(text) { sub(/.*: */, "", text); sub(/,.*/, "", text); return text + 0 }
        /"Total duration"/ { reported = number($0) / 1000 }
        /"(Sets|Gets|Waits|Totals)" *:/ { inside = index($0, section) > 0; in_series = in_percentiles = 0 }
        !inside { next }
        /"Time-Serie"/ { in_series = 1 }
        /"Percentile Latencies"/ { in_series = 0; in_percentiles = 1 }
        in_series && /"Count"/ { if (number($0) > peak) peak = number($0); intervals++ }
        in_series { next }
        /"Count"/ { count = number($0) }
        /"Ops\/sec"/ { rate = number($0) }
        /"Hits\/sec"/ { hits = number($0) }
        /"Misses\/sec"/ { misses = number($0) }
        /"KB\/sec"/ { kilobytes = number($0) }
        /"Accumulated Latency"/ { accumulated = number($0) }
        /"Max Latency"/ { maximum = number($0) }
        in_percentiles && /"p50.00"/ { p50 = number($0) }
        in_percentiles && /"p99.00"/ { p99 = number($0) }
        in_percentiles && /"p99.90"/ { p999 = number($0) }
        END {
            if (count <= 0) exit 1
            ours = count / (requested ? requested : reported > 0 && reported <= elapsed ? reported : elapsed)
            scale = rate > 0 ? ours / rate : 0
            printf "%d %.3f %.3f %.3f %.3f %.3f", ours, accumulated / count, p50, p99, p999, maximum
            if (scale > 0) printf " %d %d %d", hits * scale, misses * scale, kilobytes * scale
            else printf " - - -"
            if (intervals > 1) printf " %d\n", peak; else print " -"
        }' "$bench_work/memtier.json" || fail "memtier_benchmark counted no requests on port $2"
}
