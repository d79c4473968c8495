"""What must hold after any number of kills: pure functions over what was written, stored, logged and told."""

import hashlib
from collections import Counter, defaultdict

from sandbox import PART


class Findings:
    """What is wrong, by kind, with the first of each kind's names."""

    KINDS = ("lost", "partial", "duplicated", "foreign", "finished twice", "receipts", "source", "balance", "left open")

    def __init__(self):
        self.counts = Counter()
        self.lines = []

    def note(self, kind, name, detail=""):
        self.counts[kind] += 1
        self.lines.append(f"{kind}: {name}" + (f" ({detail})" if detail else ""))


def by_key(found, where, wanted, objects):
    """A store that goes by keys. `objects`: [(key, sha256 of what it holds)]; `wanted`: {key: sha256}."""
    held = defaultdict(list)
    for key, digest in objects:
        held[key].append(digest)
    for key, digest in wanted.items():
        copies = held.pop(key, [])
        if not copies:
            found.note("lost", key, where)
        if len(copies) > 1:
            found.note("duplicated", key, where)
        for copy in copies:
            if copy != digest:
                found.note("partial", key, where)
    for key, digests in held.items():
        known = "another name of a source" if set(digests) & set(wanted.values()) else "nobody's"
        found.note("duplicated" if known.startswith("another") else "foreign", key, f"{where}: {known}")


def by_content(found, where, wanted, objects):
    """A server that goes by contents. `objects`: [sha256], as often as it was filed; `wanted`: {name: sha256}."""
    held = Counter(objects)
    for name, digest in wanted.items():
        count = held.pop(digest, 0)
        if count == 0:
            found.note("lost", name, where)
        if count > 1:
            found.note("duplicated", name, f"{where}: {count} times")
    for digest, count in held.items():
        found.note("partial", digest[:12], f"{where}: {count} times, and no source has these bytes")


def videos(found, wanted, report):
    """VOPI: one completed job for each video, made of these very bytes."""
    digests = {video["key"]: video["sha256"] for video in report["videos"]}
    by_content(found, "products", wanted, [digests.get(job["video_key"], "?") for job in report["jobs"]])
    for job in report["jobs"]:
        if job["status"] != "completed":
            found.note("left open", job["id"], f"a job is {job['status']}")
    if report["charges"] != len(wanted):
        found.note("duplicated", "charges", f"{report['charges']} for {len(wanted)} videos")


def pictures(found, job, made, fetched):
    """Every picture of a job is here, byte for byte, and `product.json`. `made`: [sha256]; `fetched`: {name: sha256}."""
    here = Counter(digest for name, digest in fetched.items() if name != "product.json")
    if "product.json" not in fetched or not made:
        found.note("lost", job, "its product.json" if made else "the server made no pictures")
    for digest, count in (Counter(made) - here).items():
        found.note("lost", job, f"{count} pictures {digest[:12]}")
    for digest, count in (here - Counter(made)).items():
        found.note("partial", job, f"{count} files {digest[:12]} that are no pictures of it")


def spaces(found, wanted, report):
    """Roboscope: one space for each model. `wanted`: {key of the space: key of the model's object}."""
    held = Counter(space["key"] for space in report["spaces"])
    for key, model in wanted.items():
        if held[key] != 1:
            found.note("duplicated" if held[key] else "lost", key, f"{held[key]} spaces")
    for space in report["spaces"]:
        model = wanted.get(space["key"])
        if model is None:
            found.note("foreign", space["key"], "a space")
        elif not (space.get("model") or "").endswith("/" + model):
            found.note("lost", space["key"], f"its model is {space.get('model')}")


def receipts(found, root, wanted, rows):
    """One receipt for each file, and it says delivered. `wanted`: the files' paths below `root`."""
    told = defaultdict(list)
    for row in rows:
        told[row.get("path", "?")].append(row.get("state", "?"))
    for name in wanted:
        states = told.pop(f"{root}/{name}", [])
        if states != ["delivered"]:
            found.note("receipts", name, ", ".join(states) or "none")
    for path, states in told.items():
        found.note("receipts", path, f"of no source: {', '.join(states)}")


def receipt_files(found, wanted, rows, files):
    """One file for each receipt whose route asks for it, which says what the journal says. `wanted`: paths of sources;
    `files`: {path: what it says, None for one that is not whole}."""
    left = dict(files)
    for row in rows:
        name = row.get("receipt_file")
        if row["path"] not in wanted:
            if name:
                found.note("receipts", row["path"], f"a file that nobody asked for: {name}")
        elif name not in left:
            found.note("receipts", row["path"], f"no file, though the journal says {name}")
        elif left.pop(name) != row:
            found.note("receipts", row["path"], f"{name} is not what the journal says")
    for name in left:
        found.note("receipts", name, "a file of no receipt, or a second one")


def lists(found, where, wanted, held):
    """One checksum list for each unit, of just these files. `wanted`: {unit: {name: digest}}; `held`: {unit: [the same, None
    for one that is not whole]}."""
    held = dict(held)
    for unit, files in wanted.items():
        copies = held.pop(unit, [])
        if len(copies) != 1:
            found.note("duplicated" if copies else "lost", unit, f"{where}: {len(copies)} checksum lists")
        for copy in copies:
            if copy != files:
                found.note("partial", unit, f"{where}: its list says {copy}")
    for unit in held:
        found.note("foreign", unit, f"{where}: a list of no unit")


def balance(found, status, files):
    """`seen` is the sum of the states, all is delivered, nobody waits."""
    states = status["files"]
    if status["seen"] != sum(states.values()) + status["ignored"]:
        found.note("balance", "seen", f"{status['seen']} is not the sum of {states} and {status['ignored']} ignored")
    if states["delivered"] != files or status["pending"]:
        found.note("balance", "delivered", f"{states['delivered']} of {files}, {status['pending']} pending")
    others = {name: count for name, count in states.items() if count and name != "delivered"}
    if others:
        found.note("balance", "other states", str(others))


def finished(found, runs):
    """No job is finished twice. `runs`: the log's events of each run."""
    ends = Counter(event["job"] for events in runs for event in events if event.get("event") == "job.finished")
    for job, count in ends.items():
        if count > 1:
            found.note("finished twice", f"job {job}", f"{count} lines")


def in_flight(events):
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


def killed_early(runs):
    """How many of these runs had begun, and were not ready."""
    names = [{event.get("event") for event in events} for events in runs]
    return sum("agent.started" in seen and "agent.ready" not in seen for seen in names)


def allowance(runs, part=PART, above=-1):
    """Bytes that kills may have cost: a part, or a smaller file's bytes, of each file in flight to a server at each. The
    last run is not killed. `above`: of files only that are larger."""
    return sum(min(size, part) for events in runs[:-1]
               for (_, destination), size in in_flight(events).items() if destination != "library" and size > above)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source_problem(drop, source):
    """What is wrong with a delivered source, by its route's on_success; None when nothing is."""
    original, archived = drop / source.name, drop / ".inlet" / "done" / source.name
    if source.policy == "keep":
        return None if original.exists() and sha256(original) == source.sha256 else "kept, but missing or changed"
    if original.exists():
        return "still in its folder"
    is_archived = archived.exists()
    if source.policy == "archive" and (not is_archived or sha256(archived) != source.sha256):
        return "not in the archive, or changed there"
    return "in the archive" if source.policy == "delete" and is_archived else None
