"""What the pages name: `File.swift` is there, and `File.swift:function` is declared in it. Run by check_sources.py.

A path may leave out what stands before it, as long as one file alone ends so; `*` stands for any letters. A page with numbered
steps (`Walk.md`) also says how many calls and files it names, and that is counted. `--self-test` tries the rules on made-up pages.
"""

import re
import sys
from fnmatch import fnmatchcase

# What may stand in a page: `InletAgent/Watch/RootLoop.swift`, `RootLoop.swift:readEvents`, `Script*.swift`.
NAMED = re.compile(r"`((?:[\w+*-]+/)*[\w+*-]+\.swift)(?::(\w+))?`")
# A step may go on in the next lines. `NAMESettings.swift` stands for any name.
STEP = re.compile(r"^\d+\. ")
PLACEHOLDER = re.compile(r"\bNAME")
FIGURES = re.compile(r"\b(\d+) steps, (\d+) calls in all, in (\d+) files\b")


def ending_so(path, files):
    """The files whose paths end in `path`, folder by folder; those of the tests where the program has none."""
    parts = path.split("/")
    found = [name for name in files
             if len(tail := str(name).split("/")[-len(parts):]) == len(parts) and all(map(fnmatchcase, tail, parts))]
    return [name for name in found if not str(name).startswith("Tests/")] or found


def declares(code, function):
    pattern = r"\binit\s*[?!<(]" if function == "init" else rf"\b(?:func|var|let)\s+`?{function}`?\b"
    return re.search(pattern, code) is not None


def unnamed(page, text, code):
    """What `text` names that is not there; `code` is the text of each Swift file, without comments and strings."""
    steps, calls, places = 0, set(), set()
    is_step = False
    for number, line in enumerate(text.split("\n"), 1):
        found = [(path, function) for path, function in NAMED.findall(line) if not PLACEHOLDER.search(path)]
        begins = STEP.match(line) is not None
        is_step = begins or is_step and line.startswith("   ")
        steps += begins and bool(found)
        for path, function in found:
            files = ending_so(path, code)
            if not files:
                yield f"{page}:{number}: there is no {path}"
            elif function and len(files) > 1:
                yield f"{page}:{number}: {path} is one of {', '.join(sorted(map(str, files)))}"
            elif function and not declares(code[files[0]], function):
                yield f"{page}:{number}: {files[0]} declares no {function}"
            elif function and is_step:
                calls.add((files[0], function))
                places.add(files[0])
    said = FIGURES.search(text)
    counted = (steps, len(calls), len(places))
    if said and tuple(map(int, said.groups())) != counted:
        yield f"{page}: says '{said[0]}', and has {counted[0]} steps, {counted[1]} calls in all, in {counted[2]} files"


CODE = {"Sources/A/One.swift": "func go() {} ; init?(x)", "Sources/B/Two.swift": "static let rule = 1", "Sources/C/Two.swift": ""}
GOOD = "2 steps, 3 calls in all, in 2 files\n1. `One.swift:go`: asks `B/Two.swift:rule`\n2. `A/One.swift:init`\n`A/*.swift` `Two.swift`\n"
# What is put in the place of what, and what is then said.
BAD = (
    ("One.swift:go", "One.swift:went", "declares no went"), ("A/*.swift", "A/X*.swift", "there is no A/X*.swift"),
    ("B/Two", "Two", "is one of Sources/B/Two.swift, Sources/C/Two.swift"), ("B/Two", "C/Two", "declares no rule"),
    ("2. `A", "`A", "has 1 steps, 2 calls in all, in 2 files"), ("3 calls", "4 calls", "says '2 steps, 4 calls"),
)


def self_test():
    assert not list(unnamed("P", GOOD, CODE)), list(unnamed("P", GOOD, CODE))
    for old, new, said in BAD:
        found = " ".join(unnamed("P", GOOD.replace(old, new, 1), CODE))
        assert said in found, f"{new}: {found or 'nothing'}, wanted {said}"
    print(f"ok    {len(BAD)} faults are found")


if __name__ == "__main__":
    if sys.argv[1:] != ["--self-test"]:
        sys.exit("usage: check_names.py --self-test")
    self_test()
