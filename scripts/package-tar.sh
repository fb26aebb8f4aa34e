#!/usr/bin/env bash
# Builds an archive for any Linux distribution, and its checksum: scripts/package-tar.sh FROM TO (folders; FROM contains the
# programs, target/release after `make release`). Needs only tar, gzip, binutils and sha256sum.
#
# The archive is reproducible from the same programs: its files are sorted, belong to root, and have the time
# SOURCE_DATE_EPOCH, by default the time of the last commit.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: $0 FROM TO" >&2; exit 2; }
from=$(cd "$1" && pwd)
mkdir -p "$2"
to=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
command -v objdump >/dev/null || { echo "objdump is not installed (package binutils)" >&2; exit 1; }
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
scripts/strip-binaries.sh "$from" "$work/programs"
name=ember-$version-$(uname -m)-linux
root=$work/$name
install -D -t "$root/bin" "$work/programs/ember-server" "$work/programs/ember-cli"
install -D -m 644 -t "$root/share/man/man1" deploy/man/*.1
install -D -m 644 -t "$root/share/completions" deploy/completions/*
install -D -m 644 -t "$root/etc" deploy/ember.conf deploy/systemd/ember.service
install -D -m 644 -t "$root" LICENSE README.md CHANGELOG.md deploy/licenses/THIRD-PARTY.txt deploy/licenses/ember.cdx.json
# The C library must be at least as new as the newest of its symbols that are used.
glibc=$(objdump -T "$root"/bin/* | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
echo "Requires glibc ${glibc#GLIBC_} or newer on $(uname -m)." >"$root/REQUIREMENTS"

tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$work" "$name" |
    gzip -9n >"$to/$name.tar.gz"
cd "$to"
sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"
echo "$to/$name.tar.gz"
