"""What a process spends its CPU time on, by `perf record`: a profile beside a missed target."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from process import family
from report import Failed, table

# Samples a second: no divisor of a timer's rate.
RATE, TOP = 997, 25


@contextlib.contextmanager
def recorded(pid: int, path: Path) -> Iterator[None]:
    """Records a family from here to the end of the context."""
    orders, answers = os.pipe(), os.pipe()
    process = subprocess.Popen(
        ["perf", "record", "--quiet", "-F", str(RATE), "-o", path, "-p", ",".join(map(str, family(pid))), "-D", "-1",
         f"--control=fd:{orders[0]},{answers[1]}"], pass_fds=(orders[0], answers[1]), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True)
    os.close(orders[0])
    os.close(answers[1])
    try:
        # It answers when it counts. An end without an answer is a pipe that is closed.
        with contextlib.suppress(BrokenPipeError):
            os.write(orders[1], b"enable\n")
        if not os.read(answers[0], 16):
            raise Failed(f"perf record cannot begin: {process.communicate()[1].strip()}")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
        os.close(orders[1])
        os.close(answers[0])


def is_possible() -> bool:
    """Whether perf is there, and may look."""
    return shutil.which("perf") is not None and subprocess.run(
        ["perf", "stat", "-e", "cpu-clock", "true"], capture_output=True).returncode == 0


def shares(path: Path, kind: str) -> list[tuple[float, str]]:
    """(share of all samples in %, what) by `kind`, the largest first: `symbol`, or `comm` for threads."""
    said = subprocess.run(["perf", "report", "--quiet", "--stdio", "--no-children", "--sort", kind, "-i", path],
                          capture_output=True, text=True).stdout
    # Swift's names as people read them, where its tool is there.
    if kind == "symbol" and (tool := shutil.which("swift-demangle")):
        said = subprocess.run([tool, "--simplified"], input=said, capture_output=True, text=True).stdout
    return read_shares(said)


def read_shares(text: str) -> list[tuple[float, str]]:
    rows = re.findall(r"^\s*([\d.]+)%\s+(.+?)\s*$", text, re.MULTILINE)
    return sorted(((float(share), name) for share, name in rows), reverse=True)


def show(title: str, path: Path) -> None:
    for what, kind in (("symbol", "symbol"), ("thread", "comm")):
        table(f"{title}: CPU time by {what}", [what, "share"],
              [[name[:100], f"{share:.1f} %"] for share, name in shares(path, kind)[:TOP]])
