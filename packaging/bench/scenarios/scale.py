"""What grows with the queue, and what may not.

* start: process start to agent.ready with an empty journal, and with a million finished and a million queued jobs.
* status: what a running agent with a million queued jobs takes to answer, and `inlet status` as a whole.
* lists: what the page's lists of 100,000 files take, also those for which all files are looked at; and the home page's answer.
* history: the finished ones go to the compact history: how fast, what they take there, and what status answers meanwhile.
* claims: files/s of the first 1,000 deliveries to a discarding sink, by the length of the queue behind them.
* workers, parts: 8 x 128 MiB to the sink with 1 to 64 of them; throughput may not fall as they grow.

Each journal is a small one that inlet has written, with its rows multiplied by SQL.
"""

import os
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

from agent import Agent, command, configure, instant, opened, s3
from loads import write_random
from process import cpu_seconds, peak_mib
from report import GIB, MIB, Failed, Given, Row, bounded, figure, none, percentile, table
from servers import Sink

FIRST = 1000
STARTS, START_MS, START_FULL_MS, STATUS_MS = 10, 150, 1000, 50
LISTED, LIST_MS, HOME_MS = 100_000, 300, 10
LISTS = {
    "newest": "", "failed": "state=failed,expired", "duplicates to answer": "state=duplicate&unanswered=1",
    "of no such destination": "destination=elsewhere", "of no such route": "route=another", "of no such name": "q=no%20such",
    "of an hour without files": "until=2001-01-01T00:00:00Z", "far behind": "before=1000",
}
LEAST_OF_FIRST = 0.8
FILES, STEPS = 8, (1, 2, 4, 8, 16, 32, 64)
# A step may be so much slower than the best with fewer: what a round is off by chance.
LEAST_OF_BEST = 0.95

OPTIONS = {
    "--only": ["start", "status", "lists", "history", "claims", "workers", "parts"],
    "--rows": (1_000_000, f"from {10 * FIRST:,}"),
    "--rounds": 3,
    "--mib": (128, "of each of the eight big files"),
}


# Journals with a million jobs, made of a small one that inlet itself has written

MODELS = 1000
# What a row of its own has; everything else is as in the row that it is made of.
KEPT = {"file": ("id",), "delivery": ("id", "file_id"), "receipt": ("id", "file_id")}


def one(database: sqlite3.Connection, text: str) -> int:
    return database.execute(text).fetchone()[0]


def multiply(database: sqlite3.Connection, total: int) -> None:
    """As many more files as it takes until the journal has `total`, each with its model's deliveries and receipt.

    They are at their models' paths, so that there is something to send for each, and have keys of their own.
    """
    count, last = one(database, "SELECT count(*) FROM file"), one(database, "SELECT max(id) FROM file")
    if count != last:
        raise Failed("the journal to multiply has had files that were forgotten")
    if total // count < 2:
        return
    copies = f"""(WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < {total // count - 1})
        SELECT n FROM copy)"""
    for name, kept in KEPT.items():
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({name})") if row[1] not in kept]
        values = ", ".join("key || '-' || n" if column == "key" else column for column in columns)
        key = kept[-1]
        database.execute(f"""
            INSERT INTO {name} ({key}, {", ".join(columns)})
            SELECT n * {count} + {key}, {values} FROM {copies}, {name} WHERE {key} <= {last} ORDER BY 1""")


def pause(journal: Path, is_paused: int = 1) -> None:
    """So that the next start sends nothing."""
    with opened(journal) as database:
        database.execute("INSERT INTO destination (name, paused) VALUES ('archive', ?) "
                         "ON CONFLICT(name) DO UPDATE SET paused = excluded.paused", (is_paused,))


class Journals:
    """A million of each, made when they are first asked for, for the configuration `config`."""

    def __init__(self, folder: Path, config: Path, rows: int) -> None:
        self.config, self.journal = config, config.parent / "state" / "journal.sqlite"
        self._folder, self._rows = folder, rows

    def _path(self, kind: str, rows: int) -> Path:
        return self._folder / f"{kind}-{rows}.sqlite"

    def _make_models(self) -> None:
        """Journals of 1,000 small files that inlet has admitted, and then delivered."""
        staged = self._folder / "staged"
        staged.mkdir(parents=True)
        for number in range(MODELS):
            write_random(staged / f"f{number:06d}.bin", 1 << 10)
        for kind, count, event in (("empty", 0, "agent.ready"), ("queued", MODELS, "job.admitted"),
                                   ("finished", MODELS, "job.finished")):
            with Agent(self.config) as agent:
                agent.wait_count(event, count, 120)
            shutil.copy(self.journal, self._path(kind, count))
            pause(self.journal, kind == "empty")
            if kind == "empty":
                os.rename(staged, self.config.parent / "drop" / "batch")

    def _make(self, kind: str, rows: int) -> None:
        """Copies a model, which nobody has open, and fills it up."""
        target = shutil.copy(self._path(kind, MODELS), self._path(kind, rows))
        with opened(target) as database:
            database.execute("PRAGMA synchronous = OFF")
            multiply(database, rows)
        with opened(target) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            files, tallied = one(database, "SELECT count(*) FROM file"), one(database, "SELECT sum(files) FROM tally")
        if not files == tallied == rows:
            raise Failed(f"the journal has {files} files and counts {tallied}, not {rows}")

    def use(self, kind: str, rows: int | None = None) -> None:
        """Begins the next start with so many files that are all `queued` or `finished`, or with an `empty` journal."""
        rows = 0 if kind == "empty" else rows or self._rows
        if not self._folder.exists():
            self._make_models()
        if not self._path(kind, rows).exists():
            self._make(kind, rows)
        for suffix in ("-wal", "-shm"):
            self.journal.with_name(self.journal.name + suffix).unlink(missing_ok=True)
        shutil.copy(self._path(kind, rows), self.journal)


# Sections


def configure_scale(folder: Path, sink: Sink, workers: int = 4, parts: int = 4, **more: Any) -> Path:
    store = s3(sink.url, verify="size", part_size="8MiB", parallel_parts=parts, connections=32)
    return configure(folder, {"archive": store}, workers=workers, **more)


def starts(what: str, config: Path, most: int) -> Row:
    """From the start of the process to agent.ready."""
    times = []
    for _ in range(STARTS):
        with Agent(config) as agent:
            times.append((agent.moment("agent.ready") - agent.began) * 1000)
    return bounded(what, times, most, " ms", 0)


def answer_ms(config: Path, path: str = "status") -> float:
    """What the running agent takes to answer."""
    answer = subprocess.run(["curl", "-sS", "--fail", "-o", "/dev/null", "-w", "%{time_total}", "--unix-socket",
                             config.parent / "state/control.sock", f"http://localhost/api/v1/{path}"],
                            check=True, capture_output=True)
    return float(answer.stdout) * 1000


def command_ms(config: Path) -> float:
    before = time.monotonic()
    command("status", config=config)
    return (time.monotonic() - before) * 1000


def start(journals: Journals, given: Given, _: Sink) -> list[Row]:
    rows = []
    for kind, text, most in (("empty", "an empty journal", START_MS), ("finished", f"{given.rows:,} finished", START_FULL_MS),
                             ("queued", f"{given.rows:,} queued", START_FULL_MS)):
        journals.use(kind)
        # Queued files stay queued: the model's destination is paused.
        rows.append(starts(f"start to agent.ready, {text}", journals.config, most))
    return rows


def status(journals: Journals, given: Given, _: Sink) -> list[Row]:
    journals.use("queued")
    with Agent(journals.config) as agent:
        answers = [answer_ms(agent.config) for _ in range(50)]
        commands = [command_ms(agent.config) for _ in range(10)]
    return [bounded("status answers, p50", answers, STATUS_MS, " ms"),
            bounded("status answers, p99", percentile(answers, 0.99), STATUS_MS, " ms"),
            figure("inlet status, as a process", commands, " ms")]


def lists(journals: Journals, given: Given, _: Sink) -> list[Row]:
    journals.use("queued", LISTED)
    with Agent(journals.config) as agent:
        def times(path: str, count: int) -> list[float]:
            return [answer_ms(agent.config, path) for _ in range(count)]

        return [*(bounded(f"list of {LISTED:,} files, {name}", times(f"jobs?limit=51&{query}", 10), LIST_MS, " ms")
                  for name, query in LISTS.items()),
                bounded("home, p50", times("home", 50), HOME_MS, " ms")]


def first_rate(journals: Journals, sink: Sink) -> float:
    """Files/s of the first 1,000 deliveries, without the very first ones: until then the destination is looked at."""
    pause(journals.journal)
    with Agent(journals.config) as agent:
        sink.reset()
        command("resume", "archive", config=agent.config)
        marks = []
        for least in (FIRST // 10, FIRST):
            puts = agent.wait_for(f"{least} files", lambda: (puts := sink.stats()["puts"]) >= least and puts, 120, every=0.002)
            marks.append((time.monotonic(), puts))
        command("pause", "archive", config=agent.config)
    (before, few), (after, many) = marks
    return (many - few) / (after - before) if after > before else 0.0


def claims(journals: Journals, given: Given, sink: Sink) -> list[Row]:
    rates: dict[int, list[float]] = {length: [] for length in sorted({FIRST, max(FIRST, given.rows // 10), given.rows})}
    for _ in range(given.rounds):
        for length, found in rates.items():
            journals.use("queued", length)
            found.append(first_rate(journals, sink))
    ratio = median(rates[max(rates)]) / median(rates[FIRST])
    return [*(figure(f"the first {FIRST:,} deliveries of {length:,}", found, " files/s", 0) for length, found in rates.items()),
            bounded(f"claims with {max(rates):,} queued, of {FIRST:,}", ratio, LEAST_OF_FIRST, "", 2, is_least=True)]


def history(journals: Journals, given: Given, sink: Sink) -> list[Row]:
    """Finished files that go to the compact history, while `status` is asked; and a start with all of them there."""
    journals.use("finished")
    answers, before = [], os.stat(journals.journal).st_size
    with Agent(configure_scale(journals.config.parent, sink, journal_history={"after": "1s"})) as agent:
        def moved() -> float:
            answers.append(answer_ms(agent.config))
            pruned = agent.events("journal.pruned")
            return sum(one["files"] for one in pruned) >= given.rows and sum(one["took_ms"] for one in pruned) / 1000

        seconds = agent.wait_for(f"journal.pruned of {given.rows:,} files", moved, 3600, every=0.5)
    with opened(journals.journal) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page, pages, free = (one(database, f"PRAGMA {name}") for name in ("page_size", "page_count", "freelist_count"))
        left = one(database, "SELECT count(*) FROM file WHERE finished_at IS NOT NULL")
    used = (pages - free) * page
    with Agent(configure_scale(journals.config.parent, sink)) as agent:
        answers.append(answer_ms(agent.config))
    return [figure("to the history, its rests included", given.rows / seconds, " files/s", 0),
            figure("journal before", before / MIB, " MiB"), figure("its pages in use afterwards", used / MIB, " MiB"),
            none("finished files that are no history after it", left),
            bounded("status answers meanwhile, p50", answers, STATUS_MS, " ms"),
            bounded("journal's pages in use, of before", used / before, 0.5, "", 2),
            starts(f"start to agent.ready, {given.rows:,} in the history", journals.config, START_FULL_MS)]


def send_round(folder: Path, files: list[Path], sink: Sink, **numbers: int) -> tuple[float, float, float]:
    """(GiB/s from the first file's start to the last receipt, CPU seconds, peak RSS in MiB)."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    total = sum(file.stat().st_size for file in files)
    sink.reset()
    with Agent(configure_scale(folder, sink, **numbers)) as agent:
        spent = cpu_seconds(agent.pid)
        for file in files:
            os.link(file, folder / "drop" / file.name)
        ended = agent.wait_count("job.finished", len(files))
        seconds = ended - min(instant(event["ts"]) for event in agent.events("job.started"))
        result = total / GIB / seconds, cpu_seconds(agent.pid) - spent, peak_mib(agent.pid)
    if sink.stats()["bytes"] < total:
        raise Failed("the sink got less than was sent")
    return result


def of_best(speeds: dict[int, float]) -> dict[int, float]:
    """Each step's speed, of the best of those with fewer and its own."""
    return {step: speed / max(best for few, best in speeds.items() if few <= step) for step, speed in speeds.items()}


def sweep(folder: Path, given: Given, sink: Sink, name: str) -> list[Row]:
    """More workers, or parts at once: never slower than with fewer."""
    key = {"workers": "workers", "parts": "parallel_parts"}[name]
    (source := folder / "big").mkdir(exist_ok=True)
    files = [source / f"f{number:06d}.bin" for number in range(FILES)]
    for file in files:
        if not file.exists():
            write_random(file, given.mib << 20)
    results: dict[int, list[tuple[float, float, float]]] = {step: [] for step in STEPS}
    for number in range(given.rounds):
        # Back and forth: what drifts with time must not look like what grows with the steps.
        for step in STEPS if number % 2 == 0 else reversed(STEPS):
            results[step].append(send_round(folder / "sweep", files, sink, **{name: step}))
    columns = {step: list(zip(*found)) for step, found in results.items()}
    ratios = of_best({step: median(speeds) for step, (speeds, _, _) in columns.items()})
    table(f"{FILES} x {given.mib} MiB by {key}, median of {given.rounds}",
          [key, "GiB/s", "of the best before", "CPU s", "peak RSS MiB"],
          [[step, figure("", list(speeds), "", 2).measured, f"{ratios[step]:.2f}", f"{median(cpu):.2f}", f"{median(rss):.1f}"]
           for step, (speeds, cpu, rss) in columns.items()])
    step, worst = min(ratios.items(), key=lambda one: one[1])
    return [bounded(f"{key} 1 to 64: the worst ({step}), of the best of fewer", worst, LEAST_OF_BEST, "", 2, is_least=True)]


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    if given.rows < 10 * FIRST:
        raise Failed(f"--rows: from {10 * FIRST:,}")
    rows: list[Row] = []
    with Sink() as sink:
        journals = Journals(folder / "journals", configure_scale(folder / "place", sink), given.rows)
        for name in (name for name in OPTIONS["--only"] if name in (given.only or OPTIONS["--only"])):
            section = {"start": start, "status": status, "lists": lists, "history": history, "claims": claims}.get(name)
            rows += section(journals, given, sink) if section else sweep(folder, given, sink, name)
    return "targets", rows
