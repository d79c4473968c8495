"""What a process holds besides memory: descriptors, threads, and its journal on the disk."""

import os
import threading
from pathlib import Path
from typing import NamedTuple

from measure import status_field

EVERY = 0.1


class Holdings(NamedTuple):
    descriptors: int
    threads: int
    # Bytes: the journal, and what it has not yet taken over from its log.
    journal: int
    log: int


def holdings(pid, state):
    """Raises FileNotFoundError or ProcessLookupError when the process has ended. Only root sees inlet's descriptors: for
    others they are 0."""
    sizes = {}
    for path in Path(state).glob("journal.sqlite*"):
        try:
            sizes[path.name] = path.stat().st_size
        except FileNotFoundError:
            # SQLite removes its log when the last connection is closed.
            continue
    try:
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        descriptors = 0
    return Holdings(descriptors, status_field(f"/proc/{pid}/status", "Threads"),
                    sum(sizes.values()), sizes.get("journal.sqlite-wal", 0))


class HoldingsPeak(threading.Thread):
    """The most of each that was seen, looking ten times a second, while this is a context."""

    def __init__(self, pid, state):
        super().__init__(daemon=True)
        self._pid, self._state, self._over = pid, state, threading.Event()
        self.most = Holdings(0, 0, 0, 0)

    def _look(self):
        self.most = Holdings(*map(max, self.most, holdings(self._pid, self._state)))

    def run(self):
        while not self._over.wait(EVERY):
            try:
                self._look()
            except (FileNotFoundError, ProcessLookupError):
                return

    def __enter__(self):
        self._look()
        self.start()
        return self

    def __exit__(self, *failure):
        self._over.set()
        self.join()
