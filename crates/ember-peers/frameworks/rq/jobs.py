"""Typical use of RQ with several workers, counting each job: jobs.py PORT"""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import redis
from rq import Callback, Queue, Repeat, Retry
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry

from checks import check, until

PORT = int(sys.argv[1])
os.environ["JOBS_PORT"] = str(PORT)

import work  # noqa: E402  Reads the port from the environment.

connection = redis.Redis(port=PORT)


def start_worker(number, kind):
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", f"redis://127.0.0.1:{PORT}", "--name", f"worker {number}"]
    command += ["--worker-class", kind, "--with-scheduler", "--quiet", "high", "default"]
    return subprocess.Popen(command, cwd=Path(__file__).parent)


def counts():
    return {name.decode(): int(value) for name, value in connection.hgetall(work.COUNTS).items()}


def check_once(names):
    found = counts()
    for name in names:
        check(f"runs of {name}", found.get(name), 1)


def many_jobs_are_done_once(queue):
    jobs = queue.enqueue_many([Queue.prepare_data(work.add, (number, 1000)) for number in range(200)])
    until("all jobs are finished", lambda: all(job.get_status(refresh=True) == "finished" for job in jobs))
    check("results", [job.return_value() for job in jobs], list(range(1000, 1200)))
    check_once([f"add {number}" for number in range(200)])
    registry = FinishedJobRegistry(queue=queue)
    check("finished", {job.id for job in jobs} <= set(registry.get_job_ids()), True)


def failed_jobs_are_retried(queue):
    hopeful = queue.enqueue(work.fail_at_first, "twice", 2, retry=Retry(max=3))
    later = queue.enqueue(work.fail_at_first, "later", 1, retry=Retry(max=1, interval=1))
    hopeless = queue.enqueue(
        work.fail_at_first, "always", 9, retry=Retry(max=1), on_failure=Callback(work.failed)
    )
    registry = FailedJobRegistry(queue=queue)
    until("the last try has failed", lambda: hopeless.id in registry.get_job_ids())
    check("tries", counts()["always"], 2)
    until("its callback ran", lambda: counts().get("failed try 2 fails") == 1)
    registry.requeue(hopeless.id)
    until("it is retried", lambda: counts()["always"] == 3)
    for job, tries in ((hopeful, 3), (later, 2)):
        until(f"{job.args[0]} succeeds", lambda: job.get_status(refresh=True) == "finished")
        check("tries", job.return_value(), tries)


def scheduled_jobs_wait(queue):
    begun = time.time()
    jobs = [queue.enqueue_in(timedelta(seconds=wait), work.note, f"in {wait}") for wait in (1, 2)]
    far = queue.enqueue_in(timedelta(hours=1), work.note, "far")
    queue.enqueue(work.note, "repeated", repeat=Repeat(times=2, interval=1))
    until("scheduled jobs are done", lambda: all(job.get_status(refresh=True) == "finished" for job in jobs))
    for job, wait in zip(jobs, (1, 2)):
        # The scheduler has a resolution of one second.
        check(f"in {wait} s", job.return_value() - begun >= wait - 1, True)
    check_once(["in 1", "in 2"])
    registry = ScheduledJobRegistry(queue=queue)
    check("scheduled", far.id in registry.get_job_ids(), True)
    far.cancel()
    check("cancelled", [far.get_status(refresh=True), far.id in registry.get_job_ids()], ["canceled", False])
    until("a job is repeated", lambda: counts().get("repeated") == 3)


def jobs_wait_for_others(queue):
    parents = [queue.enqueue(work.add, 10_000 + number, 0, on_success=Callback(work.succeeded)) for number in range(5)]
    child = queue.enqueue(work.sum_of_dependencies, depends_on=parents)
    until("the child is finished", lambda: child.get_status(refresh=True) == "finished")
    check("the sum", child.return_value(), 50_010)
    until("callbacks ran", lambda: all(counts().get(f"succeeded {10_000 + number}") == 1 for number in range(5)))


def queues_keep_their_order(queue):
    """Enqueues jobs before there is a worker, and checks their positions."""
    high = Queue("high", connection=connection)
    jobs = [queue.enqueue(work.note, "second"), queue.enqueue(work.note, "third")]
    jobs.insert(0, queue.enqueue(work.note, "first", at_front=True))
    jobs.insert(0, high.enqueue(work.note, "high"))
    check("positions", [job.get_position() for job in jobs], [0, 0, 1, 2])
    removed = queue.enqueue(work.note, "removed")
    removed.delete()
    check("removed", Job.exists(removed.id, connection=connection), False)
    return jobs


def main():
    connection.flushall()
    queue = Queue("default", connection=connection)
    ordered = queues_keep_their_order(queue)
    workers = [start_worker(0, "rq.SimpleWorker")]
    try:
        until("the first jobs are done", lambda: all(job.get_status(refresh=True) == "finished" for job in ordered))
        check("order", connection.lrange("notes", 0, -1), [b"high", b"first", b"second", b"third"])
        workers += [start_worker(number, "rq.SimpleWorker") for number in (1, 2)] + [start_worker(3, "rq.Worker")]
        many_jobs_are_done_once(queue)
        failed_jobs_are_retried(queue)
        scheduled_jobs_wait(queue)
        jobs_wait_for_others(queue)
        check("queues are empty", [len(queue), len(Queue("high", connection=connection))], [0, 0])
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
    print("RQ ok")


main()
