#!/usr/bin/env bash
# Resident memory per key, ember and redis-server. Settings: KEY_COUNT (1000000), VALUE_SIZE (64 bytes). Keys have 16
# bytes; overhead is the memory of a key beyond the bytes of key and value. With --ember-only, only ember is measured.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
KEY_COUNT=${KEY_COUNT:-1000000}
VALUE_SIZE=${VALUE_SIZE:-64}

measure() { # name, port, pid
    local before after
    before=$(settled_resident_kib "$3")
    fill_keys "$2" "$KEY_COUNT" "$VALUE_SIZE"
    after=$(settled_resident_kib "$3")
    [ "$(redis-cli -p "$2" DBSIZE)" = "$KEY_COUNT" ] || fail "$1 does not have $KEY_COUNT keys"
    read -ra cells < <(awk -v before="$before" -v after="$after" -v count="$KEY_COUNT" -v size="$VALUE_SIZE" 'BEGIN {
        each = (after - before) * 1024 / count
        printf "%.1f %.1f %.1f %.1f\n", before / 1024, after / 1024, each, each - 16 - size
    }')
    table_row "$1" "${cells[@]}"
}

echo "Resident memory:"
echo
describe "keys=$KEY_COUNT key-bytes=16 value-bytes=$VALUE_SIZE"
table_begin "" server "before (MiB)" "after (MiB)" "bytes per key" overhead
port=$(free_port)
start_ember ember-concurrent "$port" yes
measure "ember concurrent" "$port" "$started_pid"
port=$(free_port)
start_ember ember-sharded "$port" no
measure "ember sharded" "$port" "$started_pid"
if has_peer "$redis_program"; then
    port=$(free_port)
    start_redis redis "$port"
    measure redis "$port" "$started_pid"
fi
