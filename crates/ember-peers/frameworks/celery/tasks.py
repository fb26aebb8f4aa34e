"""The tasks that jobs.py sends to Celery's workers. Each counts itself in a hash of the server."""

import os
import time

import redis
from celery import Celery

PORT = os.environ["JOBS_PORT"]
COUNTS = "counts"
connection = redis.Redis(port=int(PORT), db=2)
app = Celery("jobs", broker=f"redis://127.0.0.1:{PORT}/0", backend=f"redis://127.0.0.1:{PORT}/1")
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=2,
    result_extended=True,
    task_queue_max_priority=10,
    broker_transport_options={"priority_steps": [0, 3, 6, 9], "queue_order_strategy": "priority"},
    broker_connection_retry_on_startup=False,
)


def count(name):
    return connection.hincrby(COUNTS, name, 1)


@app.task
def add(left, right):
    count(f"add {left}")
    return left + right


@app.task
def total(numbers):
    count("total")
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def fail_at_first(self, name, failures):
    tries = count(name)
    if tries <= failures:
        raise self.retry(countdown=0.2, exc=ValueError(f"try {tries} fails"))
    return tries


@app.task
def fail():
    raise ValueError("it always fails")


@app.task
def caught(request, error, trace):
    count(f"caught {error}")


@app.task
def when(name):
    count(name)
    return time.time()


@app.task(bind=True)
def progress(self):
    self.update_state(state="PROGRESS", meta={"done": 50})
    while not connection.exists("go on"):
        time.sleep(0.02)
    return "done"
