"""What else a fleet goes through under load: a migration, drained stations, failovers, a full disk, TLS, equal contents."""

import errno
import os
import random
import shutil
import time
from pathlib import Path

from meddler import run
from postgres import Standby, give
from process import Worker, until
from report import Given, Row, bounded, figure, none
from servers import certificate
from stations import LOGIN, Fleet, judged, objects

REST = 60
# Of the disk of PostgreSQL's tables.
ROOM = 96

# As a later version could have it: migrations add.
MIGRATION = """BEGIN;
    SET LOCAL ROLE inlet_owner;
    ALTER TABLE inlet.work ADD COLUMN hint jsonb;
    CREATE TABLE inlet.site (name text PRIMARY KEY);
    CREATE FUNCTION inlet.v2_reserve(p_agent int, p_token bytea, p_session bigint, p_keys text[]) RETURNS int
        LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT cardinality(p_keys)';
    GRANT EXECUTE ON FUNCTION inlet.v2_reserve TO inlet_agent;
    INSERT INTO inlet.migration (version) VALUES (2);
    COMMIT;"""
# What stations say of PostgreSQL when something is wrong with it.
TROUBLE = ("fleet.away", "fleet.session_lost", "fleet.fenced", "fleet.schema_old", "fleet.key_clash")


class Load(Worker):
    """Files of equal names at stations and in the share, while this is a context."""

    def __init__(self, fleet: Fleet, seed: int, pace: float = 4) -> None:
        super().__init__()
        self._fleet, self._draw, self._pause, self._number = fleet, random.Random(seed), 1 / pace, 0
        self.stations = list(fleet.stations)

    def work(self) -> None:
        while not self.ended.wait(self._pause):
            self._number += 1
            self._fleet.put_everywhere(self._number, self._draw, self.stations)

    def __enter__(self) -> "Load":
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()


def migrated(folder: Path, given: Given) -> list[Row]:
    """Agents of v1 go on beside a migration."""
    with Fleet(folder, given.ttl, is_pooled=given.pooler, has_share=True) as fleet:
        fleet.add_all(3)
        before = errors(fleet)
        with Load(fleet, given.seed):
            time.sleep(10)
            fleet.cluster.sql(MIGRATION)
            time.sleep(10)
            # A new session begins, too.
            fleet.stations[0].stop()
            fleet.stations[0].start()
            time.sleep(5)
        fleet.wait_idle(REST)
        refused = fleet.cluster.errors(["SELECT inlet.v2_reserve(1, '', 1, '{a.mov}')"], LOGIN)
        said = sum(len(station.events(name)) for station in fleet.stations for name in TROUBLE)
        return [none("H: calls that failed", errors(fleet) - before), none("H: troubles of stations", said),
                none("H: calls of v2 refused", len(refused)), *judged("H", fleet)]


def errors(fleet: Fleet, words: str = "ERROR:") -> int:
    """Of the server's log."""
    return (fleet.cluster.folder / "log").read_text(errors="replace").count(words)


def drained(folder: Path, given: Given) -> list[Row]:
    """A station is drained under load, and taken back."""
    with Fleet(folder, given.ttl, is_pooled=given.pooler, has_share=True) as fleet:
        fleet.add_all(3)
        leaving = fleet.stations[1]

        def has() -> int:
            """The work and the places that are its."""
            return int(fleet.cluster.one(f"""SELECT (SELECT count(*) FROM inlet.work w WHERE w.agent = a.id)
                + (SELECT count(*) FROM inlet.place p WHERE p.holder = a.id) FROM inlet.agent a WHERE a.name = '{leaving.name}'"""))

        with Load(fleet, given.seed) as load:
            time.sleep(10)
            load.stations = [station for station in fleet.stations if station is not leaving]
            fleet.cluster.sql(f"SELECT inlet.v1_admin_agent('{leaving.name}', 'draining')")
            began = time.monotonic()
            until(lambda: leaving.events("fleet.drained"), REST, f"end of the drain of {leaving.name}", 0.1)
            until(lambda: not has(), REST, f"hand-over by {leaving.name}", 0.1)
            seconds = time.monotonic() - began
            kept = 0
            for _ in range(20):
                time.sleep(0.25)
                kept += has() > 0
            fleet.cluster.sql(f"SELECT inlet.v1_admin_agent('{leaving.name}', 'active')")
        fleet.wait_idle(REST)
        return [figure("L: drain: seconds until it had nothing", seconds), none("L: drain: claims afterwards", kept),
                *judged("L: drain", fleet)]


# Stations with a session at this server that owe no report, in a fleet that grants.
GRANTED = """SELECT count(*) FROM inlet.beat b JOIN inlet.agent a ON a.id = b.agent, inlet.fleet f WHERE a.epoch = f.epoch
    AND f.state = 'open' AND b.until > clock_timestamp() AND b.started = pg_postmaster_start_time()"""


def failover(folder: Path, given: Given, is_synchronous: bool) -> list[Row]:
    """The primary dies under load, and its standby is promoted. A synchronous one has all: a station that is off keeps nobody
    waiting. An asynchronous one has missed the last commits: all stations report."""
    letter = f"L: {'' if is_synchronous else 'a'}synchronous failover"
    with Fleet(folder / "fleet", given.ttl, has_share=True) as fleet, Standby(fleet.cluster, folder / "standby") as standby:
        primary = fleet.cluster
        fleet.standbys = [standby.port]
        if is_synchronous:
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'walreceiver';\nSELECT pg_reload_conf();")
        fleet.add_all(3)
        off = fleet.stations[-1:] if is_synchronous else []
        if is_synchronous:
            primary.sql("SELECT inlet.v1_admin_failover(true)")
        with Load(fleet, given.seed):
            time.sleep(10)
            if not is_synchronous:
                standby.stop()
                time.sleep(5)
            before = int(primary.one("SELECT epoch FROM inlet.fleet"))
            for station in off:
                station.kill()
            primary.stop("immediate")
            began = time.monotonic()
            if not is_synchronous:
                standby.start()
            standby.promote()
            fleet.cluster = standby
            living = len(fleet.stations) - len(off)
            until(lambda: int(standby.one(GRANTED)) == living, REST, f"open fleet after {fleet.waiting_for()}", 0.1)
            seconds = time.monotonic() - began
            for station in off:
                station.start()
            time.sleep(5)
        fleet.wait_idle(2 * REST)
        lost = int(standby.one("SELECT epoch FROM inlet.fleet")) - before
        primary.__exit__()
        said = sum(len(station.events("fleet.recovering")) for station in fleet.stations)
        told = [figure(f"{letter}: seconds until all grant again", seconds)]
        for what, count in (("times that commits were lost", lost), ("said to be recovering", said)):
            told.append(none(f"{letter}: {what}", count) if is_synchronous
                        else bounded(f"{letter}: {what}", count, 1, digits=0, is_least=True))
        return [*told, *judged(letter, fleet)]


def disk_full(folder: Path, given: Given) -> list[Row]:
    """The disk of PostgreSQL's tables is full for a while; its log is on another one, as it must be."""
    if os.geteuid():
        return [Row("L: full disk: only root can have a small disk", "-", "run", None)]
    disk = folder / "disk"
    disk.mkdir(parents=True)
    run("mount", "-t", "tmpfs", "-o", f"size={ROOM}m", "tmpfs", disk)
    try:
        (disk / "tables").mkdir(mode=0o700)
        give(disk / "tables")
        with Fleet(folder / "fleet", given.ttl, has_share=True) as fleet:
            fleet.cluster.sql(f"CREATE TABLESPACE small LOCATION '{disk}/tables';\nALTER DATABASE inlet SET TABLESPACE small;",
                              "postgres")
            fleet.add_all(3)
            with Load(fleet, given.seed, pace=10):
                time.sleep(10)
                fill(disk / "ballast")
                time.sleep(30)
                (disk / "ballast").unlink()
                time.sleep(5)
            fleet.wait_idle(2 * REST)
            refused = errors(fleet, "No space left")
            return [Row("L: full disk: calls without room", str(refused), ">= 1", refused > 0 or None),
                    *judged("L: full disk", fleet)]
    finally:
        run("umount", "-l", disk)


def fill(path: Path) -> None:
    """All that its disk has."""
    with open(path, "wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(1 << 16))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return


def secured(folder: Path, given: Given) -> list[Row]:
    """PostgreSQL proves itself by a certificate. A station that trusts another authority stays outside."""
    folder.mkdir(parents=True)
    names = [folder / "server.pem", folder / "server.key"]
    for source, name in zip((certificate(), certificate().with_suffix(".key")), names):
        shutil.copy(source, name)
        name.chmod(0o600)
        give(name)
    with Fleet(folder / "fleet", given.ttl, has_share=True, ssl="on", ssl_cert_file=str(names[0]),
               ssl_key_file=str(names[1])) as fleet:
        fleet.options = f"?sslmode=verify-full&sslrootcert={certificate()}"
        fleet.add_all(3)
        with Load(fleet, given.seed):
            time.sleep(5)
        fleet.wait_idle(REST)
        plain = fleet.cluster.one(f"""SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
            WHERE a.usename = '{LOGIN}' AND NOT s.ssl""")
        found = judged("L: TLS", fleet)
        fleet.options = f"?sslmode=verify-full&sslrootcert={certificate('other')}"
        stranger = fleet.add("stranger")
        stranger.start()
        time.sleep(10)
        let_in = fleet.cluster.one("SELECT count(*) FROM inlet.agent WHERE name = 'stranger'")
        return [none("L: TLS: sessions in plain text", int(plain)), none("L: TLS: joined by the wrong authority", int(let_in)),
                *found]


def equal(folder: Path, given: Given, contents: int = 40) -> list[Row]:
    """All stations get the same contents at once, under other names; one is killed meanwhile."""
    with Fleet(folder, given.ttl, is_pooled=given.pooler) as fleet:
        fleet.route = {"dedupe": "link"}
        fleet.add_all(5)
        for number in range(contents):
            for station in fleet.stations:
                size, draw = 7 << 20 if number % 10 == 0 else 40_000, random.Random(f"{given.seed} {number}")
                fleet.sources.append(station.put(f"{station.name}-{number:03}.mov", size, draw))
            if number == contents // 2:
                fleet.stations[0].kill()
                fleet.stations[0].start()
        fleet.wait_idle(2 * REST)
        held = [md5 for _, _, md5 in objects(fleet)]
        counts = [sum(md5 in etags for md5 in held) for etags in {source.etags for source in fleet.sources}]
        # After a kill the bytes may have been there already when another sent them.
        return [Row("L: equal contents", f"{len(counts)} of {len(fleet.sources)} files"),
                none("L: equal contents: lost", counts.count(0)),
                bounded("L: equal contents: sent more than once", sum(count > 1 for count in counts), 1, digits=0)]


def more(folder: Path, given: Given) -> list[Row]:
    return [*drained(folder / "drain", given), *failover(folder / "synchronous", given, True),
            *failover(folder / "asynchronous", given, False), *disk_full(folder / "full", given), *secured(folder / "tls", given),
            *equal(folder / "equal", given)]
