"""Files of a share on their way to a folder, and to services other than S3, when their agent is killed: another agent delivers
them once and whole."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import everywhere
from judge import Findings, by_content, by_key, digest_of, files, left_open, pictures, spaces, videos
from judge import Source as File
from process import until
from report import MIB, Given, Row, bounded, figure, none
from servers import Sandbox
from stations import Fleet, Station

# By the destination's name, as everywhere.py has it.
KINDS = {"stage": "gighive", "products": "vopi", "spaces": "roboscope", "library": "folder"}
# Bytes a second: the limit of network destinations, and what no copy with its proof exceeds.
RATE, COPY = 4 * MIB, 1 << 30
# Of network destinations by turns: with GigHive the one goes by tus, the other by a form.
SIZES = (12 * MIB, 5 * MIB - 1)
COPIED = 128 * MIB
# The successor of an agent that asked VOPI for a job waits until that request cannot be under way any more.
REST = 300


def destinations(folder: Path, sandbox: Sandbox) -> dict[str, dict[str, object]]:
    """So slow that an agent can be killed within."""
    found = everywhere.destinations(folder, sandbox, None)
    limit = {"bandwidth": f"{RATE}B/s"}
    return {name: found[name] | (limit if name in ("spiral", "stage", "products") else {}) for name in ("spiral", *KINDS)}


def deliveries(station: Station, name: str, event: str) -> int:
    """How often it said this of a file of the share."""
    return sum(Path(one["path"]).name == name for one in station.events(event))


def kill_within(fleet: Fleet, kind: str, file: File, draw: random.Random) -> Station:
    """Kills the station that sends the file, at a random moment of that."""
    name = Path(file.name).name
    victim = until(lambda: next((one for one in fleet.stations if deliveries(one, name, "job.started")), None), 60,
                   f"start of {name}", 0.005)
    time.sleep(draw.uniform(0.1, 0.9) * file.size / (COPY if kind == "library" else RATE))
    victim.kill()
    return victim


def one(fleet: Fleet, kind: str, number: int, draw: random.Random) -> tuple[bool, float]:
    """- Returns: whether the agent was killed within, and the seconds until others had finished the file."""
    # Nobody takes from others before its own session is one ttl old.
    time.sleep(fleet.ttl)
    ending, size = everywhere.KINDS[kind][0], COPIED if kind == "library" else SIZES[number % len(SIZES)]
    file = fleet.share.put("delete", f"{kind}/{kind}-{number:02}.{ending}", size, draw)
    victim = kill_within(fleet, kind, file, draw)
    began, ended = time.monotonic(), deliveries(victim, Path(file.name).name, "job.finished")
    until(lambda: not fleet.share_rest(), REST, f"end of {file.name}", 0.1, words=lambda: str(fleet.share_rest()))
    seconds = time.monotonic() - began
    victim.start()
    victim.wait_live()
    return not ended, seconds


def compare(found: Findings, fleet: Fleet, sandbox: Sandbox) -> None:
    """What every service and the folder have of the share's files."""
    def wanted(kind: str) -> dict[str, str]:
        return {Path(file.name).name: file.sha256 for file in fleet.share.sources if file.name.startswith(f"delete/{kind}/")}

    report = sandbox.report()
    by_content(found, "stage", wanted("stage"),
               [digest_of(asset["path"]) for asset in report["gighive"]["assets"] for _ in asset["labels"]])
    videos(found, wanted("products"), report["vopi"])
    for job in (job["id"] for job in report["vopi"]["jobs"]):
        made = files(fleet.folder / "sandbox" / "vopi" / "objects" / "jobs" / job)
        pictures(found, job, [digest_of(path) for _, path in made],
                 {name: digest_of(path) for name, path in files(fleet.folder / "results" / job)})
    spaces(found, {Path(name).stem: name for name in wanted("spaces")}, report["roboscope"])
    by_key(found, "spiral", wanted("spaces"),
           [(entry["key"], digest_of(entry["path"])) for entry in report["spiral"]["objects"]])
    by_key(found, "library", wanted("library"), [(key, digest_of(path)) for key, path in files(fleet.folder / "library")])
    for where, upload in left_open(fleet.folder, report, fleet.store):
        found.note("left open", upload, where)
    for problem in fleet.share.problems():
        found.note("source", problem)


def elsewhere(folder: Path, given: Given, turns: int) -> list[Row]:
    """Takeovers at a folder, GigHive, VOPI and Roboscope."""
    draw = random.Random(given.seed)
    with Fleet(folder, given.ttl, is_pooled=given.pooler, has_share=True) as fleet, Sandbox(folder) as sandbox:
        (folder / "library").mkdir()
        fleet.others = destinations(folder, sandbox)
        fleet.share.kinds = {kind: everywhere.KINDS[kind][1] for kind in KINDS}
        fleet.add_all(3)
        rows = list(rounds(fleet, turns, draw))
        found = Findings("lost", "partial", "duplicated", "foreign", "source", "left open")
        compare(found, fleet, sandbox)
        said = found.rows()
        return rows + [row._replace(what=f"B: elsewhere: {row.what}") for row in said] + [
            none("B: elsewhere: work left", int(fleet.cluster.one("SELECT count(*) FROM inlet.work")))]


def rounds(fleet: Fleet, turns: int, draw: random.Random) -> Iterator[Row]:
    for kind, what in KINDS.items():
        done = [one(fleet, kind, number, draw) for number in range(turns)]
        yield bounded(f"B: {what}: killed within, and finished by another", sum(is_within for is_within, _ in done), turns,
                      f" of {turns}", 0, is_least=True)
        yield figure(f"B: {what}: seconds until then", [seconds for _, seconds in done])
