"""Close of a small file to the first byte of its PUT at the server, at `settle: 0s`. Run latency.sh."""

import argparse
import os
import random
import sys
import time

import outcome
from measure import Inlet, Server, Workspace, percentile, table, write_config

LIMIT_MS = 20


def one_file(folder, sink, name):
    """Milliseconds from close() to the first byte of the PUT."""
    with open(folder / "drop" / name, "wb", buffering=0) as file:
        file.write(os.urandom(4096))
        # Taken before the call: the kernel reports the close while it runs.
        closed = time.monotonic_ns()
    put = sink.get(f"/_/wait?{name}")
    return (put["first_byte_ns"] - closed) / 1e6


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=200)
    outcome.add_option(options)
    given = options.parse_args()
    pause = random.Random(1)
    with Workspace() as folder, Server("sink.py") as sink:
        with Inlet(write_config(folder, sink.url), folder / "inlet.log") as inlet:
            inlet.wait_ready()
            # The first one also opens the connection and warms every path.
            first = one_file(folder, sink, "first.bin")
            times = []
            for number in range(given.files):
                # Not in step with anything periodic, and after the last file's journal writes.
                time.sleep(pause.uniform(0.03, 0.09))
                times.append(one_file(folder, sink, f"small-{number:04}.bin"))
    middle = percentile(times, 0.5)
    table(f"close to first byte at the server, {given.files} files of 4 KiB, settle: 0s", ["", "ms"], [
        ["first", f"{first:.1f}"], ["p50", f"{middle:.1f}"], ["p99", f"{percentile(times, 0.99):.1f}"],
        ["max", f"{max(times):.1f}"]])
    return outcome.conclude([outcome.at_most("close to first byte: p50", middle, LIMIT_MS, " ms")], is_report=given.report)


if __name__ == "__main__":
    sys.exit(main())
