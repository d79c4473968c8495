"""Close of a small file to the first byte of its PUT at the server, at `settle: 0s`."""

import os
import random
import time
from pathlib import Path

from agent import Agent, configure, spiral
from report import Given, Row, bounded, figure, percentile
from servers import Sink

LIMIT_MS = 20

OPTIONS = {"--files": 200}


def one_file(folder: Path, sink: Sink, name: str) -> float:
    """Milliseconds from close() to the first byte of the PUT."""
    with open(folder / "drop" / name, "wb", buffering=0) as file:
        file.write(os.urandom(4096))
        # Taken before the call: the kernel reports the close while it runs.
        closed = time.monotonic_ns()
    # Asked seldom: the questions take time of what is measured.
    while not (first := sink.first_byte(f"/object/{name}")):
        time.sleep(0.05)
    return (first - closed) / 1e6


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    pause, times = random.Random(1), []
    with Sink() as sink, Agent(configure(folder, {"store": spiral(sink.url, verify="size")})):
        # The first one also opens the connection and warms every path.
        first = one_file(folder, sink, "first.bin")
        for number in range(given.files):
            # Not in step with anything periodic, and after the last file's journal writes.
            time.sleep(pause.uniform(0.03, 0.09))
            times.append(one_file(folder, sink, f"small-{number:04}.bin"))
    return f"close to first byte at the server, {given.files} files of 4 KiB, settle: 0s", [
        figure("first", first, " ms"), bounded("p50", percentile(times, 0.5), LIMIT_MS, " ms"),
        figure("p99", percentile(times, 0.99), " ms"), figure("longest", max(times), " ms")]
