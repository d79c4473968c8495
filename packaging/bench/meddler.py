"""Writers that do to a watched folder what programs and people do, and list what they wrote; and disks that come and go."""

import ctypes
import hashlib
import os
import pwd
import random
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from process import Worker
from report import MIB

RENAME_EXCHANGE, AT_FDCWD = 2, -100
LIBC = ctypes.CDLL(None, use_errno=True)
# Whom agent and writers are where root runs this: root may read what was locked away.
USER = "nobody"
DISK = 256 * MIB


class Version(NamedTuple):
    """What a file held at a time, by its path below the watched folder."""

    path: str
    sha256: str
    size: int
    modified: int


class Book:
    """The list: each content that a file ever had, what is there now, and how often each name lost its file."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.present: dict[str, Version] = {}
        self.departures: Counter[str] = Counter()
        self.acts: Counter[str] = Counter()

    def wrote(self, version: Version) -> None:
        """A name has this content from now on."""
        self.versions.append(version)
        self.present[version.path] = version

    def left(self, path: str, is_gone: bool = False) -> None:
        """A writer took the file from its name, or may have."""
        self.departures[path] += 1
        if is_gone:
            self.present.pop(path, None)


class Disk:
    """An image with a file system, mounted at a folder. Only root can have one."""

    def __init__(self, image: Path, place: Path) -> None:
        self.place, owner = place, pwd.getpwnam(USER)
        place.mkdir(parents=True)
        with open(image, "wb") as file:
            file.truncate(DISK)
        run("mkfs.ext4", "-q", "-E", f"root_owner={owner.pw_uid}:{owner.pw_gid}", image)
        self._device = run("losetup", "-f", "--show", image)
        self.mount()

    @staticmethod
    def is_possible() -> bool:
        return os.geteuid() == 0 and all(map(shutil.which, ("mkfs.ext4", "losetup"))) and subprocess.run(
            ["losetup", "-f"], capture_output=True).returncode == 0

    def mount(self) -> None:
        run("mount", self._device, self.place)

    def unmount(self) -> None:
        """As a pulled card goes: in order when nobody looks inside just now, else without asking."""
        if subprocess.run(["umount", self.place], stderr=subprocess.DEVNULL).returncode != 0:
            run("umount", "-l", self.place)

    def close(self) -> None:
        for words in (["umount", "-l", self.place], ["losetup", "-d", self._device]):
            subprocess.run(words, stderr=subprocess.DEVNULL)


def run(*words: object) -> str:
    """- Returns: what it printed."""
    return subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Meddler(Worker):
    """One writer, who alone changes the files of its folder: `place`, called `name` in the list. What a delivered file left
    behind is no longer there to be changed, which is no failure. A `disk` is taken off and put back."""

    MOST = 60
    ACTS = ("create",) * 8 + ("edit",) * 4 + ("replace",) * 3 + ("exchange",) * 3 + (
        "remove", "move", "lock_folder", "lock_file")

    def __init__(self, place: Path, name: str, seed: int, book: Book, disk: Disk | None = None) -> None:
        super().__init__()
        self.place, self.name, self.book, self._disk = place, name, book, disk
        self.random, self._count = random.Random(f"{seed} {name}"), 0
        place.mkdir(parents=True, exist_ok=True)

    def work(self) -> None:
        acts = self.ACTS + (("take_off",) * 2 if self._disk else ())
        if os.geteuid() == 0:
            # Of this thread alone: what it does to files, it does as USER; what it starts is root's.
            LIBC.setfsgid(pwd.getpwnam(USER).pw_gid)
            LIBC.setfsuid(pwd.getpwnam(USER).pw_uid)
        while not self.ended.is_set():
            act = self.random.choice(acts)
            self.book.acts[act] += 1
            try:
                getattr(self, act)()
            except FileNotFoundError:
                # Delivered, and disposed of.
                pass
            self.ended.wait(self.random.uniform(0, 0.15))

    # What it does

    def create(self) -> None:
        if len(self._own()) < self.MOST:
            name, size = self._fresh(), self._size()
            if self.random.random() < 0.5:
                self._write(name, size, flags=os.O_CREAT | os.O_EXCL)
            else:
                self._put(name, size)

    def edit(self) -> None:
        """In place; half the time under the former size and time, as `exiftool -P` does it."""
        for name in self._any():
            self._write(name, *self._former(name))

    def replace(self) -> None:
        """By another file; half the time of the former size and time, as `cp -p` and `rsync -t` do it."""
        for name in self._any():
            self._put(name, *self._former(name))
            self.book.left(self._path(name))

    def exchange(self) -> None:
        """`mv --exchange`"""
        if names := self._any(2):
            one, other = (os.fsencode(self.place / name) for name in names)
            if LIBC.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), one)
            # A version holds the content's digest, so that nothing is read that may be moved away meanwhile.
            paths = [self._path(name) for name in names]
            for path, former in zip(paths, [self.book.present[path] for path in reversed(paths)]):
                self.book.left(path)
                self.book.wrote(former._replace(path=path))

    def remove(self) -> None:
        for name in self._any():
            os.unlink(self.place / name)
            self.book.left(self._path(name), is_gone=True)

    def move(self) -> None:
        for name in self._any():
            target, former = self._fresh(), self.book.present[self._path(name)]
            os.rename(self.place / name, self.place / target)
            self.book.left(self._path(name), is_gone=True)
            self.book.wrote(former._replace(path=self._path(target)))

    def lock_folder(self) -> None:
        self._lock(self.place, 0o755)

    def lock_file(self) -> None:
        for name in self._any():
            self._lock(self.place / name, 0o644)

    def take_off(self) -> None:
        for name in self._own():
            self.book.left(self._path(name))
        self._disk.unmount()
        self.ended.wait(self.random.uniform(0, 2))
        self._disk.mount()

    # How

    def _lock(self, path: Path, mode: int) -> None:
        """For a moment nobody but root may. That it is moved to an archive or deleted meanwhile needs no right to read."""
        os.chmod(path, 0)
        self.ended.wait(self.random.uniform(0.05, 1))
        os.chmod(path, mode)

    def _own(self) -> list[str]:
        """What is there of its files, in an order that depends on nothing else."""
        return sorted(name for name in os.listdir(self.place) if self._path(name) in self.book.present)

    def _any(self, count: int = 1) -> list[str]:
        """So many of them, or none where there are fewer."""
        names = self._own()
        return self.random.sample(names, count) if len(names) >= count else []

    def _path(self, name: str) -> str:
        return f"{self.name}/{name}"

    def _fresh(self) -> str:
        self._count += 1
        return f"f{self._count:04}.bin"

    def _size(self) -> int:
        return self.random.randrange(1, 64 << 10) if self.random.random() < 0.97 else self.random.randrange(5 * MIB, 7 * MIB)

    def _former(self, name: str) -> tuple[int, int | None]:
        """Size and time of what comes next: half the time those that are there."""
        before = os.lstat(self.place / name)
        return (before.st_size, before.st_mtime_ns) if self.random.random() < 0.5 else (self._size(), None)

    def _put(self, name: str, size: int, modified: int | None = None) -> None:
        """A whole file gets its name, as from rsync, whatever has it now."""
        staged = self.place / ".staged.part"
        version = self._fill(staged, name, size, modified, os.O_CREAT | os.O_TRUNC)
        os.rename(staged, self.place / name)
        self.book.wrote(version)

    def _write(self, name: str, size: int, modified: int | None = None, flags: int = 0) -> None:
        """A file in its place, which nobody may take while it is written."""
        self.book.wrote(self._fill(self.place / name, name, size, modified, flags, longest=0.05))

    def _fill(self, path: Path, name: str, size: int, modified: int | None, flags: int, longest: float = 0) -> Version:
        """In up to four pieces, with pauses of at most `longest`. - Returns: what it holds, closed."""
        content, pieces = os.urandom(size), self.random.randrange(1, 5)
        with open(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | flags, 0o644), "wb", buffering=0) as file:
            for piece in range(pieces):
                begin, end = size * piece // pieces, size * (piece + 1) // pieces
                os.pwrite(file.fileno(), content[begin:end], begin)
                time.sleep(self.random.uniform(0, longest))
            file.truncate(size)
            if modified is not None:
                os.utime(file.fileno(), ns=(modified, modified))
            held = os.fstat(file.fileno())
        return Version(self._path(name), hashlib.sha256(content).hexdigest(), size, held.st_mtime_ns)
