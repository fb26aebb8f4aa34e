#!/usr/bin/env python3
"""Lists the functions that a request passes from the socket to the reply, with the files that contain them.

Samples the worker threads of a server under load with perf, and resolves the samples with llvm-symbolizer. Counts
functions as the compiler emits them: a function that it has inlined belongs to its caller (`--inlined` lists those,
too). Only functions of this repository count, with at least SHARE percent of the workers' samples in the binary.

    bench/get-path.py PID [--seconds 8] [--share 0.1] [--inlined]
"""

import argparse
import collections
import os
import re
import subprocess
import tempfile

SAMPLES_PER_SECOND = 5000


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def addresses(pid, binary, seconds):
    """The sampled addresses of worker threads in the binary, with their counts."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        rate, duration = str(SAMPLES_PER_SECOND), str(seconds)
        run("perf", "record", "-q", "-F", rate, "-p", pid, "-o", data, "--", "sleep", duration)
        script = run("perf", "script", "-i", data, "--show-mmap-events", "-F", "comm,ip,dso")
    mapped = re.search(r"\[0x([0-9a-f]+)\(0x[0-9a-f]+\) @ 0x([0-9a-f]+) .*r-xp " + re.escape(binary), script)
    start, offset = (int(number, 16) for number in mapped.groups())
    for line in run("readelf", "-lW", binary).splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and " E " in line:
            start -= offset - int(words[1], 16) + int(words[2], 16)
    found = collections.Counter()
    for line in script.splitlines():
        sample = re.search(r"([0-9a-f]+) \(" + re.escape(binary) + r"\)", line)
        if sample and "worker" in line:
            found[int(sample.group(1), 16) - start] += 1
    return found


def functions(found, binary, inlined):
    """The samples of each function, named by its path and its file."""
    wanted = "\n".join(map(hex, found))
    text = run("llvm-symbolizer", "--obj=" + binary, "--inlines", "--demangle", text=wanted)
    samples = collections.Counter()
    for address, block in zip(found, text.strip().split("\n\n")):
        lines = block.split("\n")
        frames = [
            (name, place.group(1))
            for name, at in zip(lines[::2], lines[1::2])
            if (place := re.search(r"crates/(ember-[a-z]+/src/[^:]+)", at))
        ]
        for frame in set(frames) if inlined else frames[-1:]:
            samples[frame] += found[address]
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pid")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--inlined", action="store_true")
    options = parser.parse_args()
    binary = os.readlink(f"/proc/{options.pid}/exe")
    found = addresses(options.pid, binary, options.seconds)
    total = sum(found.values())
    rows = [
        (100 * count / total, *function)
        for function, count in functions(found, binary, options.inlined).most_common()
        if 100 * count / total >= options.share
    ]
    print(f"{len(rows)} functions in {len({file for *_, file in rows})} files, {total} samples")
    for share, name, file in rows:
        name = re.sub(r"^_?\$LT\$impl\$u20\$.*\$GT\$::|::h[0-9a-f]{16}.*$", "", name)
        print(f"{share:6.2f} %  {file:48} {name}")


if __name__ == "__main__":
    main()
