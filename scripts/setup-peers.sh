#!/usr/bin/env bash
# Installs what `make test-peers` needs and is missing: redis-server and its tools, and the client libraries of Python,
# Node, Go and Java in the versions pinned under crates/ember-peers/clients. Everything but Debian packages goes into
# target/peers ($PEERS_TOOLS). Running it again costs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
clients=$PWD/crates/ember-peers/clients
tools=${PEERS_TOOLS:-$PWD/target/peers}
mkdir -p "$tools"

packages=()
missing() { # program, package…
    command -v "$1" >/dev/null || packages+=("${@:2}")
}
missing redis-server redis-server
missing redis-cli redis-tools
missing redis-benchmark redis-tools
missing python3 python3 python3-venv
missing node nodejs
missing npm npm
missing go golang-go
missing javac default-jdk-headless
missing mvn maven
missing cc gcc libc6-dev
[ "${#packages[@]}" -eq 0 ] || scripts/install-packages.sh "${packages[@]}"

# Runs a step when the files it depends on have changed since it last succeeded: once NAME FILE… -- COMMAND…
once() {
    local name=$1 stamp="$tools/$1.stamp" files=()
    shift
    while [ "$1" != -- ]; do
        files+=("$1")
        shift
    done
    shift
    if [ "$(cat "${files[@]}" | cksum)" = "$(cat "$stamp" 2>/dev/null || true)" ]; then
        return
    fi
    echo "setting up $name"
    "$@"
    cat "${files[@]}" | cksum >"$stamp"
}

python_client() {
    python3 -m venv "$tools/python" || {
        scripts/install-packages.sh python3-venv
        python3 -m venv "$tools/python"
    }
    "$tools/python/bin/pip" install --quiet --disable-pip-version-check -r "$clients/python/requirements.txt"
}

node_client() {
    mkdir -p "$tools/node"
    cp "$clients/node/package.json" "$tools/node/"
    (cd "$tools/node" && npm install --silent --no-audit --no-fund --no-package-lock)
}

go_client() {
    (cd "$clients/go" && go build -mod=readonly -o "$tools/go-smoke" .)
}

java_client() {
    mkdir -p "$tools/java/classes"
    mvn --quiet --batch-mode -f "$clients/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$tools/java/lib"
    javac -cp "$tools/java/lib/*" -d "$tools/java/classes" "$clients/java/Smoke.java"
}

once python "$clients/python/requirements.txt" -- python_client
once node "$clients/node/package.json" -- node_client
once go "$clients/go/go.mod" "$clients/go/go.sum" "$clients/go/main.go" -- go_client
once java "$clients/java/pom.xml" "$clients/java/Smoke.java" -- java_client
echo "the programs for make test-peers are in place"
