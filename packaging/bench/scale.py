"""What grows with the queue, and what may not. Run scale.sh.

* start: process start to agent.ready with an empty journal, and with a million finished and a million queued jobs.
* status: what a running agent with a million queued jobs takes to answer, and `inlet status` as a whole.
* claims: files/s of the first 1,000 deliveries to a discarding sink, by the length of the queue behind them.
* workers, parts: 8 x 128 MiB to the sink with 1 to 64 of them; throughput may not fall as they grow.
* size: the binary, and what is left of it without symbols.

Each journal is a small one that inlet has written, with its rows multiplied by SQL.
"""

import argparse
import http.client
import os
import shutil
import socket
import subprocess
import time

from measure import (GIB, Workspace, binary, cpu_seconds, inlet, instant, median, peak_rss_mib, percentile, table,
                     verdict)
from loads import write_random
from s3_sink import Sink, build
from scale_journal import Journals, Place, pause

FIRST = 1000
STEPS = (1, 2, 4, 8, 16, 32, 64)
SECTIONS = ("start", "status", "claims", "workers", "parts", "size")


# Sections ------------------------------------------------------------------------------------------------------------


def ready_ms(place):
    """From the start of the process to agent.ready, in ms."""
    before = time.time()
    with place.run() as agent:
        agent.wait_ready()
        ready = next(e for e in agent.events() if e.get("event") == "agent.ready")
    return (instant(ready["ts"]) - before) * 1000


def start(journals, given):
    place, rows, targets = journals.place, [], []
    for kind, text, most in (("empty", "an empty journal", 150), ("finished", f"{given.rows:,} finished", 1000),
                             ("queued", f"{given.rows:,} queued", 1000)):
        place.use(journals.get(kind))
        # Queued files stay queued: the model's destination is paused.
        times = [ready_ms(place) for _ in range(10 if kind == "empty" else 5)]
        rows.append([text, f"{median(times):.0f}", f"{min(times):.0f}-{max(times):.0f}"])
        targets.append([f"start to agent.ready, {text}", f"{median(times):.0f} ms", f"<= {most} ms",
                        verdict(median(times) <= most)])
    table("start to agent.ready, ms", ["", "median", "spread"], rows)
    return targets


class ControlSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def status(journals, given):
    place = journals.place
    place.use(journals.get("queued"))
    answers, commands = [], []
    with place.run() as agent:
        agent.wait_ready()
        for _ in range(50):
            before = time.monotonic()
            control = ControlSocket(place.state / "control.sock")
            control.request("GET", "/api/v1/status")
            answer = control.getresponse()
            body = answer.read()
            answers.append((time.monotonic() - before) * 1000)
            control.close()
            if answer.status != 200:
                raise SystemExit(f"status: {answer.status} {body[:200]}")
        for _ in range(10):
            before = time.monotonic()
            inlet("status", config=place.config)
            commands.append((time.monotonic() - before) * 1000)
    rows = [[name, f"{median(times):.1f}", f"{percentile(times, 0.99):.1f}"]
            for name, times in (("the agent's answer", answers), ("inlet status, as a process", commands))]
    table(f"status with {given.rows:,} queued, ms", ["", "p50", "p99"], rows)
    return [["status answers", f"{median(answers):.1f} ms", "<= 50 ms", verdict(median(answers) <= 50)]]


def first_rate(place, sink):
    """Files/s of the first 1,000 deliveries, without the very first ones: until then the destination is looked at."""
    pause(place.journal, "archive")
    with place.run() as agent:
        agent.wait_ready()
        sink.reset()
        inlet("resume", "archive", config=place.config)
        marks, end = [], time.monotonic() + 120
        while len(marks) < 2 and time.monotonic() < end:
            puts = sink.stats()["puts"]
            if puts >= (FIRST if marks else FIRST // 10):
                marks.append((time.monotonic(), puts))
            time.sleep(0.002)
        if len(marks) < 2:
            raise SystemExit(f"fewer than {FIRST} files within 120 s:\n{agent.tail()}")
        inlet("pause", "archive", config=place.config)
    (before, few), (after, many) = marks
    return (many - few) / (after - before) if after > before else 0.0


def claims(journals, given, sink):
    lengths = [length for length in (1000, 100_000, 1_000_000) if length <= given.rows]
    rates = {length: [] for length in lengths}
    for _ in range(given.rounds):
        for length in lengths:
            journals.place.use(journals.get("queued", length))
            rates[length].append(first_rate(journals.place, sink))
    best = median(rates[lengths[0]])
    table(f"the first {FIRST:,} deliveries, median of {given.rounds}", ["queued", "files/s", "spread", "of the first"],
          [[f"{length:,}", f"{median(r):.0f}", f"{min(r):.0f}-{max(r):.0f}", f"{median(r) / best:.2f}"]
           for length, r in rates.items()])
    ratio = median(rates[lengths[-1]]) / best
    return [[f"claims with {lengths[-1]:,} queued, of {lengths[0]:,}", f"{ratio:.2f}", ">= 0.80",
             verdict(ratio >= 0.8)]]


def send_round(folder, source, sink, **numbers):
    """(GiB/s from the first file's start to the last receipt, CPU seconds, peak RSS in MiB)."""
    shutil.rmtree(folder, ignore_errors=True)
    place = Place(folder, sink, **numbers)
    files = sorted(source.iterdir())
    total = sum(file.stat().st_size for file in files)
    sink.reset()
    with place.run() as agent:
        agent.wait_ready()
        spent = cpu_seconds(agent.pid)
        for file in files:
            os.link(file, place.drop / file.name)
        agent.wait_for("all receipts", lambda events: agent.count("job.finished") >= len(files), 600)
        times = {name: [instant(e["ts"]) for e in agent.events() if e.get("event") == name]
                 for name in ("job.started", "job.finished")}
        seconds = max(times["job.finished"]) - min(times["job.started"])
        result = total / GIB / seconds, cpu_seconds(agent.pid) - spent, peak_rss_mib(agent.pid)
    if sink.stats()["bytes"] < total:
        raise SystemExit("the sink got less than was sent")
    return result


def sweep(folder, given, sink, name):
    """More workers, or parts at once: never slower than with fewer."""
    source = folder / "big"
    if not source.exists():
        source.mkdir()
        for number in range(8):
            write_random(source / f"f{number:06d}.bin", 128 << 20, False)
    results = {step: [] for step in STEPS}
    for _ in range(given.rounds):
        for step in STEPS:
            results[step].append(send_round(folder / "sweep", source, sink, **{name: step}))
    rows, worst, best = [], 1.0, 0.0
    for step, found in results.items():
        speed, cpu, rss = (median(column) for column in zip(*found))
        best = max(best, speed)
        worst = min(worst, speed / best)
        rows.append([step, f"{speed:.2f}", f"{min(f[0] for f in found):.2f}-{max(f[0] for f in found):.2f}",
                     f"{speed / best:.2f}", f"{cpu:.2f}", f"{rss:.1f}"])
    key = {"workers": "workers", "parts": "parallel_parts"}[name]
    table(f"8 x 128 MiB by {key}, median of {given.rounds}",
          [key, "GiB/s", "spread", "of the best before", "CPU s", "peak RSS MiB"], rows)
    return [[f"{key} 1 to 64: the worst, of the best of fewer", f"{worst:.2f}", ">= 0.95", verdict(worst >= 0.95)]]


def size(folder):
    stripped = folder / "stripped"
    subprocess.run(["strip", "-o", str(stripped), binary()], check=True)
    sizes = [os.stat(path).st_size / (1 << 20) for path in (binary(), stripped)]
    table("the binary, MiB", ["", "MiB"], [["with symbols", f"{sizes[0]:.1f}"], ["stripped", f"{sizes[1]:.1f}"]])
    sections = subprocess.run(["size", "-A", "-d", str(stripped)], capture_output=True, text=True, check=True).stdout
    parts = [line.split() for line in sections.splitlines() if line.startswith(".")]
    largest = sorted(parts, key=lambda part: -int(part[1]))[:8]
    table("what is in it", ["section", "MiB"], [[part[0], f"{int(part[1]) / (1 << 20):.1f}"] for part in largest])
    return []


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", action="append", choices=SECTIONS)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    wanted = given.only or SECTIONS
    targets = []
    with Workspace() as folder, build(folder) and Sink(folder) as sink:
        journals = Journals(folder, sink, given.rows)
        for section in (s for s in SECTIONS if s in wanted):
            match section:
                case "start": targets += start(journals, given)
                case "status": targets += status(journals, given)
                case "claims": targets += claims(journals, given, sink)
                case "size": targets += size(folder)
                case _: targets += sweep(folder, given, sink, section)
    if targets:
        table("targets", ["", "measured", "target", ""], targets)


if __name__ == "__main__":
    main()
