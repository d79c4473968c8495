"""The types whose names have a word that nobody explains: packaging/size.sh --names. Exits 1 when they are 5 % or more.

A word is explained when the glossary has it, or Swift's standard library, or a library that Package.swift names: those are words
that a Swift programmer knows or can look up. `Watcher`, `watched` and `watching` count as `watch`.
"""

import re
import shutil
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "Sources/inlet/inlet.docc/Glossary.md"
LIBRARY = ("Swift", "_Concurrency", "_StringProcessing", "Synchronization", "RegexBuilder", "Observation", "Testing")
TYPE = re.compile(r"^ *(?:(?:package|private|fileprivate|final|indirect) )*(?:struct|enum|class|actor|protocol) ([A-Z]\w*)", re.M)
DECLARED = re.compile(r"\b(?:struct|enum|class|actor|protocol|func|var|let|case|typealias|associatedtype)\s+`?([A-Za-z]\w*)")
PUBLIC = re.compile(r"\b(?:public|open)\s+(?:(?:static|final|mutating|indirect)\s+)*" + DECLARED.pattern)
LEAST, MOST = 500, 0.05


def words(name):
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+", name)]


def glossary():
    """The first column of its tables, and the names of its last paragraph."""
    text = GLOSSARY.read_text()
    named = re.findall(r"^\| (\w+) \|", text, re.M) + re.findall(r"\w+", text.split("keep their names:")[1])
    return {word for name in named for word in words(name)}


def known():
    found = glossary()
    toolchain = Path(shutil.which("swiftc") or sys.exit("there is no swiftc")).resolve().parents[1]
    for module in LIBRARY:
        for interface in toolchain.glob(f"lib/swift/linux/{module}.swiftmodule/*-linux-gnu.swiftinterface"):
            found.update(word for name in DECLARED.findall(interface.read_text()) for word in words(name))
    checkouts = {path.name: path for path in ROOT.glob(".build/**/checkouts/*") if path.is_dir()}
    for checkout in checkouts.values():
        for source in checkout.glob("Sources/**/*.swift"):
            found.update(word for name in PUBLIC.findall(source.read_text(errors="replace")) for word in words(name))
    return found


def stems(word):
    yield word
    for ending, more in (("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e"), ("d", ""), ("ing", ""), ("ing", "e"),
                         ("er", ""), ("er", "e"), ("or", "")):
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            yield stem + more
            if len(stem) > 2 and stem[-1] == stem[-2]:
                yield stem[:-1]


def main():
    vocabulary = known()
    if len(vocabulary) < LEAST:
        sys.exit("the libraries' sources are not here: build first")
    names = [(name, path) for path in sorted((ROOT / "Sources").rglob("*.swift")) for name in TYPE.findall(path.read_text())]
    strange, unknown = [], Counter()
    for name, path in names:
        missing = [word for word in words(name) if not vocabulary.intersection(stems(word))]
        unknown.update(missing)
        if missing:
            strange.append(f"{path.relative_to(ROOT)}: {name} ({', '.join(missing)})")
    print(*strange, sep="\n")
    print("words:", ", ".join(f"{word} {count}" for word, count in unknown.most_common()))
    print(f"{len(strange)} of {len(names)} types, {100 * len(strange) / len(names):.1f} %")
    return int(len(strange) >= MOST * len(names))


if __name__ == "__main__":
    sys.exit(main())
