"""kill -9 at random moments while a folder fills; then every source is compared with what every destination holds.

Deliveries go to all kinds of destinations: `inlet sandbox`, and the sink, which shares no code with inlet. One kill
in four comes while inlet recovers, some of them twice in a row.
"""

import hashlib
import json
import os
import queue
import random
import time
from pathlib import Path
from typing import Any

import judge
from agent import Agent, Event, lines_of, status
from everywhere import KINDS, PART, POLICIES, configure_everywhere
from judge import Source
from process import Worker, until
from report import MIB, SEED, Given, Row, bounded, none
from servers import Sandbox, Sink

FORM_OVERHEAD, FILES_PER_CYCLE = 4 << 10, 6
# Files that are long enough on their way for a kill to find them there.
NOTICEABLE = 64 << 10
# Operations of the sandbox's servers whose bodies are files, and of these the ones that send a part.
BODIES = {"spiral": ("part", "single"), "s3": ("putObject", "uploadPart"), "gighive": ("upload", "tusPatch"), "vopi": ("upload",)}
PARTS = {"part", "uploadPart", "tusPatch"}

# For what is left after the last kill.
REST = 180

OPTIONS = {"cycles": 50, "--seed": SEED}


class Filler(Worker):
    """Writes half the files in place, slowly, renames half of them in; now and then a whole unit."""

    # Kinds in the proportions in which they come.
    CHOICE = ["spiral", "other", "s3", "stage", "library"] * 3 + ["products", "spaces", "spaces", "units"]

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__()
        self._drop, self._staging, self._random = folder / "drop", folder / "staging", random.Random(seed)
        self._permits: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.sources: list[Source] = []

    def allow(self, count: int) -> None:
        """Paces the filler by kills, so that the disk it needs does not depend on their speed."""
        for _ in range(count):
            self._permits.put(1)

    def stop(self) -> None:
        """Returns when every file that was allowed is complete."""
        self._permits.put(None)
        super().stop()

    def work(self) -> None:
        for number, _ in enumerate(iter(self._permits.get, None)):
            kind, policy = self._random.choice(self.CHOICE), self._random.choice(POLICIES)
            if kind == "units":
                self._unit(f"units/{policy}/u{number:05}", policy)
            else:
                self._one_file(f"{kind}/{policy}/f{number:05}.{KINDS[kind][0]}", kind, policy, self._size(kind),
                               self._random.random() < 0.5)

    def _unit(self, folder: str, policy: str) -> None:
        """Two clips, one with a sidecar, and the marker that says that they are complete."""
        (self._drop / folder).mkdir()
        for name, size in (("a.xmp", 300), ("a.mp4", self._size("library")), ("b.mp4", 40_000)):
            self._one_file(f"{folder}/{name}", "units", policy, size + 1, False)
        self._one_file(f"{folder}/DONE", "units", policy, 0, False, is_sent=False)

    def _size(self, kind: str) -> int:
        draw = self._random.random()
        # GigHive tells files by their content, so that two empty ones are one; a video is never empty.
        least = 64 if kind in ("stage", "products", "spaces") else 0
        if draw < 0.1:
            return least
        if draw < 0.65 or kind == "products":
            return self._random.randrange(1 + least, 64 << 10)
        return self._random.randrange(64 << 10, PART) if draw < 0.92 else self._random.randrange(PART, 30 * MIB)

    def _one_file(self, name: str, kind: str, policy: str, size: int, in_place: bool, is_sent: bool = True) -> None:
        path = self._drop / name if in_place else self._staging / name.replace("/", "_")
        content = os.urandom(size)
        with open(path, "wb", buffering=0) as file:
            for at in range(0, size, 4 * MIB):
                file.write(content[at:at + 4 * MIB])
                if in_place:
                    time.sleep(self._random.uniform(0, 0.1))
            self.sources.append(Source(name, kind, policy, size, hashlib.sha256(content).hexdigest(), etags(content), is_sent))
        if not in_place:
            os.rename(path, self._drop / name)


def etags(content: bytes) -> frozenset[str]:
    """Of a store that hashes with MD5: sent as one, or in parts."""
    parts = [hashlib.md5(content[at:at + PART]).digest() for at in range(0, len(content), PART)]
    return frozenset([hashlib.md5(content).hexdigest(), f"{hashlib.md5(b''.join(parts)).hexdigest()}-{len(parts)}"])


# Kills


def wait_for_the_moment(agent: Agent, moments: random.Random, is_early: bool) -> None:
    """One kill in four while inlet recovers; of the others half at any time, half while something is being sent."""
    # Drawn here, however the waiting ends: the later moments must not depend on it.
    waits = (moments.random() < 0.5) == is_early
    pause = moments.uniform(0, 0.08) if is_early else moments.uniform(0, 0.04) if waits else moments.uniform(0.05, 2)

    def has_come() -> bool:
        return agent.count("agent.started") > 0 if is_early else max(
            judge.in_flight(agent.events()).values(), default=0) > NOTICEABLE

    has_come_early = waits and until(has_come, 2, every=0.001, process=agent.process) and is_early
    time.sleep(pause / 8 if has_come_early else pause)


def kill_again_and_again(config: Path, filler: Filler, given: Given) -> tuple[list[list[Event]], int]:
    """- Returns: the events of each run, and how many ended by themselves."""
    moments, runs, again = random.Random(given.seed), [], False
    for _ in range(given.cycles):
        is_early = again or moments.random() < 0.25
        again = is_early and not again and moments.random() < 0.5
        filler.allow(FILES_PER_CYCLE)
        with Agent(config, is_awaited=False) as agent:
            wait_for_the_moment(agent, moments, is_early)
            if agent.process.poll() is not None:
                print(f"inlet ended by itself with {agent.process.returncode}:\n{agent.tail()}")
                return runs, 1
            agent.kill()
            runs.append(list(agent.events()))
    return runs, 0


def expected(sources: list[Source]) -> int:
    """Of each unit one list goes to S3, beside the files."""
    return len(sources) + len(judge.units(sources))


def run_to_the_end(config: Path, filler: Filler) -> tuple[list[Event], int]:
    """One more run, until nothing is pending and every file has its receipt. - Returns: its events, and its exit code."""
    with Agent(config) as agent:
        filler.stop()
        agent.wait_idle(REST, lambda: len(lines_of("receipts", config=config)) >= expected(filler.sources))
        return list(agent.events()), agent.stop()


# What it cost


def body_bytes(report: dict[str, Any], parts_only: bool = False) -> int:
    """Bytes of files, or of parts of files, that the servers received, those of attempts that were cut off included."""
    return sum(report[name]["server"]["bytes"].get(operation, 0) for name, operations in BODIES.items()
               for operation in operations if operation in PARTS or not parts_only)


# The tiny objects by which `verify: auto` learns what a store compares: again after a kill that came before it was written down.
TRIAL = 1 << 10


def traffic_rows(folder: Path, sources: list[Source], report: dict[str, Any], other: dict[str, int],
                 runs: list[list[Event]]) -> list[Row]:
    """Bytes received by servers, needed by them, and sent again; for all files and for those that are longer than a part, which
    small ones would hide."""
    # A folder has no server; of a unit's two copies one goes to S3, and with it a list.
    sizes = [source.size for source in sources if source.is_sent and source.kind != "library"]
    forms = report["gighive"]["server"]["requests"].get("upload", 0) * FORM_OVERHEAD
    rows = []
    for what, sent, needed, allowed in (
        ("bytes", body_bytes(report) + other["bytes"], sum(sizes) + sum(judge.sent_lists(folder).values()),
         judge.allowance(runs) + forms + TRIAL * len(runs)),
        ("bytes in parts", body_bytes(report, True) + other["part_bytes"],
         sum(size for size in sizes if size > PART), judge.allowance(runs, above=PART) + TRIAL * len(runs)),
    ):
        rows += [Row(f"{what} sent", f"{sent / MIB:.1f} MiB"), Row(f"{what} needed", f"{needed / MIB:.1f} MiB"),
                 Row(f"{what} re-sent", f"{max(0, sent - needed) / MIB:.1f} MiB", f"<= {allowed / MIB:.1f} MiB",
                     sent - needed <= allowed)]
    return rows


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    found = judge.crash_findings()
    with Sink(etag="md5") as store, Sandbox(folder) as sandbox:
        config = configure_everywhere(folder, sandbox, store.url, evidence=True)
        filler = Filler(folder, given.seed)
        filler.start()
        runs, died = kill_again_and_again(config, filler, given)
        last, code = run_to_the_end(config, filler)
        runs.append(last)
        says, rows, report, other = status(config), lines_of("receipts", config=config), sandbox.report(), store.stats()
        (folder / "report.json").write_text(json.dumps({"report": report, "other": other, "status": says}))
        judge.compare(found, folder, filler.sources, report, store)
    judge.compare_receipts(found, folder, filler.sources, rows)
    judge.balance(found, says, expected(filler.sources))
    judge.finished(found, runs)
    hit, early = sum(bool(judge.in_flight(events)) for events in runs[:-1]), judge.killed_early(runs[:-1])
    # A few cycles may happen to have none.
    is_judged = given.cycles >= 50
    return f"{given.cycles} x kill -9, seed {given.seed}", [
        Row("cycles", str(given.cycles)), bounded("kills with files in flight", hit, 1, "", 0, is_least=True),
        Row("killed before ready", str(early), "> 0" if is_judged else "", early > 0 or not is_judged),
        Row("files", str(len(filler.sources))), *found.rows(), none("ended by itself", died), none("exit code at the end", code),
        *traffic_rows(folder, filler.sources, report, other, runs)]
