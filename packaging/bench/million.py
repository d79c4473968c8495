"""Journals with a million jobs, made of a small one that inlet itself has written."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from agent import Agent
from loads import write_random
from report import Failed

MODELS = 1000
# What a row of its own has; everything else is as in the row that it is made of.
KEPT = {"file": ("id",), "delivery": ("id", "file_id"), "receipt": ("id", "file_id")}


@contextlib.contextmanager
def opened(journal: Path) -> Iterator[sqlite3.Connection]:
    """Commits at the end."""
    with contextlib.closing(sqlite3.connect(journal)) as database, database:
        yield database


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
    for table, kept in KEPT.items():
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[1] not in kept]
        values = ", ".join("key || '-' || n" if name == "key" else name for name in columns)
        key = kept[-1]
        database.execute(f"""
            INSERT INTO {table} ({key}, {", ".join(columns)})
            SELECT n * {count} + {key}, {values} FROM {copies}, {table} WHERE {key} <= {last} ORDER BY 1""")


def make(model: Path, target: Path, total: int) -> None:
    """Copies the journal `model`, which nobody has open, to `target` and fills it up to `total` files."""
    shutil.copy(model, target)
    with opened(target) as database:
        database.execute("PRAGMA synchronous = OFF")
        multiply(database, total)
    with opened(target) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        files, tallied = one(database, "SELECT count(*) FROM file"), one(database, "SELECT sum(files) FROM tally")
    if not files == tallied == total:
        raise Failed(f"the journal has {files} files and counts {tallied}, not {total}")


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
        self._folder.mkdir()

    def _path(self, kind: str, rows: int) -> Path:
        return self._folder / f"{kind}-{rows}.sqlite"

    def _keep(self, name: str, count: int, event: str = "") -> None:
        with Agent(self.config) as agent:
            agent.wait_ready()
            if event:
                agent.wait_count(event, count, 120)
        shutil.copy(self.journal, self._path(name, count))

    def _make_models(self) -> None:
        """Journals of 1,000 small files that inlet has admitted, and then delivered."""
        drop, staged = self.config.parent / "drop", self._folder / "staged"
        self._keep("empty", 0)
        pause(self.journal)
        staged.mkdir()
        for number in range(MODELS):
            write_random(staged / f"f{number:06d}.bin", 1 << 10)
        os.rename(staged, drop / "batch")
        self._keep("queued", MODELS, "job.admitted")
        pause(self.journal, 0)
        self._keep("finished", MODELS, "job.finished")

    def use(self, kind: str, rows: int | None = None) -> None:
        """Begins the next start with so many files that are all `queued` or `finished`, or with an `empty` journal."""
        rows = 0 if kind == "empty" else self._rows if rows is None else rows
        if not self._path("empty", 0).exists():
            self._make_models()
        if not self._path(kind, rows).exists():
            make(self._path(kind, MODELS), self._path(kind, rows), rows)
        for suffix in ("-wal", "-shm"):
            self.journal.with_name(self.journal.name + suffix).unlink(missing_ok=True)
        shutil.copy(self._path(kind, rows), self.journal)
