"""Measures recall and speed of vector searches of several programs, for bench-vectors.sh.

Arguments: a file of floats (rows of 32-bit floats, little-endian; the last thousand are the queries), dimensions, number of
rows, ember's port, the port of a Redis with vector sets or "-", the lines that `vector_bench` prints with CURVE=1, and a
file for the curves, with a line for each measured point: name, width or lists, recall, searches per second, and CPU
microseconds per search, the server's where there is one.
Prints a line for each program: name, microseconds per addition, bytes per vector (a dash where the program does not report
them), the same by the memory of the process, recall with a width of 200, searches per second at a recall of 0.90, 0.95 and
0.99 of the ten nearest (a dash where that is not reached), and CPU microseconds per search at 0.95.
Everything runs on one thread. The speed at a recall between two measured points is that of the slower point; each point is
the fastest of three rounds. The client of a server has several connections, each of which sends its searches at once, so
that the server never waits for a client.

    vectors.py links FILE DIMENSIONS ROWS PORT    prints the microseconds in which a server adds and links a vector
"""

import os
import sys
import time

import numpy as np
from vector_client import BUILD_WIDTH, LINKS, NEAREST, Connection, add_all, ask, command, vadd, vsim

QUERIES = 1000
WIDTHS = (10, 20, 40, 50, 80, 100, 120, 200, 400, 800)
PROBES = (1, 2, 4, 8, 16, 32, 64, 128)
RECALLS = (0.90, 0.95, 0.99)
# The width of the column *recall at 200*.
SHOWN_WIDTH = 200
ROUNDS = 3
# Shares of the elements that pass the filters, and the width of these searches.
SHARES = (0.5, 0.25, 0.1, 0.01)
FILTERED_WIDTH = 100


def curve(search, truth, widths, clock=time.process_time):
    """Returns (recall, searches per second, CPU microseconds per search) for each width; `search` takes a width and returns
    the ids found for all queries, and `clock` returns the CPU seconds that the searching process has taken so far."""
    return [(recall(found, truth), rate, taken) for found, rate, taken in (
        fastest(lambda: search(width), len(truth), clock) for width in widths
    )]


def fastest(search, searches, clock):
    """Returns the results, searches per second and CPU microseconds per search of the fastest round."""
    rounds = []
    for _ in range(ROUNDS):
        start, began = clock(), time.monotonic()
        found = search()
        elapsed, taken = time.monotonic() - began, clock() - start
        rounds.append((elapsed, taken, found))
    elapsed, taken, found = min(rounds, key=lambda measured: measured[0])
    return found, searches / elapsed, taken * 1e6 / searches


def recall(found, truth):
    hits = sum(len(set(ids) & want) for ids, want in zip(found, truth))
    return hits / sum(len(want) for want in truth)


def clock_of(process):
    """Returns a function for the CPU seconds of a process, including its ended threads: Redis has a thread per search. Their
    resolution is a tick."""

    def seconds():
        with open(f"/proc/{process}/stat", encoding="ascii") as stat:
            user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    return seconds


def point(name, width, found, rate, taken):
    with open(sys.argv[7], "a", encoding="utf-8") as curves:
        print(name, width, f"{found:.4f}", f"{rate:.0f}", f"{taken:.1f}", sep="\t", file=curves)


def line(name, build, size, points, widths=WIDTHS, resident=None):
    for width, (found, rate, taken) in zip(widths, points):
        point(name, width, found, rate, taken)
    at_shown_width = [f"{found:.3f}" for width, (found, _, _) in zip(widths, points) if width == SHOWN_WIDTH]
    cells = at_shown_width or ["-"]
    for wanted in RECALLS:
        reached = [rate for found, rate, _ in points if found >= wanted]
        cells.append(f"{max(reached):.0f}" if reached else "-")
    taken = [taken for found, _, taken in points if found >= 0.95]
    cells.append(f"{min(taken):.0f}" if taken else "-")
    sizes = [f"{bytes:.0f}" if bytes else "-" for bytes in (size, resident)]
    print("\t".join([name, f"{build:.0f}", *sizes, *cells]), flush=True)


def timed(run):
    start = time.process_time()
    result = run()
    return result, (time.process_time() - start) * 1e6


def of_hnswlib(vectors, queries, truth):
    import hnswlib

    index = hnswlib.Index(space="cosine", dim=vectors.shape[1])
    index.init_index(len(vectors), M=LINKS, ef_construction=BUILD_WIDTH, random_seed=1)
    index.set_num_threads(1)
    _, build = timed(lambda: index.add_items(vectors))

    def search(width):
        index.set_ef(width)
        return index.knn_query(queries, k=NEAREST, num_threads=1)[0]

    line("hnswlib f32", build / len(vectors), None, curve(search, truth, WIDTHS))


def of_usearch(vectors, queries, truth):
    from usearch.index import Index

    for numbers in ("f32", "i8"):
        index = Index(
            ndim=vectors.shape[1],
            metric="cos",
            dtype=numbers,
            connectivity=LINKS,
            expansion_add=BUILD_WIDTH,
        )
        keys = np.arange(len(vectors))
        _, build = timed(lambda: index.add(keys, vectors, threads=1))

        def search(width):
            index.expansion_search = width
            return index.search(queries, NEAREST, threads=1).keys

        size = index.memory_usage / len(vectors)
        line(f"usearch {numbers}", build / len(vectors), size, curve(search, truth, WIDTHS))


def of_faiss(vectors, queries, truth, lists):
    import faiss

    faiss.omp_set_num_threads(1)
    graph = faiss.IndexHNSWFlat(vectors.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILD_WIDTH
    _, build = timed(lambda: graph.add(vectors))

    def search(width):
        graph.hnsw.efSearch = width
        return graph.search(queries, NEAREST)[1]

    line("faiss HNSW f32", build / len(vectors), None, curve(search, truth, WIDTHS))
    coarse = faiss.IndexFlatIP(vectors.shape[1])
    ivf = faiss.IndexIVFFlat(coarse, vectors.shape[1], lists, faiss.METRIC_INNER_PRODUCT)

    def fill():
        ivf.train(vectors)
        ivf.add(vectors)

    _, build = timed(fill)

    def probe(width):
        ivf.nprobe = width
        return [ivf.search(query, NEAREST)[1][0] for query in queries[:, None]]

    def probe_all(width):
        ivf.nprobe = width
        return ivf.search(queries, NEAREST)[1]

    probes = [probes for probes in PROBES if probes <= lists]
    for name, search in (("", probe), (", all queries at once", probe_all)):
        points = curve(search, truth, probes)
        line(f"faiss IVF f32, {lists} lists{name}", build / len(vectors), None, points, probes)
    flat = faiss.IndexFlatIP(vectors.shape[1])
    _, build = timed(lambda: flat.add(vectors))

    def scan(_):
        return [flat.search(query, NEAREST)[1][0] for query in queries[:, None]]

    line("faiss FLAT f32", build / len(vectors), None, curve(scan, truth, (1,)), (1,))


def resident(process):
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


def of_server(name, port, vectors, queries, truth):
    client = Connection(port)
    process = int(client.info("server")["process_id"])
    clock = clock_of(process)
    blobs = [query.tobytes() for query in queries]
    # No vector is deleted before the end: a vector that reuses the memory of a deleted one would not grow the process.
    for numbers, option in (("f32", "NOQUANT"), ("i8", "Q8"), ("bits", "BIN")):
        key = f"bench:{numbers}"
        before, before_resident = int(client.info("memory")["used_memory"]), resident(process)
        asked = [vadd(key, at, vector.tobytes(), option) for at, vector in enumerate(vectors)]
        build = add_all(port, asked, key) * 1e6
        # Servers update their memory figures only at intervals.
        time.sleep(1)
        size = (int(client.info("memory")["used_memory"]) - before) / len(vectors)
        size_resident = (resident(process) - before_resident) / len(vectors)

        def search(width):
            return ask(port, [vsim(key, blob, width) for blob in blobs])

        points = curve(search, truth, WIDTHS, clock)
        line(f"{name} {numbers}", build / len(vectors), size, points, resident=size_resident)
    client.ask(command("FLUSHALL"))
    of_filters(name, port, vectors, queries, clock)


def of_filters(name, port, vectors, queries, clock):
    """Measures searches with filters that a share of the elements passes, and one that all pass; writes lines of the curves
    with the share instead of the width."""
    ranks = np.random.default_rng(3).permutation(len(vectors)) / len(vectors)
    attributes = [f'{{"name":"number {at}","rank":{rank:.6f}}}' for at, rank in enumerate(ranks)]
    key = "bench:filters"
    asked = [
        vadd(key, at, vector.tobytes(), "NOQUANT", "SETATTR", attributes[at]) for at, vector in enumerate(vectors)
    ]
    add_all(port, asked, key)
    for share in (1.0, *SHARES):
        filter = () if share == 1 else ("FILTER", f".rank < {share}")
        places = np.flatnonzero(ranks < share)
        truth = [set(places[slots]) for slots in nearest(vectors[places], queries)]
        asked = [vsim(key, query.tobytes(), FILTERED_WIDTH, *filter) for query in queries]
        found, rate, taken = fastest(lambda: ask(port, asked), len(queries), clock)
        point(f"{name} f32, filter", share, recall(found, truth), rate, taken)
    Connection(port).ask(command("DEL", key))


def of_library(path):
    """Reads the output of vector_bench: name, microseconds, bytes, and a recall and a rate for each width."""
    with open(path, encoding="utf-8") as lines:
        for words in (text.rstrip("\n").split("\t") for text in lines):
            if words[0] == "filter":
                found, rate = map(float, words[3:])
                point(f"{words[1]}, filter", words[2], found, rate, 1e6 / rate)
            if words[0] != "curve":
                continue
            numbers = [float(word) for word in words[4:]]
            points = [(found, rate, 1e6 / rate) for found, rate in zip(numbers[::2], numbers[1::2])]
            widths = PROBES if "IVF" in words[1] else (1,) if "FLAT" in words[1] else WIDTHS
            line(words[1], float(words[2]), float(words[3]), points, widths)


def nearest(vectors, queries):
    slots = []
    for first in range(0, len(queries), 100):
        products = queries[first : first + 100] @ vectors.T
        slots.extend(np.argpartition(-products, NEAREST, axis=1)[:, :NEAREST])
    return slots


def rows_of(path, dim, rows):
    """Returns vectors and queries, scaled to length 1."""
    with open(path, "rb") as file:
        count = os.fstat(file.fileno()).st_size // (4 * dim)
    rows = min(rows, count - QUERIES)
    numbers = np.memmap(path, dtype="<f4", mode="r", shape=(count, dim))
    # Only the needed part of a large file is read.
    lengths = lambda part: np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12)
    parts = (np.array(numbers[:rows]), np.array(numbers[-QUERIES:]))
    return [np.ascontiguousarray(part / lengths(part)) for part in parts]


def links():
    path, dim, rows, port = sys.argv[2:6]
    vectors, _ = rows_of(path, int(dim), int(rows))
    asked = [vadd("bench:links", at, vector.tobytes(), "NOQUANT") for at, vector in enumerate(vectors)]
    print(f"{add_all(int(port), asked, 'bench:links') * 1e6 / len(vectors):.0f}")


def main():
    if sys.argv[1] == "links":
        return links()
    path, dim, rows, port, redis_port, library, _ = sys.argv[1:]
    vectors, queries = rows_of(path, int(dim), int(rows))
    truth = [set(slots) for slots in nearest(vectors, queries)]
    lists = max(1, min(1024, len(vectors) // 39 // 4))
    of_library(library)
    of_server("ember-server", int(port), vectors, queries, truth)
    if redis_port != "-":
        of_server("redis-server", int(redis_port), vectors, queries, truth)
    of_hnswlib(vectors, queries, truth)
    of_usearch(vectors, queries, truth)
    of_faiss(vectors, queries, truth, lists)


if __name__ == "__main__":
    main()
