"""What watching finds, how fast, and what it costs, beside inotifywait, watchman and lsyncd. Run watch.sh.

The parts (--only takes some of them, with commas between):
    storm        mkdir -p N/DCIM/100CANON and a file in it, as fast as it goes, in a watched folder
    overflow     a flood of files while the watcher is stopped (SIGSTOP): more than the kernel keeps events for
    scan         the first listing of a tree that is in the cache, the admission of all of it, a restart that knows
                 all of it, and the CPU that the agent takes after that
    directories  memory for each watched folder, and what else it holds for all of them
    latency      close of a file to the line that says so, in a steady stream of files

inlet's files count when they are in its journal, complete and durable; the peers' when a line names them (lsyncd: when
rsync has copied them). The peers neither admit nor remember. Files are empty or of one byte.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

import watch_load
from holdings import HoldingsPeak
from measure import HERE, Workspace, cpu_seconds, peak_rss_mib, percentile, status_field
from watch_peers import Lsyncd, installed
from watch_results import Results
from watchers import Inlet, MarkedInlet


def rss_kib(pid):
    return status_field(f"/proc/{pid}/status", "VmRSS")


def each(folder, kinds, measure):
    """{name: measure(kind, an empty place, an empty root)}."""
    values = {}
    for kind in kinds:
        place = folder / kind.name
        (place / "drop").mkdir(parents=True)
        values[kind.name] = measure(kind, place, place / "drop")
    return values


def marked():
    return [MarkedInlet] if os.geteuid() == 0 else []


# The parts ------------------------------------------------------------------------------------------------------------


def storm(results, given, folder, peers):
    def runs(kind, place, root):
        seen, count = [], given.runs if kind is Inlet else min(given.runs, 3)
        with kind(place / "watcher", root) as watcher:
            watcher.wait_ready()
            for run in range(count):
                before = watcher.noticed()
                (root / str(run)).mkdir()
                watch_load.storm(root / str(run), 1000, 1000 * run)
                seen.append(watcher.wait_noticed(before + 1000, given.quiet)[0] - before)
        return seen

    values = each(folder, [Inlet, *marked(), *peers], runs)
    ours = values.pop("inlet")
    results.add("storm", f"of 1,000, {len(ours)} runs", sorted(ours)[0] if len(set(ours)) == 1 else ours,
                "1,000 each", all(seen == 1000 for seen in ours), values)


def overflow(results, given, folder, peers):
    def flooded(kind, place, root):
        with kind(place / "watcher", root) as watcher:
            watcher.wait_ready()
            os.kill(watcher.pid, signal.SIGSTOP)
            watch_load.flood(root, given.flood)
            os.kill(watcher.pid, signal.SIGCONT)
            return watcher.wait_noticed(given.flood, 2 * given.quiet)

    values = each(folder, [Inlet, *peers], flooded)
    seen, seconds = values.pop("inlet")
    title = f"of {given.flood:,} written while stopped"
    results.add("overflow", title, seen, "all", seen == given.flood, {name: value[0] for name, value in values.items()})
    results.add("overflow", "seconds until the last", seconds, peers={name: value[1] for name, value in values.items()},
                form="{:.1f}")


def scan(results, given, folder, peers):
    root = folder / "tree"
    watch_load.tree(root, given.files, given.folders)
    listed = time.monotonic()
    # As one reference for a listing; it also has the tree in the cache for all.
    subprocess.run(["find", str(root), "-type", "f", "-newermt", "2100-01-01"], check=True, stdout=subprocess.DEVNULL)
    find = given.files / (time.monotonic() - listed)
    title = f"{given.files:,} files in {given.folders:,} folders"
    print(f"\n{title}; 'find -type f -newermt …' (a stat for each) lists {find:,.0f} files/s")

    rates, peaks = {}, {}
    for kind in peers:
        more = {"is_idle": True} if kind is Lsyncd else {}
        with kind(folder / kind.name, root, **more) as watcher:
            rates[kind.name] = given.files / watcher.wait_ready()
            peaks[kind.name] = peak_rss_mib(watcher.pid)
    listing(results, given, folder, root, rates)
    admission(results, given, folder, root, peaks)
    restart(results, given, folder, root)


def listing(results, given, folder, root, rates):
    """The listing without what comes after it: all files are ignored, or too old."""
    with Inlet(folder / "listing", root, more=', ignore: ["*.bin"]') as inlet:
        inlet.wait_ready()
        rate, cpu = given.files / inlet.scan_seconds(), cpu_seconds(inlet.pid)
    results.add("scan", "listed by name, files/s (all ignored)", rate, ">= 250,000", rate >= 250_000, rates)
    results.add("scan", "its CPU with the start, us a file", 1e6 * cpu / given.files, form="{:.1f}")
    with Inlet(folder / "skipping", root, more=", existing: skip") as inlet:
        rate = given.files / inlet.wait_settled(600)
    results.add("scan", "looked at, files/s (existing: skip)", rate)


def admission(results, given, folder, root, peaks):
    with Inlet(folder / "admission", root) as inlet, HoldingsPeak(inlet.pid, inlet.folder / "state") as held:
        inlet.wait(1800, lambda: inlet.admitted() >= given.files, every=0.1)
        seconds = time.monotonic() - inlet.began
        cpu, peak = cpu_seconds(inlet.pid), peak_rss_mib(inlet.pid)
    rate = given.files / seconds
    results.add("scan", "admitted, files/s", rate, ">= 20,000", rate >= 20_000)
    results.add("scan", "CPU, us a file", 1e6 * cpu / given.files, form="{:.0f}")
    results.add("scan", "peak RSS, MiB", peak, "<= 128", peak <= 128, peaks, form="{:.1f}")
    results.bounded("scan", held.most)
    results.add("scan", "journal on disk, bytes a file", held.most.journal / given.files)


def restart(results, given, folder, root):
    with Inlet(folder / "admission", root) as inlet, HoldingsPeak(inlet.pid, inlet.folder / "state") as held:
        ready = inlet.wait_ready()
        seconds = inlet.wait_settled(900)
        spent = cpu_seconds(inlet.pid)
        peak = peak_rss_mib(inlet.pid)
        again = inlet.admitted()
        # The end of the start-up: a checkpoint, the first probe of the destination.
        time.sleep(10)
        resting = cpu_seconds(inlet.pid)
        time.sleep(given.idle)
        share = 100 * (cpu_seconds(inlet.pid) - resting) / given.idle
    results.add("scan", "restart with all known, s", seconds, "<= 10", seconds <= 10 and again == 0, form="{:.1f}")
    results.add("scan", "its CPU, us a file", 1e6 * spent / given.files)
    results.add("scan", "its listing until the last is found, s", ready, form="{:.1f}")
    results.add("scan", "its peak RSS, MiB", peak, "<= 128", peak <= 128, form="{:.1f}")
    results.bounded("scan", held.most)
    results.add("scan", f"CPU % in {given.idle} s after it", share, "0.0", share < 0.05, form="{:.2f}")


def directories(results, given, folder, peers):
    full = folder / "full"
    watch_load.tree(full, 0, given.directories)
    held = {}

    def memory(kind, place, root):
        more = {"is_idle": True} if kind is Lsyncd else {}
        resting = []
        for name, watched in (("empty", root), ("full", full)):
            with kind(place / name, watched, **more) as watcher, HoldingsPeak(watcher.pid, watcher.folder / "state") as peak:
                watcher.wait_ready()
                time.sleep(3)
                resting.append((rss_kib(watcher.pid), peak_rss_mib(watcher.pid) * 1024))
            held[kind.name] = peak.most
        (empty, _), (rss, most) = resting
        return (rss - empty) * 1024 / given.directories, (most - empty) * 1024 / given.directories

    values = each(folder, [Inlet, *marked(), *peers], memory)
    rss, peak = values.pop("inlet")
    results.add("directories", f"RSS of each of {given.directories:,} folders, bytes", rss, "<= 1,024", rss <= 1024,
                {name: value[0] for name, value in values.items()})
    results.add("directories", "the same at the peak", peak, peers={name: value[1] for name, value in values.items()})
    results.bounded("directories", held["inlet"])


def latency(results, given, folder, peers):
    count = given.stream * given.rate

    def times(kind, place, root):
        watch_load.stream_folders(root)
        with kind(place / "watcher", root, piped=True) as watcher:
            time.sleep(2)
            writer = subprocess.Popen(
                [sys.executable, "-B", str(HERE / "watch_load.py"), "pace", str(root), str(count), str(given.rate)],
                stdout=subprocess.PIPE)
            seen = watcher.arrivals(count, given.stream + 20)
            closed = json.loads(writer.communicate()[0])
        waits = [(seen[number] - when) / 1e6 for number, when in enumerate(closed) if number in seen]
        return len(waits), percentile(waits, 0.5), percentile(waits, 0.99), max(waits)

    # lsyncd collects for a second at least, by design.
    values = each(folder, [Inlet, *(kind for kind in peers if kind is not Lsyncd)], times)
    ours = values.pop("inlet")
    for index, (what, target, limit) in enumerate((
            (f"reported of {count:,}, {given.rate:,} a second", "all", None), ("p50, ms", "", None),
            ("p99, ms", "<= 10", 10), ("most, ms", "", None))):
        reached = ours[0] == count if index == 0 else None if limit is None else ours[index] <= limit
        results.add("latency", what, ours[index], target, reached,
                    {name: value[index] for name, value in values.items()}, "{:.1f}" if index else "{:,.0f}")


PARTS = {"storm": storm, "overflow": overflow, "scan": scan, "directories": directories, "latency": latency}


def arguments():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    options.add_argument("--big", action="store_true", help="the sizes of the targets; tens of minutes")
    options.add_argument("--files", type=int, help="of scan: 100,000; --big: 1,000,000; 100 in a folder")
    options.add_argument("--folders", type=int, help="of scan, that the files are in; 1: a single one")
    options.add_argument("--directories", type=int, help="of directories: 20,000; --big: 100,000")
    options.add_argument("--flood", type=int, help="of overflow: 20,000; --big: 200,000")
    options.add_argument("--runs", type=int, default=10, help="of storm; peers: 3 at most")
    options.add_argument("--rate", type=int, default=1000, help="of latency, files a second")
    options.add_argument("--stream", type=int, default=10, help="of latency, seconds")
    options.add_argument("--idle", type=int, default=20, help="of scan, seconds")
    options.add_argument("--quiet", type=int, default=4, help="seconds without a report after which none is awaited")
    options.add_argument("--no-peers", action="store_true")
    options.add_argument("--json", help="a file for the results, or - for standard output")
    given = options.parse_args()
    given.files = given.files or (1_000_000 if given.big else 100_000)
    given.folders = given.folders or max(1, given.files // 100)
    given.directories = given.directories or (100_000 if given.big else 20_000)
    given.flood = given.flood or (200_000 if given.big else 20_000)
    given.only = given.only.split(",")
    if unknown := set(given.only) - set(PARTS):
        options.error(f"no such part: {', '.join(sorted(unknown))}")
    return given


def main():
    given = arguments()
    peers = [] if given.no_peers else installed()
    results = Results([*marked(), *peers])
    # What else the machine does is in all figures.
    print("load average", *os.getloadavg())
    for part in given.only:
        with Workspace() as folder:
            PARTS[part](results, given, folder, peers)
            # Before the folder goes, which takes its time.
            results.show(part)
    print("\nload average", *os.getloadavg())
    if given.json:
        results.write(given.json, given)


if __name__ == "__main__":
    main()
