"""Takes a share of a processor, in slices of some tenths of a millisecond, until it is killed.

    busy.py SHARE    for example 0.1
"""

import sys
import time

SLICE_SECONDS = 0.0002


def main():
    share = float(sys.argv[1])
    while True:
        begun, used = time.monotonic(), time.process_time()
        while time.process_time() - used < SLICE_SECONDS:
            pass
        used = time.process_time() - used
        time.sleep(max(0.0, used / share - (time.monotonic() - begun)))


if __name__ == "__main__":
    main()
