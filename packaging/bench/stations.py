"""Several agents, each with a drop of its own, and maybe a share of all, one PostgreSQL and one store: what writes to them,
and how they are judged."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agent import Agent, Event, binary, configure, lines_of, route, s3, status
from postgres import Cluster, Line, Pooler
from process import Child, end, until
from report import MIB, Failed, Row, none
from scenarios.crash import etags
from servers import Sink
from shares import Share

LOGIN = "inlet_station"
PART = 5 * MIB


class Source(NamedTuple):
    """A file of a station: its path below the drop, and what a store that hashes with MD5 says of it."""

    station: str
    name: str
    size: int
    etags: frozenset[str]


def inlet(*words: object) -> str:
    """A command that needs no agent; its standard output."""
    done = subprocess.run([binary(), *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise Failed(f"inlet {words[0]} {words[1]}: exit {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


class Station:
    """One agent, and its line to PostgreSQL, which can be cut."""

    def __init__(self, fleet: "Fleet", name: str, destination: dict[str, Any] | None = None,
                 key: str = "{name}", **more: Any) -> None:
        self.name, self.folder = name, fleet.folder / name
        self.line = Line(fleet.port)
        self.drop, self.staging = self.folder / "drop", self.folder / "staging"
        self.staging.mkdir(parents=True)
        own = {"url": fleet.url(self.line.port), "name": name, "join_file": str(fleet.secret),
               "patience": fleet.patience}
        # The store's log knows it by this key.
        store = s3(fleet.store.url, part_size="5MiB", multipart_threshold="5MiB") | {"access_key": name} | fleet.destination
        share, routes = fleet.share, [route("all", "store", key=key, **fleet.route)]
        places, ours = ({share.NAME: share.root}, share.routes("store")) if share else ({}, [])
        self.config = configure(self.folder, {"store": store | (destination or {})} | fleet.others, ours + routes, places=places,
                                fleet=own | more)
        self.agent: Agent | None = None
        # Set for an agent whose clock is wrong.
        self.environment: dict[str, str] | None = None
        self.runs: list[list[Event]] = []

    def start(self, is_awaited: bool = True) -> Agent:
        self.agent = Agent(self.config, self.environment, is_awaited=is_awaited)
        if is_awaited:
            self.agent.__enter__()
        return self.agent

    def kill(self) -> None:
        self.agent.kill()
        self.runs.append(list(self.agent.events()))

    def stop(self) -> None:
        """As a service manager does."""
        if self.agent and self.agent.process.poll() is None:
            code = self.agent.stop()
            self.runs.append(list(self.agent.events()))
            if code:
                raise Failed(f"{self.name} ended with {code}:\n{self.agent.tail()}")

    def events(self, name: str) -> list[Event]:
        """Of all runs."""
        now = self.agent.events() if self.agent and self.agent.process.poll() is None else []
        return [event for events in [*self.runs, now] for event in events if event.get("event") == name]

    def signal(self, number: int) -> None:
        os.kill(self.agent.pid, number)

    def fleet(self) -> dict[str, Any]:
        """Its standing, as `inlet status` has it."""
        return status(self.config).get("fleet") or {}

    def wait_live(self, seconds: float = 60) -> None:
        until(lambda: self.fleet().get("state") == "live", seconds, f"live session of {self.name}", 0.2, self.agent.process,
              lambda: f"{self.fleet()}\n{self.agent.tail()}")

    def put(self, name: str, size: int, draw: random.Random) -> Source:
        content = draw.randbytes(size)
        staged = self.staging / name
        staged.write_bytes(content)
        os.rename(staged, self.drop / name)
        return Source(self.name, name, size, etags(content))

    def pending(self) -> int:
        return status(self.config)["pending"]

    def receipts(self) -> list[dict[str, Any]]:
        return lines_of("receipts", config=self.config)

    def has(self, path: str) -> bool:
        """Whether a file is its own, and not of a share."""
        return path.startswith(f"{self.drop}/")

    def clone(self, to: str) -> "Station":
        """A copy as of a virtual machine that was cloned: same journal, other folders."""
        twin = object.__new__(Station)
        twin.__dict__ = self.__dict__ | {"name": to, "folder": self.folder.with_name(to), "agent": None, "runs": []}
        twin.drop, twin.staging = twin.folder / "drop", twin.folder / "staging"
        twin.folder.mkdir()
        shutil.copytree(self.folder / "state", twin.folder / "state", ignore=shutil.ignore_patterns("*.sock"))
        twin.drop.mkdir()
        twin.staging.mkdir()
        twin.config = twin.folder / "inlet.yaml"
        twin.config.write_text(self.config.read_text().replace(str(self.folder), str(twin.folder)))
        twin.config.chmod(0o600)
        return twin


class Fleet(Child):
    """A cluster with the schema, a store that is blind unless `conditions` says otherwise, stations, and where asked for a share.
    Everything ends with its context."""

    def __init__(self, folder: Path, ttl: float = 3, patience: str = "4s", is_pooled: bool = False, has_share: bool = False,
                 conditions: str = "ignore", destination: dict[str, Any] | None = None, **settings: str) -> None:
        self.folder, self.ttl, self.patience, self.destination = folder, ttl, patience, destination or {}
        # Destinations besides the store; what routes of stations say besides; other servers for their connections, and
        # libpq's options.
        self.others: dict[str, dict[str, Any]] = {}
        self.route: dict[str, Any] = {}
        self.standbys: list[int] = []
        self.options = ""
        folder.mkdir(parents=True, exist_ok=True)
        self.share = Share(folder) if has_share else None
        self.stations: list[Station] = []
        self.sources: list[Source] = []
        self.pooler: Pooler | None = None
        self.cluster = Cluster(folder / "postgres", **settings)
        try:
            inlet("fleet", "init", "--url", self.cluster.url(), "--ttl", f"{int(ttl)}s")
            self.secret = folder / "fleet.join"
            self.secret.touch(mode=0o600)
            self.secret.write_text(inlet("fleet", "secret", "--url", self.cluster.url()).strip() + "\n")
            self.cluster.sql(f"CREATE ROLE {LOGIN} LOGIN IN ROLE inlet_agent")
            self.pooler = Pooler(self.cluster) if is_pooled else None
            self.port = self.pooler.port if self.pooler else self.cluster.port
            # It keeps no bodies, and unless it is told to enforces nothing: a key that two agents write is overwritten.
            self.store = Sink(etag="md5", conditions=conditions, is_logging=has_share)
        except BaseException:
            self.cluster.__exit__()
            raise

    def __exit__(self, *failure: object) -> None:
        for station in self.stations:
            if station.agent and station.agent.process.poll() is None:
                station.signal(signal.SIGCONT)
                station.agent.process.kill()
                station.agent.process.wait()
            station.line.end()
        end(self.store.process)
        if self.pooler:
            end(self.pooler.process)
        self.cluster.__exit__()

    def add(self, name: str, **more: Any) -> Station:
        station = Station(self, name, **more)
        self.stations.append(station)
        return station

    def add_all(self, count: int) -> None:
        for number in range(1, count + 1):
            self.add(f"station-{number}").start()
        for station in self.stations:
            station.wait_live()

    def url(self, port: int) -> str:
        """Of a station that reaches PostgreSQL through `port`."""
        hosts = ",".join(f"127.0.0.1:{one}" for one in [port, *self.standbys])
        return f"postgresql://{LOGIN}@{hosts}/inlet{self.options}"

    def station(self, name: str) -> Station:
        return next(station for station in self.stations if station.name == name)

    def state(self) -> str:
        return self.cluster.one("SELECT state FROM inlet.status")

    def waiting_for(self) -> str:
        return self.cluster.one("SELECT coalesce(array_to_string(waiting_for, ','), '') FROM inlet.status")

    def put_everywhere(self, number: int, draw: random.Random, stations: Iterable[Station] | None = None,
                       to_share: bool = True) -> None:
        """A file of the same name to each; every content is another one."""
        for station in stations or self.stations:
            size = draw.randrange(1, 64 << 10) if draw.random() < 0.9 else draw.randrange(PART + 1, 3 * PART)
            self.sources.append(station.put(f"clip-{number:05}.mov", size, draw))
        for policy in Share.POLICIES if self.share and to_share else ():
            self.put_share(policy, f"clip-{number:05}.mov", draw.randrange(1, 64 << 10), draw)

    def put_share(self, policy: str, name: str, size: int, draw: random.Random) -> None:
        file = self.share.put(policy, name, size, draw)
        self.sources.append(Source(Share.NAME, file.name, size, file.etags))

    def share_rest(self) -> dict[str, Any]:
        """What is not ended in the share; nothing without one."""
        if not self.share:
            return {}
        work, ended = map(int, self.cluster.sql(
            "SELECT (SELECT count(*) FROM inlet.work), (SELECT count(*) FROM inlet.file WHERE state = 'f')")[0])
        is_over = not work and ended >= len(self.share.sources)
        return {} if is_over else {Share.NAME: {"work": work, "finished": ended, "files": len(self.share.sources)}}

    def wait_idle(self, seconds: float) -> float:
        """Until every file of every station and of the share is delivered. - Returns: how long that took."""
        began = time.monotonic()
        counts = Counter(source.station for source in self.sources)

        def is_short(station: Station, files: dict[str, int]) -> bool:
            """Files of the share count as well in `files`: then its receipts tell."""
            return sum(files.values()) < counts[station.name] or bool(self.share) and counts[station.name] > len(
                {row["path"] for row in station.receipts() if station.has(row["path"])})

        def rest() -> dict[str, Any]:
            states = [(station, status(station.config)) for station in self.stations]
            busy = {station.name: state["files"] | {"fleet": state.get("fleet")} for station, state in states
                    if state["pending"] or is_short(station, state["files"])}
            return busy or self.share_rest()

        until(lambda: not rest(), seconds, "end of all deliveries", 0.5,
              words=lambda: json.dumps(rest(), indent=1)[:3000])
        return time.monotonic() - began


class Verdict(NamedTuple):
    """How often each of the four things happened that must not."""

    lost: int
    twice: int
    shared: int
    partial: int
    # What is wrong, with the names.
    lines: list[str]


def objects(fleet: Fleet) -> Iterator[tuple[str, int, str]]:
    """(key, size, MD5) in the bucket, without the trials of checksums."""
    rows = ((key.removeprefix("/bench/"), size, md5) for key, size, md5 in fleet.store.listing())
    return (row for row in rows if not row[0].startswith(".inlet-check/"))


def judge(fleet: Fleet) -> Verdict:
    """Every content is under exactly one key, and no key was given to two files."""
    held: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for key, size, md5 in objects(fleet):
        held[md5].append((key, size))
    lost, twice, lines, known = 0, 0, [], set()
    for source in fleet.sources:
        keys = [key for md5 in source.etags for key, size in held.get(md5, ()) if size == source.size]
        known |= source.etags
        lost += not keys
        twice += len(keys) > 1
        if len(keys) != 1:
            lines.append(f"{source.station}/{source.name}: {'lost' if not keys else 'under ' + ', '.join(sorted(keys))}")
    foreign = sorted(key for md5, rows in held.items() if md5 not in known for key, _ in rows)
    lines += [f"{key}: of no source" for key in foreign]
    owners = defaultdict(set)
    for station in fleet.stations:
        for row in station.receipts():
            # Two agents may have a receipt of one file of a share.
            owner = station.name if station.has(row["path"]) or not fleet.share else Share.NAME
            for delivery in row["deliveries"]:
                owners[delivery["key"]].add((owner, row["path"]))
    shared = {key: files for key, files in owners.items() if len(files) > 1}
    lines += [f"{key}: of {', '.join(sorted('/'.join(file) for file in files))}" for key, files in shared.items()]
    return Verdict(lost, twice, len(shared), len(foreign), lines)


def published(fleet: Fleet) -> tuple[int, int]:
    """(files without a receipt in the search, files of stations with more than one)."""
    rows: Counter[tuple[str, str]] = Counter()
    for agent, root, path in fleet.cluster.sql("SELECT agent, root, path FROM inlet.receipts WHERE state = 'delivered'"):
        # Who takes over the finishing of a file in a share writes a receipt as well.
        if fleet.share and root == str(fleet.share.root):
            rows[Share.NAME, path] = 1
        else:
            rows[agent, path] += 1
    wanted = {(source.station, source.name) for source in fleet.sources}
    return len(wanted - set(rows)), sum(count > 1 for count in rows.values())


def judged(letter: str, fleet: Fleet) -> list[Row]:
    """The four zeros, and what is left in the share, with the names of what is wrong."""
    verdict = judge(fleet)
    lines = verdict.lines + (left := fleet.share.problems() if fleet.share else [])
    if lines:
        print(f"\n{letter}: what is wrong\n" + "\n".join(f"  {line}" for line in lines[:50]), flush=True)
    rows = [Row(f"{letter}: files", str(len(fleet.sources))), none(f"{letter}: lost", verdict.lost),
            none(f"{letter}: under two keys", verdict.twice), none(f"{letter}: shared keys", verdict.shared),
            none(f"{letter}: partial", verdict.partial)]
    if fleet.share:
        rows += [Row(f"{letter}: files of the share", str(len(fleet.share.sources))),
                 none(f"{letter}: sources in the share not as their route says", len(left)),
                 none(f"{letter}: work left", int(fleet.cluster.one("SELECT count(*) FROM inlet.work")))]
    return rows
