#!/usr/bin/env python3
"""Measures how long one client's heavy command delays other clients.

For each row of a table it builds the values, lets another process send GETs of another key without a pause, runs the
command, reads its whole reply, and prints the longest time that a GET took meanwhile, in ms, with the time of the command
itself. The row without a heavy command (`nothing`) shows the delay of the machine itself.

    bench/heavy.py PORT [--elements 1500000] [--rows WORD] [--csv]
"""

import argparse
import multiprocessing
import socket
import sys
import time

BATCH = 1000
"""Elements that one command of a builder adds."""


class Client:
    """A connection that speaks RESP2. Replies are read, not kept."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.at = 0

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            parts.append(b"$%d\r\n" % len(word))
            parts.append(word)
            parts.append(b"\r\n")
        self.socket.sendall(b"".join(parts))

    def more(self):
        self.buffer = self.buffer[self.at :]
        self.at = 0
        received = self.socket.recv(1 << 20)
        if not received:
            raise EOFError("the server has closed the connection")
        self.buffer += received

    def line(self):
        while (end := self.buffer.find(b"\r\n", self.at)) < 0:
            self.more()
        line, self.at = bytes(self.buffer[self.at : end]), end + 2
        return line

    def skip(self, count):
        while count > len(self.buffer) - self.at:
            count -= len(self.buffer) - self.at
            self.at = len(self.buffer)
            self.more()
        self.at += count

    def read(self, raises=True):
        """Reads one reply; returns its first line. An error is a reply too: a long script of another client causes one."""
        first, left = None, 1
        while left:
            left -= 1
            line = self.line()
            first = first or line
            if line[:1] == b"*":
                left += max(int(line[1:]), 0)
            elif line[:1] == b"$" and line != b"$-1":
                self.skip(int(line[1:]) + 2)
        if raises and first[:1] == b"-":
            raise RuntimeError(first.decode())
        return first

    def run(self, *words):
        self.send(*words)
        return self.read()


def fill(client, count, words_of):
    """Runs the commands that `words_of` returns for ranges of numbers."""
    waiting = 0
    for first in range(0, count, BATCH):
        client.send(*words_of(range(first, min(first + BATCH, count))))
        waiting += 1
        if waiting == 16:
            client.read()
            waiting -= 1
    for _ in range(waiting):
        client.read()


def hash_of(key="h"):
    return lambda client, n: fill(client, n, lambda part: ["HSET", key] + [w for i in part for w in (f"f{i}", f"v{i}")])


def set_of(key="s"):
    return lambda client, n: fill(client, n, lambda part: ["SADD", key] + [f"m{i}" for i in part])


def sorted_set_of(key="z"):
    return lambda client, n: fill(client, n, lambda part: ["ZADD", key] + [w for i in part for w in (i, f"m{i}")])


def list_of(key="l"):
    return lambda client, n: fill(client, n, lambda part: ["RPUSH", key] + [f"{i * 7919 % n}" for i in part])


def stream_of(client, n):
    client.run("EVAL", "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], i .. '-1', 'a', i) end", 1, "x", n)
    client.run("XGROUP", "CREATE", "x", "g", "0")


def pending(client, n):
    stream_of(client, n)
    client.run("XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">")


def text_of(megabytes):
    return lambda client, _: client.run("SET", "t", b"x" * (megabytes << 20))


def dumped(client, n):
    list_of()(client, n)
    client.send("DUMP", "l")
    head = client.line()
    payload = bytearray()
    while len(payload) < int(head[1:]) + 2:
        if client.at == len(client.buffer):
            client.more()
        payload += client.buffer[client.at :]
        client.at = len(client.buffer)
    client.payload = bytes(payload[:-2])


def with_weights(client, n):
    list_of()(client, n)
    fill(client, n, lambda part: ["MSET"] + [w for i in part for w in (f"w{i}", i)])


def names(command, key, count):
    return lambda client, n: [command, key] + [f"{'f' if command == 'HDEL' else 'm'}{i}" for i in range(min(count, n))]


def call(*words):
    return lambda client, n: [word(n) if callable(word) else word for word in words]


def nothing(client, n):
    return ["PING"]


THIRD = 3
"""Streams have a third of the elements."""

ROWS = [
    ("nothing", lambda client, n: None, nothing, 1),
    ("COPY of a sorted set", sorted_set_of(), call("COPY", "z", "to"), 1),
    ("COPY of a hash", hash_of(), call("COPY", "h", "to"), 1),
    ("SORT STORE", list_of(), call("SORT", "l", "STORE", "to"), 1),
    ("SORT BY", with_weights, call("SORT", "l", "BY", "w*"), THIRD),
    ("SORT GET", with_weights, call("SORT", "l", "GET", "w*"), THIRD),
    ("RESTORE of a list", dumped, lambda client, n: ["RESTORE", "to", "0", client.payload], 1),
    ("HRANDFIELD -N", hash_of(), call("HRANDFIELD", "h", lambda n: -n), 1),
    ("SRANDMEMBER -N", set_of(), call("SRANDMEMBER", "s", lambda n: -n), 1),
    ("ZRANDMEMBER -N", sorted_set_of(), call("ZRANDMEMBER", "z", lambda n: -n), 1),
    ("HSCAN COUNT", hash_of(), call("HSCAN", "h", "0", "COUNT", lambda n: n), 1),
    ("SSCAN COUNT", set_of(), call("SSCAN", "s", "0", "COUNT", lambda n: n), 1),
    ("ZSCAN COUNT", sorted_set_of(), call("ZSCAN", "z", "0", "COUNT", lambda n: n), 1),
    ("XINFO STREAM FULL", stream_of, call("XINFO", "STREAM", "x", "FULL", "COUNT", "0"), THIRD),
    ("XREADGROUP", stream_of, call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">"), THIRD),
    ("XAUTOCLAIM", pending, call("XAUTOCLAIM", "x", "g", "d", "0", "0", "COUNT", lambda n: n), THIRD),
    ("XGROUP DELCONSUMER", pending, call("XGROUP", "DELCONSUMER", "x", "g", "c"), THIRD),
    ("XGROUP DESTROY", pending, call("XGROUP", "DESTROY", "x", "g"), THIRD),
    ("ZREMRANGEBYRANK", sorted_set_of(), call("ZREMRANGEBYRANK", "z", "0", lambda n: n * 14 // 15), 1),
    ("ZPOPMIN", sorted_set_of(), call("ZPOPMIN", "z", lambda n: n // 2), 1),
    ("SPOP", set_of(), call("SPOP", "s", lambda n: n * 7 // 15), 1),
    ("LPOP", list_of(), call("LPOP", "l", lambda n: n // 2), 1),
    ("LTRIM", list_of(), call("LTRIM", "l", lambda n: n * 14 // 15, "-1"), 1),
    ("LREM", list_of(), call("LREM", "l", "0", "none"), 1),
    ("XTRIM", stream_of, call("XTRIM", "x", "MAXLEN", "10"), THIRD),
    ("HDEL of 100,000", hash_of(), names("HDEL", "h", 100_000), 1),
    ("SREM of 100,000", set_of(), names("SREM", "s", 100_000), 1),
    ("GETRANGE of 200 MB", text_of(200), call("GETRANGE", "t", "1", "-1"), 1),
    ("SETRANGE +100 MB", text_of(1), call("SETRANGE", "t", 101 << 20, "x"), 1),
    ("SETRANGE 200 MB +100 MB", text_of(200), call("SETRANGE", "t", 300 << 20, "x"), 1),
    ("SETBIT +400 MB", text_of(100), call("SETBIT", "t", (500 << 23) - 1, "1"), 1),
    ("APPEND of 100 MB", text_of(100), lambda client, n: ["APPEND", "t", b"y" * (100 << 20)], 1),
    ("APPEND of 100 MB, no key", lambda client, n: None, lambda client, n: ["APPEND", "t", b"y" * (100 << 20)], 1),
    ("SET of 200 MB", text_of(200), lambda client, n: ["SET", "t", b"y" * (200 << 20)], 1),
    ("script, 100 MB", lambda client, n: None, call("EVAL", "return string.rep('x', 104857600)", "0"), 1),
]


def probe(port, connection):
    """Sends GETs until the connection asks for the longest time of one, in seconds."""
    client = Client(port)
    client.run("SET", "other", "x")
    longest = 0
    connection.send(None)
    while not connection.poll():
        begun = time.perf_counter()
        client.send("GET", "other")
        client.read(raises=False)
        longest = max(longest, time.perf_counter() - begun)
    connection.send(longest)


def measure(port, row, elements):
    _, build, words_of, part = row
    client = Client(port)
    client.run("FLUSHALL")
    n = elements // part
    build(client, n)
    words = words_of(client, n)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=probe, args=(port, theirs))
    process.start()
    ours.recv()
    begun = time.perf_counter()
    client.run(*words)
    took = time.perf_counter() - begun
    # Work that frees memory after the reply counts, too.
    time.sleep(0.2)
    ours.send(None)
    longest = ours.recv()
    process.join()
    return longest * 1000, took * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--elements", type=int, default=1_500_000)
    parser.add_argument("--rows", default="")
    parser.add_argument("--csv", action="store_true")
    options = parser.parse_args()
    for row in ROWS:
        if options.rows.lower() not in row[0].lower():
            continue
        longest, took = measure(options.port, row, options.elements)
        if options.csv:
            print(f"{row[0]};{longest:.1f};{took:.0f}", flush=True)
        else:
            print(f"{row[0]:28} {longest:8.1f} ms, the command {took:8.0f} ms", flush=True)


if __name__ == "__main__":
    sys.exit(main())
