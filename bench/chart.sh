#!/usr/bin/env bash
# Draws charts of horizontal bars from CSV files: bench/chart.sh [FILE.csv [COLUMN…]]
# Without arguments it draws docs/charts/*.svg from the CSV files in that folder; with a file, such as one of
# bench/results, it prints the chart of that file. CHART_FOLDER is another folder than docs/charts. Needs bash and awk.
#
# The first line of a file names the columns: the name of the groups of bars, then one column per series. A cell is a
# figure (0.92), a range (0.82–0.93), a figure with its range (0.92 (0.86–0.94)) or a dash for a missing measurement. A
# last column `setup` is ignored. Lines before the first may set:
#   # title: above the chart (default: the name of the file)
#   # unit: of the axis
#   # line: a figure and what it stands for, drawn across all bars
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${CHART_FOLDER:-${here%/bench}/docs/charts}

# Prints the chart of a file, or an error with its place: draw FILE [COLUMN…]
draw() {
    local file=$1 chosen=""
    shift
    [ -r "$file" ] || { echo "$file: no such file" >&2; return 1; }
    # The columns are separated by line ends, because their names may contain commas.
    [ $# -eq 0 ] || chosen=$(printf '%s\n' "$@")
    CHART_CHOSEN=$chosen LC_ALL=C awk -v file="$file" -f "$here/chart.awk" "$file"
}

if [ $# -gt 0 ]; then
    draw "$@"
    exit
fi
for file in "$folder"/*.csv; do
    draw "$file" >"$folder/chart.new" || { rm -f "$folder/chart.new"; exit 1; }
    mv "$folder/chart.new" "${file%.csv}.svg"
done
