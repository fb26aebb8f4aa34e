#!/usr/bin/env bash
# Counts, for each crate, its files, those in the largest import cycle, and those directly in `src`.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --quiet -p ember-testkit --test house figures -- --nocapture | grep '^|'
