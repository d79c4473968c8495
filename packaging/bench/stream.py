"""Files without end, in the profiles by which Litestream soaks: constant, wave, burst. What has arrived is made to go, so that
the disk stays as it is."""

import math
import os
import random
import shutil
import threading
import time

from sandbox import KINDS, MIB
from trend import WAVE

# How long what has arrived is left where it is, in seconds.
STAY = 30


class Stream(threading.Thread):
    """Drops files until `stop`: 4 small ones a second; 0 to 8 more, up and down in two minutes; 60 at once each half minute,
    with one of 12 MiB."""

    CHOICE = ["spiral", "s3", "stage", "library"] * 12 + ["products", "spaces"]

    def __init__(self, folder, seed):
        super().__init__(daemon=True)
        self._folder, self._random = folder, random.Random(seed)
        self._ended = threading.Event()
        self.count = 0
        (folder / "staging").mkdir()
        for kind in KINDS:
            for policy in ("archive", "delete"):
                (folder / "drop" / kind / policy).mkdir(parents=True)

    def stop(self):
        self._ended.set()
        self.join()

    def run(self):
        begin, owed, bursts, tidied = time.monotonic(), 0.0, 0, 0.0
        before = begin
        while not self._ended.wait(0.1):
            now = time.monotonic()
            owed += (now - before) * (4 + 4 * (1 - math.cos((now - begin) / WAVE * 2 * math.pi)))
            before = now
            while owed >= 1:
                self._drop(self._random.randrange(0, 32 << 10))
                owed -= 1
            if (now - begin) // 30 > bursts:
                bursts += 1
                for _ in range(60):
                    self._drop(self._random.randrange(0, 8 << 10))
                self._drop(12 * MIB)
            if now - tidied > 5:
                tidied = now
                tidy(self._folder)

    def _drop(self, size):
        kind = self._random.choice(self.CHOICE if size < MIB else ["spiral", "s3", "stage", "library"])
        policy = self._random.choice(["archive", "delete"])
        name = f"f{self.count:07}.{KINDS[kind][1]}"
        draft = self._folder / "staging" / name
        # A video is never empty, and GigHive tells files by their bytes.
        draft.write_bytes(os.urandom(size + 64))
        os.rename(draft, self._folder / "drop" / kind / policy / name)
        self.count += 1


def tidy(folder):
    """Removes what has been archived, copied or fetched for a while, and empties what the servers keep."""
    horizon = time.time() - STAY
    for place in (folder / "drop" / ".inlet" / "done", folder / "library"):
        for path in files(place):
            if path.stat().st_ctime < horizon:
                path.unlink(missing_ok=True)
    for job in (folder / "results").glob("*/product.json"):
        if job.stat().st_ctime < horizon:
            shutil.rmtree(job.parent, ignore_errors=True)
    for path in files(folder / "sandbox"):
        is_kept = path.suffix in (".json", ".info") or {"uploads", "tus"} & set(path.parts)
        if not is_kept and path.stat().st_size > 4096 and path.stat().st_ctime < horizon:
            os.truncate(path, 0)


def files(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            path = folder.__class__(parent) / name
            if path.is_file():
                yield path
