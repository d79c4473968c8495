"""What must hold after any number of kills: pure functions over what was written, stored, logged and told."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from agent import Event
from everywhere import PART
from report import Row, none


class Source(NamedTuple):
    """A file by its path below the root: what it holds, what becomes of it, and whether it is sent."""

    name: str
    kind: str
    policy: str
    size: int
    sha256: str
    etags: frozenset[str]
    is_sent: bool = True


class Findings:
    """What is wrong, by kind, with the names."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds
        self.counts: Counter[str] = Counter()
        self.lines: list[str] = []

    def note(self, kind: str, name: str, detail: str = "") -> None:
        self.counts[kind] += 1
        self.lines.append(f"{kind}: {name}" + (f" ({detail})" if detail else ""))

    def rows(self, most: int = 10) -> list[Row]:
        """Prints the first of each kind."""
        for kind in self.kinds:
            lines = [line for line in self.lines if line.startswith(f"{kind}: ")]
            print("\n".join(f"  {line}" for line in lines[:most]), end="\n" if lines else "")
            if len(lines) > most:
                print(f"  and {len(lines) - most} more of '{kind}'")
        return [none(kind, self.counts[kind]) for kind in self.kinds]


def crash_findings() -> Findings:
    return Findings("lost", "partial", "duplicated", "foreign", "finished twice", "receipts", "source", "balance", "left open")


def by_key(found: Findings, where: str, wanted: dict[Any, Any], objects: Iterable[tuple[Any, Any]], kind: str = "") -> None:
    """One object for each wanted key, which holds what it should. `kind`: all that is wrong is one of these."""
    held = defaultdict(list)
    for key, content in objects:
        held[key].append(content)
    for key, content in wanted.items():
        copies = held.pop(key, [])
        if len(copies) != 1:
            found.note(kind or ("duplicated" if copies else "lost"), key, f"{where}: {len(copies)}")
        for copy in copies:
            if copy != content:
                found.note(kind or "partial", key, f"{where}: {copy}")
    for key, contents in held.items():
        is_known = any(content in wanted.values() for content in contents)
        found.note(kind or ("duplicated" if is_known else "foreign"), key,
                   f"{where}: {'another name of a source' if is_known else 'of no source'}")


def by_content(found: Findings, where: str, wanted: dict[str, str], objects: Iterable[str]) -> None:
    """A server that goes by contents. `objects`: [sha256], as often as it was filed; `wanted`: {name: sha256}."""
    names = {digest: name for name, digest in wanted.items()}
    need, have = Counter(wanted.values()), Counter(objects)
    for digest, count in (need - have).items():
        found.note("lost", names[digest], f"{where}: {count} missing")
    for digest, count in (have - need).items():
        found.note("duplicated" if digest in names else "partial", names.get(digest, digest[:12]), f"{where}: {count} too many")


def videos(found: Findings, wanted: dict[str, str], report: dict[str, Any]) -> None:
    """VOPI: one completed job for each video, made of these very bytes."""
    digests = {video["key"]: video["sha256"] for video in report["videos"]}
    by_content(found, "products", wanted, [digests.get(job["video_key"], "?") for job in report["jobs"]])
    for job in report["jobs"]:
        if job["status"] != "completed":
            found.note("left open", job["id"], f"a job is {job['status']}")
    if report["charges"] != len(wanted):
        found.note("duplicated", "charges", f"{report['charges']} for {len(wanted)} videos")


def pictures(found: Findings, job: str, made: list[str], fetched: dict[str, str]) -> None:
    """Every picture of a job is here, byte for byte, and `product.json`. `made`: [sha256]; `fetched`: {name: sha256}."""
    if "product.json" not in fetched or not made:
        found.note("lost", job, "its product.json" if made else "the server made no pictures")
    by_content(found, job, {f"picture {number} of {job}": digest for number, digest in enumerate(made)},
               [digest for name, digest in fetched.items() if name != "product.json"])


def spaces(found: Findings, wanted: dict[str, str], report: dict[str, Any]) -> None:
    """Roboscope: one space for each model. `wanted`: {key of the space: key of the model's object}."""
    def model(space: dict[str, Any]) -> str:
        name, address = wanted.get(space["key"], "?"), space.get("model") or ""
        return name if address.endswith("/" + name) else address

    by_key(found, "spaces", wanted, [(space["key"], model(space)) for space in report["spaces"]])


def receipts(found: Findings, root: Path, names: Iterable[str], rows: list[dict[str, Any]]) -> None:
    """One receipt for each file, and it says delivered. `names`: the files' paths below `root`."""
    by_key(found, "receipts", {f"{root}/{name}": "delivered" for name in names},
           [(row.get("path"), row.get("state")) for row in rows], "receipts")


def receipt_files(found: Findings, asked: set[str], rows: list[dict[str, Any]], files: dict[str, Any]) -> None:
    """One file for each receipt whose route asks for it, which says what the journal says. `asked`: paths of sources;
    `files`: {path: what it says, None for one that is not whole}."""
    left = dict(files)
    for row in rows:
        name = row.get("receipt_file")
        if row["path"] not in asked:
            if name:
                found.note("receipts", row["path"], f"a file that nobody asked for: {name}")
        # Taken out, so that two receipts cannot name one file.
        elif left.pop(name, None) != row:
            found.note("receipts", row["path"], f"its file {name} is not there once, or says otherwise")
    for name in left:
        found.note("receipts", name, "a file of no receipt, or a second one")


def balance_problem(status: dict[str, Any]) -> str:
    """What does not add up in `inlet status --json`; "" when all does."""
    states = status["files"]
    if status["seen"] != sum(states.values()) + status["ignored"]:
        return f"seen {status['seen']}, but {states} and {status['ignored']} ignored"
    lost = {name: count for name, count in states.items() if count and name not in ("delivered", "pending")}
    return f"not delivered: {lost}" if lost else ""


def balance(found: Findings, status: dict[str, Any], files: int) -> None:
    """`seen` is the sum of the states, all is delivered, nobody waits."""
    if problem := balance_problem(status):
        found.note("balance", "states", problem)
    if status["files"]["delivered"] != files or status["pending"]:
        found.note("balance", "delivered", f"{status['files']['delivered']} of {files}, {status['pending']} pending")


def finished(found: Findings, runs: list[list[Event]]) -> None:
    """No job is finished twice. `runs`: the log's events of each run."""
    ends = Counter(event["job"] for events in runs for event in events if event.get("event") == "job.finished")
    for job, count in ends.items():
        if count > 1:
            found.note("finished twice", f"job {job}", f"{count} lines")


def in_flight(events: list[Event]) -> dict[tuple[int, str], int]:
    """{(job, destination): size} of what had begun and not ended when the run did."""
    going = {}
    for event in events:
        place = (event.get("job"), event.get("destination"))
        match event.get("event"):
            case "job.started":
                going[place] = event["size"]
            case "job.delivered" | "job.failed" | "job.retry" | "job.waiting":
                going.pop(place, None)
    return going


def killed_early(runs: list[list[Event]]) -> int:
    """How many of these runs had begun, and were not ready."""
    names = [{event.get("event") for event in events} for events in runs]
    return sum("agent.started" in seen and "agent.ready" not in seen for seen in names)


def allowance(runs: list[list[Event]], part: int = PART, above: int = -1) -> int:
    """Bytes that kills may have cost: a part, or a smaller file's bytes, of each file in flight to a server at each. The
    last run is not killed. `above`: of files only that are larger."""
    return sum(min(size, part) for events in runs[:-1]
               for (_, destination), size in in_flight(events).items() if destination != "library" and size > above)


def digest_of(path: Path | str, kind: str = "sha256") -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def source_problem(drop: Path, source: Source) -> str:
    """What is wrong with a delivered source, by its route's on_success; "" when nothing is."""
    original, archived = drop / source.name, drop / ".inlet" / "done" / source.name
    if source.policy == "keep":
        return "" if original.exists() and digest_of(original) == source.sha256 else "kept, but missing or changed"
    if original.exists():
        return "still in its folder"
    if source.policy == "archive" and not (archived.exists() and digest_of(archived) == source.sha256):
        return "not in the archive, or changed there"
    return "in the archive" if source.policy == "delete" and archived.exists() else ""
