#!/usr/bin/env bash
# Prints the path of the built server: scripts/server-path.sh debug|release
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(cargo metadata --format-version 1 --no-deps --offline | sed -E 's/.*"target_directory":"([^"]*)".*/\1/')
path="$folder/$1/ember-server"
[ -x "$path" ] || { echo "not built: $path (make build, make release)" >&2; exit 1; }
echo "$path"
