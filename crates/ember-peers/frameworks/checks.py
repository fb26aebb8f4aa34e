"""Checks that the jobs of all frameworks share."""

import sys
import time

PATIENCE_S = 40


def check(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}")


def until(what, holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"condition never met: {what}")
        time.sleep(0.02)
