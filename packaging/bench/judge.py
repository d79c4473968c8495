"""What must hold after any number of kills: functions over what was written, stored, logged and told; and at the end those that
read it from the disk and hold every source against what every destination has, and against what inlet says and leaves of it."""

import hashlib
import json
import xml.etree.ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agent import Event
from everywhere import EVIDENCE, PART
from report import Row, none
from servers import Sink

MHL = "{urn:ASC:MHL:v2.0}"
RECEIPT = ".inlet-receipt.json"


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
        # A kill amid the trial of checksums leaves an object of 12 bytes, as the manual says.
        if key.startswith(".inlet-check/"):
            continue
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


# Read from the disk


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """(path below `folder`, path)"""
    return ((str(path.relative_to(folder)), path) for path in folder.rglob("*") if path.is_file())


def units(sources: list[Source]) -> list[str]:
    """The folders of the units that are complete."""
    return sorted(source.name.removesuffix("/DONE") for source in sources if source.name.endswith("/DONE"))


def is_list(path: str) -> bool:
    """Whether a delivered file is a checksum list or its chain, and no source's."""
    return path.startswith("units/") and (path.endswith(".mhl") or "/ascmhl/" in path)


def sent_lists(folder: Path) -> dict[str, int]:
    """Lists that went to S3 as files of the queue, below `state/manifests`, and their sizes."""
    return {name: path.stat().st_size for name, path in files(folder / "state" / "manifests")
            if Path(name).match("*/s3/*.mhl")}


def compare(found: Findings, folder: Path, sources: list[Source], report: dict[str, Any], other: Sink) -> None:
    """Every destination, byte for byte; `other` by the MD5 of each object or of its parts."""
    def wanted(*kinds: str) -> dict[str, str]:
        return {source.name: source.sha256 for source in sources if source.is_sent and source.kind in kinds}

    held = {
        "spiral": ((entry["key"], entry["path"]) for entry in report["spiral"]["objects"]),
        "s3": ((entry["key"], entry["path"]) for entry in report["s3"]["objects"]),
        "library": files(folder / "library"),
    }
    kinds = {"spiral": ("spiral", "spaces"), "s3": ("s3", "units"), "library": ("library", "units")}
    for name, objects in held.items():
        by_key(found, name, wanted(*kinds[name]),
                     [(key, digest_of(path)) for key, path in objects if not is_list(key)])
    etags = {source.name: source.etags for source in sources}
    by_key(found, "other", {name: name for name in wanted("other")},
                 [(key, key if md5 in etags.get(key, ()) else md5) for key, _, md5 in other.listing()])
    by_content(found, "stage", wanted("stage"),
                     [digest_of(asset["path"]) for asset in report["gighive"]["assets"] for _ in asset["labels"]])
    videos(found, wanted("products"), report["vopi"])
    for job in (job["id"] for job in report["vopi"]["jobs"]):
        made = files(folder / "sandbox" / "vopi" / "objects" / "jobs" / job)
        pictures(found, job, [digest_of(path) for _, path in made],
                       {name: digest_of(path) for name, path in files(folder / "results" / job)})
    spaces(found, {Path(name).stem: name for name in wanted("spaces")}, report["roboscope"])
    compare_lists(found, folder, units(sources), report)
    for where, upload in left_open(folder, report, other):
        found.note("left open", upload, where)
    for source in sources:
        if problem := source_problem(folder / "drop", source):
            found.note("source", source.name, problem)
    for path in (folder / "drop").rglob(".inlet-*"):
        found.note("source", str(path), "a private name that was left")


def entries(path: Path | str) -> dict[str, str] | None:
    """{name: MD5} of a list; None for one that cannot be read."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return None
    return {entry.findtext(MHL + "path"): entry.findtext(MHL + "md5") for entry in root.iter(MHL + "hash")}


def compare_lists(found: Findings, folder: Path, names: list[str], report: dict[str, Any]) -> None:
    """One list in each place for each unit, which says what arrived there; and the chain names it."""
    library = folder / "library"
    # Sidecars travel with their file and have no checksum of their own.
    wanted = {unit: {path.name: digest_of(path, "md5") for path in (library / unit).glob("*.mp4")}
              for unit in names if (library / unit).is_dir()}
    short = {unit.rpartition("/")[2]: unit for unit in names}
    places: dict[str, Iterable[tuple[str, Path | str]]] = {
        "library": [(unit, path) for unit in names for path in (library / unit / "ascmhl").glob("*.mhl")],
        "s3": [(entry["key"].rpartition("/")[0], entry["path"]) for entry in report["s3"]["objects"] if is_list(entry["key"])],
        "state": [(short.get(name := path.parent.name.partition("-")[2], name), path)
                  for path in (folder / "state" / "manifests").glob("*/*.mhl")]}
    for where, lists in places.items():
        by_key(found, f"checksum lists in {where}", wanted, [(unit, entries(path)) for unit, path in lists])
    for unit, path in places["library"]:
        chain = library / unit / "ascmhl" / "ascmhl_chain.xml"
        if not chain.exists() or chain.read_text().count(f"<path>{Path(path).name}</path>") != 1:
            found.note("partial", unit, "the chain does not name its list once")


def left_open(folder: Path, report: dict[str, Any], other: Sink) -> Iterator[tuple[str, str]]:
    """Uploads with bytes that nobody will end. An empty one may be left: its id was lost with the process."""
    for name, store in (("spiral", "store"), ("s3", "archive")):
        for upload in report[name]["open_uploads"]:
            if parts := list((folder / "sandbox" / store / "uploads" / upload).glob("part-*")):
                yield f"{name}: {len(parts)} parts", upload
    for upload in report["gighive"]["open_uploads"]:
        held = folder / "sandbox" / "gighive" / "tus" / upload
        if held.exists() and held.stat().st_size:
            yield f"stage: {held.stat().st_size} bytes", upload
    yield from (("other", f"{upload} of {key}") for upload, key in other.stats()["begun_uploads"])


def read_receipt(path: Path) -> Any:
    """None for one that is not whole."""
    try:
        return json.loads(path.read_text())
    except ValueError:
        return None


def compare_receipts(found: Findings, folder: Path, sources: list[Source], rows: list[dict[str, Any]]) -> None:
    """One receipt for each file and each list that was sent, and files of those for which routes ask."""
    lists, drop = folder / "state" / "manifests", folder / "drop"
    own = [row for row in rows if not row["path"].startswith(f"{lists}/")]
    receipts(found, drop, [source.name for source in sources], own)
    receipts(found, lists, sent_lists(folder), [row for row in rows if row not in own])
    asked = {str(drop / source.name) for source in sources if "receipts" in EVIDENCE.get(source.kind, {})}
    paths = [*(path for _, path in files(folder / "state" / "receipts")), *drop.rglob("*" + RECEIPT)]
    receipt_files(found, asked, rows, {str(path): read_receipt(path) for path in paths})
