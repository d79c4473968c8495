"""What watching finds, how fast, and what it costs, beside inotifywait, watchman and lsyncd where they are installed.

The parts (--only takes some of them, with commas between):
    storm        mkdir -p N/DCIM/100CANON and a file in it, as fast as it goes, in a watched folder
    overflow     a flood of files while the watcher is stopped (SIGSTOP): more than the kernel keeps events for
    scan         the first listing of a tree that is in the cache, the admission of all of it, a restart that knows
                 all of it, and the CPU that the agent takes after that
    directories  memory for each watched folder, and what else it holds for all of them
    latency      close of a file to the line that says so, in a steady stream of files

inlet's files count when they are in its journal, complete and durable; the peers' when a line names them (lsyncd: when
rsync has copied them). The peers neither admit nor remember. Files are called f<number>.bin, and empty or of one byte.
"""

import concurrent.futures
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from process import Highest, cpu_seconds, field, held, peak_mib
from report import MIB, Given, Row, bounded, figure, percentile, table, verdict
from watchers import Inlet, Lsyncd, MarkedInlet, Watcher, installed

# The paced stream: files a second, seconds, and folders that it writes to in turn.
RATE, STREAM, STREAM_FOLDERS = 1000, 10, 10
# Runs of a storm, for inlet and for a peer.
RUNS, PEERS_RUNS = 10, 3
# Seconds of rest that are measured, and those without a report after which none is awaited.
IDLE, QUIET = 20, 4
Kinds = list[type[Watcher]]


# What happens to a watched tree


def touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def make_tree(root: Path, files: int, directories: int) -> None:
    """`files` empty files, spread over `directories` folders, a hundred of these in each folder above them."""
    number = 0
    for index in range(directories):
        folder = f"{root}/{index // 100:04}/{index % 100:02}"
        os.makedirs(folder)
        for _ in range(number, files * (index + 1) // directories):
            touch(f"{folder}/f{number}.bin")
            number += 1


def pace(root: Path, count: int, per_second: float) -> list[int]:
    """The moment of each file's close, in CLOCK_MONOTONIC ns; the schedule is absolute, so that a late file does not delay the
    others."""
    began, closed = time.monotonic(), []
    for number in range(count):
        time.sleep(max(0, began + number / per_second - time.monotonic()))
        with open(root / f"card-{number % STREAM_FOLDERS}" / f"f{number}.bin", "wb", buffering=0) as file:
            file.write(b"x")
            # Taken before the call: the kernel reports the close while it runs.
            closed.append(time.monotonic_ns())
    return closed


# Figures


class Results:
    """A table for each part, with inlet's peers beside it, and the rows for the end."""

    def __init__(self, peers: Kinds) -> None:
        self.names, self.rows, self.part = [peer.name for peer in peers], [], ""
        self._lines: list[list[str]] = []

    def add(self, what: str, found: Any, bound: float | None = None, digits: int = 0, is_least: bool = False) -> None:
        """`found` is inlet's value, or {name: value}."""
        values = found if isinstance(found, dict) else {"inlet": found}
        row = figure(what, values["inlet"], "", digits) if bound is None else bounded(
            what, values["inlet"], bound, "", digits, is_least=is_least)
        self._lines.append([what, row.measured, row.target, verdict(row), *(
            f"{values[name]:,.{digits}f}" if name in values else "" for name in self.names)])
        self.rows += [row._replace(what=f"{self.part}: {what}")] if row.target else []

    def held(self, most: dict[str, float]) -> None:
        """What may not grow with files or folders: far below the 1,024 descriptors that a process gets by default."""
        self.add("descriptors at most", most["descriptors"] or None, 128)
        self.add("threads at most", most["threads"], 64)
        self.add("the journal's log (WAL) at most, MiB", most["log"] / MIB, 64, 1)

    def show(self) -> None:
        table(self.part, ["", "inlet", "target", "", *self.names], self._lines)
        self._lines = []


def each(folder: Path, kinds: Kinds,
         measure: Callable[[type[Watcher], Path, Path], tuple[float, ...]]) -> Iterable[dict[str, float]]:
    """{name: value} of each of the values that `measure(kind, an empty place, an empty root)` gives."""
    found = {}
    for kind in kinds:
        place = folder / kind.name
        (place / "drop").mkdir(parents=True)
        found[kind.name] = measure(kind, place, place / "drop")
    return (dict(zip(found, values)) for values in zip(*found.values()))


def marked() -> Kinds:
    return [MarkedInlet] if os.geteuid() == 0 else []


# The parts


def storm(results: Results, given: Given, folder: Path, peers: Kinds) -> None:
    def runs(kind: type[Watcher], place: Path, root: Path) -> tuple[int]:
        seen = []
        with kind(place / "watcher", root) as watcher:
            watcher.wait_ready()
            for run in range(RUNS if kind is Inlet else PEERS_RUNS):
                before = watcher.noticed()
                (root / str(run)).mkdir()
                for number in range(1000 * run, 1000 * (run + 1)):
                    os.makedirs(folder := f"{root}/{run}/{number}/DCIM/100CANON")
                    with open(f"{folder}/f{number}.bin", "wb", buffering=0) as file:
                        file.write(b"x")
                seen.append(watcher.wait_noticed(before + 1000, QUIET)[0] - before)
        return (min(seen),)

    least, = each(folder, [Inlet, *marked(), *peers], runs)
    results.add(f"the least of 1,000, {RUNS} runs", least, 1000, is_least=True)


def overflow(results: Results, given: Given, folder: Path, peers: Kinds) -> None:
    def flooded(kind: type[Watcher], place: Path, root: Path) -> tuple[int, float]:
        with kind(place / "watcher", root) as watcher:
            watcher.wait_ready()
            os.kill(watcher.pid, signal.SIGSTOP)
            for number in range(given.flood):
                touch(f"{root}/f{number}.bin")
            os.kill(watcher.pid, signal.SIGCONT)
            return watcher.wait_noticed(given.flood, 2 * QUIET)

    seen, seconds = each(folder, [Inlet, *peers], flooded)
    results.add(f"of {given.flood:,} written while stopped", seen, given.flood, is_least=True)
    results.add("seconds until the last", seconds, digits=1)


def scan(results: Results, given: Given, folder: Path, peers: Kinds) -> None:
    root, count = folder / "tree", given.files
    make_tree(root, count, given.folders)
    listed = time.monotonic()
    # As one reference for a listing; it also has the tree in the cache for all.
    subprocess.run(["find", root, "-type", "f", "-newermt", "2100-01-01"], check=True, stdout=subprocess.DEVNULL)
    print(f"\n{count:,} files in {given.folders:,} folders; 'find -type f -newermt …' (a stat for each) lists "
          f"{count / (time.monotonic() - listed):,.0f} files/s")
    rates, peaks = {}, {}
    for kind in peers:
        with kind(folder / kind.name, root, is_idle=True) as watcher:
            rates[kind.name] = count / watcher.wait_ready()
            peaks[kind.name] = peak_mib(watcher.pid)
    # The listing without what comes after it: all files are ignored, or too old.
    with Inlet(folder / "listing", root, ignore=["*.bin"]) as inlet:
        inlet.wait_ready()
        seconds = inlet.agent.moment("watch.added") - inlet.agent.moment("agent.started")
        cpu = cpu_seconds(inlet.pid)
    results.add("listed by name, files/s (all ignored)", rates | {"inlet": count / seconds}, 450_000, is_least=True)
    results.add("its CPU with the start, us a file", 1e6 * cpu / count, digits=1)
    with Inlet(folder / "skipping", root, existing="skip") as inlet:
        inlet.wait_ready()
        results.add("looked at, files/s (existing: skip)", count / inlet.wait_settled(600))
    admission(results, count, folder, root, peaks)
    restart(results, count, folder, root)


def admission(results: Results, count: int, folder: Path, root: Path, peaks: dict[str, float]) -> None:
    with Inlet(folder / "admission", root) as inlet, Highest(held, inlet.pid, inlet.folder / "state", every=0.1) as most:
        inlet.agent.wait_count("job.admitted", count, 1800, every=0.1)
        seconds = time.monotonic() - inlet.began
        cpu, peak = cpu_seconds(inlet.pid), peak_mib(inlet.pid)
    results.add("admitted, files/s", count / seconds, 30_000, is_least=True)
    results.add("CPU, us a file", 1e6 * cpu / count)
    results.add("peak RSS, MiB", peaks | {"inlet": peak}, 128, 1)
    results.held(most.most)
    results.add("journal on disk, bytes a file", most.most["journal"] / count)


def restart(results: Results, count: int, folder: Path, root: Path) -> None:
    with Inlet(folder / "admission", root) as inlet, Highest(held, inlet.pid, inlet.folder / "state", every=0.1) as most:
        ready = inlet.wait_ready()
        seconds = inlet.wait_settled(900)
        spent, peak, again = cpu_seconds(inlet.pid), peak_mib(inlet.pid), inlet.agent.count("job.admitted")
        # The end of the start-up: a checkpoint, the first probe of the destination.
        time.sleep(10)
        resting = cpu_seconds(inlet.pid)
        time.sleep(IDLE)
        share = 100 * (cpu_seconds(inlet.pid) - resting) / IDLE
    results.add("restart with all known, s", seconds, 5, 1)
    results.add("admitted once more by it", again, 0)
    results.add("its CPU, us a file", 1e6 * spent / count)
    results.add("its listing until the last is found, s", ready, digits=1)
    results.add("its peak RSS, MiB", peak, 128, 1)
    results.held(most.most)
    results.add(f"CPU % in {IDLE} s after it", share, 0.05, 2)


def directories(results: Results, given: Given, folder: Path, peers: Kinds) -> None:
    full, most = folder / "full", {}
    make_tree(full, 0, given.directories)

    def memory(kind: type[Watcher], place: Path, root: Path) -> tuple[float, float]:
        """Bytes for each folder, at rest and at the peak."""
        resting = []
        for name, watched in (("empty", root), ("full", full)):
            with kind(place / name, watched, is_idle=True) as watcher, \
                    Highest(held, watcher.pid, watcher.folder / "state", every=0.1) as seen:
                watcher.wait_ready()
                time.sleep(3)
                resting.append((field(f"/proc/{watcher.pid}/status", "VmRSS"), peak_mib(watcher.pid) * 1024))
            most[kind.name] = seen.most
        (empty, _), (rss, peak) = resting
        return (rss - empty) * 1024 / given.directories, (peak - empty) * 1024 / given.directories

    rss, peak = each(folder, [Inlet, *marked(), *peers], memory)
    results.add(f"RSS of each of {given.directories:,} folders, bytes", rss, 1024)
    results.add("the same at the peak", peak)
    results.held(most["inlet"])


def latency(results: Results, given: Given, folder: Path, peers: Kinds) -> None:
    count = STREAM * RATE

    def times(kind: type[Watcher], place: Path, root: Path) -> tuple[float, ...]:
        for number in range(STREAM_FOLDERS):
            (root / f"card-{number}").mkdir()
        with concurrent.futures.ProcessPoolExecutor(1) as pool, kind(place / "watcher", root, piped=True) as watcher:
            time.sleep(2)
            writer = pool.submit(pace, root, count, RATE)
            seen, closed = watcher.arrivals(count, STREAM + 20), writer.result()
        waits = [(seen[number] - when) / 1e6 for number, when in enumerate(closed) if number in seen]
        return len(waits), percentile(waits, 0.5), percentile(waits, 0.99), max(waits)

    # lsyncd collects for a second at least, by design.
    seen, middle, late, longest = each(folder, [Inlet, *(kind for kind in peers if kind is not Lsyncd)], times)
    results.add(f"reported of {count:,}, {RATE:,} a second", seen, count, is_least=True)
    results.add("p50, ms", middle, digits=1)
    results.add("p99, ms", late, 10, 1)
    results.add("most, ms", longest, digits=1)


PARTS = {"storm": storm, "overflow": overflow, "scan": scan, "directories": directories, "latency": latency}


OPTIONS = {
    "--only": list(PARTS),
    "--big": (False, "the sizes of the targets; tens of minutes"),
    "--files": (int, "of scan: 100,000; --big: 1,000,000; 100 in a folder"),
    "--folders": (int, "of scan, that the files are in; 1: a single one"),
    "--directories": (int, "of directories: 20,000; --big: 100,000"),
    "--flood": (int, "of overflow: 20,000; --big: 200,000"),
    "--no-peers": False,
}


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    given.files = given.files or (1_000_000 if given.big else 100_000)
    given.folders = given.folders or max(1, given.files // 100)
    given.directories = given.directories or (100_000 if given.big else 20_000)
    given.flood = given.flood or (200_000 if given.big else 20_000)
    peers = [] if given.no_peers else installed()
    results = Results([*marked(), *peers])
    # What else the machine does is in all figures.
    print("load average", *os.getloadavg(), flush=True)
    for results.part in given.only or PARTS:
        PARTS[results.part](results, given, folder / results.part, peers)
        results.show()
    print("\nload average", *os.getloadavg())
    return "targets", results.rows
