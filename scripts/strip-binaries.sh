#!/usr/bin/env bash
# Copies ember-server and ember-cli without their debug symbols, and the symbols to files next to them, where gdb and perf
# find them: scripts/strip-binaries.sh FROM TO (folders; FROM is target/release after `make release`).
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: $0 FROM TO" >&2; exit 2; }
from=$1 to=$2
for program in strip objcopy; do
    command -v "$program" >/dev/null || { echo "$program is not installed (package binutils)" >&2; exit 1; }
done
mkdir -p "$to"
for name in ember-server ember-cli; do
    [ -x "$from/$name" ] || { echo "not built: $from/$name (make release)" >&2; exit 1; }
    objcopy --only-keep-debug --compress-debug-sections "$from/$name" "$to/$name.debug"
    chmod 644 "$to/$name.debug"
    strip --strip-all -o "$to/$name" "$from/$name"
    # The program contains the name of the symbol file and its checksum.
    (cd "$to" && objcopy --add-gnu-debuglink="$name.debug" "$name")
done
