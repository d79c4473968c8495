"""Relative links of the Markdown files, and the anchors that they name. Run by sources.py.

An anchor is made of a heading as GitHub does: small letters, what is neither letter, digit, `_`, `-` nor space left out, a
hyphen for each space, and -1, -2 … behind those that are there already.
"""

import re
from urllib.parse import unquote

FENCE = re.compile(r"^ {0,3}(?:[-*]|\d+\.)? {0,5}(`{3,}|~{3,})")
CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
# [text](target "title"), ![…](…), one level of brackets in the text, for a picture that is a link.
INLINE = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^\s()<>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
PICTURE = re.compile(r"!\[[^\]]*\]\(\s*<?([^\s()<>]+)>?")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")
ATTRIBUTE = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=\"([^\"\s]+)\"")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
NAMED = re.compile(r"<a\b[^>]*?\b(?:name|id)=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*:|//)")


def prose(text):
    """(line number, line) of what is no fenced code."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        if found := FENCE.match(line):
            if fence is None:
                fence = found[1]
                continue
            if found[1].startswith(fence) and line.strip() == found[1]:
                fence = None
                continue
        if fence is None:
            yield number, line


def anchors(text):
    found, seen = set(), {}
    for _, line in prose(text):
        found.update(NAMED.findall(line))
        if heading := HEADING.match(line):
            words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            times = seen.get(slug, 0)
            seen[slug] = times + 1
            found.add(f"{slug}-{times}" if times else slug)
    return found


def targets(text):
    for number, line in prose(text):
        line = CODE_SPAN.sub("``", line)
        named = INLINE.findall(line) + PICTURE.findall(line) + DEFINITION.findall(line) + ATTRIBUTE.findall(line)
        for target in dict.fromkeys(named):
            yield number, target


def broken_links(root, pages):
    """Of `pages`, {path below `root`: text}."""
    known = {root / name: anchors(text) for name, text in pages.items()}
    for name, number, target in ((name, *found) for name, text in pages.items() for found in targets(text)):
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = unquote(target).partition("#")
        place = (root / name.parent / path).resolve() if path else root / name
        where = f"{name}:{number}: {target}"
        if path.startswith("/") or not place.is_relative_to(root):
            yield f"{where}: leads out of the repository"
        elif not place.exists():
            yield f"{where}: is not there"
        elif anchor and anchor not in known.get(place, {anchor}):
            yield f"{where}: no heading has this anchor"
