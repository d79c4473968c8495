"""Memory of all processes of an agent together: at rest, while one huge file is sent, while many small files are sent, while files
are written live, and while very many wait.

RssAnon is what the processes have of their own: no other program can use it, and no cache can drop it. PSS is that and their share
of the mapped files, which the kernel counts slowly: it is read a few times a second. Both are the highest values seen.
"""

import os
import threading
import time
from pathlib import Path

from agent import Agent, configure, s3, spiral
from loads import write_sparse
from process import Highest, own_memory, show_peaks, together
from report import GIB, Given, Row, bounded
from servers import Sink, closed_port

MOST_OWN_AT_REST, MOST_OWN, MOST_PSS = 12, 24, 36
SMALL = 4096

OPTIONS = {
    "--only": ["rest", "huge", "small", "live", "queued"],
    "--gib": 6.0,
    "--files": (50_000, "small files that are sent"),
    "--live": (100_000, "files that are written live"),
    "--queued": (1_000_000, "files that wait, 100 a folder"),
    "--rest": (60, "seconds at rest"),
}


def shared_memory(pid: int) -> dict[str, float]:
    """MiB of a family's PSS."""
    return {"PSS": together(pid, "smaps_rollup", "Pss")}


class Both:
    """The highest RssAnon and PSS of an agent while this is a context."""

    def __init__(self, agent: Agent) -> None:
        self._own = Highest(own_memory, agent.pid)
        # The kernel walks all pages for it, with the process's lock.
        self._shared = Highest(shared_memory, agent.pid, every=0.25)

    def __enter__(self) -> "Both":
        self._own.__enter__()
        self._shared.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._own.__exit__(*failure)
        self._shared.__exit__(*failure)

    @property
    def most(self) -> dict[str, float]:
        return {"own (RssAnon)": self._own.most["own"], "PSS": self._shared.most["PSS"]}


def closed_store() -> dict[str, object]:
    """Nothing is sent: nobody listens there."""
    return s3(f"http://127.0.0.1:{closed_port()}")


def started(folder: Path, store: dict[str, object], **watch: object) -> Agent:
    folder.mkdir(parents=True)
    page = {"listen": f"127.0.0.1:{closed_port()}"}
    return Agent(configure(folder, {"store": store}, watch=watch, dashboard=page))


def write_small(folder: Path, count: int, each: int) -> None:
    """`count` files, `each` in a folder."""
    for number in range(count):
        place = folder / f"f{number // each:05}"
        if number % each == 0:
            place.mkdir()
        (place / f"IMG_{number:07}.bin").write_bytes(number.to_bytes(8, "big") * (SMALL // 8))


def rest(folder: Path, given: Given) -> Both:
    """Once it is ready: what starting took and did not return counts."""
    with started(folder, closed_store()) as agent, Both(agent) as peak:
        time.sleep(given.rest)
    return peak


def huge(folder: Path, given: Given) -> Both:
    """A sparse file, all MD5s checked."""
    with Sink(etag="md5") as sink, started(folder, spiral(sink.url, verify="md5")) as agent, Both(agent) as peak:
        os.rename(write_sparse(folder / "huge.bin", int(given.gib * GIB)), folder / "drop" / "huge.bin")
        agent.wait_count("job.finished", 1, 1800)
    return peak


def small(folder: Path, given: Given) -> Both:
    with Sink() as sink, started(folder, s3(sink.url, verify="size")) as agent:
        (staged := folder / "staged").mkdir()
        write_small(staged, given.files, given.files)
        with Both(agent) as peak:
            os.rename(staged, folder / "drop" / "small")
            agent.wait_count("job.finished", given.files, 900, every=0.5)
    return peak


def live(folder: Path, given: Given) -> Both:
    """Written at full speed into the watched folder, while nothing can be sent. The usual settle time holds."""
    with started(folder, closed_store(), settle="5s") as agent, Both(agent) as peak:
        writer = threading.Thread(target=write_small, args=(folder / "drop", given.live, given.live))
        writer.start()
        agent.wait_count("job.admitted", given.live, 1800, every=0.5)
        writer.join()
    return peak


def queued(folder: Path, given: Given) -> Both:
    """They are there before the agent starts. Waiting is a state of its own, not only the moment of admission."""
    (folder / "drop").mkdir(parents=True)
    write_small(folder / "drop", given.queued, 100)
    page = {"listen": f"127.0.0.1:{closed_port()}"}
    config = configure(folder, {"store": closed_store()}, dashboard=page)
    with Agent(config) as agent, Both(agent) as peak:
        agent.wait_count("job.admitted", given.queued, 1800, every=0.5)
        time.sleep(5)
    return peak


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    loads = {
        "rest": (rest, f"{given.rest} s at rest"),
        "huge": (huge, f"sending {given.gib:g} GiB (sparse, verify: md5)"),
        "small": (small, f"sending {given.files:,} x 4 KiB"),
        "live": (live, f"{given.live:,} files written live"),
        "queued": (queued, f"{given.queued:,} files wait"),
    }
    found = {loads[name][1]: loads[name][0](folder / name, given) for name in given.only or OPTIONS["--only"]}
    show_peaks("memory of all processes of the agent at most, MiB", found)
    rows = []
    for what, peak in found.items():
        most = MOST_OWN_AT_REST if what.endswith("at rest") else MOST_OWN
        rows += [bounded(f"{what}: own", peak.most["own (RssAnon)"], most, " MiB"),
                 bounded(f"{what}: PSS", peak.most["PSS"], MOST_PSS, " MiB")]
    return "targets", rows
