#!/usr/bin/env python3
"""Shows which threads of a server delay its workers: perf sched timehist --state | threads.py PID

PID is the server's. For each of its threads, a line has, separated by tabs: the name, the time on the processor in ms per
second, the longest run without a break in µs, and the longest part of one wait of a worker in which this thread ran, in µs.
A worker waits from its wakeup, or from the moment it was preempted, until it runs. The last line is that of all threads of
other processes.
"""

import re
import sys

LINE = re.compile(r"\s*(\d+)\.(\d+)\s+\[\d+\]\s+(.*?)\[(-?\d+)(?:/(-?\d+))?\]\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\S+)")
OTHERS = "threads of other processes"


def runs(lines):
    """Yields a tuple per run on the processor: process, thread, name, begin, end, delay since the wakeup, state at the end.
    Times are in µs."""
    for line in lines:
        found = LINE.match(line)
        if not found:
            continue
        seconds, fraction, name, thread, process, _, delay, run, state = found.groups()
        end = int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6])
        yield int(process or thread), int(thread), name, end - float(run) * 1000, end, float(delay) * 1000, state


def main():
    server = int(sys.argv[1])
    totals, longest, delays, preempted = {}, {}, {}, {}
    recent = []
    first = last = None
    for process, thread, name, begin, end, delay, state in runs(sys.stdin):
        first = begin if first is None else first
        last = end
        own = process == server
        # A number at the end of a name distinguishes threads with the same purpose.
        key = re.sub(r"[-:]?\d+$", "", name) if own else OTHERS
        if name != "<idle>":
            totals[key] = totals.get(key, 0) + end - begin
            longest[key] = max(longest.get(key, 0), end - begin)
        if own and key == "worker":
            since = preempted.pop(thread, None)
            since = begin - delay if since is None else since
            parts = {}
            for other, run_begin, run_end in recent:
                part = min(run_end, begin) - max(run_begin, since)
                if part > 0:
                    parts[other] = parts.get(other, 0) + part
            for other, part in parts.items():
                delays[other] = max(delays.get(other, 0), part)
            if state.startswith("R"):
                preempted[thread] = end
        elif name != "<idle>":
            recent = [run for run in recent if run[2] > begin - 1_000_000]
            recent.append((key, begin, end))
    if "worker" not in totals:
        sys.exit(f"no worker of process {server} ran: perf saw {len(totals)} groups of threads")
    seconds = (last - first) / 1_000_000
    names = sorted((name for name in totals if name != OTHERS), key=lambda name: -totals[name])
    for name in names + [OTHERS] * (OTHERS in totals):
        delay = "-" if name == "worker" else f"{delays.get(name, 0):.0f}"
        print(name, f"{totals[name] / 1000 / seconds:.1f}", f"{longest[name]:.0f}", delay, sep="\t")


if __name__ == "__main__":
    main()
