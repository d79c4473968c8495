"""What a process needs at most, and of what kind: the kernel's peak counts its own memory and mapped files alike."""

import os
import subprocess
import threading
import time
from pathlib import Path

from measure import HERE

FIELDS = ("VmHWM", "RssAnon", "RssFile", "RssShmem")
EVERY = 0.01


def read(text):
    """MiB by the names of /proc/PID/status."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name: int(value.split()[0]) / 1024 for name, value in pairs if name in FIELDS}


class MemoryPeak(threading.Thread):
    """Of a process, while this is a context: the kernel's peak since its start or since it was reset, which misses nothing; and
    the highest that was seen, looking a hundred times a second, of its own memory, of mapped files, and of both at once."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self._path, self._over = Path(f"/proc/{pid}/status"), threading.Event()
        self.kernel = self.anonymous = self.files = self.both = 0.0

    def take(self, now):
        self.kernel = now.get("VmHWM", 0.0)
        files = now.get("RssFile", 0.0) + now.get("RssShmem", 0.0)
        anonymous = now.get("RssAnon", 0.0)
        self.anonymous, self.files = max(self.anonymous, anonymous), max(self.files, files)
        self.both = max(self.both, anonymous + files)

    def _look(self):
        now = read(self._path.read_text())
        # A process that is ending has no memory left, and no peak.
        if "VmHWM" in now:
            self.take(now)

    def run(self):
        while not self._over.wait(EVERY):
            try:
                self._look()
            except OSError:
                return

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        self._over.set()
        self.join()
        try:
            self._look()
        except OSError:
            return

    def cells(self):
        return [f"{value:.1f}" for value in (self.kernel, self.both, self.anonymous, self.files)]


HEADER = ["VmHWM", "seen at most", "own memory (RssAnon)", "mapped files (RssFile)"]


def keeping_code(folder):
    """The environment in which inlet does not give back code that it has run; None where it cannot be built."""
    library = folder / "keep_code.so"
    done = subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(HERE / "keep_code.c")])
    return None if done.returncode else os.environ | {"LD_PRELOAD": str(library)}


def self_test():
    peak = MemoryPeak(os.getpid())
    for anonymous, files in ((10, 20), (15, 10), (12, 4)):
        peak.take(read(f"Name:\tinlet\nVmHWM:\t 40960 kB\nRssAnon:\t {anonymous * 1024} kB\nRssFile:\t {files * 1024} kB\n"))
    if (peak.kernel, peak.anonymous, peak.files, peak.both) != (40, 15, 20, 30):
        raise SystemExit(f"memory_peak is wrong: {peak.cells()}")
    with MemoryPeak(os.getpid()) as own:
        time.sleep(3 * EVERY)
    if not 0 < own.anonymous < own.both <= own.kernel + 1:
        raise SystemExit(f"memory_peak of itself is wrong: {own.cells()}")
    print("ok    memory_peak")
