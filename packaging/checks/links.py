"""Relative links of the Markdown files, `[text](target)` all of them, and the anchors that they name. Run by sources.py.

An anchor is made of a heading as GitHub does: small letters, what is neither letter, digit, `_`, `-` nor space left out, a
hyphen for each space, and -1, -2 … behind those that are there already.
"""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

FENCED = re.compile(r"^ {0,5}(?:(?:[-*]|\d+\.) +)?```.*?^ {0,5}```[ \t]*$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
# One level of brackets in the text.
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*([^\s()<>]+)\s*\)")
OTHER = re.compile(r"^ {0,3}\[[^\]]+\]:|<(?:a|img|source)\b|\[!\[|^ *~~~|\]\([^)]*[ <]", re.MULTILINE)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)
MANUAL = Path("Sources/inlet/inlet.docc")
GENERATED = re.compile(r"Reference-\w+\.md")
ELSEWHERE = re.compile(r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*:|//)")


def prose(text):
    """What is no fenced code, on the lines that it has."""
    return FENCED.sub(lambda code: "\n" * code[0].count("\n"), text)


def anchors(text):
    found, seen = set(), Counter()
    for heading in HEADING.findall(prose(text)):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken_links(root, pages):
    """Of `pages`, {path below `root`: text}."""
    known = {root / name: anchors(text) for name, text in pages.items()}
    for name, text in pages.items():
        for number, line in enumerate(CODE_SPAN.sub("``", prose(text)).split("\n"), 1):
            if OTHER.search(line):
                yield f"{name}:{number}: a link of a form that is not followed here"
            for target in LINK.findall(line):
                path, _, anchor = unquote(target).partition("#")
                place = (root / name.parent / path).resolve() if path else root / name
                where = f"{name}:{number}: {target}"
                if ELSEWHERE.match(target):
                    continue
                elif path.startswith("/") or not place.is_relative_to(root):
                    yield f"{where}: leads out of the repository"
                elif GENERATED.fullmatch(place.name) and place.parent == root / MANUAL and name.parent == MANUAL:
                    # docs.sh makes it, and follows this link.
                    continue
                elif not place.exists():
                    yield f"{where}: is not there"
                elif anchor and anchor not in known.get(place, {anchor}):
                    yield f"{where}: no heading has this anchor"
