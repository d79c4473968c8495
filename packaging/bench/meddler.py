"""Writers that do to a watched folder what programs and people do, and keep a list of what they wrote."""

import ctypes
import hashlib
import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass

MIB = 1 << 20
RENAME_EXCHANGE = 2
LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100


@dataclass(frozen=True)
class Version:
    """What a file held at a time, by its path below the watched folder."""
    path: str
    sha256: str
    size: int
    modified: int

    def looks_like(self, other):
        return (self.path, self.size, self.modified) == (other.path, other.size, other.modified)


class Book:
    """The list: each content that a file ever had, what is there now, and how often each name lost its file."""

    def __init__(self):
        self.versions = []
        self.present = {}
        self.departures = Counter()
        self.acts = Counter()

    def wrote(self, version):
        """A name has this content from now on."""
        self.versions.append(version)
        self.present[version.path] = version

    def left(self, path):
        """A writer took the file from its name, or may have."""
        self.departures[path] += 1

    def removed(self, path):
        self.left(path)
        self.present.pop(path, None)


def exchange(one, other):
    """`mv --exchange`."""
    if LIBC.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(one))


class Meddler(threading.Thread):
    """One writer, who alone changes the files of its folder: `place`, called `name` in the list. What a delivered file left
    behind is no longer there to be changed, which is no failure."""

    MOST = 60

    def __init__(self, place, name, seed, book):
        super().__init__(daemon=True)
        self.place, self.name, self.book = place, name, book
        self.random = random.Random(f"{seed} {name}")
        self._ended = threading.Event()
        self._count = 0
        self.failure = None

    ACTS = ("create",) * 8 + ("edit",) * 4 + ("replace",) * 3 + ("exchange",) * 3 + (
        "remove", "move", "lock_folder", "lock_file")

    def run(self):
        try:
            while not self._ended.is_set():
                act = self.random.choice(self.ACTS)
                self.book.acts[act] += 1
                try:
                    getattr(self, act)()
                except FileNotFoundError:
                    # Delivered, and disposed of.
                    pass
                self._ended.wait(self.random.uniform(0, 0.15))
        except Exception as error:  # A writer that dies unseen would leave a run that proves nothing.
            self.failure = error

    def end(self):
        self._ended.set()

    def finish(self):
        self.end()
        self.join()
        if self.failure:
            raise self.failure

    # What it does.

    def create(self):
        if len(self._own()) < self.MOST:
            name, size = self._fresh(), self._size()
            if self.random.random() < 0.5:
                self._write(name, size, os.O_CREAT | os.O_EXCL)
            else:
                self._put(name, size)

    def edit(self):
        """In place; half the time under the former size and time, as `exiftool -P` does it."""
        if name := self._any():
            before = os.lstat(self.place / name)
            is_quiet = self.random.random() < 0.5
            size = before.st_size if is_quiet else self._size()
            self._write(name, size, 0, before.st_mtime_ns if is_quiet else None)

    def replace(self):
        """By another file; half the time of the former size and time, as `cp -p` and `rsync -t` do it."""
        if name := self._any():
            before = os.lstat(self.place / name)
            is_quiet = self.random.random() < 0.5
            if is_quiet:
                self._put(name, before.st_size, before.st_mtime_ns)
            else:
                self._put(name, self._size())
            self.book.left(self._path(name))

    def exchange(self):
        names = self._own()
        if len(names) > 1:
            one, other = self.random.sample(names, 2)
            exchange(self.place / one, self.place / other)
            # A version holds the content's digest, so that nothing is read that may be moved away meanwhile.
            held = {one: self._held(one), other: self._held(other)}
            for name, former in ((one, other), (other, one)):
                self.book.left(self._path(name))
                now = held[former]
                self.book.wrote(Version(self._path(name), now.sha256, now.size, now.modified))

    def remove(self):
        if name := self._any():
            os.unlink(self.place / name)
            self.book.removed(self._path(name))

    def move(self):
        if name := self._any():
            target, former = self._fresh(), self._held(name)
            os.rename(self.place / name, self.place / target)
            self.book.removed(self._path(name))
            self.book.wrote(Version(self._path(target), former.sha256, former.size, former.modified))

    def lock_folder(self):
        self._lock(self.place, 0o755)

    def lock_file(self):
        if name := self._any():
            self._lock(self.place / name, 0o644)

    # How.

    def _lock(self, path, mode):
        """For a moment nobody but root may."""
        os.chmod(path, 0)
        self._ended.wait(self.random.uniform(0.05, 1))
        try:
            os.chmod(path, mode)
        except FileNotFoundError:
            # It was moved to an archive, or deleted: that needs no right to read it.
            pass

    def _own(self):
        """What is there of its files, in an order that depends on nothing else."""
        return sorted(name for name in os.listdir(self.place) if self._path(name) in self.book.present)

    def _any(self):
        names = self._own()
        return self.random.choice(names) if names else None

    def _path(self, name):
        return f"{self.name}/{name}"

    def _held(self, name):
        return self.book.present[self._path(name)]

    def _fresh(self):
        self._count += 1
        return f"f{self._count:04}.bin"

    def _size(self):
        draw = self.random.random()
        if draw < 0.97:
            return self.random.randrange(1, 64 << 10)
        return self.random.randrange(5 * MIB, 7 * MIB)

    def _put(self, name, size, modified=None):
        """A whole file gets its name, as from rsync, whatever has it now."""
        staged = self.place / ".staged.part"
        version = self._fill(staged, name, size, os.O_CREAT | os.O_TRUNC, modified)
        os.rename(staged, self.place / name)
        self.book.wrote(version)

    def _write(self, name, size, flags, modified=None):
        """A file in its place, which nobody may take while it is written."""
        self.book.wrote(self._fill(self.place / name, name, size, flags, modified, longest=0.05))

    def _fill(self, path, name, size, flags, modified, longest=0):
        """In up to four pieces, with pauses of at most `longest`. - Returns: what it holds, closed."""
        content, pieces = os.urandom(size), self.random.randrange(1, 5)
        file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | flags, 0o644)
        try:
            for piece in range(pieces):
                begin, end = size * piece // pieces, size * (piece + 1) // pieces
                os.pwrite(file, content[begin:end], begin)
                time.sleep(self.random.uniform(0, longest))
            os.ftruncate(file, size)
            if modified is not None:
                os.utime(file, ns=(modified, modified))
            held = os.fstat(file)
        finally:
            os.close(file)
        return Version(self._path(name), hashlib.sha256(content).hexdigest(), size, held.st_mtime_ns)


class MountMeddler(Meddler):
    """The same on a file system, mounted at `disk`, that is taken off and put back."""

    ACTS = Meddler.ACTS + ("take_off",) * 2

    def __init__(self, place, name, seed, book, mounts, disk):
        super().__init__(place, name, seed, book)
        self._mounts, self._disk = mounts, disk

    def take_off(self):
        for name in self._own():
            self.book.left(self._path(name))
        self._mounts.unmount(self._disk)
        self._ended.wait(self.random.uniform(0, 2))
        self._mounts.mount(self._disk)
