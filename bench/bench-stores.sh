#!/usr/bin/env bash
# The table of KVBench for every store, each with a dedicated server, next to KVBench's figures: as Markdown on standard
# output and in a file, as CSV, and as a chart of SETs and one of GETs in the folder of the results. Settings: BENCH_REQUESTS
# (1000000, on as many keys), STORES_SECONDS (instead of a number of requests), STORES_FOLDER (folder of the stores,
# which selects the disk; default: the folder of the results).
set -euo pipefail
source "$(dirname "$0")/common.sh"
BENCH_REQUESTS=${BENCH_REQUESTS:-1000000}
mkdir -p "$bench_results"
STORES_FOLDER=${STORES_FOLDER:-$bench_results}
amount=(-n "$BENCH_REQUESTS")
[ -z "${STORES_SECONDS:-}" ] || amount=(--duration "$STORES_SECONDS")

file=$bench_results/bench-stores-$bench_time.csv
"$(ember_cli)" benchmark --matrix stores --server-program "$(ember_server)" --folder "$STORES_FOLDER" --threads "$(nproc)" \
    "${amount[@]}" -r "$BENCH_REQUESTS" --csv >"$file" 2>"$bench_work/said" || { cat "$bench_work/said" >&2; exit 1; }
grep -v '^The last two columns' "$bench_work/said" >&2 || true
bench_files+=("$file" "${file%.csv}.md")

# Cells contain no commas and no line ends; those of the first line are names.
awk -F '","' '{
    gsub(/^"|"$/, ""); line = "|"
    for (column = 1; column <= NF; column++) line = line " " $column " |"
    print line
    if (NR == 1) { line = "|"; for (column = 1; column <= NF; column++) line = line "---|"; print line }
}' "$file" | tee "${file%.csv}.md"
# The origin of KVBench's figures.
echo
grep '^The last two columns' "$bench_work/said"

chart() { # name, column of ember, column of KVBench
    local chart=${file%.csv}-$1
    {
        echo "# title: ${1^^}s per second"
        echo "# unit: requests/s"
        echo "store,ember,KVBench"
        awk -F '","' -v ours="$2" -v theirs="$3" 'NR > 1 && $1 !~ /–/ {
            gsub(/^"|"$/, ""); gsub(/[()]/, "", $theirs)
            way = $5 == "no" ? "in memory" : $6 == "yes" ? "fsync" : "no fsync"
            mine = $ours == "–" ? "-" : $ours; other = $theirs == "–" ? "-" : $theirs
            print $2 " P" $3 " C" $4 " " way "," mine "," other
        }' "$file"
    } >"$chart.csv"
    "$bench_root/bench/chart.sh" "$chart.csv" >"$chart.svg"
    bench_files+=("$chart.svg")
}
chart set 7 12
chart get 8 13
