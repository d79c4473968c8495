"""Every source against what every destination holds, and against what inlet says and leaves of it: files of receipts, checksum
lists of units, pictures of products. Read from the disk here, judged by judge.py."""

import json
import xml.etree.ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import judge
from everywhere import EVIDENCE
from judge import Findings, Source, digest_of
from servers import Sink

MHL = "{urn:ASC:MHL:v2.0}"
RECEIPT = ".inlet-receipt.json"


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
        judge.by_key(found, name, wanted(*kinds[name]),
                     [(key, digest_of(path)) for key, path in objects if not is_list(key)])
    etags = {source.name: source.etags for source in sources}
    judge.by_key(found, "other", {name: name for name in wanted("other")},
                 [(key, key if md5 in etags.get(key, ()) else md5) for key, _, md5 in other.listing()])
    judge.by_content(found, "stage", wanted("stage"),
                     [digest_of(asset["path"]) for asset in report["gighive"]["assets"] for _ in asset["labels"]])
    judge.videos(found, wanted("products"), report["vopi"])
    for job in (job["id"] for job in report["vopi"]["jobs"]):
        made = files(folder / "sandbox" / "vopi" / "objects" / "jobs" / job)
        judge.pictures(found, job, [digest_of(path) for _, path in made],
                       {name: digest_of(path) for name, path in files(folder / "results" / job)})
    judge.spaces(found, {Path(name).stem: name for name in wanted("spaces")}, report["roboscope"])
    compare_lists(found, folder, units(sources), report)
    for where, upload in left_open(folder, report, other):
        found.note("left open", upload, where)
    for source in sources:
        if problem := judge.source_problem(folder / "drop", source):
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
        judge.by_key(found, f"checksum lists in {where}", wanted, [(unit, entries(path)) for unit, path in lists])
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
    judge.receipts(found, drop, [source.name for source in sources], own)
    judge.receipts(found, lists, sent_lists(folder), [row for row in rows if row not in own])
    asked = {str(drop / source.name) for source in sources if "receipts" in EVIDENCE.get(source.kind, {})}
    paths = [*(path for _, path in files(folder / "state" / "receipts")), *drop.rglob("*" + RECEIPT)]
    judge.receipt_files(found, asked, rows, {str(path): read_receipt(path) for path in paths})
