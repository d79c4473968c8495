"""What throughput.py sends: files of one size, and whether exactly these arrived."""

import hashlib
import os
import re

from measure import status_field

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# From here on a file is big: measured in bytes a second, and beside curl.
BIG = 4 << 20
# Small, because what a child needed at most cannot be told from what its parent did.
BLOCK = 4 << 20


class Load:
    """`10000x256KiB`"""

    def __init__(self, name):
        parts = re.fullmatch(r"(\d+)x(\d+)(KiB|MiB|GiB)", name)
        if not parts:
            raise ValueError(f"{name}: a load is written as 5000x16KiB")
        self.name, self.count = name, int(parts[1])
        self.size = int(parts[2]) * UNITS[parts[3]]
        self.total = self.count * self.size
        self.is_big = self.size >= BIG
        self.folder, self.wanted = None, {}

    def file(self, number):
        return f"f{number:06d}.bin"

    def make(self, folder):
        """Random bytes, so that nothing on the way can shorten them; written just now, they are in the page cache."""
        folder.mkdir()
        self.folder = folder
        for number in range(self.count):
            name = self.file(number)
            # Of big files the parts' MD5s are the store's and the client's matter: they are not hashed here.
            self.wanted[name] = (self.size, write_random(folder / name, self.size, not self.is_big))
        # Else the disk is still busy with them in the first round.
        os.sync()
        if status_field("/proc/meminfo", "MemAvailable") << 10 < self.total:
            print(f"{self.name}: more than fits in memory, so files come from the disk and not from the page cache")
        return self


def write_random(path, size, is_hashed):
    """- Returns: the MD5 of what was written, or "-"."""
    total = hashlib.md5() if is_hashed else None
    block = os.urandom(min(size, BLOCK))
    with open(path, "wb") as file:
        for at in range(0, size, BLOCK):
            piece = block[: size - at]
            file.write(piece)
            if total:
                total.update(piece)
    return total.hexdigest() if total else "-"


def differences(wanted, found):
    """What is wrong with what arrived, as lines. MD5s are compared where both sides know one."""
    lines = [f"{name} is missing" for name in wanted if name not in found]
    lines += [f"{name} was never sent" for name in found if name not in wanted]
    for name in wanted.keys() & found.keys():
        (size, md5), (got, got_md5) = wanted[name], found[name]
        if size != got:
            lines.append(f"{name} has {got:,} bytes of {size:,}")
        elif "-" not in (md5, got_md5) and md5 != got_md5:
            lines.append(f"{name} has the MD5 {got_md5}, not {md5}")
    return lines


def check(who, load, sink):
    """Ends the measurement unless the sink has every file of the load, whole, and nothing else."""
    wrong = differences(load.wanted, sink.objects())
    stats = sink.stats()
    if stats["open_uploads"]:
        wrong.append(f"{stats['open_uploads']} uploads are left open")
    if wrong:
        shown = "\n  ".join(wrong[:5])
        raise SystemExit(f"{who}, {load.name}: {len(wrong)} of {load.count:,} objects are wrong:\n  {shown}")
    return stats


class Arrived:
    """A sink that never was."""

    names, left = {"a": (3, "00"), "b": (4, "-")}, 0

    def objects(self):
        return self.names

    def stats(self):
        return {"open_uploads": self.left}


def self_test():
    wanted = {"a": (3, "00"), "b": (4, "-")}
    for found, count in (
        ({"a": (3, "00"), "b": (4, "11")}, 0), ({"a": (3, "-"), "b": (4, "-")}, 0), ({"a": (3, "00")}, 1),
        ({"a": (3, "01"), "b": (4, "-")}, 1), ({"a": (2, "00"), "b": (4, "-")}, 1),
        ({"a": (3, "00"), "b": (4, "-"), "c": (1, "-")}, 1), ({}, 2),
    ):
        if len(differences(wanted, found)) != count:
            raise SystemExit(f"differences: {found} must have {count}")
    load, sink = Load("2x16KiB"), Arrived()
    load.wanted = wanted
    check("inlet", load, sink)
    for sink.names, sink.left in (({"a": (3, "00")}, 0), (wanted, 1)):
        try:
            check("inlet", load, sink)
        except SystemExit:
            continue
        raise SystemExit(f"check lets {sink.names} with {sink.left} open uploads pass")
    load = Load("30x256MiB")
    if (load.count, load.size, load.is_big) != (30, 256 << 20, True) or Load("5000x16KiB").is_big:
        raise SystemExit("Load is wrong")
    print("ok    loads")
