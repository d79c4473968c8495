"""What the release binary holds: its size with and without symbols, its sections, and its symbols by module. Run binary.sh."""

import argparse
import os
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from measure import binary, table

MIB = 1 << 20
SHOWN = 28
# By how a symbol's name begins; Swift's others carry their module's name.
FAMILIES = (
    ("$sSo", "C types as Swift sees them"), ("$sSc", "Swift concurrency"), ("$ss", "Swift standard library"),
    ("$sS", "Swift standard library"), ("swift_task", "Swift concurrency"), ("_ZN5swift", "Swift runtime"),
    ("_ZNK5swift", "Swift runtime"), ("swift", "Swift runtime"), ("symbolic", "Swift type names"),
    ("get_type_metadata", "Swift type names"), ("associated conformance", "Swift type names"),
    ("CNIOBoringSSL", "BoringSSL (NIO)"), ("_ZN6icu", "ICU"), ("icu", "ICU"), ("u_", "ICU"),
    ("ucnv_", "ICU"), ("_ZN4llvm", "LLVM support"), ("_Z", "C++"))


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def module(name):
    """Of a symbol. A Swift name begins with `$s` and the length of its module's name."""
    name = name.removeprefix("_") if name.startswith("_$") else name
    if found := re.match(r"\$s(?=[1-9])(\d+)", name):
        end = found.end() + int(found[1])
        return name[found.end():end]
    for start, family in FAMILIES:
        if name.startswith(start):
            return family
    return "C and what has no name of its own"


def by_module(symbols):
    """{module: [bytes of code, bytes of data]} of the lines of `nm -S`: address, size, type, name. What has no bytes in the
    file (b) does not count, and of two names for one place the first does."""
    found, seen = defaultdict(lambda: [0, 0]), set()
    for line in symbols.splitlines():
        parts = line.split(" ", 3)
        if len(parts) < 4 or parts[2] in "bB" or parts[0] in seen:
            continue
        seen.add(parts[0])
        found[module(parts[3])][parts[2] not in "tTwWiV"] += int(parts[1], 16)
    return found


def sections(path):
    lines = (line.split() for line in run("size", "-A", "-d", path).splitlines())
    return sorted(((line[0], int(line[1])) for line in lines if line and line[0].startswith(".")), key=lambda one: -one[1])


def show(path, folder):
    """Prints it all. - Returns: the bytes with and without symbols."""
    stripped = folder / "stripped"
    run("strip", "-o", stripped, path)
    sizes = os.stat(path).st_size, os.stat(stripped).st_size
    table("the binary", ["", "MiB"], [[what, f"{size / MIB:.1f}"] for what, size in zip(("with symbols", "stripped"), sizes)])
    table("its sections", ["", "MiB", "%"],
          [[name, f"{size / MIB:.2f}", f"{100 * size / sizes[1]:.1f}"] for name, size in sections(stripped)[:12]])
    found = by_module(run("nm", "-S", "--defined-only", path))
    ordered = sorted(found.items(), key=lambda one: -sum(one[1]))
    rest = [sum(sizes[kind] for _, sizes in ordered[SHOWN:]) for kind in (0, 1)]
    rows = [*ordered[:SHOWN], (f"{len(ordered[SHOWN:])} others", rest)]
    table("what its symbols belong to, MiB", ["", "code", "data", "together"],
          [[name, *(f"{size / MIB:.2f}" for size in (*both, sum(both)))] for name, both in rows])
    named = sum(map(sum, found.values()))
    print(f"  symbols name {named / MIB:.1f} of {sizes[1] / MIB:.1f} MiB; the rest is unwinding, relocation and reflection")
    needed = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", path))
    print(f"  loaded from the system: {', '.join(needed)}", flush=True)
    return sizes


def self_test():
    for name, wanted in (("$s10InletAgent5ThingV", "InletAgent"), ("$sSS5InletE", "Swift standard library"),
                         ("$sSo3fooV", "C types as Swift sees them"), ("CNIOBoringSSL_MD5", "BoringSSL (NIO)"), ("main", "C and what has no name of its own"),
                         ("$sScT6cancel", "Swift concurrency")):
        if module(name) != wanted:
            raise SystemExit(f"binary: {name} is of {module(name)}, not of {wanted}")
    lines = "0010 0008 T $s5Inlet1aV\n0020 0004 r $s5Inlet1bV\n0010 0008 T alias\n0030 0100 b $s5Inlet1cV\n0040 U open\n"
    if dict(by_module(lines)) != {"Inlet": [8, 4]}:
        raise SystemExit(f"binary: by_module is wrong: {dict(by_module(lines))}")
    print("ok    binary")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--self-test", action="store_true")
    if options.parse_args().self_test:
        return self_test()
    with tempfile.TemporaryDirectory() as folder:
        show(binary(), Path(folder))
    return None


if __name__ == "__main__":
    main()
