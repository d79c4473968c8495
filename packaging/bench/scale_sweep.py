"""Throughput with 1 to 64 workers, or parts at once: never slower than with fewer. Used by scale.py."""

import os
import shutil

from loads import write_random
from measure import GIB, cpu_seconds, instant, median, peak_rss_mib, table
from outcome import target
from scale_journal import Place

FILES = 8
STEPS = (1, 2, 4, 8, 16, 32, 64)
# A step may be so much slower than the best with fewer: what a round is off by chance.
LEAST_OF_BEST = 0.95


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


def of_best(speeds):
    """Each step's speed, of the best of those with fewer and its own."""
    best, found = 0.0, {}
    for step, speed in speeds.items():
        best = max(best, speed)
        found[step] = speed / best
    return found


def sweep(folder, given, sink, name):
    """More workers, or parts at once: never slower than with fewer."""
    source = folder / "big"
    if not source.exists():
        source.mkdir()
        for number in range(FILES):
            write_random(source / f"f{number:06d}.bin", given.mib << 20, False)
    results = {step: [] for step in STEPS}
    for number in range(given.rounds):
        # Back and forth: what drifts with time must not look like what grows with the steps.
        for step in STEPS if number % 2 == 0 else STEPS[::-1]:
            results[step].append(send_round(folder / "sweep", source, sink, **{name: step}))
    ratios = of_best({step: median(one[0] for one in found) for step, found in results.items()})
    rows = []
    for step, found in results.items():
        speed, cpu, rss = (median(column) for column in zip(*found))
        rows.append([step, f"{speed:.2f}", f"{min(f[0] for f in found):.2f}-{max(f[0] for f in found):.2f}",
                     f"{ratios[step]:.2f}", f"{cpu:.2f}", f"{rss:.1f}"])
    key = {"workers": "workers", "parts": "parallel_parts"}[name]
    table(f"{FILES} x {given.mib} MiB by {key}, median of {given.rounds}",
          [key, "GiB/s", "spread", "of the best before", "CPU s", "peak RSS MiB"], rows)
    step, worst = min(ratios.items(), key=lambda one: one[1])
    return [target(f"{key} 1 to 64: the worst ({step}), of the best of fewer", f"{worst:.2f}", f">= {LEAST_OF_BEST:.2f}",
                   worst >= LEAST_OF_BEST)]


def self_test():
    if of_best({1: 1.0, 2: 2.0, 4: 1.5}) != {1: 1.0, 2: 1.0, 4: 0.75}:
        raise SystemExit("scale_sweep: of_best is wrong")
    print("ok    scale_sweep")
