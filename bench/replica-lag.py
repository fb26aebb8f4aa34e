"""Measures the lag of a replica under load, for bench-replication.sh.

Arguments: the primary's port, the replica's port, and the duration in seconds. A marker is written to the primary and read
from the replica until it has arrived, then the next one. Prints the median and the 99th percentile of the time from the
primary's reply to the replica's, in ms, and the number of markers. A read takes about 0.1 ms, which is the resolution.
"""

import random
import socket
import sys
import time

KEY = b"lag:marker"
PAUSE_SECONDS = 0.003
POLL_SECONDS = 0.0001
TIMEOUT_SECONDS = 60


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout=TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def run(self, *words):
        parts = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"".join(parts))
        line = self.replies.readline()
        if line[:1] == b"$" and line != b"$-1\r\n":
            return self.replies.read(int(line[1:]) + 2)[:-2]
        if line[:1] in b"-":
            sys.exit(f"{words[0].decode()}: {line.decode().strip() or 'the server closed the connection'}")
        return line


def lag_of(primary, replica, marker):
    """Returns the milliseconds until the replica has a marker."""
    primary.run(b"SET", KEY, marker)
    answered = time.monotonic()
    while replica.run(b"GET", KEY) != marker:
        if time.monotonic() - answered > TIMEOUT_SECONDS:
            sys.exit("the replica did not receive the marker")
        time.sleep(POLL_SECONDS)
    return (time.monotonic() - answered) * 1000


def main():
    primary, replica = Client(sys.argv[1]), Client(sys.argv[2])
    end = time.monotonic() + float(sys.argv[3])
    lags = []
    while time.monotonic() < end or not lags:
        lags.append(lag_of(primary, replica, b"%d" % len(lags)))
        # Random, so that it is not in step with periodic work of either server.
        time.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.5))
    lags.sort()
    print(f"{lags[len(lags) // 2]:.2f} {lags[len(lags) * 99 // 100]:.2f} {len(lags)}")


main()
