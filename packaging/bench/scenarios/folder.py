"""One big file into another folder, against `cp --reflink=never` and `sha256sum` of the copy.

Both read the file from the page cache. Inlet proves its copy as it does by default (`verify: read-back`): it hashes the source,
writes the copy through to the disk, and hashes what is there. cp writes through to no disk: a second row says what it takes
with `sync`.
"""

import os
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from agent import Agent, configure
from loads import write_random
from process import Highest, cpu_seconds, own_memory, run_to_end
from report import GIB, Failed, Given, Row, bounded, figure

LEAST_SPEED, MOST_OWN = 1.0, 24
COPY = 'cp --reflink=never "$1" "$2" && sha256sum "$2"'
PEERS = {"cp + sha256sum": COPY, "cp + sync + sha256sum": COPY.replace("&&", '&& sync "$2" &&')}

OPTIONS = {"--rounds": 3, "--gib": 2.0}


class Round(NamedTuple):
    speed: float
    cpu: float
    own: float


def peer_round(script: str, source: Path, copy: Path) -> Round:
    seconds, cpu, own, _ = run_to_end(["sh", "-c", script, "sh", source, copy])
    copy.unlink()
    return Round(source.stat().st_size / seconds, cpu, own)


def inlet_round(folder: Path, source: Path) -> Round:
    """A new agent, with a journal that begins empty: it knows no such content."""
    place = folder / "inlet"
    (place / "copies").mkdir(parents=True)
    os.link(source, place / source.name)
    with Agent(configure(place, {"copies": {"type": "folder", "path": f"{place}/copies"}})) as agent, \
            Highest(own_memory, agent.pid, every=0.05) as peak:
        spent, began = cpu_seconds(agent.pid), time.time()
        os.rename(place / source.name, place / "drop" / source.name)
        seconds = agent.wait_count("job.delivered", 1) - began
        cpu = cpu_seconds(agent.pid) - spent
    copy = place / "copies" / source.name
    if copy.stat().st_size != source.stat().st_size:
        raise Failed(f"{copy.stat().st_size:,} bytes arrived of {source.stat().st_size:,}")
    subprocess.run(["rm", "-r", place], check=True)
    return Round(source.stat().st_size / seconds, cpu, peak.most["own"])


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    source = folder / "source.bin"
    write_random(source, int(given.gib * GIB))
    found: dict[str, list[Round]] = {"inlet": [], **{name: [] for name in PEERS}}
    for number in range(given.rounds):
        for name in found if number % 2 == 0 else reversed(found):
            # What the round before left to be written is not this one's to wait for.
            os.sync()
            found[name].append(inlet_round(folder, source) if name == "inlet"
                               else peer_round(PEERS[name], source, folder / "copy.bin"))
    rows = []
    for name, rounds in found.items():
        rows += [figure(f"{name}, {given.gib:g} GiB", [one.speed / GIB for one in rounds], " GiB/s", 2),
                 figure(f"{name}, CPU", [one.cpu / given.gib for one in rounds], " s/GiB", 2)]
    ours, (bare, safe) = found["inlet"], (found[name] for name in PEERS)
    share = [median(one.speed for one in ours) / median(one.speed for one in theirs) for theirs in (bare, safe)]
    return "targets", [*rows, bounded("inlet, of cp + sha256sum's bytes/s", share[0], LEAST_SPEED, "", 2, is_least=True),
                       figure("inlet, of cp + sync + sha256sum's bytes/s", share[1], "", 2),
                       bounded("inlet, own memory", max(one.own for one in ours), MOST_OWN, " MiB")]
