"""What the pages name: `File.swift` is there, and `File.swift:function` is declared in it. Run by sources.py.

A path may leave out what stands before it, as long as one file alone ends so; `*` stands for any letters. A page with numbered
steps (`Walk.md`) also says how many calls and files it names, and that is counted.
"""

import re
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
