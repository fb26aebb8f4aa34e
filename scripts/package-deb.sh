#!/usr/bin/env bash
# Builds the Debian packages ember-server and ember-server-dbgsym: scripts/package-deb.sh FROM TO (folders; FROM contains
# the programs, target/release after `make release`). Needs only dpkg-deb and binutils.
#
# The files from deploy/ are unchanged, except for the unit, whose program is in /usr/bin here. Packages are reproducible
# from the same programs: all times in them are SOURCE_DATE_EPOCH, by default the time of the last commit.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: $0 FROM TO" >&2; exit 2; }
from=$(cd "$1" && pwd)
mkdir -p "$2"
to=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
for program in dpkg-deb objdump readelf; do
    command -v "$program" >/dev/null || { echo "$program is not installed (packages dpkg, binutils)" >&2; exit 1; }
done
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
root=$work/ember-server debug=$work/ember-server-dbgsym
scripts/strip-binaries.sh "$from" "$work/programs"

install -D -t "$root/usr/bin" "$work/programs/ember-server" "$work/programs/ember-cli"
# The configuration may contain passwords; the package's script makes the service's user its owner.
install -D -m 640 -t "$root/etc/ember" deploy/ember.conf
chmod 750 "$root/etc/ember"
# The head of the file describes an installation without a package.
mkdir -p "$root/usr/lib/systemd/system"
sed -e '/^\[Unit\]/,$!d' -e 's|/usr/local/bin/|/usr/bin/|' deploy/systemd/ember.service \
    >"$root/usr/lib/systemd/system/ember.service"
install -d "$root/usr/share/man/man1"
for page in deploy/man/*.1; do
    gzip -9n <"$page" >"$root/usr/share/man/man1/$(basename "$page").gz"
done
for name in ember-server ember-cli; do
    install -D -m 644 "deploy/completions/$name.bash" "$root/usr/share/bash-completion/completions/$name"
    install -D -m 644 -t "$root/usr/share/zsh/vendor-completions" "deploy/completions/_$name"
    install -D -m 644 -t "$root/usr/share/fish/vendor_completions.d" "deploy/completions/$name.fish"
done
# `copyright` has the licence of ember and those of all linked code.
install -D -m 644 -t "$root/usr/share/doc/ember-server" deploy/licenses/ember.cdx.json
{ cat LICENSE && echo && cat deploy/licenses/THIRD-PARTY.txt; } >"$root/usr/share/doc/ember-server/copyright"
gzip -9n <CHANGELOG.md >"$root/usr/share/doc/ember-server/changelog.gz"

# gdb finds symbols by the program's build ID.
for name in ember-server ember-cli; do
    id=$(readelf -n "$work/programs/$name" | sed -n 's/^ *Build ID: //p')
    [ -n "$id" ] || { echo "$name has no build ID" >&2; exit 1; }
    install -D -m 644 "$work/programs/$name.debug" "$debug/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
done
install -D -m 644 -t "$debug/usr/share/doc/ember-server-dbgsym" "$root/usr/share/doc/ember-server/copyright"

# The C library must be at least as new as the newest of its symbols that are used.
glibc=$(objdump -T "$root/usr/bin/ember-server" "$root/usr/bin/ember-cli" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)

# name, folder, package-specific control lines
build() {
    install -d "$2/DEBIAN"
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$1" "$version" "$architecture"
        printf 'Maintainer: the ember authors <maintainers@ember.invalid>\nPriority: optional\n'
        printf 'Installed-Size: %s\n%s\n' "$(du -sk --apparent-size "$2" | cut -f1)" "$3"
    } >"$2/DEBIAN/control"
    (cd "$2" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    find "$2" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group --build "$2" "$to/$1_${version}_$architecture.deb"
}

install -d "$root/DEBIAN"
echo /etc/ember/ember.conf >"$root/DEBIAN/conffiles"
install -t "$root/DEBIAN" deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm
build ember-server "$root" "Section: database
Depends: libc6 (>= ${glibc#GLIBC_}), libgcc-s1, passwd
Suggests: ember-server-dbgsym
Description: Redis-compatible data server that uses every core
 An in-memory data server that supports the protocol of Redis. This package
 contains the server, the command-line client ember-cli, a systemd unit, manual
 pages, and completions for bash, zsh and fish. The service is not started
 automatically: systemctl enable --now ember"
build ember-server-dbgsym "$debug" "Section: debug
Depends: ember-server (= $version)
Description: debug symbols of ember-server and ember-cli
 Function names and line numbers for gdb, perf and backtraces."
