"""Fills a watched folder while inlet is killed beside it, and remembers what it wrote."""

import hashlib
import os
import queue
import random
import threading
import time
from dataclasses import dataclass

from sandbox import KINDS, MIB, POLICIES


@dataclass
class Source:
    """A file by its path below the root: what it holds, what becomes of it, and whether it is sent."""
    name: str
    kind: str
    policy: str
    size: int
    sha256: str
    is_sent: bool = True


class Filler(threading.Thread):
    """Writes half the files in place, slowly, renames half of them in; now and then a whole unit."""

    # Kinds in the proportions in which they come.
    CHOICE = ["spiral", "other", "s3", "stage", "library"] * 3 + ["products", "spaces", "spaces", "units"]

    def __init__(self, folder, seed):
        super().__init__(daemon=True)
        self._folder, self._random = folder, random.Random(seed)
        self._permits = queue.SimpleQueue()
        self.sources = []
        (folder / "staging").mkdir()
        for kind in [*KINDS, "units"]:
            for policy in POLICIES:
                (folder / "drop" / kind / policy).mkdir(parents=True)

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
            kind, policy = self._random.choice(self.CHOICE), self._random.choice(POLICIES)
            if kind == "units":
                self._unit(f"units/{policy}/u{number:05}", policy)
            else:
                name = f"{kind}/{policy}/f{number:05}.{KINDS[kind][1]}"
                self._one_file(name, kind, policy, self._size(kind), self._random.random() < 0.5)

    def _unit(self, folder, policy):
        """Two clips, one with a sidecar, and the marker that says that they are complete."""
        (self._folder / "drop" / folder).mkdir()
        for name, size in (("a.xmp", 300), ("a.mp4", self._size("library")), ("b.mp4", 40_000)):
            self._one_file(f"{folder}/{name}", "units", policy, size + 1, False)
        self._one_file(f"{folder}/DONE", "units", policy, 0, False, is_sent=False)

    def _size(self, kind):
        draw = self._random.random()
        # GigHive tells files by their content, so that two empty ones are one; a video is never empty.
        least = 64 if kind in ("stage", "products", "spaces") else 0
        if draw < 0.1:
            return least
        if draw < 0.65 or kind == "products":
            return self._random.randrange(1 + least, 64 << 10)
        if draw < 0.92:
            return self._random.randrange(64 << 10, 5 * MIB)
        return self._random.randrange(5 * MIB, 30 * MIB)

    def _one_file(self, name, kind, policy, size, in_place, is_sent=True):
        target = self._folder / "drop" / name
        path = target if in_place else self._folder / "staging" / name.replace("/", "_")
        left, total = size, hashlib.sha256()
        with open(path, "wb", buffering=0) as file:
            while left:
                piece = os.urandom(min(left, 4 * MIB))
                total.update(piece)
                file.write(piece)
                left -= len(piece)
                if in_place:
                    time.sleep(self._random.uniform(0, 0.1))
            self.sources.append(Source(name, kind, policy, size, total.hexdigest(), is_sent))
        if not in_place:
            os.rename(path, target)
