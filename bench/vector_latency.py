"""Measures latency while vectors are added and searched, for bench-vector-latency.sh.

    vector_latency.py PORT FILE DIMENSIONS ROWS SECONDS

The server on the port is empty and has one worker, so that all keys are of one shard. Prints lines of a name, p50, p99 and
the maximum in milliseconds, and `capacity`, the vectors added and linked per second. Measured requests are sent at a fixed
rate, and latency counts from the time at which a request was due, so a late reply also delays the requests after it.
The other load runs in separate processes.
"""

import multiprocessing
import sys
import time

from vector_client import Connection, add_all, command, vadd, vsim

# Half of the rows are in the set from the beginning; the others are added.
PROBES_PER_SECOND = 200
SEARCHES_PER_SECOND = 200
ADDS_PER_SECOND = 1000
# Requests per batch of a client that sends as fast as possible, and its connections.
AT_ONCE = 16
CONNECTIONS = 4
WIDTH = 100


def paced(port, requests, rate):
    """Returns the latency of each request in milliseconds."""
    connection = Connection(port)
    taken = []
    start = time.monotonic()
    for number, request in enumerate(requests):
        due = start + number / rate
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)
        connection.ask(request)
        taken.append((time.monotonic() - due) * 1000)
    return taken


def repeated(port, requests, rate):
    """Sends requests forever: at a rate, or in batches of AT_ONCE as fast as they are answered."""
    connection = Connection(port)
    at, start = 0, time.monotonic()
    while True:
        if rate:
            left = start + at / rate - time.monotonic()
            time.sleep(max(0, left))
            connection.ask(requests[at % len(requests)])
            at += 1
        else:
            connection.ask(*(requests[(at + number) % len(requests)] for number in range(AT_ONCE)))
            at += AT_ONCE


class BackgroundLoad:
    """A load that runs during a measurement."""

    def __init__(self, port, requests, rate=None, connections=1):
        shares = [requests[first::connections] for first in range(connections)]
        self.processes = [multiprocessing.Process(target=repeated, args=(port, share, rate)) for share in shares]

    def __enter__(self):
        for process in self.processes:
            process.start()
        time.sleep(0.5)

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
            process.join()


def report(name, taken):
    taken.sort()
    at = lambda share: taken[min(len(taken) - 1, int(len(taken) * share))]
    print(f"{name}\t{at(0.5):.3f}\t{at(0.99):.3f}\t{taken[-1]:.3f}", flush=True)


def rows_of(path, dim, rows):
    """Returns the bytes of the vectors, and of the queries, which are the last thousand rows."""
    with open(path, "rb") as file:
        file.seek(0, 2)
        count = file.tell() // (4 * dim)
        file.seek(0)
        blobs = [file.read(4 * dim) for _ in range(min(rows, count - 1000))]
        file.seek((count - 1000) * 4 * dim)
        return blobs, [file.read(4 * dim) for _ in range(1000)]


def main():
    port, path, dim, rows, seconds = int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6])
    client = Connection(port)
    rows, queries = rows_of(path, dim, rows)
    half = len(rows) // 2
    adds = [vadd("set", at, blob, "Q8") for at, blob in enumerate(rows)]
    capacity = half / add_all(port, adds[:half], "set")
    print(f"capacity\t{capacity:.0f}", flush=True)

    rate = max(1, int(capacity / 2))
    end = half + max(1, min(rate * seconds, half // 2))
    sets = [command("SET", f"bytes:{at}", rows[at]) for at in range(half, end)]
    report("SET of the bytes of a vector", paced(port, sets, rate))
    report("VADD at half of the capacity", paced(port, adds[half:end], rate))
    # The remaining vectors are added repeatedly: after the first time they replace those of existing elements.
    others = adds[end:]
    searches = [vsim("set", query, WIDTH) for query in queries]
    asked = [searches[at % len(searches)] for at in range(SEARCHES_PER_SECOND * seconds)]
    report("VSIM", paced(port, asked, SEARCHES_PER_SECOND))
    with BackgroundLoad(port, others, ADDS_PER_SECOND):
        report("VSIM during VADD", paced(port, asked, SEARCHES_PER_SECOND))
    client.ask(command("SET", "key", "value"))
    gets = [command("GET", "key")] * (PROBES_PER_SECOND * seconds)
    report("GET", paced(port, gets, PROBES_PER_SECOND))
    with BackgroundLoad(port, others):
        report("GET during VADD at full rate", paced(port, gets, PROBES_PER_SECOND))
    with BackgroundLoad(port, searches, connections=CONNECTIONS):
        report("GET during VSIM at full rate", paced(port, gets, PROBES_PER_SECOND))
    report("GET during BGSAVE", save(client, port, gets))


def save(client, port, gets):
    last = lambda: client.ask(command("LASTSAVE"))
    before = last()
    # LASTSAVE has a resolution of one second.
    time.sleep(1.1)
    client.ask(command("BGSAVE"))
    taken = []
    while last() == before:
        taken += paced(port, gets[: PROBES_PER_SECOND // 10], PROBES_PER_SECOND)
    return taken or paced(port, gets[:1], PROBES_PER_SECOND)


if __name__ == "__main__":
    main()
