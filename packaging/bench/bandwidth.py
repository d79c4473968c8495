"""How well bandwidth limits hold, and what they do to small files. Run bandwidth.sh.

One agent sends big files to a discarding sink over 64 connections all the while; `inlet limit` changes its rate. What is
measured is what the sink has taken, from one second after each change on.
"""

import argparse
import os
import subprocess
import time

from measure import GIB, Inlet, Workspace, cpu_seconds, inlet, instant, percentile, table, verdict
from s3_sink import Sink, build

WINDOW = 10
UNITS = {"KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30}
WORKERS, PARTS = 8, 8
SMALL_RATE = "5MiB/s"
SMALL = 256 << 10
DEVIATION, LIMIT_MS = 5.0, 300


def bytes_a_second(rate):
    unit = next(unit for unit in UNITS if rate.endswith(unit))
    return float(rate.removesuffix(unit)) * UNITS[unit]


def configure(folder, sink):
    (folder / "drop").mkdir()
    path = folder / "inlet.yaml"
    path.write_text(f"""\
state_dir: {folder}/state
workers: {WORKERS}
destinations:
  archive: {{ type: s3, endpoint: "{sink.url}", bucket: bench, access_key: bench, secret_key: bench, verify: size, part_size: 8MiB, parallel_parts: {PARTS}, connections: {WORKERS * PARTS} }}
watch:
  - {{ path: {folder}/drop, settle: 0s }}
routes:
  - {{ name: everything, to: [archive], key: "{{name}}" }}
""")
    return path


def drop(folder, name, size):
    """A file that is whole when it appears; sparse, so that no disk is measured."""
    staged = folder / name
    with open(staged, "wb") as file:
        file.truncate(size)
    os.rename(staged, folder / "drop" / name)
    return time.time()


def rate_row(agent, sink, rate, to):
    """The row of one rate, and its deviation in percent."""
    inlet("limit", rate, *to, config=agent.config)
    time.sleep(1)
    before, spent, start = sink.stats(), cpu_seconds(agent.pid), time.monotonic()
    time.sleep(WINDOW)
    after, seconds = sink.stats(), time.monotonic() - start
    spent = cpu_seconds(agent.pid) - spent
    held = (after["bytes"] - before["bytes"]) / seconds
    deviation = (held / bytes_a_second(rate) - 1) * 100
    opened = after["connections"] - before["connections"]
    name = rate + (" for the destination" if to else " for all")
    # Two of the connections that the sink counts are the two questions.
    return [name, f"{held / (1 << 20):.2f}", f"{deviation:+.1f} %", f"{spent:.2f}", max(0, opened - 1),
            verdict(abs(deviation) <= DEVIATION)], abs(deviation)


def stopped_row(agent, sink):
    """What is sent at a rate of 0, after what the kernel had taken is through."""
    inlet("limit", "0", config=agent.config)
    time.sleep(1)
    before = sink.stats()["bytes"]
    time.sleep(WINDOW)
    sent = sink.stats()["bytes"] - before
    return ["0 for all", f"{sent / (1 << 20):.2f}", "", "", "", verdict(sent == 0)]


def small_files(agent, folder, count):
    """Milliseconds from each small file's appearing to its delivery, one after the other beside the big ones."""
    inlet("limit", SMALL_RATE, config=agent.config)
    times = []
    for number in range(count):
        name = f"small-{number:03}.bin"
        appeared = drop(folder, name, SMALL)

        def delivered(events, name=name):
            jobs = {e.get("job") for e in events if str(e.get("path", "")).endswith(name)} - {None}
            ends = [e for e in events if e.get("event") == "job.delivered" and e.get("job") in jobs]
            return ends and instant(ends[0]["ts"])

        times.append((agent.wait_for(f"job.delivered of {name}", delivered, 120) - appeared) * 1000)
    return times


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rates", default="100KiB/s,1MiB/s,20MiB/s,100MiB/s")
    options.add_argument("--files", type=int, default=30)
    given = options.parse_args()
    with Workspace() as folder, build(folder) and Sink(folder) as sink:
        config = configure(folder, sink)
        with Inlet(config, folder / "inlet.log") as agent:
            agent.wait_ready()
            inlet("limit", "1MiB/s", config=config)
            for number in range(WORKERS):
                drop(folder, f"big-{number}.bin", 4 * GIB)
            agent.wait_for("job.started", lambda events: agent.count("job.started") >= WORKERS, 60)
            rows, worst = [], 0.0
            for rate in given.rates.split(","):
                row, deviation = rate_row(agent, sink, rate, [])
                rows, worst = [*rows, row], max(worst, deviation)
            stopped = stopped_row(agent, sink)
            inlet("limit", "off", config=config)
            inlet("limit", "off", "--to", "archive", config=config)
            row, deviation = rate_row(agent, sink, "10MiB/s", ["--to", "archive"])
            rows, worst = [*rows, row, stopped], max(worst, deviation)
            inlet("limit", "auto", "--to", "archive", config=config)
            times = small_files(agent, folder, given.files)
            again = agent.count("job.retry")
    table(f"{WORKERS * PARTS} connections, each rate for {WINDOW} s from its second second on",
          ["limit", "MiB/s held", "off by", "CPU s", "new connections", ""], rows)
    middle = percentile(times, 0.5)
    table("targets", ["", "measured", "target", ""], [
        ["furthest from its rate", f"{worst:.1f} %", f"<= {DEVIATION:.0f} %", verdict(worst <= DEVIATION)],
        ["transfers that a change of rate ended", again, "0", verdict(again == 0)],
        [f"{len(times)} files of {SMALL >> 10} KiB beside them at {SMALL_RATE}: p50", f"{middle:.0f} ms",
         f"<= {LIMIT_MS} ms", verdict(middle <= LIMIT_MS)],
        ["the same: longest", f"{max(times):.0f} ms", "", ""],
    ])


if __name__ == "__main__":
    main()
