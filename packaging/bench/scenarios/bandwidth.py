"""How well bandwidth limits hold, and what they do to small files.

64 connections, to two destinations with a sink each, are in the middle of bodies all the while; `inlet limit` and a timetable
change their rates. What is measured is what the sinks took, from one second after each change on.
"""

import contextlib
import os
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from agent import Agent, command, configure, route, s3
from loads import write_sparse
from process import until
from report import GIB, MIB, UNITS, Given, Row, bounded, none, percentile
from servers import Sink

DEVIATION, UNFAIR, SMALL_MS = 5, 10, 300
DESTINATIONS = FIRST, SECOND = ("first", "second")
# Of both destinations together. Bodies below 4 MiB have a connection each; of larger ones a destination takes only as many at
# once as its line is found to carry.
CONNECTIONS = 64
# What each destination has beside its part of them: an eighth is kept free for bodies of at most 256 KiB.
KEPT_FREE = 8
BODY = 3 << 20
BIG_FILES, SMALL_RATE, SMALL, SMALL_FILES = 8, "5MiB/s", 256 << 10, 30
# By command, one after the other.
RATES = ("100KiB/s", "1MiB/s", "20MiB/s", "100MiB/s")
# Of the timetable: before its edge, after it, and for one destination after it.
BEFORE, AFTER, AFTER_SECOND = "4MiB/s", "20MiB/s", "5MiB/s"


def bytes_a_second(rate: str) -> float:
    return float(rate[:-5]) * UNITS[rate[-5:-2]]


def files_for(rates: list[str], seconds: float) -> int:
    """How many files each destination needs so that none runs dry, if it alone had all of what these rates let through."""
    return int(1.3 * sum(map(bytes_a_second, rates)) * (seconds + 4) / BODY) + 2 * CONNECTIONS


def next_edge(now: float, lead: float) -> tuple[int, str]:
    """The first full minute that is at least `lead` seconds away, and its name on a clock in UTC."""
    edge = (int(now + lead) // 60 + 1) * 60
    return edge, time.strftime("%H:%M", time.gmtime(edge))


class Measured(NamedTuple):
    """What the sinks took over some seconds: bytes/s of each, and the connections that were in the middle of a body."""

    rates: dict[str, float]
    connections: float

    @property
    def all(self) -> float:
        return sum(self.rates.values())

    def row(self, name: str) -> Row:
        each = " + ".join(f"{rate / MIB:.2f}" for rate in self.rates.values())
        return Row(name, f"{each} MiB/s, {self.connections:.0f} connections within a body")


class Lab(contextlib.ExitStack):
    """A running agent, the sinks of its destinations, and files for them. `own` is configuration by destination."""

    def __init__(self, folder: Path, names: tuple[str, ...] = DESTINATIONS, own: dict[str, Any] | None = None,
                 **more: Any) -> None:
        super().__init__()
        self.folder, self.sinks = folder, {name: self.enter_context(Sink()) for name in names}
        for name in names:
            (folder / "drop" / name).mkdir(parents=True)
        connections = CONNECTIONS // len(names) + KEPT_FREE
        self.config = configure(
            folder, {name: s3(sink.url, verify="size", connections=connections, **(own or {}).get(name, {}))
                     for name, sink in self.sinks.items()},
            [route(name, name, path=f"{name}/**") for name in names], **more)
        self.agent = self.enter_context(Agent(self.config))

    def limit(self, *words: str) -> None:
        command("limit", *words, config=self.config)

    def drop(self, to: str, name: str, size: int = BODY, count: int = 1) -> float:
        """Files that are whole when they appear, all at once. - Returns: when."""
        (staged := self.folder / name).mkdir()
        for number in range(count):
            write_sparse(staged / f"{name}-{number:05}.bin", size)
        now = time.time()
        os.rename(staged, self.folder / "drop" / to / name)
        return now

    def stats(self, key: str) -> dict[str, float]:
        return {name: sink.stats()[key] for name, sink in self.sinks.items()}

    def wait_sending(self, count: int, seconds: float = 30) -> None:
        """Until so many connections are in the middle of a body, or until `seconds` have passed."""
        until(lambda: sum(self.stats("sending").values()) >= count, seconds, every=0.1)

    def measure(self, seconds: float) -> Measured:
        def taken() -> dict[str, tuple[float, float]]:
            return {name: (time.monotonic(), sink.stats()["bytes"]) for name, sink in self.sinks.items()}

        before, sending, end = taken(), [], time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(1.0, left))
            sending.append(sum(self.stats("sending").values()))
        rates = {name: (count - before[name][1]) / (now - before[name][0]) for name, (now, count) in taken().items()}
        return Measured(rates, median(sending))

    def ended_row(self, by: str) -> Row:
        """Bodies that a sink saw break off, and deliveries that inlet had to begin again."""
        return none(f"transfers that {by} ended", int(sum(self.stats("cut").values())) + self.agent.count("job.retry"))


# Targets


def rate_row(what: str, rate: str, held: float) -> Row:
    off = (held / bytes_a_second(rate) - 1) * 100
    return Row(f"{what}: off by", f"{off:+.1f} %", f"<= {DEVIATION} %", abs(off) <= DEVIATION)


def all_rows(rate: str, found: Measured) -> list[Row]:
    """Of a rate for all destinations together: that it holds, over how many connections, and that it is shared equally."""
    unfair = max(abs(share / found.all * 2 - 1) for share in found.rates.values()) if found.all else 1
    return [rate_row(f"{rate} for all", rate, found.all),
            bounded(f"{rate} for all: connections within a body", found.connections, CONNECTIONS, "", 0, is_least=True),
            bounded(f"{rate} for all: a destination's share, from the half", 100 * unfair, UNFAIR, " %")]


# Phases


def by_command(folder: Path, given: Given) -> list[Row]:
    """Rates by command: for all, for one destination, none at all."""
    rows = []

    def held(what: str, *limits: tuple[str, ...]) -> Measured:
        for words in limits:
            lab.limit(*words)
        time.sleep(1)
        found = lab.measure(given.seconds)
        rows.append(found.row(what))
        return found

    with Lab(folder) as lab:
        lab.limit(RATES[0])
        for name in DESTINATIONS:
            lab.drop(name, f"many-{name}", count=files_for([*RATES, "20MiB/s", "20MiB/s"], given.seconds))
        lab.wait_sending(CONNECTIONS)
        for rate in RATES:
            rows += all_rows(rate, held(f"{rate} for all", (rate,)))
        rows.append(none("0 for all: B/s sent", round(held("0 for all", ("0",)).all)))
        found = held(f"20MiB/s for all, 5MiB/s for {FIRST}", ("20MiB/s",), ("5MiB/s", "--to", FIRST))
        rows += [rate_row(f"5MiB/s for {FIRST}", "5MiB/s", found.rates[FIRST]),
                 rate_row("the rest of 20MiB/s for the other", "15MiB/s", found.rates[SECOND])]
        found = held("5MiB/s for each", ("off",), ("5MiB/s", "--to", SECOND))
        rows += [rate_row(f"5MiB/s for {name} alone", "5MiB/s", found.rates[name]) for name in DESTINATIONS]
        rows.append(lab.ended_row("a command"))
    return rows


def timetable(folder: Path, given: Given) -> list[Row]:
    """Rates by the clock: an edge of the timetable while the files are sent."""
    edge, clock = next_edge(time.time(), given.seconds + 12)
    hour = {"from": clock, "to": time.strftime("%H:%M", time.gmtime(edge + 3600))}
    limits = {"bandwidth": BEFORE, "schedule": [hour | {"bandwidth": AFTER}], "zone": "UTC"}
    with Lab(folder, own={SECOND: {"schedule": [hour | {"bandwidth": AFTER_SECOND}]}}, limits=limits) as lab:
        for name in DESTINATIONS:
            lab.drop(name, f"many-{name}", count=files_for([BEFORE], 75) + files_for([AFTER], given.seconds))
        lab.wait_sending(CONNECTIONS, 5)
        time.sleep(max(0, edge - given.seconds - 1 - time.time()))
        before = lab.measure(given.seconds)
        time.sleep(max(0, edge + 1 - time.time()))
        after = lab.measure(given.seconds)
        ended = lab.ended_row("the timetable")
    return [
        before.row(f"before the edge, {BEFORE}"), after.row(f"after it, {AFTER}, {AFTER_SECOND} for {SECOND}"),
        rate_row("timetable, before its edge", BEFORE, before.all), rate_row("timetable, after its edge", AFTER, after.all),
        rate_row(f"timetable of {SECOND}, after its edge", AFTER_SECOND, after.rates[SECOND]), ended]


def small(folder: Path, given: Given) -> list[Row]:
    """Milliseconds from each small file's appearing to its being whole at the sink, one after the other beside big ones."""
    times = []
    with Lab(folder, (FIRST,), workers=BIG_FILES) as lab:
        lab.limit(SMALL_RATE)
        lab.drop(FIRST, "big", 4 * GIB, BIG_FILES)
        lab.wait_sending(1)
        time.sleep(2)
        for number in range(SMALL_FILES):
            appeared = lab.drop(FIRST, f"small-{number:03}", SMALL)
            lab.agent.wait_for(f"small file {number}", lambda: f"small-{number:03}-00000.bin" in lab.sinks[FIRST].objects(), 120,
                               every=0.004)
            times.append((time.time() - appeared) * 1000)
        beside, ended = lab.measure(2), lab.ended_row("small files")
    what = f"{len(times)} files of {SMALL >> 10} KiB beside {BIG_FILES} big ones at {SMALL_RATE}"
    return [
        beside.row(f"big files, {SMALL_RATE}"), bounded(f"{what}: p50", percentile(times, 0.5), SMALL_MS, " ms", 0),
        bounded("the same: longest", max(times), 4 * SMALL_MS, " ms", 0), ended]


PHASES = {"commands": by_command, "timetable": timetable, "small": small}

OPTIONS = {"--seconds": (10, "of each measurement"), "--only": list(PHASES)}


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    rows = [row for name in given.only or PHASES for row in PHASES[name](folder / name, given)]
    return f"at the sinks of {FIRST} and {SECOND} over {given.seconds} s each, bodies of {BODY >> 20} MiB", rows
