"""Every source against what every destination holds, and against what inlet says and leaves of it. Judged by judge.py."""

from pathlib import Path

import evidence
import judge
from sandbox import EVIDENCE


def compare(folder, sources, report, other):
    """Every destination, byte for byte. - Returns: findings."""
    found = judge.Findings()
    sent = [source for source in sources if source.is_sent]

    def wanted(*kinds):
        return {source.name: source.sha256 for source in sent if source.kind in kinds}

    for name, kinds in (("spiral", ("spiral", "spaces")), ("s3", ("s3", "units"))):
        objects = [(entry["key"], judge.sha256(entry["path"])) for entry in report[name]["objects"]
                   if not evidence.is_list(entry["key"])]
        judge.by_key(found, name, wanted(*kinds), objects)
    held = [(key, judge.sha256(entry["file"])) for key, entry in other["objects"].items()]
    judge.by_key(found, "other", wanted("other"), held)
    library = folder / "library"
    files = [(name, judge.sha256(library / name)) for name in
             (str(path.relative_to(library)) for path in library.rglob("*") if path.is_file()) if not evidence.is_list(name)]
    judge.by_key(found, "library", wanted("library", "units"), files)
    evidence.judge_lists(found, folder, sources, report)
    assets = report["gighive"]["assets"]
    judge.by_content(found, "stage", wanted("stage"),
                     [judge.sha256(asset["path"]) for asset in assets for _ in asset["labels"]])
    judge.videos(found, wanted("products"), report["vopi"])
    for job in report["vopi"]["jobs"]:
        evidence.pictures(found, folder, job["id"])
    judge.spaces(found, {Path(source.name).stem: source.name for source in sent if source.kind == "spaces"},
                 report["roboscope"])
    left_open(found, folder, report, other)
    for source in sources:
        problem = judge.source_problem(folder / "drop", source)
        if problem:
            found.note("source", source.name, problem)
    for path in (folder / "drop").rglob(".inlet-*"):
        found.note("source", str(path), "a private name that was left")
    return found


def left_open(found, folder, report, other):
    """Uploads with bytes that nobody will end. An empty one may be left: its id was lost with the process."""
    stores = {"spiral": folder / "sandbox" / "store", "s3": folder / "sandbox" / "archive"}
    for name, store in stores.items():
        for upload in report[name]["open_uploads"]:
            parts = [file for file in (store / "uploads" / upload).glob("part-*")]
            if parts:
                found.note("left open", upload, f"{name}: {len(parts)} parts")
    for upload in report["gighive"]["open_uploads"]:
        held = folder / "sandbox" / "gighive" / "tus" / upload
        if held.exists() and held.stat().st_size:
            found.note("left open", upload, f"stage: {held.stat().st_size} bytes")
    for upload in other["open_uploads"]:
        if upload["parts"]:
            found.note("left open", upload["upload_id"], f"other: {upload['parts']} parts")


def judge_receipts(found, folder, sources, rows):
    """One receipt for each file and each list that was sent, and files of those for which routes ask."""
    lists = folder / "state" / "manifests"
    own = [row for row in rows if not row["path"].startswith(f"{lists}/")]
    judge.receipts(found, folder / "drop", [source.name for source in sources], own)
    judge.receipts(found, lists, list(evidence.sent_lists(folder)), [row for row in rows if row not in own])
    asked = {kind for kind, text in EVIDENCE.items() if "receipts" in text}
    wanted = {str(folder / "drop" / source.name) for source in sources if source.kind in asked}
    judge.receipt_files(found, wanted, rows, evidence.receipt_files(folder))
