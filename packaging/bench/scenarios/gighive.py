"""One big file through GigHive's two transports, against `curl -F` to the same sink.

The file is sparse: reading costs as much as from the page cache, and 6 GiB need no disk. Both ends hash with SHA-256, as the
real server and its client do; curl hashes nothing.
"""

import os
import sys
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from agent import HERE, Agent, configure
from loads import write_sparse
from process import Highest, cpu_seconds, memory, peak_mib, reset_peak, run_to_end, show_peaks
from report import GIB, Failed, Given, Row, bounded, figure
from servers import Server, keeping_code

MOST_RSS, MOST_GROWTH, LEAST_SPEED = 40, 20, 0.8
WAYS = ("multipart", "tus")


class Round(NamedTuple):
    speed: float
    cpu: float
    growth: float = 0
    peak: Highest | None = None


OPTIONS = {"--rounds": 3, "--gib": 6.0}


def curl_round(sink: Server, source: Path) -> Round:
    sink.reset()
    _, cpu, _, said = run_to_end(["curl", "-sS", "--fail", "-F", "label=bench", "-F", f"file=@{source};type=video/mp4",
                                  "-o", "/dev/null", "-w", "%{speed_upload}", f"{sink.url}/api/uploads"])
    return Round(float(said), cpu)


def inlet_round(sink: Server, agent: Agent, source: Path, number: int) -> Round:
    sink.reset()
    name = f"round-{number}.mp4"
    os.link(source, staged := source.with_name(name))
    reset_peak(agent.pid)
    idle, before = peak_mib(agent.pid), cpu_seconds(agent.pid)
    with Highest(memory, agent.pid) as peak:
        os.rename(staged, agent.config.parent / "drop" / name)
        seconds = agent.wait_count("job.delivered", number + 1) - agent.moment("job.started")
    got = sink.stats()["bytes"]
    if got != source.stat().st_size:
        raise Failed(f"the sink got {got:,} bytes of {source.stat().st_size:,}")
    return Round(got / seconds, cpu_seconds(agent.pid) - before, peak.most["VmHWM"] - idle, peak)


def measure(folder: Path, sink: Server, gib: float, rounds: int,
            environment: dict[str, str] | None = None) -> dict[str, list[Round]]:
    """{way: rounds}, interleaved."""
    folder.mkdir()
    found: dict[str, list[Round]] = {"curl -F": [], **{way: [] for way in WAYS}}
    source = write_sparse(folder / "source.mp4", int(gib * GIB))

    def start(way: str) -> Agent:
        stage: dict[str, Any] = {"type": "gighive", "url": sink.url, "user": "uploader", "password": "bench", "transport": way,
                                 "max_upload_bytes": "64GiB"}
        return Agent(configure(folder / way, {"stage": stage}), environment)

    with start("multipart") as multipart, start("tus") as tus:
        for number in range(rounds):
            if not environment:
                found["curl -F"].append(curl_round(sink, source))
            for way, agent in zip(WAYS, (multipart, tus)):
                found[way].append(inlet_round(sink, agent, source, number))
    return found


def highest(rounds: list[Round]) -> Highest:
    return max((one.peak for one in rounds), key=lambda peak: peak.most["VmHWM"])


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    with Server(sys.executable, "-B", HERE / "gighive_sink.py") as sink:
        found = measure(folder / "usual", sink, given.gib, given.rounds)
        kept = measure(folder / "kept", sink, given.gib, 1, keeping_code()) if keeping_code() else {}
    peaks = {way: highest(found[way]) for way in WAYS}
    show_peaks("peak memory, MiB", peaks | {f"{way}, if inlet gave back no code": highest(kept[way]) for way in WAYS if kept})
    rows = []
    for way, rounds in found.items():
        rows += [figure(f"{way}, {given.gib:g} GiB", [one.speed / GIB for one in rounds], " GiB/s", 2),
                 figure(f"{way}, CPU", [one.cpu / given.gib for one in rounds], " s/GiB", 2)]
    base = median(one.speed for one in found["curl -F"])
    for way in WAYS:
        rows += [bounded(f"{way}, of curl -F's bytes/s", median(one.speed for one in found[way]) / base, LEAST_SPEED, "", 2,
                         is_least=True),
                 bounded(f"{way}, peak RSS", peaks[way].most["VmHWM"], MOST_RSS, " MiB"),
                 bounded(f"{way}, RSS over idle", max(one.growth for one in found[way]), MOST_GROWTH, " MiB")]
    return "targets", rows
