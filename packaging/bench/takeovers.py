"""Uploads of a share whose agent is gone, and keys of a share that somebody else has."""

import random
import signal
import time
from pathlib import Path
from typing import NamedTuple

from process import until
from report import MIB, Given, Row, bounded, figure, none, percentile
from servers import Request
from stations import PART, Fleet, Source, Station, etags, judged, objects

# Parts of a file, and how many are sent when its agent goes.
PARTS, SENT = 10, 3
SIZE = (PARTS - 1) * PART + MIB
REST = 60
# Beyond the lease.
GRACE = 5


class Takeover(NamedTuple):
    """What came of one."""

    # From the loss of the first agent to the end of the upload.
    seconds: float
    # That its successor sent.
    parts: int
    # Of an agent that was only stopped: what it sent after it went on, how often it said that it was late, and whether it
    # disposed of the source.
    late: int = 0
    said: int = 1
    disposed: bool = False


def ended(requests: list[Request], key: str) -> list[Request]:
    """The successful ends of uploads of this key."""
    return [one for one in requests if one.is_end and one.status == 200 and one.path == f"/bench/{key}"]


def judge_one(requests: list[Request], key: str, victim: str, lost: float, went_on: float | None) -> Takeover:
    """Of the store's log. `lost` and `went_on`: when the first agent was gone, and went on."""
    mine = [one for one in requests if one.path == f"/bench/{key}"]
    parts = [one for one in mine if one.is_part and one.status == 200 and one.agent != victim and one.at > lost]
    late = [one for one in mine if one.agent == victim and one.method != "GET" and one.method != "HEAD"
            and went_on is not None and one.at > went_on]
    return Takeover(ended(mine, key)[0].at - lost, len(parts), len(late))


def begun(fleet: Fleet, name: str, draw: random.Random) -> Station:
    """A file of the share of which so many parts are sent, and the station that sends it."""
    fleet.store.hold(SENT)
    fleet.put_share("delete", name, SIZE, draw)
    until(fleet.store.held, REST, f"part {SENT + 1} of {name}")
    return fleet.station(fleet.store.held())


def takeover(fleet: Fleet, name: str, is_stopped: bool, draw: random.Random) -> Takeover:
    store, victim, went_on = fleet.store, begun(fleet, name, draw), None
    if is_stopped:
        victim.signal(signal.SIGSTOP)
    else:
        victim.kill()
    lost = time.monotonic()
    if not is_stopped:
        store.release()
    until(lambda: ended(store.requests(), name), REST, f"end of {name}", 0.02)
    if is_stopped:
        # What it had under way comes now, and to an upload that is over.
        store.release()
        went_on = time.monotonic()
        victim.signal(signal.SIGCONT)
        until(lambda: fenced(victim, name), 20, every=0.1)
    else:
        victim.start()
        victim.wait_live()
    fleet.wait_idle(REST)
    found = judge_one(store.requests(), name, victim.name, lost, went_on)
    if not is_stopped:
        return found
    disposed = any(event["path"].endswith(name) for event in victim.events("job.finished"))
    return found._replace(said=fenced(victim, name), disposed=disposed)


def fenced(station: Station, name: str) -> int:
    """How often it said of a file that another has it."""
    return sum(event["path"].endswith(name) for event in station.events("fleet.fenced"))


def rows_of(what: str, found: list[Takeover], ttl: float) -> list[Row]:
    count, bound = len(found), ttl + GRACE
    times = [one.seconds for one in found]
    right, rest = sum(one.parts == PARTS - SENT for one in found), PARTS - SENT
    timely = sum(one <= bound for one in times)
    return [bounded(f"B: {what}: taken over in time", timely, count, f" of {count}", 0, is_least=True),
            figure(f"B: {what}: p50", percentile(times, 0.5), " s", 2),
            bounded(f"B: {what}: longest", max(times), bound, " s", 2),
            bounded(f"B: {what}: with just {rest} parts sent", right, count, f" of {count}", 0, is_least=True),
            none(f"B: {what}: sent by the first agent afterwards", sum(one.late for one in found)),
            none(f"B: {what}: not said once by the first agent", sum(one.said != 1 for one in found)),
            none(f"B: {what}: disposed of by the first agent", sum(one.disposed for one in found))]


def takeovers(folder: Path, given: Given, turns: int) -> list[Row]:
    """An agent is killed or stopped within an upload; another goes on with it."""
    draw, rows = random.Random(given.seed), []
    with Fleet(folder, given.ttl, is_pooled=given.pooler, has_share=True, destination={"parallel_parts": 1}) as fleet:
        fleet.add_all(3)
        for what in ("killed", "stopped"):
            found = []
            for turn in range(turns):
                # Nobody takes from others before its own session is one ttl old.
                time.sleep(fleet.ttl)
                found.append(takeover(fleet, f"{what}-{turn:02}.mov", what == "stopped", draw))
            rows += rows_of(what, found, fleet.ttl)
        return rows + judged("B", fleet)


def refusals(folder: Path, given: Given) -> list[Row]:
    """A store that answers a successor with 412 to what it has composed, and one that has another content under the key."""
    draw = random.Random(given.seed)
    options = {"parallel_parts": 1, "if_exists": "fail"}
    with Fleet(folder, given.ttl, is_pooled=given.pooler, has_share=True, conditions="enforce", destination=options) as fleet:
        fleet.add_all(3)
        time.sleep(fleet.ttl)
        victim = begun(fleet, "composed.mov", draw)
        fleet.store.refuse(1)
        victim.kill()
        fleet.store.release()
        # Its own journal still has the file.
        until(lambda: not fleet.share_rest(), REST, "end of composed.mov", 0.1, words=lambda: str(fleet.share_rest()))
        refused = [one for one in fleet.store.requests() if one.is_end and one.status == 412]
        victim.start()
        victim.wait_live()
        time.sleep(fleet.ttl)
        begun(fleet, "other.mov", draw)
        foreign = draw.randbytes(1000)
        fleet.store.put("/bench/other.mov", foreign)
        # It is judged as a file: nothing may be written over it.
        fleet.sources.append(Source("somebody", "other.mov", len(foreign), etags(foreign)))
        fleet.store.release()
        fleet.wait_idle(REST)
        keys = [key for key, _, _ in objects(fleet)]
        attempts = [delivery["attempts"] for station in fleet.stations for row in station.receipts()
                    for delivery in row["deliveries"] if row["path"].endswith("/other.mov")]
        return [Row("D: 412 to what was composed", str(len(refused)), "1", len(refused) == 1),
                none("D: then not delivered once", int(keys.count("composed.mov") != 1 or "composed_2.mov" in keys)),
                none("D: 412 and another content: not under _2", int("other_2.mov" not in keys)),
                bounded("D: attempts for that", max(attempts, default=None), 1, digits=0), *judged("D", fleet)]
