#!/usr/bin/env bash
# Installs Debian packages by name, as root or through sudo.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
command -v apt-get >/dev/null || { echo "no apt-get here; please install: $*" >&2; exit 1; }
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "neither root nor sudo; please install: $*" >&2; exit 1; }
    as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "$@"
