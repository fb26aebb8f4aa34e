"""Recall and speed of vector searches by several programs: what bench-vectors.sh runs.

Arguments: a file of floats (rows of 32-bit floats, little-endian; the last thousand are the queries), dimensions, rows to
take, ember's port, the port of a Redis with vector sets or "-", the lines that `vector_bench` prints with CURVE=1, and a
file for the curves: all measured points, a line each of name, width or lists, recall, searches a second, and microseconds
of the processor for each, the server's where there is one.
Prints a line for each program: name, microseconds to add a vector, bytes for each (a dash where the program does not say),
searches a second at a recall of 0.90, 0.95 and 0.99 of the ten nearest, a dash where that is not reached, and microseconds
of the processor for a search at 0.95.
Everything runs on one thread. Speeds between two measured points are those of the slower one.
"""

import os
import sys
import time

import numpy as np

NEAREST = 10
QUERIES = 1000
LINKS = 16
BUILD_WIDTH = 200
WIDTHS = (10, 20, 40, 80, 120, 200, 400, 800)
PROBES = (1, 2, 4, 8, 16, 32, 64, 128)
RECALLS = (0.90, 0.95, 0.99)


def curve(search, truth, widths, clock=time.process_time):
    """(recall, searches a second, microseconds of the processor for each) for each width; `search` takes one and returns the
    ids found for all queries, and `clock` says seconds of the processor so far, of who searches."""
    points = []
    for width in widths:
        start, began = clock(), time.monotonic()
        found = search(width)
        elapsed, taken = time.monotonic() - began, clock() - start
        hits = sum(len(set(ids) & want) for ids, want in zip(found, truth))
        points.append((hits / (NEAREST * len(truth)), len(truth) / elapsed, taken * 1e6 / len(truth)))
    return points


def clock_of(process):
    """Tells the seconds of the processor that a process has taken, with the threads that have ended: Redis has one for each
    search. They are counted in ticks."""

    def seconds():
        with open(f"/proc/{process}/stat", encoding="ascii") as stat:
            user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    return seconds


def line(name, build, size, points, widths=WIDTHS):
    with open(sys.argv[7], "a", encoding="utf-8") as curves:
        for width, (found, rate, taken) in zip(widths, points):
            print(name, width, f"{found:.4f}", f"{rate:.0f}", f"{taken:.1f}", sep="\t", file=curves)
    cells = []
    for recall in RECALLS:
        reached = [rate for found, rate, _ in points if found >= recall]
        cells.append(f"{max(reached):.0f}" if reached else "-")
    taken = [taken for found, _, taken in points if found >= 0.95]
    cells.append(f"{min(taken):.0f}" if taken else "-")
    print("\t".join([name, f"{build:.0f}", f"{size:.0f}" if size else "-", *cells]), flush=True)


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
        return ivf.search(queries, NEAREST)[1]

    probes = [probes for probes in PROBES if probes <= lists]
    line(f"faiss IVF f32, {lists} lists", build / len(vectors), None, curve(probe, truth, probes), probes)


def of_server(name, port, vectors, queries, truth):
    import redis

    client = redis.Redis(port=port, protocol=2)
    clock = clock_of(client.info("server")["process_id"])
    for numbers, option in (("f32", "NOQUANT"), ("i8", "Q8"), ("bits", "BIN")):
        key = f"bench:{numbers}"
        # What was deleted is freed by other threads, and servers look at their memory now and then.
        time.sleep(1)
        before = client.info("memory")["used_memory"]
        start = time.monotonic()
        for first in range(0, len(vectors), 500):
            pipeline = client.pipeline(transaction=False)
            for at, vector in enumerate(vectors[first : first + 500], first):
                blob = vector.tobytes()
                pipeline.execute_command(
                    "VADD", key, "FP32", blob, str(at), option, "EF", BUILD_WIDTH, "M", LINKS
                )
            pipeline.execute()
        # A search that finds everything linked is one that waits for nothing; ember says what is left.
        while name.startswith("ember"):
            info = client.execute_command("VECTOR.INFO", key)
            if dict(zip(info[::2], info[1::2]))[b"pending"] == 0:
                break
            time.sleep(0.05)
        build = (time.monotonic() - start) * 1e6
        time.sleep(1)
        size = (client.info("memory")["used_memory"] - before) / len(vectors)

        def search(width):
            ids = []
            for query in queries:
                reply = client.execute_command(
                    "VSIM", key, "FP32", query.tobytes(), "COUNT", NEAREST, "EF", width
                )
                ids.append([int(element) for element in reply])
            return ids

        line(f"{name} {numbers}", build / len(vectors), size, curve(search, truth, WIDTHS, clock))
        client.delete(key)


def of_library(path):
    """What vector_bench has printed: name, microseconds, bytes, and a recall and a rate for each width."""
    with open(path, encoding="utf-8") as lines:
        for words in (text.rstrip("\n").split("\t") for text in lines):
            if words[0] != "curve":
                continue
            numbers = [float(word) for word in words[4:]]
            points = [(found, rate, 1e6 / rate) for found, rate in zip(numbers[::2], numbers[1::2])]
            line(words[1], float(words[2]), float(words[3]), points, PROBES if "IVF" in words[1] else WIDTHS)


def main():
    path, dim, rows, port, redis_port, library, _ = sys.argv[1:]
    dim, rows = int(dim), int(rows)
    with open(path, "rb") as file:
        count = len(file.read()) // (4 * dim)
    everything = np.fromfile(path, dtype="<f4", count=count * dim).reshape(-1, dim)
    everything = everything / np.maximum(np.linalg.norm(everything, axis=1, keepdims=True), 1e-12)
    queries = np.ascontiguousarray(everything[-QUERIES:])
    vectors = np.ascontiguousarray(everything[: min(rows, count - QUERIES)])
    truth = []
    for first in range(0, QUERIES, 100):
        products = queries[first : first + 100] @ vectors.T
        truth.extend(set(ids) for ids in np.argpartition(-products, NEAREST, axis=1)[:, :NEAREST])
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
