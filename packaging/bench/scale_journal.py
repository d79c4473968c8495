"""Journals with a million jobs, made of a small one that inlet itself has written. Used by scale.py."""

import os
import shutil
import sqlite3

from loads import write_random
from measure import Inlet

MODELS = 1000
# What a row of its own has; everything else is as in the row that it is made of.
KEPT = {"file": ("id",), "delivery": ("id", "file_id"), "receipt": ("id", "file_id")}


def columns(database, table):
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[1] not in KEPT[table]]


def multiply(database, total):
    """As many more files as it takes until the journal has `total`, each with its model's deliveries and receipt.

    They are at their models' paths, so that there is something to send for each, and have keys of their own.
    """
    models = database.execute("SELECT count(*), max(id) FROM file").fetchone()
    if models[0] != models[1]:
        raise SystemExit("the journal to multiply has had files that were forgotten")
    count, last = models
    copies = f"""(WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < {total // count - 1})
        SELECT n FROM copy)"""
    if total // count < 2:
        return
    file = columns(database, "file")
    database.execute(f"""
        INSERT INTO file (id, {", ".join(file)})
        SELECT n * {count} + id, {", ".join(file)} FROM {copies}, file WHERE id <= {last} ORDER BY 1""")
    delivery = columns(database, "delivery")
    values = ", ".join("key || '-' || n" if name == "key" else name for name in delivery)
    database.execute(f"""
        INSERT INTO delivery (file_id, {", ".join(delivery)})
        SELECT n * {count} + file_id, {values} FROM {copies}, delivery WHERE file_id <= {last} ORDER BY 1""")
    receipt = columns(database, "receipt")
    database.execute(f"""
        INSERT INTO receipt (file_id, {", ".join(receipt)})
        SELECT n * {count} + file_id, {", ".join(receipt)} FROM {copies}, receipt WHERE file_id <= {last} ORDER BY 1""")


def make(model, target, total):
    """Copies the journal `model`, which nobody has open, to `target` and fills it up to `total` files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(model, target)
    database = sqlite3.connect(target)
    database.execute("PRAGMA synchronous = OFF")
    with database:
        multiply(database, total)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    files, tallied = (database.execute(sql).fetchone()[0] for sql in
                      ("SELECT count(*) FROM file", "SELECT sum(files) FROM tally"))
    database.close()
    if not files == tallied == total:
        raise SystemExit(f"the journal has {files} files and counts {tallied}, not {total}")


def pause(journal, destination):
    """So that the next start sends nothing."""
    database = sqlite3.connect(journal)
    with database:
        database.execute("INSERT INTO destination (name, paused) VALUES (?, 1) "
                         "ON CONFLICT(name) DO UPDATE SET paused = 1", (destination,))
    database.close()


def history_state(journal):
    """(bytes of the journal, of these on free pages, finished files that are no history)."""
    database = sqlite3.connect(journal)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    page, pages, free = (database.execute(f"PRAGMA {name}").fetchone()[0]
                         for name in ("page_size", "page_count", "freelist_count"))
    left = database.execute("SELECT count(*) FROM file WHERE finished_at IS NOT NULL").fetchone()[0]
    database.close()
    return pages * page, free * page, left


class Place:
    """A folder with a configuration: one root, one `s3` destination."""

    def __init__(self, folder, sink, *, workers=4, parts=4, connections=32):
        self.folder, self.drop, self.state = folder, folder / "drop", folder / "state"
        self.drop.mkdir(parents=True)
        self.journal = self.state / "journal.sqlite"
        self.config = folder / "inlet.yaml"
        self.write(sink, workers, parts, connections)

    def write(self, sink, workers=4, parts=4, connections=32, more=""):
        """`more` is a line of configuration."""
        self.config.write_text(f"""\
state_dir: {self.state}
workers: {workers}
{more}
destinations:
  archive: {{ type: s3, endpoint: "{sink.url}", bucket: bench, access_key: bench, secret_key: bench, verify: size, part_size: 8MiB, parallel_parts: {parts}, connections: {connections} }}
watch:
  - {{ path: {self.drop}, settle: 0s }}
routes:
  - {{ name: everything, to: [archive], key: "{{name}}" }}
""")

    def use(self, journal):
        """Begins the next start with a copy of `journal`."""
        for suffix in ("-wal", "-shm"):
            self.journal.with_name(self.journal.name + suffix).unlink(missing_ok=True)
        self.state.mkdir(exist_ok=True)
        shutil.copy(journal, self.journal)

    def run(self):
        return Inlet(self.config, self.folder / "inlet.log")


class Journals:
    """A million of each, made when they are first asked for."""

    def __init__(self, folder, sink, rows):
        self._folder, self._rows, self.sink = folder / "journals", rows, sink
        self.place = Place(folder / "place", sink)
        self._models = None

    def _model(self, kind):
        """A journal of 1,000 small files that inlet has admitted, and then delivered."""
        if self._models is None:
            place = self.place
            self._models = {name: self._folder / f"{name}-model.sqlite" for name in ("empty", "queued", "finished")}
            self._folder.mkdir()
            self._keep("empty", 0)
            pause(place.journal, "archive")
            (place.folder / "staged").mkdir()
            for number in range(MODELS):
                write_random(place.folder / "staged" / f"f{number:06d}.bin", 1 << 10, False)
            os.rename(place.folder / "staged", place.drop / "batch")
            self._keep("queued", MODELS, "job.admitted")
            database = sqlite3.connect(place.journal)
            with database:
                database.execute("UPDATE destination SET paused = 0")
            database.close()
            self._keep("finished", MODELS, "job.finished")
        return self._models[kind]

    def _keep(self, name, count, event=None):
        with self.place.run() as agent:
            agent.wait_ready()
            if event:
                agent.wait_for(f"{count} x {event}", lambda events: agent.count(event) >= count, 120)
        shutil.copy(self.place.journal, self._models[name])

    def get(self, kind, rows=None):
        model, rows = self._model(kind), self._rows if rows is None else rows
        if kind == "empty":
            return model
        path = self._folder / f"{kind}-{rows}.sqlite"
        if not path.exists():
            make(model, path, rows)
        return path


def self_test():
    """Two files become six, each with a delivery of its own key."""
    database = sqlite3.connect(":memory:")
    database.executescript("""
        CREATE TABLE file (id INTEGER PRIMARY KEY, path);
        CREATE TABLE delivery (id INTEGER PRIMARY KEY, file_id, key UNIQUE);
        CREATE TABLE receipt (id INTEGER PRIMARY KEY, file_id, state);
        INSERT INTO file VALUES (1, 'a'), (2, 'b');
        INSERT INTO delivery VALUES (1, 1, 'a'), (2, 2, 'b');
        INSERT INTO receipt VALUES (1, 1, 'done'), (2, 2, 'done');""")
    multiply(database, 6)
    for table in ("file", "delivery", "receipt"):
        if database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] != 6:
            raise SystemExit(f"scale_journal: {table} has not six rows")
    if database.execute("SELECT path FROM file JOIN delivery ON file.id = file_id WHERE key = 'b-2'").fetchall() != [("b",)]:
        raise SystemExit("scale_journal: a delivery belongs to another file")
    print("ok    scale_journal")
