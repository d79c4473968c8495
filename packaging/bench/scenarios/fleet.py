"""Fleets of stations under chaos: real agents, a PostgreSQL of their own with fsync on, and a store that
enforces nothing unless a part says otherwise.

    A  kills, stops past the lease, immediate restarts of PostgreSQL, cut lines, clocks that are days off, restores of old backups;
       every station has a drop of its own, and all watch one share
    B  an agent killed or stopped with 3 of 10 parts of a share's file sent: another goes on with it; and agents killed on the
       way to a folder, GigHive, VOPI and Roboscope
    C  a backup put back under running agents, on the same timeline and on a new one; then with one agent off
    D  A, small, at a store that enforces If-None-Match and at one that does not; 412 to what was composed, and to another content
    E  PostgreSQL stopped under load
    F  clones of a state directory, and restored journals
    G  rights of the agents' role, and random arguments
    H  a migration beside agents of the version before
    I  an agent without `fleet:`: it opens no libpq, and writes to no table of a fleet
    J  1,000 agents' beats through pgbouncer with 20 connections, beside work of a share
    K  is packaging/mutations.sh
    L  under load: a station drained, failovers to a standby, a full disk at PostgreSQL, TLS, equal contents at all stations
    W  how many keys 1, 4 and 8 connections reserve, and how much work of shares 4 claim, settle and finish

Without letters: all of them. `--short` is A alone, small.
"""

import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent import instant
from elsewhere import elsewhere
from fleet_alone import alone
from fleet_database import crowd, rights, work
from fleet_more import migrated, more
from postgres import Pooler, missing
from process import Worker, until
from report import SEED, Failed, Given, Row, bounded, figure, none
from servers import built
from stations import Fleet, Station, judged, objects, published
from takeovers import refusals, takeovers

LETTERS = "ABCDEFGHIJLW"
OPTIONS = {
    "letters": (["A"], "which parts to run: " + ", ".join(LETTERS)),
    "--seed": SEED, "--short": (False, "A with 20 kills, 3 stops, 1 restart and 1 restore: some 2 minutes"),
    "--full": (False, "all parts; B 20 times each, J for 5 minutes only; then A, B, D and E small, with pgbouncer"), "--ttl": (3, "seconds of a lease"),
    "--minutes": (0, "how long E's outage and J last; 0 = 10 and 60, with --full 5 each"),
    "--pooler": (False, "put pgbouncer between the agents and PostgreSQL"),
    "--before": (str, "I: the inlet of the release before, to compare with"),
}

# Everything ends so soon after the last fault.
REST = 60
FULL = {"kill": 200, "stop": 20, "restart": 5, "cut": 10, "restore": 4}
SHORT = {"kill": 20, "stop": 3, "restart": 1, "cut": 1, "restore": 1}
# Files of one name that come with each fault.
ROUNDS = 2


# A


class Filler(Worker):
    """Drops files of equal names at all stations and in the share, paced by the faults."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        super().__init__()
        self._fleet, self._draw, self.allowed, self.number = fleet, random.Random(seed), 0, 0

    def work(self) -> None:
        while not (self.ended.is_set() and self.number >= self.allowed):
            if self.number >= self.allowed:
                time.sleep(0.02)
                continue
            self.number += 1
            self._fleet.put_everywhere(self.number, self._draw)
            time.sleep(self._draw.uniform(0, 0.1))


def schedule(counts: dict[str, int], draw: random.Random) -> list[str]:
    """The faults in random order. Before each restore a backup is made, with faults in between that it forgets."""
    faults = [fault for fault, count in counts.items() if fault != "restore" for _ in range(count)]
    draw.shuffle(faults)
    step = len(faults) // (counts["restore"] + 1)
    for number in range(counts["restore"], 0, -1):
        faults.insert(step * number + step // 2, "restore")
        faults.insert(step * number - step // 3, "backup")
    return faults


class Chaos:
    """What is done to a fleet."""

    def __init__(self, fleet: Fleet, draw: random.Random) -> None:
        self._fleet, self._draw, self._backup, self._restores = fleet, draw, None, 0

    def _one(self) -> Station:
        return self._draw.choice(self._fleet.stations)

    def kill(self) -> None:
        station = self._one()
        station.kill()
        station.start(is_awaited=False)

    def stop(self) -> None:
        """Past the lease; it goes on as if nothing had been."""
        station = self._one()
        station.signal(signal.SIGSTOP)
        time.sleep(2.5 * self._fleet.ttl)
        station.signal(signal.SIGCONT)

    def restart(self) -> None:
        self._fleet.cluster.stop("immediate")
        self._fleet.cluster.start()

    def cut(self) -> None:
        line = self._one().line
        line.cut()
        time.sleep(self._draw.uniform(0.5, 2.5) * self._fleet.ttl)
        line.mend()

    def backup(self) -> None:
        if self._backup:
            shutil.rmtree(self._backup)
        self._backup = self._fleet.cluster.backup()

    def restore(self) -> None:
        """By turns on the same timeline and on a new one; the procedure's last line in one of two."""
        self._restores += 1
        self._fleet.cluster.restore(self._backup, is_promoted=self._restores % 2 == 0)
        if self._restores % 4 in (0, 1):
            self._fleet.cluster.sql("SELECT inlet.v1_admin_restored('the bench put a backup back')")


def chaos(folder: Path, given: Given, counts: dict[str, int], letter: str = "A", count: int = 5, **store: Any) -> list[Row]:
    """`store`: what else the fleet says of it."""
    draw = random.Random(given.seed)
    with Fleet(folder, given.ttl, is_pooled=given.pooler, has_share=True, **store) as fleet:
        for number in range(1, count + 1):
            station = fleet.add(f"station-{number}")
            if number > count - 2 and counts is FULL:
                station.environment = wrong_clock(3 if number == count else -3)
            station.start()
        for station in fleet.stations:
            station.wait_live()
        filler, trouble = Filler(fleet, given.seed), Chaos(fleet, draw)
        filler.start()
        for fault in schedule(counts, draw):
            filler.allowed += ROUNDS
            time.sleep(draw.uniform(0.1, 1))
            getattr(trouble, fault)()
            for station in fleet.stations:
                if (code := station.agent.process.poll()) is not None:
                    return [none(f"{letter}: {station.name} ended by itself with {code}: {station.agent.tail(5)}", 1)]
        filler.stop()
        seconds = fleet.wait_idle(3 * REST)
        until(lambda: fleet.state() == "open", REST, "open fleet", 0.5)
        until(lambda: not any(published(fleet)), REST, every=0.5)
        behind, double = published(fleet)
        return [*judged(letter, fleet), bounded(f"{letter}: seconds to the end after the last fault", seconds, REST, " s", 0),
                *(Row(f"{letter}: {fault}s", str(number)) for fault, number in counts.items()),
                Row(f"{letter}: files without a receipt in the search", str(behind)),
                Row(f"{letter}: with more than one", str(double)),
                Row(f"{letter}: keys with another name", str(sum(not re.fullmatch(r"clip-\d+\.mov", key) for key, _, _ in objects(fleet))))]


def wrong_clock(days: int) -> dict[str, str]:
    """The environment of a process whose wall clock is so many days off."""
    return os.environ | {"LD_PRELOAD": str(built("clock.c", "-shared", "-fPIC")), "INLET_BENCH_CLOCK": str(86_400 * days)}


# B


def within_uploads(folder: Path, given: Given, turns: int) -> list[Row]:
    return takeovers(folder / "store", given, turns) + elsewhere(folder / "elsewhere", given, max(1, turns // 5))


# C


def restores(folder: Path, given: Given) -> list[Row]:
    draw, rows, number = random.Random(given.seed), [], 0

    def more(fleet: Fleet, count: int, stations: list[Station] | None = None) -> None:
        nonlocal number
        for _ in range(count):
            number += 1
            fleet.put_everywhere(number, draw, stations)

    with Fleet(folder, given.ttl, is_pooled=given.pooler, has_share=True) as fleet:
        fleet.add_all(3)
        for is_promoted in (False, True):
            what = "a new timeline" if is_promoted else "the same timeline"
            more(fleet, 20)
            fleet.wait_idle(REST)
            backup, before = fleet.cluster.backup(), epoch(fleet)
            # Other stations could be given these keys, which the backup does not know; nor does it know the files of the share.
            more(fleet, 20, fleet.stations[:1])
            fleet.wait_idle(REST)
            fleet.cluster.restore(backup, is_promoted)
            began = time.monotonic()
            until(lambda: epoch(fleet) > before, REST, "new epoch", 0.02)
            seconds = time.monotonic() - began
            until(lambda: fleet.state() == "open", REST, f"open fleet after {fleet.waiting_for()}", 0.1)
            for again in range(number - 19, number + 1):
                fleet.put_everywhere(again, draw, fleet.stations[1:], to_share=False)
            fleet.wait_idle(REST)
            # Two beats, after the longest wait for a connection.
            rows.append(bounded(f"C: noticed on {what}", seconds, 2 * given.ttl / 3 + 10, " s"))
        rows += left_off(fleet, draw, number)
        rows += judged("C", fleet)
    return rows


def epoch(fleet: Fleet) -> int:
    """It grows when commits were lost."""
    return int(fleet.cluster.one("SELECT epoch FROM inlet.fleet"))


def left_off(fleet: Fleet, draw: random.Random, number: int) -> list[Row]:
    """With one agent off the fleet stays closed and names it, until somebody waives it."""
    backup = fleet.cluster.backup()
    off = fleet.stations[1]
    # Files of a share that only that one knows may be sent again then, as the manual says.
    fleet.put_everywhere(number + 1, draw, to_share=False)
    fleet.wait_idle(REST)
    off.stop()
    fleet.cluster.restore(backup, is_promoted=False)
    fleet.cluster.sql("SELECT inlet.v1_admin_restored('the bench put a backup back')")
    until(lambda: fleet.waiting_for() == off.name, REST, f"name of {off.name}", 0.1, words=fleet.waiting_for)
    time.sleep(2 * fleet.ttl)
    is_closed = fleet.state() == "recovering" and fleet.waiting_for() == off.name
    fleet.cluster.sql(f"SELECT inlet.v1_admin_waive('{off.name}')")
    is_open = until(lambda: fleet.state() == "open", REST, every=0.1)
    off.start()
    off.wait_live()
    return [none("C: opened although one agent was off", int(not is_closed)),
            none("C: closed although it was waived", int(not is_open))]


# D


def stores(folder: Path, given: Given) -> list[Row]:
    """The same chaos at both kinds, then single answers of one that enforces."""
    return [*chaos(folder / "blind", given, SHORT, "D, blind"),
            *chaos(folder / "enforcing", given, SHORT, "D, enforcing", conditions="enforce", destination={"if_exists": "fail"}),
            *refusals(folder / "refusals", given)]


# E


def outage(folder: Path, given: Given, minutes: float) -> list[Row]:
    """One station has an own prefix, another asks for each key. Files come at an even pace. Those of the share wait."""
    pace, warm = 20, 30
    with Fleet(folder, given.ttl, patience="10s", is_pooled=given.pooler, has_share=True) as fleet:
        local = fleet.add("station-1", destination={"prefix": "station-1/"}, key="station-1/{name}")
        asking = fleet.add("station-2")
        for station in fleet.stations:
            station.start()
            station.wait_live()
        draw, number = random.Random(given.seed), 0

        def load(seconds: float) -> float:
            """- Returns: the files a second that the station with a prefix has delivered."""
            nonlocal number
            began, before = time.monotonic(), local.agent.count("job.delivered")
            for turn in range(int(seconds * pace)):
                number += 1
                for station in fleet.stations:
                    fleet.sources.append(station.put(f"clip-{number:06}.mov", draw.randrange(1, 32 << 10), draw))
                time.sleep(max(0, began + (turn + 1) / pace - time.monotonic()))
            return (local.agent.count("job.delivered") - before) / (time.monotonic() - began)

        with_it = load(warm)
        stopped = time.time()
        fleet.cluster.stop("fast")
        late = [f"share-{turn:02}.mov" for turn in range(20)]
        for name in late:
            fleet.put_share("delete", name, 1000, draw)
        without = load(60 * minutes)
        finished = sum(not (fleet.share.root / "delete" / name).exists() for name in late)
        fleet.cluster.start()
        seconds = fleet.wait_idle(2 * REST)
        first = [instant(event["ts"]) - stopped for event in asking.events("fleet.key_tagged")]
        until(lambda: not any(published(fleet)), 2 * REST, every=0.5)
        behind, double = published(fleet)
        return [figure("E: minutes without PostgreSQL", minutes), figure("E: files a second with PostgreSQL", with_it),
                bounded("E: files a second without, own prefix", without, 0.95 * with_it, is_least=True),
                bounded("E: seconds before the first tagged key", min(first, default=None), 10, " s", is_least=True),
                figure("E: seconds to catch up", seconds), Row("E: tagged keys", str(len(first))),
                none("E: files of the share finished without", finished),
                none("E: receipts missing", behind), none("E: receipts double", double), *judged("E", fleet)]


# F


def clones(folder: Path, given: Given, count: int = 10) -> list[Row]:
    """Half of the clones start while the original is alive, half after it has stopped; then journals of stations are restored."""
    refused = restored = 0
    with Fleet(folder, given.ttl, is_pooled=given.pooler) as fleet:
        original = fleet.add("station-1")
        original.start()
        original.wait_live()
        for number in range(count):
            original.stop()
            twin = original.clone(f"twin-{number}")
            original.start()
            original.wait_live()
            if number % 2:
                original.stop()
            refused += is_refused(twin)
            if number % 2:
                original.start()
                original.wait_live()
        for number in range(count):
            station = fleet.add(f"restored-{number}")
            station.start()
            station.wait_live()
            station.stop()
            old = station.folder / "old"
            shutil.copytree(station.folder / "state", old, ignore=shutil.ignore_patterns("*.sock"))
            station.start()
            station.wait_live()
            station.stop()
            shutil.rmtree(station.folder / "state")
            shutil.move(old, station.folder / "state")
            restored += is_refused(station)
    return [bounded("F: clones refused", refused, count, f" of {count}", 0, is_least=True),
            bounded("F: restored journals refused", restored, count, f" of {count}", 0, is_least=True)]


def is_refused(station: Station) -> bool:
    """Whether it reports the double use, and stays out of the fleet."""
    station.start()
    until(lambda: station.events("fleet.identity_twice") or station.fleet().get("state") == "live", 30, every=0.1)
    is_refused = bool(station.events("fleet.identity_twice")) and station.fleet().get("state") == "refused"
    station.stop()
    return is_refused


def pooled(given: Given) -> list[tuple[str, Callable[[Path], list[Row]]]]:
    """A, B, D and E once more, small, with pgbouncer between the agents and PostgreSQL."""
    again = Given(**vars(given) | {"pooler": True})
    return [("A-pgbouncer", lambda at: chaos(at, again, SHORT)), ("B-pgbouncer", lambda at: within_uploads(at, again, 3)),
            ("D-pgbouncer", lambda at: stores(at, again)), ("E-pgbouncer", lambda at: outage(at, again, 1))]


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    if given.short:
        letters = ["A"]
    else:
        letters = list(LETTERS) if given.full or not given.letters else [letter.upper() for letter in given.letters]
    unknown = set(letters) - set(LETTERS)
    if unknown:
        raise SystemExit("K is packaging/mutations.sh" if unknown == {"K"} else
                         f"{min(unknown)} is not one of {', '.join(LETTERS)}")
    if why := missing() or ("" if Pooler.program() else "pgbouncer is not there"):
        return "fleets", [Row(f"{letter}: {why}", "-", "run", None) for letter in letters]
    outages, crowds = (given.minutes or (5 if given.full else usual) for usual in (10, 60))
    parts: dict[str, Callable[[Path], list[Row]]] = {
        "A": lambda at: chaos(at, given, SHORT if given.short else FULL),
        "B": lambda at: within_uploads(at, given, 20 if given.full else 5), "C": lambda at: restores(at, given),
        "D": lambda at: stores(at, given), "E": lambda at: outage(at, given, outages), "F": lambda at: clones(at, given),
        "G": lambda at: rights(at, given.seed, given.minutes or (3 if given.full else 10)),
        "H": lambda at: migrated(at, given), "I": lambda at: alone(at, given), "J": lambda at: crowd(at, crowds),
        "L": lambda at: more(at, given), "W": lambda at: work(at),
    }
    runs = [(letter, parts[letter]) for letter in letters]
    if given.full and not given.pooler:
        runs += pooled(given)
    rows: list[Row] = []
    start = time.monotonic()
    for name, part in runs:
        began, here = time.monotonic(), folder / name
        here.mkdir()
        # The other parts go on: all of them take more than an hour.
        try:
            found = part(here)
        except Failed as failure:
            print(f"\n{name}: {failure}", flush=True)
            found = [none(f"{name[0]}: ended early: {str(failure).partition(':')[0]}", 1)]
        rows += found if name in LETTERS else [row._replace(what=f"{row.what}, {name[2:]}") for row in found]
        print(f"{name} took {time.monotonic() - began:.0f} s", flush=True)
    minutes = (time.monotonic() - start) / 60
    print(f"all took {minutes:.0f} min", flush=True)
    if given.full:
        rows.append(bounded("minutes of all parts", minutes, 100, digits=0))
    return f"fleets: {' '.join(letters)}, seed {given.seed}, ttl {given.ttl} s", rows
