"""Typical use of Celery with Redis as broker and result backend, counting each task: jobs.py PORT"""

import os
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from celery import chain, chord, group

from checks import PATIENCE_S, check, until

PORT = sys.argv[1]
os.environ["JOBS_PORT"] = PORT

import tasks  # noqa: E402  Reads the port from the environment.

add, total, when = tasks.add, tasks.total, tasks.when


def start_worker(number):
    command = [sys.executable, "-m", "celery", "--app", "tasks", "worker", "--concurrency", "2", "--loglevel", "ERROR"]
    command += ["--hostname", f"worker{number}@localhost"]
    return subprocess.Popen(command, cwd=Path(__file__).parent)


def counts():
    return {name.decode(): int(value) for name, value in tasks.connection.hgetall(tasks.COUNTS).items()}


def get(result):
    return result.get(timeout=PATIENCE_S)


def groups_do_each_task_once():
    results = get(group(add.s(number, 1000) for number in range(200))())
    check("a group", results, list(range(1000, 1200)))
    check("chunks", get(add.chunks([(number, 1) for number in range(1000, 1020)], 5)()),
          [[number + 1 for number in range(start, start + 5)] for start in range(1000, 1020, 5)])
    found = counts()
    for number in [*range(200), *range(1000, 1020)]:
        check(f"runs of add {number}", found.get(f"add {number}"), 1)


def chains_and_chords_pass_results_on():
    check("a chain", get(chain(add.s(5000, 1), add.s(2), add.s(3))()), 5006)
    check("a chord", get(chord([add.s(6000 + number, 0) for number in range(20)])(total.s())), 120_190)
    nested = chain(group(add.s(7000, 1), add.s(7001, 1)), total.s(), group(add.s(1), add.s(2)))
    check("groups in a chain", get(nested()), [14004, 14005])
    check("completed chords", counts()["total"], 2)


def failures_are_reported_and_retried():
    check("the third try", get(tasks.fail_at_first.delay("twice", 2)), 3)
    hopeless = tasks.fail_at_first.delay("always", 9)
    failing = tasks.fail.apply_async(link_error=tasks.caught.s())
    for result, text in ((hopeless, "try 4 fails"), (failing, "it always fails")):
        try:
            get(result)
            sys.exit(f"no error: {text}")
        except ValueError as error:
            check("the error", str(error), text)
    check("tries", counts()["always"], 4)
    until("the error's task ran", lambda: counts().get("caught it always fails") == 1)
    broken = chord([add.s(8000, 1), tasks.fail.s()])(total.s())
    try:
        get(broken)
        sys.exit("a chord with a failed task succeeded")
    except Exception as error:
        check("the chord's error", "it always fails" in str(error), True)


def tasks_wait_for_their_time():
    begun = time.time()
    soon = datetime.now(timezone.utc) + timedelta(seconds=1.5)
    results = [when.apply_async(("countdown",), countdown=1), when.apply_async(("eta",), eta=soon)]
    expired = when.apply_async(("expired",), countdown=1, expires=0.2)
    revoked = when.apply_async(("revoked",), countdown=2)
    revoked.revoke()
    check("countdown", get(results[0]) - begun >= 1, True)
    check("eta", get(results[1]) - begun >= 1.5, True)
    until("the expired task is revoked", lambda: expired.state == "REVOKED")
    until("the revoked task is reported as revoked", lambda: revoked.state == "REVOKED")
    found = counts()
    check("done", [found.get(name) for name in ("countdown", "eta", "expired", "revoked")], [1, 1, None, None])


def workers_reply():
    replies = tasks.app.control.inspect(timeout=1).ping()
    check("ping", sorted(replies or {}), ["worker0@localhost", "worker1@localhost"])
    result = tasks.progress.delay()
    until("progress is reported", lambda: result.state == "PROGRESS")
    check("progress", result.info, {"done": 50})
    tasks.connection.set("go on", 1)
    check("the result", get(result), "done")
    stored = result.id
    result.forget()
    check("a forgotten result", tasks.app.AsyncResult(stored).state, "PENDING")


def main():
    tasks.connection.flushall()
    early = [when.apply_async((f"priority {priority}",), priority=priority) for priority in (9, 0, 6)]
    workers = [start_worker(number) for number in range(2)]
    try:
        check("priorities", len({get(result) for result in early}), 3)
        until("both workers reply", lambda: len(tasks.app.control.inspect(timeout=1).ping() or {}) == 2)
        parts = [groups_do_each_task_once, chains_and_chords_pass_results_on, failures_are_reported_and_retried,
                 tasks_wait_for_their_time, workers_reply]
        for part in parts:
            begun = time.monotonic()
            part()
            print(f"{part.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
    print("Celery ok")


main()
