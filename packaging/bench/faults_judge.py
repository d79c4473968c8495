"""What must hold when calls failed and writers meddled: a pure function over their list, what arrived, and what inlet says."""

from collections import Counter
from dataclasses import dataclass, replace

import judge
from meddler import Book, Version

# Of a job that says of its file that it is not delivered.
OPEN = {"pending", "failed", "expired", "rejected", "cancelled"}


class Findings(judge.Findings):
    KINDS = ("gone", "twice", "torn", "no proof", "missed", "well")


@dataclass
class Scene:
    """A run when it is quiet. Paths are below the watched folders.

    `held`: {destination: Counter of digests}; `disk`: {path: digest} of all files below the watched folders, `.inlet` and
    private names included; `jobs`: {path: [state]}, oldest first; `status`: of `inlet status --json`.
    """
    book: Book
    held: dict
    disk: dict
    jobs: dict
    status: dict

    def has(self, digest):
        """Whether every destination proved this content."""
        return all(held[digest] for held in self.held.values())

    def undelivered(self):
        """What is there, by the list and on the disk, and not at every destination. A file that looks like a delivered one,
        by size and time, is a known one."""
        known = {(one.path, one.size, one.modified) for one in self.book.versions if self.has(one.sha256)}
        return [now for path, now in self.book.present.items() if self.disk.get(path) == now.sha256
                and not self.has(now.sha256) and (path, now.size, now.modified) not in known]


def all_of(scene):
    """- Returns: findings."""
    found = Findings()
    gone(found, scene)
    copies(found, scene)
    sources(found, scene)
    missed(found, scene)
    well(found, scene)
    return found


def gone(found, scene):
    """No more files are called gone than went."""
    for path, states in scene.jobs.items():
        count, most = states.count("gone"), scene.book.departures[path]
        if count > most:
            found.note("gone", path, f"{count} times, and it left {most} times")
    for now in scene.undelivered():
        if scene.jobs.get(now.path, [""])[-1] == "gone":
            found.note("gone", now.path, "and it is there, undelivered")


def copies(found, scene):
    """A content is nowhere under more names than it had, and nothing is a mixture of two."""
    names = Counter(version.sha256 for version in scene.book.versions)
    for destination, held in scene.held.items():
        for digest, count in held.items():
            if not names[digest]:
                found.note("torn", digest[:12], f"{destination}: no file ever had these bytes")
            elif count > names[digest]:
                path = next(one.path for one in scene.book.versions if one.sha256 == digest)
                found.note("twice", path, f"{destination}: {count} times, and {names[digest]} files had it")


def sources(found, scene):
    """What its writer did not take is somewhere on the disk, or at every destination."""
    kept = set(scene.disk.values())
    for path, now in scene.book.present.items():
        if now.sha256 not in kept and not scene.has(now.sha256):
            where = [name for name, held in scene.held.items() if held[now.sha256]]
            found.note("no proof", path, f"gone from the disk, and only at {where}" if where else "gone altogether")


def missed(found, scene):
    """Of what is not delivered a job says so, or its watched folder does."""
    is_said = any(one["about"] == "root" for one in scene.status["health"].get("findings", []))
    for now in scene.undelivered():
        states = scene.jobs.get(now.path, [])
        if not is_said and not OPEN & set(states):
            found.note("missed", now.path, ", ".join(states) or "nobody saw it")


def well(found, scene):
    """Status calls nothing well while something is open."""
    if not scene.status["health"]["sentence"].startswith("All is well"):
        return
    counts = {name: count for name, count in scene.status["files"].items() if count and name in OPEN}
    left = len(scene.undelivered())
    surplus = found.counts["gone"]
    if counts or left or surplus:
        said = ", ".join(f"{count} {name}" for name, count in counts.items())
        found.note("well", scene.status["health"]["sentence"],
                   f"{left} undelivered, {surplus} wrongly gone" + (f", {said}" if said else ""))


# What it must accept, and what not ------------------------------------------------------------------------------------


def sample(**changes):
    """Two delivered files, of which a route deleted one; and one that its writer removed before it was sent."""
    book = Book()
    one, two, three = (Version(path, digest, 5, 1) for path, digest in (("a", "1"), ("b", "2"), ("c", "3")))
    for version in (one, two, three):
        book.wrote(version)
    book.removed("c")
    held = {"library": Counter("12"), "s3": Counter("12")}
    jobs = {"a": ["delivered"], "b": ["delivered"], "c": ["gone"]}
    status = {"health": {"state": "ok", "sentence": "All is well", "findings": []}, "files": {"delivered": 2, "gone": 1}}
    return replace(Scene(book, held, {"a": "1"}, jobs, status), **changes)


def with_version(version, **changes):
    scene = sample(**changes)
    scene.book.wrote(version)
    return scene


def self_test():
    trouble = {"health": {"state": "trouble", "sentence": "Trouble", "findings": [{"about": "files"}]}, "files": {"failed": 1}}
    root = {"health": {"state": "trouble", "sentence": "Trouble", "findings": [{"about": "root"}]}, "files": {}}
    waiting = {"health": {"state": "ok", "sentence": "All is well: 1 waiting", "findings": []}, "files": {"pending": 1}}
    jobs, files = sample().jobs, sample().disk
    new, edited, known = (Version(*values) for values in (("d", "4", 5, 1), ("a", "4", 5, 2), ("a", "4", 5, 1)))
    both = {"library": Counter("124"), "s3": Counter("124")}
    cases = [
        ("all delivered", sample(), {}),
        ("gone twice, left once", sample(jobs=jobs | {"c": ["gone", "gone"]}), {"gone": 1, "well": 1}),
        ("gone, though it is there", sample(jobs=jobs | {"a": ["delivered", "gone"]}), {"gone": 1, "well": 1}),
        ("twice under two names", sample(held={"library": Counter("112"), "s3": Counter("12")}), {"twice": 1}),
        ("twice, by two files", with_version(Version("d", "1", 5, 1), disk=files | {"d": "1"},
                                             held={"library": Counter("112"), "s3": Counter("112")}), {}),
        ("a mixture", sample(held={"library": Counter("129"), "s3": Counter("12")}), {"torn": 1}),
        ("what was removed, delivered", sample(held={"library": Counter("123"), "s3": Counter("12")}), {}),
        ("deleted, with one proof of two", sample(held={"library": Counter("12"), "s3": Counter("1")}), {"no proof": 1}),
        ("deleted, with none", sample(held={"library": Counter("1"), "s3": Counter("1")}), {"no proof": 1}),
        ("in the archive, unproved", with_version(new, disk=files | {".inlet/done/d": "4"}), {}),
        ("nobody saw it", with_version(new, disk=files | {"d": "4"}), {"missed": 1, "well": 1}),
        ("seen, and waiting under all is well", with_version(
            new, disk=files | {"d": "4"}, jobs=jobs | {"d": ["pending"]}, status=waiting), {"well": 1}),
        ("failed, and said", with_version(
            new, disk=files | {"d": "4"}, jobs=jobs | {"d": ["failed"]}, status=trouble), {}),
        ("missed while another failed", with_version(new, disk=files | {"d": "4"}, status=trouble), {"missed": 1}),
        ("in a folder that is said to be away", with_version(new, disk=files | {"d": "4"}, status=root), {}),
        ("gone for good, and there", with_version(
            new, disk=files | {"d": "4"}, jobs=jobs | {"d": ["gone"]}, status=trouble), {"gone": 2, "missed": 1}),
        ("edited and delivered", with_version(edited, disk={"a": "4"}, held=both), {}),
        ("edited and not seen", with_version(edited, disk={"a": "4"}), {"missed": 1, "well": 1}),
        ("edited under its size and time after its delivery", with_version(known, disk={"a": "4"}), {}),
        ("and deleted then", with_version(known, disk={}), {"no proof": 1}),
    ]
    for what, scene, wanted in cases:
        got = dict(all_of(scene).counts)
        if got != wanted:
            raise SystemExit(f"faults: {what}: {got}, not {wanted}")
    unseen = set(Findings.KINDS) - {kind for _, _, wanted in cases for kind in wanted}
    if unseen:
        raise SystemExit(f"faults: no case has {unseen}")
    print(f"ok    {len(cases)} findings")
