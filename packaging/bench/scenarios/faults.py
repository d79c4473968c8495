"""Calls on files fail by a seed while writers meddle; then what arrived is compared with the list that they kept.

Of the seed two rounds are played: one as it comes, and one in which the agent has 64 descriptors. As root also with file systems
that are mounted meanwhile. Takes the debug build, for only that has failpoints; INLET_BINARY names another.
"""

import contextlib
import json
import os
import shutil
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from agent import Agent, configure, lines_of, route, status
from everywhere import POLICIES
from judge import Findings, digest_of
from meddler import USER, Book, Disk, Meddler
from process import until
from report import SEED, Failed, Given, Row, none, table
from servers import Sandbox

# What a round is called, and how many descriptors the agent has in it.
ROUNDS = (("plain", None), ("64 descriptors", 64))
# About one call in so many begins a fault.
EVERY = 40
# The writers stop when so many seconds have passed, though not all calls have failed; and so is what comes after them bounded.
LONGEST, LONGEST_REST = 90, 900
# Without any progress for so long, what is open is open.
PATIENCE = 120
# Of a job that says of its file that it is not delivered.
OPEN = {"pending", "failed", "expired", "rejected", "cancelled"}

OPTIONS = {
    "--seed": SEED,
    "--count": (600, "how many calls fail"),
}


# What must hold: a pure function over the writers' list, what arrived, and what inlet says


class Scene(NamedTuple):
    """A run when it is quiet. Paths are below the watched folders.

    `held`: {destination: Counter of digests}; `disk`: {path: digest} of all files below the watched folders, `.inlet` and
    private names included; `jobs`: {path: [state]}, oldest first; `status`: of `inlet status --json`.
    """

    book: Book
    held: dict[str, Counter[str]]
    disk: dict[str, str]
    jobs: dict[str, list[str]]
    status: dict[str, Any]

    def has(self, digest: str) -> bool:
        """Whether every destination proved this content."""
        return all(held[digest] for held in self.held.values())

    def undelivered(self) -> list[Any]:
        """What is there, by the list and on the disk, and not at every destination. A file that looks like a delivered one,
        by size and time, is a known one."""
        known = {(one.path, one.size, one.modified) for one in self.book.versions if self.has(one.sha256)}
        return [now for path, now in self.book.present.items() if self.disk.get(path) == now.sha256
                and not self.has(now.sha256) and (path, now.size, now.modified) not in known]


def judge(scene: Scene) -> Findings:
    found, left = Findings("gone", "twice", "torn", "no proof", "missed", "well"), scene.undelivered()
    # No more files are called gone than went.
    for path, states in scene.jobs.items():
        count, most = states.count("gone"), scene.book.departures[path]
        if count > most:
            found.note("gone", path, f"{count} times, and it left {most} times")
    # A content is nowhere under more names than it had, and nothing is a mixture of two.
    names = Counter(version.sha256 for version in scene.book.versions)
    for destination, digest, count in ((name, *one) for name, held in scene.held.items() for one in held.items()):
        if not names[digest]:
            found.note("torn", digest[:12], f"{destination}: no file ever had these bytes")
        elif count > names[digest]:
            path = next(one.path for one in scene.book.versions if one.sha256 == digest)
            found.note("twice", path, f"{destination}: {count} times, and {names[digest]} files had it")
    # What its writer did not take is somewhere on the disk, or at every destination.
    kept = set(scene.disk.values())
    for path, now in scene.book.present.items():
        if now.sha256 not in kept and not scene.has(now.sha256):
            where = [name for name, held in scene.held.items() if held[now.sha256]]
            found.note("no proof", path, f"gone from the disk, and only at {where}" if where else "gone altogether")
    # What is there and not delivered is not called gone, and a job says so of it, or its watched folder does.
    is_said = any(one["about"] == "root" for one in scene.status["health"].get("findings", []))
    for now in left:
        states = scene.jobs.get(now.path, [])
        if states[-1:] == ["gone"]:
            found.note("gone", now.path, "and it is there, undelivered")
        if not is_said and not OPEN & set(states):
            found.note("missed", now.path, ", ".join(states) or "nobody saw it")
    # Status calls nothing well while something is open.
    sentence = scene.status["health"]["sentence"]
    counts = {name: count for name, count in scene.status["files"].items() if count and name in OPEN}
    if sentence.startswith("All is well.") and (counts or left or found.counts["gone"]):
        found.note("well", sentence, f"{len(left)} undelivered, {found.counts['gone']} wrongly gone, {counts}")
    return found


# A round


def digests(top: Path) -> dict[str, str]:
    """{path below `top`: digest} of all its files, without those that go meanwhile."""
    found = {}
    for path in (os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names):
        with contextlib.suppress(FileNotFoundError):
            found[os.path.relpath(path, top)] = digest_of(path)
    return found


class Round:
    """One agent among writers, with everything of it below one folder."""

    def __init__(self, folder: Path, seed: int, count: int, has_disks: bool) -> None:
        self.folder, self.count, self.book = folder, count, Book()
        self.failed_calls, self.roots, self.disks = folder / "faults.log", [folder / "drop"], []
        self.writers = [Meddler(folder / f"drop/{policy}/w{number}", f"{policy}/w{number}", seed, self.book)
                        for number, policy in enumerate(POLICIES)]
        if has_disks:
            self.roots.append(folder / "card")
            for place, name in ((folder / "drop/keep/w3", "keep/w3"), (folder / "card", "delete/w4")):
                disk = Disk(folder / f"disk{len(self.disks)}.img", place)
                self.disks.append(disk)
                inside = place if place.name == "w3" else place / name
                self.writers.append(Meddler(inside, name, seed, self.book, disk))
        places = ";".join(f"below={place}" for place in [*self.roots, folder / "library"])
        self.environment = os.environ | {"INLET_FAULTS": f"{places};seed={seed};count={count};every={EVERY}",
                                         "INLET_FAULTS_LOG": str(self.failed_calls)}

    def failed(self) -> list[str]:
        """CALL ERRNO PATH of each call that did not go through."""
        return self.failed_calls.read_text(errors="replace").splitlines() if self.failed_calls.exists() else []

    def meddle(self, agent: Agent) -> None:
        """Until all calls have failed that shall."""
        for writer in self.writers:
            writer.start()
        until(lambda: len(self.failed()) >= self.count, LONGEST, every=0.2, process=agent.process)
        for writer in self.writers:
            writer.ended.set()
        for writer in self.writers:
            writer.stop()

    def scene(self, config: Path, sandbox: Sandbox) -> tuple[Scene, list[dict[str, Any]]]:
        """What is found now, and the jobs."""
        says, jobs = status(config), defaultdict(list)
        rows = sorted(lines_of("queue", "list", "--json", config=config), key=lambda row: row["job"])
        for row in rows:
            root = next(root for root in self.roots if row["path"].startswith(f"{root}/"))
            jobs[os.path.relpath(row["path"], root)].append(row["state"])
        library = digests(self.folder / "library")
        held = {"s3": Counter(digest_of(entry["path"]) for entry in sandbox.report()["s3"]["objects"]),
                "library": Counter(digest for name, digest in library.items() if not Path(name).name.startswith(".inlet-"))}
        disk = {name: digest for root in self.roots for name, digest in digests(root).items()}
        return Scene(self.book, held, disk, jobs, says), rows

    def settle(self, agent: Agent, sandbox: Sandbox) -> tuple[Scene, list[dict[str, Any]]]:
        """Until nothing is open, or nothing went on for long. - Returns: what is found then."""
        over, seen = time.monotonic() + LONGEST_REST, None
        while True:
            scene, rows = self.scene(agent.config, sandbox)
            now = (scene.status["files"], {name: held.total() for name, held in scene.held.items()})
            if now != seen:
                seen, last = now, time.monotonic()
            is_quiet = scene.status["pending"] == 0 and not scene.undelivered()
            if is_quiet or time.monotonic() > min(over, last + PATIENCE) or agent.process.poll() is not None:
                return scene, rows
            time.sleep(1)

    def play(self, limit: int | None) -> tuple[Scene, list[dict[str, Any]], int]:
        """- Returns: what is found at the end, the jobs, and the agent's exit code."""
        try:
            with Sandbox(self.folder) as sandbox:
                (self.folder / "library").mkdir()
                # So many attempts that what passes ends no file.
                retry = {"attempts": 100, "backoff": "200ms", "max_backoff": "2s"}
                config = configure(
                    self.folder, {"s3": sandbox.s3(), "library": {"type": "folder", "path": f"{self.folder}/library"}},
                    [route(policy, "library", "s3", key="{dir}/{name}", path=f"{policy}/**", on_success=policy, retry=retry)
                     for policy in POLICIES], {"settle": "100ms", "poll": "1s"}, self.roots)
                before, user = ("prlimit", f"--nofile={limit}:{limit}") if limit else (), {}
                if os.geteuid() == 0:
                    for path in [self.folder, *self.folder.rglob("*")]:
                        shutil.chown(path, USER)
                    user = {"user": USER, "group": "nogroup", "extra_groups": []}
                with Agent(config, self.environment, before, **user) as agent:
                    self.meddle(agent)
                    scene, rows = self.settle(agent, sandbox)
                    if (code := agent.stop()) != 0:
                        print(f"inlet ended with {code}:\n{agent.tail()}")
        finally:
            for disk in self.disks:
                disk.close()
        if not self.failed():
            raise Failed("no call failed: a release build has no failpoints")
        return scene, rows, code

    def tell(self, title: str, scene: Scene, rows: list[dict[str, Any]]) -> None:
        """What failed and why, and of what there was how much."""
        def counted(words: Any) -> str:
            return ", ".join(f"{count} {word}" for word, count in sorted(Counter(words).items()))

        print(f"\n{title}: {scene.status['health']['sentence']}\n  writers: {counted(self.book.acts)}\n"
              f"  failed calls: {counted(line.split(' ')[0] for line in self.failed())}")
        reasons = Counter(row.get("reason") or row.get("code") or "?" for row in rows if row["state"] in ("failed", "expired"))
        for reason, count in reasons.most_common(5):
            print(f"  {count} failed: {reason}", flush=True)
        (self.folder / "found.json").write_text(json.dumps({
            "status": scene.status, "jobs": rows, "disk": scene.disk, "held": scene.held,
            "departures": self.book.departures, "versions": self.book.versions, "present": self.book.present}))


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    has_disks, lines, targets = Disk.is_possible(), [], []
    folder.chmod(0o755)
    if not has_disks:
        print("left  file systems that come and go: only root can mount them")
    for title, limit in ROUNDS:
        one = Round(folder / f"{limit or 'plain'}", given.seed, given.count // len(ROUNDS), has_disks)
        scene, rows, code = one.play(limit)
        one.tell(title, scene, rows)
        found, files = judge(scene), scene.status["files"]
        targets += [row._replace(what=f"{title}: {row.what}") for row in [*found.rows(), none("exit code", code)]]
        lines.append([title, len(one.failed()), len(one.book.versions), scene.status["seen"], files["delivered"],
                      scene.status["pending"], files["failed"], files["gone"], sum(one.book.departures.values()),
                      len(scene.undelivered()), "good" if code == 0 and not found.counts else "WRONG"])
    table(f"faults of seed {given.seed}", ["round", "failed calls", "written", "seen", "delivered", "waiting", "failed", "gone",
                                           "left", "undelivered", ""], lines)
    return "what must not be", targets
