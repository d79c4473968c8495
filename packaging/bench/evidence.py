"""What inlet leaves beside what it delivers: files of receipts, checksum lists of units, pictures of products. Read from the
disk here, judged by judge.py."""

import hashlib
import json
import xml.etree.ElementTree

import judge

MHL = "{urn:ASC:MHL:v2.0}"
RECEIPT = ".inlet-receipt.json"


def units(sources):
    """The folders of the units that are complete."""
    return sorted(source.name.removesuffix("/DONE") for source in sources if source.name.endswith("/DONE"))


def is_list(path):
    """Whether a delivered file is a checksum list or its chain, and no source's."""
    return path.startswith("units/") and (path.endswith(".mhl") or "/ascmhl/" in path)


def receipt_files(folder):
    """{path: what it says}; None for one that is not whole."""
    found = {}
    for path in [*(folder / "state" / "receipts").rglob("*"), *(folder / "drop").rglob("*" + RECEIPT)]:
        if path.is_file():
            try:
                found[str(path)] = json.loads(path.read_text())
            except ValueError:
                found[str(path)] = None
    return found


def entries(path):
    """{name: MD5} of a list; what is not whole raises an error."""
    root = xml.etree.ElementTree.parse(path).getroot()
    return {entry.findtext(MHL + "path"): entry.findtext(MHL + "md5") for entry in root.iter(MHL + "hash")}


def lists(paths):
    """{unit: [its lists' entries]} of {unit: [paths]}; None for one that cannot be read."""
    found = {}
    for unit, files in paths.items():
        for file in files:
            try:
                found.setdefault(unit, []).append(entries(file))
            except (OSError, xml.etree.ElementTree.ParseError):
                found.setdefault(unit, []).append(None)
    return found


def judge_lists(found, folder, sources, report):
    """One list in each place for each unit, which says what arrived there; and the chain names it."""
    library, names = folder / "library", units(sources)
    # Sidecars travel with their file and have no checksum of their own.
    wanted = {unit: {path.name: md5(path) for path in (library / unit).glob("*.mp4")}
              for unit in names if (library / unit).is_dir()}
    places = {unit: [*(library / unit / "ascmhl").glob("*.mhl")] for unit in names}
    judge.lists(found, "library", wanted, lists(places))
    for unit, files in places.items():
        chain = library / unit / "ascmhl" / "ascmhl_chain.xml"
        text = chain.read_text() if chain.exists() else ""
        if any(text.count(f"<path>{file.name}</path>") != 1 for file in files):
            found.note("partial", unit, "the chain does not name its list once")
    stored = {}
    for entry in report["s3"]["objects"]:
        if is_list(entry["key"]):
            stored.setdefault(entry["key"].rpartition("/")[0], []).append(entry["path"])
    judge.lists(found, "s3", wanted, lists(stored))
    home = {}
    short = {unit.rpartition("/")[2]: unit for unit in names}
    for path in (folder / "state" / "manifests").glob("*/*.mhl"):
        name = path.parent.name.partition("-")[2]
        home.setdefault(short.get(name, name), []).append(path)
    judge.lists(found, "state", wanted, lists(home))


def sent_lists(folder):
    """Lists that went to S3 as files of the queue, below `state/manifests`."""
    place = folder / "state" / "manifests"
    return {str(path.relative_to(place)): path.stat().st_size for path in place.glob("*/s3/*.mhl")}


def pictures(found, folder, job):
    """A job's pictures here, against what the server made."""
    place = folder / "results" / job
    fetched = {str(path.relative_to(place)): judge.sha256(path) for path in place.rglob("*") if path.is_file()}
    made = folder / "sandbox" / "vopi" / "objects" / "jobs" / job
    judge.pictures(found, job, [judge.sha256(path) for path in made.rglob("*") if path.is_file()], fetched)


def md5(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
