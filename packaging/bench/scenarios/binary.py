"""What the release binary holds: its size with and without symbols, its sections, and its symbols by module.

The target is for the file as the package has it."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

from agent import binary
from report import MIB, Given, Row, bounded, table

SHOWN = 28
MOST_MB = 70
# By how a symbol's name begins; Swift's others carry their module's name.
FAMILIES = (
    ("$sSo", "C types as Swift sees them"), ("$sSc", "Swift concurrency"), ("$ss", "Swift standard library"),
    ("$sS", "Swift standard library"), ("swift_task", "Swift concurrency"), ("_ZN5swift", "Swift runtime"),
    ("_ZNK5swift", "Swift runtime"), ("swift", "Swift runtime"), ("symbolic", "Swift type names"),
    ("get_type_metadata", "Swift type names"), ("associated conformance", "Swift type names"),
    ("CNIOBoringSSL", "BoringSSL (NIO)"), ("_ZN6icu", "ICU"), ("icu", "ICU"), ("u_", "ICU"),
    ("ucnv_", "ICU"), ("_ZN4llvm", "LLVM support"), ("_Z", "C++"), ("", "C and what has no name of its own"))

OPTIONS = {}


def said(*words: object) -> str:
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout


def module(name: str) -> str:
    """Of a symbol. A Swift name begins with `$s` and the length of its module's name."""
    name = name.removeprefix("_") if name.startswith("_$") else name
    if found := re.match(r"\$s(?=[1-9])(\d+)", name):
        return name[found.end():found.end() + int(found[1])]
    return next(family for start, family in FAMILIES if name.startswith(start))


def by_module(symbols: str) -> dict[str, list[int]]:
    """{module: [bytes of code, bytes of data]} of the lines of `nm -S`: address, size, type, name. What has no bytes in the
    file (b) does not count, and of two names for one place the first does."""
    found, seen = defaultdict(lambda: [0, 0]), set()
    for line in symbols.splitlines():
        parts = line.split(" ", 3)
        if len(parts) == 4 and parts[2] not in "bB" and parts[0] not in seen:
            seen.add(parts[0])
            found[module(parts[3])][parts[2] not in "tTwWiV"] += int(parts[1], 16)
    return found


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    path, stripped = Path(binary()), folder / "stripped"
    said("strip", "--strip-unneeded", "--remove-section=.comment", "-o", stripped, path)
    whole, size = path.stat().st_size, stripped.stat().st_size
    table("the binary", ["", "MiB"], [["with symbols", f"{whole / MIB:.1f}"], ["stripped", f"{size / MIB:.1f}"]])
    lines = (line.split() for line in said("size", "-A", "-d", stripped).splitlines())
    sections = sorted(((int(line[1]), line[0]) for line in lines if line and line[0].startswith(".")), reverse=True)
    table("its sections", ["", "MiB", "%"],
          [[name, f"{bytes_ / MIB:.2f}", f"{100 * bytes_ / size:.1f}"] for bytes_, name in sections[:12]])
    found = by_module(said("nm", "-S", "--defined-only", path))
    ordered = sorted(found.items(), key=lambda one: -sum(one[1]))
    rest = [sum(sizes) for sizes in zip(*(both for _, both in ordered[SHOWN:]))] or [0, 0]
    table("what its symbols belong to, MiB", ["", "code", "data", "together"],
          [[name, *(f"{bytes_ / MIB:.2f}" for bytes_ in (*both, sum(both)))]
           for name, both in [*ordered[:SHOWN], (f"{len(ordered[SHOWN:])} others", rest)]])
    needed = re.findall(r"NEEDED\s+(\S+)", said("objdump", "-p", path))
    print(f"  symbols name {sum(map(sum, found.values())) / MIB:.1f} of {size / MIB:.1f} MiB; the rest is unwinding, relocation "
          f"and reflection\n  loaded from the system: {', '.join(needed)}")
    return "targets", [bounded("the stripped binary", size / 1e6, MOST_MB, " MB")]
