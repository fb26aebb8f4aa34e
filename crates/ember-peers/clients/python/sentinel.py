"""Writes through Sentinel until its input ends, and prints the number of each write that was acknowledged."""

import sys
import threading

from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

PAUSE_SECONDS = 0.005
TIMEOUT_SECONDS = 0.3

sentinel = Sentinel(
    [("127.0.0.1", int(port)) for port in sys.argv[1:]],
    socket_timeout=TIMEOUT_SECONDS,
    retry=Retry(NoBackoff(), 0),
)
primary = sentinel.master_for("ember", socket_timeout=TIMEOUT_SECONDS, retry=Retry(NoBackoff(), 0))
over = threading.Event()


def wait_for_end():
    sys.stdin.read()
    over.set()


threading.Thread(target=wait_for_end, daemon=True).start()
number = 0
while not over.wait(PAUSE_SECONDS):
    try:
        primary.sadd("written", number)
        print(number)
    except (RedisError, MasterNotFoundError):
        # There is no primary at the moment, or the reply was lost.
        pass
    number += 1
