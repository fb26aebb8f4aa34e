"""The jobs that jobs.py sends to RQ's workers. Each counts itself in a hash of the server."""

import os
import time

import redis
from rq import get_current_job

COUNTS = "counts"
connection = redis.Redis(port=int(os.environ["JOBS_PORT"]))


def count(name):
    return connection.hincrby(COUNTS, name, 1)


def add(left, right):
    count(f"add {left}")
    return left + right


def note(name):
    connection.rpush("notes", name)
    count(name)
    return time.time()


def fail_at_first(name, failures):
    tries = count(name)
    if tries <= failures:
        raise ValueError(f"try {tries} fails")
    return tries


def sum_of_dependencies():
    job = get_current_job()
    return sum(dependency.return_value() for dependency in job.fetch_dependencies())


def succeeded(job, connection, result):
    connection.hincrby(COUNTS, f"succeeded {result}", 1)


def failed(job, connection, kind, error, trace):
    connection.hincrby(COUNTS, f"failed {error}", 1)
