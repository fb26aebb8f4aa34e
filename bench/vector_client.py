"""A client for vector sets, for vectors.py and vector_latency.py: requests as bytes, and the needed part of replies. It uses
only Python's standard library."""

import selectors
import socket
import time

CONNECTIONS = 8
LINKS = 16
BUILD_WIDTH = 200
NEAREST = 10
# Vectors added in one batch.
ADDED = 500
PONG = b"+PONG\r\n"


def command(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)])


def vadd(key, at, blob, *options):
    return command("VADD", key, "FP32", blob, at, *options, "EF", BUILD_WIDTH, "M", LINKS)


def vsim(key, blob, width, *options):
    return command("VSIM", key, "FP32", blob, "COUNT", NEAREST, "EF", width, *options)


class Connection:
    """A connection that sends requests and reads all their replies; a PING after the requests marks the end."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, *requests):
        self.socket.sendall(b"".join(requests) + command("PING"))
        received = bytearray()
        while not received.endswith(PONG):
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the server has closed a connection")
            received += data
        if received.startswith(b"-"):
            raise ValueError(received.decode(errors="replace"))
        return bytes(received[: -len(PONG)])

    def info(self, section):
        """Returns the fields of a section of INFO."""
        lines = self.ask(command("INFO", section)).decode().split("\r\n")
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def is_linked(self, key):
        """Returns whether all vectors of a set are linked; ember links after the reply, other servers before it."""
        if "ember_version" not in self.info("server"):
            return True
        words = self.ask(command("VECTOR.INFO", key)).split(b"\r\n")
        return words[words.index(b"pending") + 1] == b":0"


def add_all(port, requests, key):
    """Sends requests that add vectors to a key, waits until these are linked, and returns the seconds."""
    connection = Connection(port)
    start = time.monotonic()
    for first in range(0, len(requests), ADDED):
        connection.ask(*requests[first : first + ADDED])
    while not connection.is_linked(key):
        time.sleep(0.02)
    return time.monotonic() - start


def ask(port, requests):
    """Returns the replies to all requests, arrays of numbers, in the order of the requests. These are distributed over
    connections, each of which sends its share at once, so that the server never waits for a client."""
    selector = selectors.DefaultSelector()
    streams = []
    for first in range(CONNECTIONS):
        connection = Connection(port).socket
        selector.register(connection, selectors.EVENT_READ, bytearray())
        streams.append((first, connection, selector.get_key(connection).data))
    for first, connection, _ in streams:
        connection.sendall(b"".join(requests[first::CONNECTIONS]) + command("PING"))
    while selector.get_map():
        for key, _ in selector.select():
            data = key.fileobj.recv(1 << 20)
            key.data.extend(data)
            if not data or key.data.endswith(PONG):
                selector.unregister(key.fileobj)
                key.fileobj.close()
    replies = [None] * len(requests)
    for first, _, received in streams:
        # Elements are numbers, so an asterisk always begins a reply.
        arrays = bytes(received.removesuffix(PONG)).split(b"*")[1:]
        for at, array in zip(range(first, len(requests), CONNECTIONS), arrays, strict=True):
            replies[at] = [int(word) for word in array.split(b"\r\n")[2::2]]
    return replies
