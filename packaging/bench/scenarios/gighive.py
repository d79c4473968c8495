"""One big file through GigHive's two transports, against `curl -F` to the same sink.

The file is sparse: reading costs as much as from the page cache, and 6 GiB need no disk. Both ends hash with SHA-256, as the
real server and its client do; curl hashes nothing. With --unhashed the sink knows the file's SHA-256 and takes no cores for it:
curl then does nothing but send.
"""

import os
import sys
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from agent import HERE, Agent, configure
from judge import digest_of
from loads import write_sparse
from process import Highest, cpu_seconds, own_memory, run_to_end
from report import GIB, Failed, Given, Row, bounded, figure
from servers import Server

MOST_OWN, LEAST_SPEED = 24, 1.0
WAYS = ("multipart", "tus")


class Round(NamedTuple):
    speed: float
    cpu: float
    own: float


OPTIONS = {"--rounds": 3, "--gib": 6.0, "--unhashed": (False, "the sink does not hash what comes")}


def curl_round(sink: Server, source: Path) -> Round:
    sink.reset()
    _, cpu, own, said = run_to_end(["curl", "-sS", "--fail", "-F", "label=bench", "-F", f"file=@{source};type=video/mp4",
                                    "-o", "/dev/null", "-w", "%{speed_upload}", f"{sink.url}/api/uploads"])
    return Round(float(said), cpu, own)


def inlet_round(sink: Server, agent: Agent, source: Path, number: int) -> Round:
    sink.reset()
    name = f"round-{number}.mp4"
    os.link(source, staged := source.with_name(name))
    before = cpu_seconds(agent.pid)
    with Highest(own_memory, agent.pid) as peak:
        os.rename(staged, agent.config.parent / "drop" / name)
        seconds = agent.wait_count("job.delivered", number + 1) - agent.moment("job.started")
    got = sink.stats()["bytes"]
    if got != source.stat().st_size:
        raise Failed(f"the sink got {got:,} bytes of {source.stat().st_size:,}")
    return Round(got / seconds, cpu_seconds(agent.pid) - before, peak.most["own"])


def measure(folder: Path, sink: Server, source: Path, rounds: int) -> dict[str, list[Round]]:
    """{way: rounds}, interleaved, forwards and backwards in turn."""
    found: dict[str, list[Round]] = {"curl -F": [], **{way: [] for way in WAYS}}

    def start(way: str) -> Agent:
        stage: dict[str, Any] = {"type": "gighive", "url": sink.url, "user": "uploader", "password": "bench", "transport": way,
                                 "max_upload_bytes": "64GiB"}
        (folder / way).mkdir()
        return Agent(configure(folder / way, {"stage": stage}))

    with start("multipart") as multipart, start("tus") as tus:
        agents = {"multipart": multipart, "tus": tus}
        for number in range(rounds):
            for way in found if number % 2 == 0 else reversed(found):
                found[way].append(inlet_round(sink, agents[way], source, number) if way in agents
                                  else curl_round(sink, source))
    return found


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    source = write_sparse(folder / "source.mp4", int(given.gib * GIB))
    known = ["--sha256", digest_of(source)] if given.unhashed else []
    with Server(sys.executable, "-B", HERE / "gighive_sink.py", *known) as sink:
        found = measure(folder, sink, source, given.rounds)
    rows = []
    for way, rounds in found.items():
        rows += [figure(f"{way}, {given.gib:g} GiB", [one.speed / GIB for one in rounds], " GiB/s", 2),
                 figure(f"{way}, CPU", [one.cpu / given.gib for one in rounds], " s/GiB", 2)]
    base = median(one.speed for one in found["curl -F"])
    for way in WAYS:
        rows += [bounded(f"{way}, of curl -F's bytes/s", median(one.speed for one in found[way]) / base, LEAST_SPEED, "", 2,
                         is_least=True),
                 bounded(f"{way}, own memory", max(one.own for one in found[way]), MOST_OWN, " MiB")]
    return "targets", rows
