#!/usr/bin/env python3
"""Writes an object file with the part of ICU's data that Inlet can use: icu_data.py LIBRARY OBJECT.

Foundation brings ICU's data, 34 MB, into every static program. Inlet reads the time zones, and formats dates and numbers in the
user's language (`inlet report`). So dates, numbers and zones stay for all languages. Names of languages, regions, currencies and
units, sorting and word breaks stay as ICU's root and English have them; converters of old encodings and the like go.

The object defines the data's symbol. A linker that has it takes no other from LIBRARY. Prints nothing and exits with 69 where
LIBRARY has no such data: the program is then linked with what LIBRARY has.
"""

import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

# Of a folder of names, rules or breaks.
KEPT = {"root.res", "en.res", "pool.res", "res_index.res", "ucadata.icu"}
DROPPED = re.compile(r".*\.(cnv|spp|cfu)|unames\.icu|translit/.*")


def is_kept(name: str) -> bool:
    """`name` is below the package's own: `de.res`, `coll/de.res`."""
    if DROPPED.fullmatch(name):
        return False
    folder, _, file = name.rpartition("/")
    return not folder or file in KEPT or file.endswith(".brk")


def reduced(data: bytes) -> bytes:
    """A package of ICU ("CmnD", version 1): a header, the number of items, the place of each one's name and bytes counted from
    the end of the header, the names, and the bytes, each item at a multiple of 16."""
    start = struct.unpack_from("=H", data)[0]
    count = struct.unpack_from("=I", data, start)[0]
    toc = list(struct.iter_unpack("=II", data[start + 4:start + 4 + 8 * count]))
    ends = [place for _, place in toc[1:]] + [len(data) - start]
    names = [data[start + name:data.index(0, start + name)] for name, _ in toc]
    items = [(name, data[start + place:start + end]) for name, (_, place), end in zip(names, toc, ends)
             if is_kept(name.decode().partition("/")[2])]
    table, texts, blocks = [], b"", b""
    first = 4 + 8 * len(items)
    begin = -(-(first + sum(len(name) + 1 for name, _ in items)) // 16) * 16
    for name, block in items:
        table.append(struct.pack("=II", first + len(texts), begin + len(blocks)))
        texts += name + b"\0"
        blocks += block + bytes(-len(block) % 16)
    return (data[:start] + struct.pack("=I", len(items)) + b"".join(table) + texts).ljust(start + begin, b"\0") + blocks


def run(*words: object) -> bytes:
    return subprocess.run(list(map(str, words)), check=True, capture_output=True).stdout


def main(library: Path, target: Path) -> int:
    found = re.search(r"^[^\n]*[:\[]([^:\[\]\n]+\.o)\]?:\s*\S+ [RD] (icudt\d+_dat)$", run("nm", "-A", library).decode(), re.M)
    if not found:
        return 69
    member, symbol = found.groups()
    with tempfile.TemporaryDirectory() as folder:
        whole, section, text = (Path(folder) / name for name in ("whole.o", "section", "data.s"))
        whole.write_bytes(run("ar", "p", library, member))
        run("objcopy", "-O", "binary", "--only-section=.rodata*", whole, section)
        data = section.read_bytes()
        # The magic number, the byte order of this machine, and the format's version.
        if data[2:4] != b"\xda\x27" or data[8] != (sys.byteorder == "big") or data[12:17] != b"CmnD\1":
            return 69
        section.write_bytes(reduced(data))
        text.write_text(f'.section .rodata\n.globl {symbol}\n.balign 16\n.type {symbol}, %object\n{symbol}:\n.incbin "{section}"\n'
                        f'.size {symbol}, . - {symbol}\n.section .note.GNU-stack, "", %progbits\n')
        run("as", "-o", target, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
