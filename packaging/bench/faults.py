"""Calls on files fail by a seed while writers meddle; then what arrived is compared with the list that they kept.

Of each seed two rounds are played: one as it comes, and one in which the agent has 64 descriptors. Run faults.sh.
"""

import argparse
import itertools
import json
import os
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import faults_judge
import judge
from meddler import Book, Meddler, MountMeddler
from measure import Inlet, Workspace, inlet, table
from mounts import Mounts
from sandbox import Sandbox

# What a round is called, and how many descriptors the agent has in it.
ROUNDS = (("plain", None), ("64 descriptors", 64))
# By the first folder of a file: what becomes of a source that is delivered.
POLICIES = ("keep", "archive", "delete")
# About one call in so many begins a fault.
EVERY = 40
# The writers stop when so many seconds have passed, though not all calls have failed.
LONGEST = 90
# A run is bounded, also one in which something goes on for ever.
LONGEST_REST = 900


class Digests:
    """Of files that seldom change."""

    def __init__(self):
        self._known = {}

    def of(self, path):
        """None for a file that goes meanwhile."""
        try:
            held = os.lstat(path)
            mark = (str(path), held.st_ino, held.st_size, held.st_mtime_ns, held.st_ctime_ns)
            if mark not in self._known:
                self._known[mark] = judge.sha256(path)
            return self._known[mark]
        except FileNotFoundError:
            return None

    def below(self, top):
        """{path below `top`: digest} of all its files."""
        found = {}
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if digest := self.of(path):
                    found[os.path.relpath(path, top)] = digest
        return found


class Round:
    """One agent among writers, with everything of it below one folder."""

    def __init__(self, folder, seed, limit, count, mounts):
        self.folder, self.limit, self.count = folder, limit, count
        self.seed = seed
        self.book, self.digests = Book(), Digests()
        self.failed_calls = folder / "faults.log"
        self.roots = [folder / "drop"]
        self._writers = []
        for number, policy in enumerate(POLICIES):
            self._add(Meddler, folder / "drop", f"{policy}/w{number}")
        if mounts:
            self._add(MountMeddler, folder / "drop", "keep/w3", mounts, folder / "drop/keep/w3")
            self.roots.append(folder / "card")
            self._add(MountMeddler, folder / "card", "delete/w4", mounts, folder / "card")

    def _add(self, kind, root, name, mounts=None, disk=None):
        more = ()
        if mounts:
            disk.mkdir(parents=True)
            mounts.make(disk)
            more = (mounts, disk)
        (root / name).mkdir(parents=True, exist_ok=True)
        self._writers.append(kind(root / name, name, self.seed, self.book, *more))

    def config(self, place):
        (self.folder / "library").mkdir()
        lines = [
            f"state_dir: {self.folder}/state",
            "log: { level: info, output: stderr, format: json }",
            "destinations:",
            f'  s3: {{ type: s3, endpoint: "{place["s3"]}", region: us-east-1, bucket: {place["bucket"]},'
            f' access_key: {place["access_key"]}, secret_key: {place["secret_key"]}, part_size: 5MiB,'
            " multipart_threshold: 5MiB }",
            f"  library: {{ type: folder, path: {self.folder}/library }}",
            "watch:", *(f"  - {{ path: {root}, settle: 100ms, poll: 1s }}" for root in self.roots), "routes:",
        ]
        # So many attempts that what passes ends no file.
        lines += [f'  - {{ name: {policy}, match: {{ path: "{policy}/**" }}, to: [library, s3], key: "{{dir}}/{{name}}",'
                  f" on_success: {policy}, retry: {{ attempts: 100, backoff: 200ms, max_backoff: 2s }} }}"
                  for policy in POLICIES]
        path = self.folder / "inlet.yaml"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)
        return path

    def environment(self):
        below = ";".join(f"below={place}" for place in [*self.roots, self.folder / "library"])
        return dict(os.environ, INLET_FAULTS=f"{below};seed={self.seed};count={self.count};every={EVERY}",
                    INLET_FAULTS_LOG=str(self.failed_calls))

    def failed(self):
        """[call, errno, path] of each call that did not go through."""
        if not self.failed_calls.exists():
            return []
        return [line.split(" ", 2) for line in self.failed_calls.read_text(errors="replace").splitlines()]

    def meddle(self, agent):
        """Until all calls have failed that shall."""
        end = time.monotonic() + LONGEST
        for writer in self._writers:
            writer.start()
        while agent.process.poll() is None and time.monotonic() < end and len(self.failed()) < self.count:
            time.sleep(0.2)
        for writer in self._writers:
            writer.end()
        for writer in self._writers:
            writer.finish()

    def scene(self, config, sandbox):
        """What is found now."""
        status = json.loads(inlet("status", "--json", config=config))
        jobs = defaultdict(list)
        rows = [json.loads(line) for line in inlet("queue", "list", "--json", "--limit", "1000000", config=config).splitlines()]
        for row in sorted(rows, key=lambda row: row["job"]):
            jobs[self._below(row["path"])].append(row["state"])
        objects = sandbox.report()["s3"]["objects"]
        library = self.digests.below(self.folder / "library")
        held = {
            "s3": Counter(judge.sha256(entry["path"]) for entry in objects),
            "library": Counter(digest for name, digest in library.items() if not Path(name).name.startswith(".inlet-")),
        }
        disk = {name: digest for root in self.roots for name, digest in self.digests.below(root).items()}
        return faults_judge.Scene(self.book, held, disk, jobs, status), rows

    def _below(self, path):
        return next(path[len(str(root)) + 1:] for root in self.roots if path.startswith(f"{root}/"))

    def settle(self, agent, config, sandbox, patience):
        """Until nothing is open, or for so long nothing went on. - Returns: what is found then."""
        end, seen = time.monotonic() + LONGEST_REST, None
        while True:
            scene, rows = self.scene(config, sandbox)
            now = (scene.status["files"], {name: held.total() for name, held in scene.held.items()})
            if now != seen:
                seen, last = now, time.monotonic()
            is_quiet = scene.status["pending"] == 0 and not scene.undelivered()
            if is_quiet or time.monotonic() > min(end, last + patience) or agent.process.poll() is not None:
                return scene, rows
            time.sleep(1)


def play(folder, title, seed, limit, count, seconds, mounts):
    """One round. - Returns: its row of the table, and whether all is as it should be."""
    number = Round(folder, seed, limit, count, mounts)
    with Sandbox(folder) as sandbox:
        config = number.config(sandbox.place)
        before = ("prlimit", f"--nofile={limit}:{limit}") if limit else ()
        with Inlet(config, folder / "inlet.log", number.environment(), before) as agent:
            agent.wait_ready()
            number.meddle(agent)
            scene, rows = number.settle(agent, config, sandbox, seconds)
            found = faults_judge.all_of(scene)
            agent.process.terminate()
            code = agent.process.wait(60)
    failed = number.failed()
    if not failed:
        sys.exit("no call failed: a release build has no failpoints")
    tell(f"seed {seed}, {title}", found, rows, scene, failed, number.book)
    (folder / "found.json").write_text(json.dumps({
        "status": scene.status, "jobs": rows, "disk": scene.disk, "held": scene.held,
        "departures": number.book.departures, "versions": [vars(one) for one in number.book.versions],
        "present": {path: one.sha256 for path, one in number.book.present.items()}}))
    if code != 0:
        print(f"  {title}: inlet ended with {code}:\n{agent.tail()}")
    files = scene.status["files"]
    is_good = code == 0 and not found.counts
    row = [seed, title, len(failed), len(number.book.versions), scene.status["seen"], files["delivered"],
           scene.status["pending"], files["failed"], files["gone"], sum(number.book.departures.values()),
           len(scene.undelivered()), "good" if is_good else "WRONG"]
    return row, is_good


def tell(title, found, rows, scene, failed, book):
    """What was wrong, what failed and why, and of what there was how much."""
    print(f"\n{title}: {scene.status['health']['sentence']}")
    acts = ", ".join(f"{count} {act}" for act, count in sorted(book.acts.items()))
    calls = ", ".join(f"{count} {call}" for call, count in sorted(Counter(call for call, _, _ in failed).items()))
    print(f"  writers: {acts}\n  failed calls: {calls}")
    reasons = Counter(row.get("reason") or row.get("code") or "?" for row in rows if row["state"] in ("failed", "expired"))
    for reason, count in reasons.most_common()[:5]:
        print(f"  {count} failed: {reason}")
    for kind in found.KINDS:
        lines = [line for line in found.lines if line.startswith(f"{kind}: ")]
        for line in lines[:10]:
            print(f"  {line}")
        if len(lines) > 10:
            print(f"  and {len(lines) - 10} more of '{kind}'")
    sys.stdout.flush()


def measure(given):
    """- Returns: whether all rounds were good; keeps what is not."""
    rows, all_good = [], True
    with Workspace() as folder:
        keep = os.environ.get("INLET_KEEP")
        os.environ["INLET_KEEP"] = "1"
        mounts = Mounts(folder) if Mounts.are_possible() else None
        if not mounts:
            print("left  file systems that come and go: only root can mount them")
        try:
            for seed, (title, limit) in itertools.product(range(given.seed, given.seed + given.seeds), ROUNDS):
                place = folder / f"{seed}-{limit or 'plain'}"
                place.mkdir()
                row, is_good = play(
                    place, title, seed, limit, given.count // len(ROUNDS), given.seconds, mounts)
                rows.append(row)
                all_good = all_good and is_good
        finally:
            if mounts:
                mounts.close()
        header = ["seed", "round", "failed calls", "written", "seen", "delivered", "waiting", "failed", "gone", "left",
                  "undelivered", ""]
        table("faults", header, rows)
        if all_good and not keep:
            del os.environ["INLET_KEEP"]
    return all_good


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    options.add_argument("--count", type=int, default=600, help="how many calls fail for each seed")
    options.add_argument("--seconds", type=int, default=120, help="without any progress, after which what is open is open")
    options.add_argument("--self-test", action="store_true", help="only try the judgements on made-up findings")
    given = options.parse_args()
    if given.self_test:
        return faults_judge.self_test()
    print(f"seed {given.seed}", flush=True)
    if not measure(given):
        sys.exit(1)


if __name__ == "__main__":
    main()
