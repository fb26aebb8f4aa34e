#!/usr/bin/env bash
# Draws charts of horizontal bars from CSV files: without arguments docs/charts/*.svg from the CSV files beside them, and
# with a file, such as one of bench/results, that chart on standard output: bench/chart.sh [FILE.csv [COLUMN…]]
# CHART_FOLDER is another folder than docs/charts. Needs bash and awk.
#
# The first line of a file names the columns: what the groups of bars are called, then one column for each series. Cells are
# a figure (0.92), a range (0.82–0.93), a figure with its range (0.92 (0.86–0.94)) or a dash where nothing was measured. A
# last column `setup` is left out. Lines before the first may say more:
#   # title: above the chart (default: the name of the file)
#   # unit: of the axis
#   # line: a figure and what it stands for, drawn across all bars
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${CHART_FOLDER:-${here%/bench}/docs/charts}

# Prints the chart of a file, or says what is wrong with it and where: draw FILE [COLUMN…]
draw() {
    local file=$1 chosen=""
    shift
    [ -r "$file" ] || { echo "$file: there is no such file" >&2; return 1; }
    # Columns are passed with line ends between them, since their names may have commas.
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
