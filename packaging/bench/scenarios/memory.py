"""Peak memory while one huge file is sent, and while many small files wait and are then sent.

VmHWM is what the kernel counts at most, and what the target is held against. Inlet helps it down by unmapping code that it does
not run again; how high it is without that is measured too, in a second run, and what memory is of its own is told beside it.
"""

import os
import time
from pathlib import Path

from agent import Agent, configure, spiral
from loads import write_sparse
from process import Highest, memory, reset_peak, show_peaks
from report import GIB, Given, Row, bounded
from servers import Sink, closed_port, keeping_code

LIMIT_MIB = 40

OPTIONS = {
    "--gib": 6.0,
    "--files": 10_000,
}


def huge_file(folder: Path, size: int, environment: dict[str, str] | None) -> Highest:
    """While a sparse file of `size` bytes is sent."""
    with Sink(etag="md5") as sink:
        config = configure(folder, {"store": spiral(sink.url, verify="md5")})
        # From the start of the process on.
        with Agent(config, environment, is_awaited=False) as agent, Highest(memory, agent.pid) as peak:
            agent.wait_count("agent.ready", 1, 30)
            os.rename(write_sparse(folder / "huge.bin", size), folder / "drop" / "huge.bin")
            agent.wait_count("job.delivered", 1, 1800)
        return peak


def many_small_files(folder: Path, count: int, environment: dict[str, str] | None) -> tuple[Highest, Highest, float]:
    """While they wait, while they are sent, and the seconds that the sending took."""
    port = closed_port()
    config = configure(folder, {"store": spiral(f"http://127.0.0.1:{port}", verify="size")})
    with Agent(config, environment, is_awaited=False) as agent:
        with Highest(memory, agent.pid) as waiting:
            agent.wait_count("agent.ready", 1, 30)
            for number in range(count):
                (folder / "drop" / f"small-{number:05}.bin").write_bytes(os.urandom(4096))
            agent.wait_count("job.admitted", count, every=0.5)
            # Waiting is a state of its own, not only the moment of admission.
            time.sleep(5)
        reset_peak(agent.pid)
        began = time.monotonic()
        with Sink(port=port), Highest(memory, agent.pid) as sending:
            # An outage is probed at most once a minute.
            agent.wait_count("job.delivered", count, 900, every=0.5)
        return waiting, sending, time.monotonic() - began


def measure(folder: Path, given: Given, environment: dict[str, str] | None = None) -> dict[str, Highest]:
    huge = huge_file(folder / "huge", int(given.gib * GIB), environment)
    waiting, sending, seconds = many_small_files(folder / "small", given.files, environment)
    return {f"sending {given.gib:g} GiB (sparse, verify: md5)": huge,
            f"{given.files:,} small files wait": waiting,
            f"{given.files:,} small files are sent ({seconds:.0f} s, the probe's wait included)": sending}


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    found = measure(folder / "usual", given)
    show_peaks("peak memory, MiB", found)
    if environment := keeping_code():
        show_peaks("the same, MiB, if inlet gave back no code", measure(folder / "kept", given, environment))
    return "targets", [bounded(what, peak.most["VmHWM"], LIMIT_MIB, " MiB") for what, peak in found.items()]
