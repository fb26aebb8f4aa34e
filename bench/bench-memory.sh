#!/usr/bin/env bash
# Resident memory for each key, ember beside redis-server. Settings: KEY_COUNT (1000000), VALUE_SIZE (64 bytes).
# Keys have 16 bytes; overhead is what a key takes beyond the bytes of key and value.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
KEY_COUNT=${KEY_COUNT:-1000000}
VALUE_SIZE=${VALUE_SIZE:-64}

commands() {
    awk -v count="$KEY_COUNT" -v size="$VALUE_SIZE" 'BEGIN {
        value = sprintf("%" size "s", ""); gsub(/ /, "x", value)
        for (number = 0; number < count; number++)
            printf "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n", number, size, value
    }'
}

measure() { # name, port, pid
    local before after
    before=$(resident_kib "$3")
    commands | redis-cli -p "$2" --pipe >"$bench_work/pipe.log" 2>&1 || fail "load: $(cat "$bench_work/pipe.log")"
    after=$(resident_kib "$3")
    [ "$(redis-cli -p "$2" DBSIZE)" = "$KEY_COUNT" ] || fail "$1 does not have $KEY_COUNT keys"
    awk -v name="$1" -v before="$before" -v after="$after" -v count="$KEY_COUNT" -v size="$VALUE_SIZE" 'BEGIN {
        each = (after - before) * 1024 / count
        printf "| %s | %.1f | %.1f | %.1f | %.1f |\n", name, before / 1024, after / 1024, each, each - 16 - size
    }'
}

echo "$KEY_COUNT keys of 16 bytes with values of $VALUE_SIZE bytes"
echo
echo "| server | before (MiB) | after (MiB) | bytes a key | overhead |"
echo "|---|--:|--:|--:|--:|"
port=$(free_port)
start_ember ember-concurrent "$port" yes
measure "ember concurrent" "$port" "$started_pid"
port=$(free_port)
start_ember ember-sharded "$port" no
measure "ember sharded" "$port" "$started_pid"
port=$(free_port)
start_redis redis "$port"
measure redis "$port" "$started_pid"
