"""kill -9 at random moments while a folder fills; then every source is compared with what the store holds. Run kill9.sh."""

import argparse
import hashlib
import json
import os
import queue
import random
import sys
import threading
import time
from collections import Counter

from measure import Inlet, Server, Workspace, inlet, table, verdict, write_config

FOLDERS = {"keep": "keep", "archive": "archive", "delete": "delete"}
MIB = 1 << 20


class Filler(threading.Thread):
    """Fills the root: half the files are written in place, slowly, half are renamed in. Remembers each one's SHA-256."""

    def __init__(self, folder, seed):
        super().__init__(daemon=True)
        self._folder, self._random = folder, random.Random(seed)
        self._permits = queue.SimpleQueue()
        self.sources = {}
        (folder / "staging").mkdir()
        for name in FOLDERS:
            (folder / "drop" / name).mkdir()

    def allow(self, count):
        """Paces the filler by kills, so that the disk it needs does not depend on their speed."""
        for _ in range(count):
            self._permits.put(1)

    def finish(self):
        """Returns when every file that was allowed is complete."""
        self._permits.put(None)
        self.join()

    def run(self):
        for number, _ in enumerate(iter(self._permits.get, None)):
            self._one_file(f"f{number:05}.bin")

    def _size(self):
        kind = self._random.random()
        if kind < 0.1:
            return 0
        if kind < 0.6:
            return self._random.randrange(1, 64 << 10)
        if kind < 0.85:
            return self._random.randrange(64 << 10, 5 * MIB)
        return self._random.randrange(5 * MIB, 30 * MIB)

    def _one_file(self, name):
        where = self._random.choice(list(FOLDERS))
        target = self._folder / "drop" / where / name
        in_place = self._random.random() < 0.5
        path = target if in_place else self._folder / "staging" / name
        left, total = self._size(), hashlib.sha256()
        with open(path, "wb", buffering=0) as file:
            while left:
                piece = os.urandom(min(left, 4 * MIB))
                total.update(piece)
                file.write(piece)
                left -= len(piece)
                if in_place:
                    time.sleep(self._random.uniform(0, 0.1))
            self.sources[name] = (where, total.hexdigest())
        if not in_place:
            os.rename(path, target)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pending(config):
    """`pending` of `inlet status --json`, wherever in the answer it stands."""

    def find(value):
        if isinstance(value, dict):
            if isinstance(value.get("pending"), int):
                return value["pending"]
            value = list(value.values())
        found = (find(item) for item in value) if isinstance(value, list) else ()
        return next((count for count in found if count is not None), None)

    text = inlet("status", "--json", config=config)
    count = find(json.loads(text))
    if count is None:
        sys.exit(f"no count `pending` in the answer of inlet status --json:\n{text}")
    return count


def wait_until_done(agent, config, store, filler, seconds):
    """Nothing pending and everything stored, or nothing pending and nothing new for ten seconds."""
    quiet_since, before = time.monotonic(), None
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if agent.process.poll() is not None:
            sys.exit(f"inlet ended with {agent.process.returncode}:\n{agent.tail()}")
        now = (pending(config), len(store.get("/_/report")["objects"]))
        if now != before:
            quiet_since, before = time.monotonic(), now
        quiet = time.monotonic() - quiet_since
        if now[0] == 0 and (quiet > 10 or (now[1] >= len(filler.sources) and quiet > 3)):
            return
        time.sleep(0.5)
    print(f"still pending after {seconds} s: {before[0]}")


def compare(folder, sources, report):
    """Counts of what is wrong, with the names printed."""
    stored = {}
    for key, entry in report["objects"].items():
        stored.setdefault(key.rpartition("/")[2].partition("_")[2], []).append((key, entry))
    wrong = Counter()

    def note(what, name, detail):
        wrong[what] += 1
        print(f"  {what}: {name} ({detail})")

    for name, (where, digest) in sources.items():
        found = stored.pop(name, [])
        if not found:
            note("lost", name, where)
        if len(found) > 1:
            note("doubled", name, ", ".join(key for key, _ in found))
        for key, entry in found:
            if sha256(entry["file"]) != digest:
                note("partial", name, f"{key}, {entry['size']} bytes")
        if found:
            problem = source_problem(folder / "drop", where, name, digest)
            if problem:
                note("source", name, problem)
    for name, entries in stored.items():
        note("foreign", name, entries[0][0])
    return wrong


def source_problem(root, where, name, digest):
    """What is wrong with a delivered source, by its route's on_success; None when nothing is."""
    original = root / where / name
    if where == "keep":
        return None if original.exists() and sha256(original) == digest else "kept source missing or changed"
    if original.exists():
        return f"still in {where}/"
    archived = [path for path in (root / ".inlet" / "done").rglob("*") if path.name == name]
    if where == "archive" and (len(archived) != 1 or sha256(archived[0]) != digest):
        return f"{len(archived)} copies in the archive, or changed"
    return None


def kill_again_and_again(config, log, filler, given):
    """`cycles` runs of inlet, each killed; how many ended before that, by themselves."""
    moments, died = random.Random(given.seed), 0
    for _ in range(given.cycles):
        filler.allow(given.files_per_cycle)
        with Inlet(config, log) as agent:
            time.sleep(moments.uniform(0.05, 2))
            if agent.process.poll() is not None:
                died += 1
                print(f"inlet ended by itself with {agent.process.returncode}:\n{agent.tail()}")
            agent.process.kill()
            agent.process.wait()
    return died


def print_result(title, wrong, died, report):
    counts, uploads = report["counts"], report["open_uploads"]
    # A kill between the server's answer to `create` and our journal leaves an upload that nobody knows; but parts may
    # only be sent once its id is durable.
    orphans = sum(1 for upload in uploads if upload["parts"])
    rows = [[name, wrong[name], 0, verdict(not wrong[name])] for name in ("lost", "partial", "doubled", "foreign", "source")]
    rows += [["ended by itself", died, 0, verdict(not died)],
             ["uploads left open, with parts", orphans, 0, verdict(not orphans)],
             ["uploads left open, empty", len(uploads) - orphans, "", ""],
             ["uploads aborted", counts["aborts"], "", ""],
             ["parts re-sent", f"{counts['parts_resent']} of {counts['parts']}", "", ""],
             ["stored again under its key", sum(entry["times"] - 1 for entry in report["objects"].values()), "", ""]]
    table(title, ["", "count", "target", ""], rows)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cycles", type=int, nargs="?", default=100)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--files-per-cycle", type=int, default=6)
    options.add_argument("--verify", choices=["size", "md5"], default="md5")
    given = options.parse_args()
    print(f"seed {given.seed}", flush=True)
    with Workspace() as folder, Server("spiral_store.py", "--dir", str(folder / "store"), "--api-key", "bench") as store:
        config = write_config(folder, store.url, verify=given.verify, settle="100ms",
                              key="{dir}/{epoch_ms}_{name}", routes=FOLDERS)
        log = folder / "inlet.log"
        filler = Filler(folder, given.seed)
        filler.start()
        died = kill_again_and_again(config, log, filler, given)
        with Inlet(config, log) as agent:
            filler.finish()
            wait_until_done(agent, config, store, filler, seconds=900)
            status = inlet("status", "--json", config=config)
        report = store.get("/_/report")
        wrong = compare(folder, filler.sources, report)
    title = f"{given.cycles} x kill -9, {len(filler.sources)} sources, seed {given.seed}"
    print_result(title, wrong, died, report)
    if wrong or died:
        sys.exit(f"inlet status --json said:\n{status}")


if __name__ == "__main__":
    main()
