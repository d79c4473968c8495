"""Processes: how they are awaited and ended, and what they cost: CPU, memory and descriptors, read from /proc."""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from report import Failed, table

TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 1800


def until(condition: Callable[[], Any], seconds: float = 20, what: str = "", every: float = 0.05,
          process: subprocess.Popen | None = None, words: Callable[[], str] = str) -> Any:
    """The first true value of `condition`. When time is up, or `process` has ended, there is none: in the name of `what` that is
    a failure, with `words`; without it what came last is returned."""
    over = time.monotonic() + seconds
    while not (value := condition()):
        code = process.poll() if process else None
        if code is not None or time.monotonic() > over:
            if what:
                why = f"within {seconds} s" if code is None else f"before it ended with {code}"
                raise Failed(f"no {what} {why}:\n{words()}")
            break
        time.sleep(every)
    return value


def end(process: subprocess.Popen, seconds: float = 60) -> int:
    """Asked to end, and made to after so long. - Returns: its exit code."""
    process.terminate()
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


class Child:
    """A process that ends with its context."""

    process: subprocess.Popen

    def __enter__(self):
        return self

    def __exit__(self, *failure: object) -> None:
        end(self.process)


def family(pid: int) -> list[int]:
    """A process and all below it that live: an agent has a second process."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except (FileNotFoundError, ProcessLookupError):
                # The thread ended; its children belong to another one now.
                continue
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of a family, also of those that ended and were awaited; the kernel counts in ticks of 10 ms."""
    total = 0
    for one in family(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            # Ended since it was listed: its time is its parent's now. The process itself is to be there.
            if one == pid:
                raise
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def field(path: str, *names: str) -> Any:
    """Numbers of a file of /proc; 0 for one that is not there, as memory is of a process that is ending."""
    found = dict(line.split(":", 1) for line in Path(path).read_text().splitlines() if ":" in line)
    values = [int(found.get(name, "0").split()[0]) for name in names]
    return values if len(names) > 1 else values[0]


def memory(pid: int) -> dict[str, float]:
    """MiB: the kernel's peak since the start or since it was reset, and what is there now: own, of mapped files, both."""
    hwm, own, files, shared = (
        count / 1024 for count in field(f"/proc/{pid}/status", "VmHWM", "RssAnon", "RssFile", "RssShmem"))
    return {"VmHWM": hwm, "seen at most": own + files + shared, "own memory (RssAnon)": own,
            "mapped files (RssFile)": files + shared}


def together(pid: int, file: str, name: str) -> float:
    """MiB of a number of a family's /proc/PID/`file`."""
    total = 0
    for one in family(pid):
        try:
            total += field(f"/proc/{one}/{file}", name)
        except (FileNotFoundError, ProcessLookupError):
            # Ended since it was listed. The process itself is to be there.
            if one == pid:
                raise
    return total / 1024


def own_memory(pid: int) -> dict[str, float]:
    """MiB that are a family's own (RssAnon)."""
    return {"own": together(pid, "status", "RssAnon")}


def peak_mib(pid: int) -> float:
    return memory(pid)["VmHWM"]


def reset_peak(pid: int) -> None:
    """From here on VmHWM counts anew (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def held(pid: int, state: Path) -> dict[str, float]:
    """Descriptors (only root sees inlet's: for others they are 0), threads, and bytes of its journal on the disk."""
    sizes = {}
    for path in state.glob("journal.sqlite*"):
        try:
            sizes[path.name] = path.stat().st_size
        except FileNotFoundError:
            # SQLite removes its log when the last connection is closed.
            continue
    descriptors = len(os.listdir(f"/proc/{pid}/fd")) if os.access(f"/proc/{pid}/fd", os.R_OK) else 0
    return {"descriptors": descriptors, "threads": field(f"/proc/{pid}/status", "Threads"),
            "journal": sum(sizes.values()), "log": sizes.get("journal.sqlite-wal", 0)}


class Worker(threading.Thread):
    """Works beside the scenario until it is stopped. What it fails with is raised then: one that died unseen would leave a run that
    proves nothing."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.failure: Exception | None = None

    def work(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.failure = error

    def stop(self) -> None:
        self.ended.set()
        self.join()
        if self.failure:
            raise self.failure


class Highest(Worker):
    """The most of each figure that `read` gives, looking again and again while this is a context."""

    def __init__(self, read: Callable[..., dict[str, float]], *arguments: Any, every: float = 0.01) -> None:
        super().__init__()
        self._read, self._arguments, self._every = read, arguments, every
        self.most: dict[str, float] = {}

    def _look(self) -> bool:
        try:
            for name, value in self._read(*self._arguments).items():
                self.most[name] = max(value, self.most.get(name, 0))
        except (FileNotFoundError, ProcessLookupError):
            # It has ended: what was seen before counts. What may not be read is a failure.
            return False
        return True

    def work(self) -> None:
        # Some processes end within milliseconds.
        pause = 0.001
        while not self.ended.wait(pause) and self._look():
            pause = min(self._every, 1.5 * pause)

    def __enter__(self) -> "Highest":
        self._look()
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()
        self._look()


def show_peaks(title: str, peaks: dict[str, Highest]) -> None:
    table(title, ["", *next(iter(peaks.values())).most],
          [[what, *(f"{value:.1f}" for value in peak.most.values())] for what, peak in peaks.items()])


def run_to_end(command: Sequence[Any], environment: dict[str, str] | None = None,
               folder: Path | None = None) -> tuple[float, float, float, str]:
    """(seconds, CPU seconds, most of its own memory in MiB, what it said) of a command."""
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                   cwd=folder, env=os.environ | (environment or {}))
        limit = threading.Timer(PATIENCE, process.kill)
        limit.start()
        with Highest(own_memory, process.pid, every=0.05) as peak:
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.read().decode(errors="replace").strip()
    if status:
        raise Failed(f"{Path(str(command[0])).name} ended with {process.returncode}: {words[-600:]}")
    return seconds, usage.ru_utime + usage.ru_stime, peak.most.get("own", 0), words
