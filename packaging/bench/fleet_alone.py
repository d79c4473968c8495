"""An agent without `fleet:`: what it has of fleets, and its figures."""

import os
import random
import shutil
import time
from pathlib import Path

from agent import Agent, configure, opened, route, s3
from process import memory
from report import Given, Row, bounded, figure, none
from servers import Sink

# Of the journal, for agents of a fleet.
TABLES = ("fleet", "fleet_command", "fleet_key", "fleet_receipt", "key_request", "own_prefix", "place", "place_file", "place_row",
          "place_work")


def written(journal: Path) -> list[str]:
    """Tables and indexes of fleets that an agent has written to: their first pages have more than the migration's header."""
    with opened(journal) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
        pages = database.execute(f"SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0 AND tbl_name IN {TABLES}").fetchall()
    content = journal.read_bytes()
    return [name for name, page in pages if any(content[(page - 1) * size + 8:page * size])]


def traced(folder: Path) -> list[Row]:
    """The files that an agent without `fleet:` opens, and its calls to a network, while it delivers to a folder."""
    what = ["I: files of libpq opened", "I: calls to a network"]
    if not (strace := shutil.which("strace")):
        return [Row(f"{one}: strace is not there", "-", "0", None) for one in what]
    # -D: inlet stays the process that is started.
    words = [strace, "-D", "-f", "-qq", "-e", "trace=open,openat,connect", "-o", str(folder / "calls")]
    config = configure(folder, {"library": {"type": "folder", "path": f"{folder}/library"}})
    (folder / "library").mkdir()
    with Agent(config, before=words) as agent:
        for number in range(20):
            (folder / "drop" / f"f{number:02}.bin").write_bytes(bytes(4096))
        agent.wait_count("job.finished", 20, 60)
    calls = (folder / "calls").read_text().splitlines()
    opened_, dialed = (sum(word in call for call in calls) for word in ("libpq", "AF_INET"))
    seen = sum("journal.sqlite" in call for call in calls)
    return [Row("I: calls that open the journal", str(seen), ">= 1", seen > 0), none(what[0], opened_), none(what[1], dialed)]


def alone(folder: Path, given: Given) -> list[Row]:
    """An agent without `fleet:` loads no libpq, and writes to no table of a fleet. Its figures, and where a release before is
    named, beside that one's."""
    def measure(program: str | None, name: str) -> tuple[float, float, float, bool]:
        here = folder / name
        had, os.environ["INLET_BINARY"] = os.environ["INLET_BINARY"], program or os.environ["INLET_BINARY"]
        try:
            with Sink(etag="md5") as store:
                config = configure(here, {"store": s3(store.url)}, [route("all", "store")])
                began = time.monotonic()
                with Agent(config) as agent:
                    ready = time.monotonic() - began
                    draw = random.Random(given.seed)
                    for number in range(3000):
                        (here / f"f{number}").write_bytes(draw.randbytes(4096))
                    began = time.monotonic()
                    for number in range(3000):
                        os.rename(here / f"f{number}", here / "drop" / f"f{number:05}.bin")
                    agent.wait_count("job.delivered", 3000, 300)
                    pace = 3000 / (time.monotonic() - began)
                    has_libpq = "libpq" in Path(f"/proc/{agent.pid}/maps").read_text()
                    return pace, memory(agent.pid)["own memory (RssAnon)"], ready, has_libpq
        finally:
            os.environ["INLET_BINARY"] = had

    now = [measure(None, f"now-{turn}") for turn in range(3)]
    rows = [figure("I: files a second", [one[0] for one in now], digits=0),
            figure("I: own memory", [one[1] for one in now], " MiB"), figure("I: start", [one[2] for one in now], " s", 2),
            none("I: libpq is loaded", sum(one[3] for one in now)),
            none("I: tables and indexes of fleets with a byte in them", len(written(folder / "now-0/state/journal.sqlite"))),
            *traced(folder / "traced")]
    if given.before:
        then = [measure(given.before, f"before-{turn}") for turn in range(3)]
        pace, own, start = (sorted(one[index] for one in then)[1] for index in range(3))
        rows += [bounded("I: files a second, of the release before", [one[0] for one in now], 0.9 * pace, digits=0, is_least=True),
                 bounded("I: own memory, of the release before", [one[1] for one in now], own + 2, " MiB"),
                 bounded("I: start, of the release before", [one[2] for one in now], 1.25 * start + 0.05, " s", 2)]
    return rows
