"""Collects the texts that people meet, and finds sentences that nobody would say. Called by texts.sh.

A text of several literals or comment lines is one text, at the place of the first. An interpolation counts as one word.
"""

import argparse
import re
import statistics
import sys
from html import unescape
from pathlib import Path

import swift_text

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 30
MEAN = 20

# What nobody would say, and what to say instead. The first form begins a sentence; a question may begin with anything.
PHRASES = [
    (r"^(What|Whatever) (?!if\b|to do\b|it does\b|happens when\b|.*\?$)", "name the thing: 'Other lines …', 'Files that …'"),
    (r"^(Who|Whoever|Whom) (?!.*\?$)", "say 'Anyone who …' or name the person"),
    (r"^(That|Those|The one|The ones) (which|who|that) ", "name the thing"),
    (r"^Is (all|everything) (right|well)\b", "Check the setup"),
    (r"\bat any time what (moves|waits)", "shows transfers, the queue and problems"),
    (r"\bor while they have not\b", "older than this"),
    (r"\b(it|and) goes on\b(?! (strike|to|from|with))", "continues, refreshes, keeps running"),
    (r"\bholds from then on\b", "takes effect at once"),
    (r"\b(is|are|was|were|be|been|being) told\b", "notify, show, report"),
    (r"\bis said (once|so|there|at|by|in|what)\b", "logs, reports, shows"),
    (r"\bthe whole way\b", "end to end"),
    (r"\bhas otherwise than\b", "compare, differs"),
    (r"\bbelongs? into\b", "belongs in"),
    (r"\bis none of\b", "Choose one of …"),
    (r"\btried again by itself\b|\btried by themselves\b", "Inlet retries automatically"),
    (r"\bis (shown|printed|taken|left|sent) as it is\b", "pass through unchanged, keep"),
    (r"\bis from \S+ and old\b", "Showing data from …"),
    (r"\bNo \w+ is so\b", "No matching …"),
    (r"\bthat is not it\b", "Wrong password or token"),
    (r"\bKeep as it is\b", "Cancel"),
    (r"\bled astray\b", "without following symlinks"),
    (r"\bis to (last|wait|be|go|have|stay)\b", "say who does what"),
    (r"\bis missing for that\b", "say what happens"),
    (r"\bnot? (?:more )?known of\b", "say it plainly"),
    (r"\bgoes its way\b", "admitted as new"),
    (r"\bis no (reason|line|place|path|file|folder|number|name|address|key|time|size|text|list|mapping)\b", "'is not a …'"),
    (r"\ba courtesy\b", "best effort"),
    (r"\bin whose (place|stead)\b", "where"),
    (r"\bof (its|their) own accord\b", "automatically"),
    (r"\bthe more so\b|\ball the same\b|\bat all events\b", "say it plainly"),
    (r"\blets? (us|it|them|him) through\b", "allows"),
    (r"\bbecomes? of (it|them|him|the|a|each|every|what|this|these)\b", "say what Inlet does with it"),
    (r"\bsays? of (it|itself|them|him|each)\b", "reports, contains"),
    (r"\bis asked for (it|them|what)\b", "say who asks whom"),
    (r"\bas (good|well) as it can\b", "best effort"),
]
PHRASES = [(re.compile(phrase), advice) for phrase, advice in PHRASES]

WORD = re.compile(r"[^\W_][\w'’.-]*|…")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_`]*\s+(?=[\"'(*_]*(?:[A-Z0-9…`]|nil\b))")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|No|Fig|Sec|RFC|\d)\.$")


class Text:
    def __init__(self, path, line, kind, words):
        self.path, self.line, self.kind, self.words = path, line, kind, " ".join(words.split())

    def __str__(self):
        return f"{self.path}:{self.line}: {self.kind}: {self.words}"

    def sentences(self):
        begin = []
        for part in SENTENCE_END.split(self.words):
            begin.append(part)
            if not ABBREVIATION.search(part):
                yield " ".join(begin)
                begin = []
        if begin:
            yield " ".join(begin)


def is_sentence(words):
    """Three words at least, most of them of letters: no SQL, no format, no list of names."""
    found = WORD.findall(words)
    if len(found) > 20 and not re.search(r"\b(the|a|an|is|are|of|to|in|it|you|not)\b", words):
        return False
    if len(found) < 3 or re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|WITH|PRAGMA|ALTER|AND|OR|WHERE|ORDER|ON|CASE|EXISTS|NOT)\b", words):
        return False
    letters = sum(character.isalpha() or character.isspace() or character in "…,.'’-" for character in words)
    return letters >= 0.8 * len(words)


# MARK: - Swift

def literals(text):
    """(begin, end, words) of each string literal outside of comments, with `…` for what is filled in."""
    index = 0
    while mark := swift_text.SKIPPED.search(text, index):
        index = swift_text.skipped_end(text, mark)
        if mark[2]:
            body = text[mark.end():index - len(mark[1] + mark[2])]
            yield mark.start(), index, spoken(body, mark[1])


def spoken(body, hashes):
    """A literal's text as it is shown."""
    escape, out, index = "\\" + hashes, [], 0
    while (found := body.find(escape, index)) >= 0:
        out.append(body[index:found])
        follows = body[found + len(escape):found + len(escape) + 1]
        if follows == "(":
            out.append("…")
            index = swift_text.code_end(body, found + len(escape) + 1)
        elif follows == "\n":
            index = found + len(escape) + 1
        elif follows == "u":
            index = body.find("}", found) + 1
        else:
            out.append({"n": "\n", "t": " ", '"': '"'}.get(follows, follows))
            index = found + len(escape) + 1
    return "".join([*out, body[index:]])


def swift_texts(path, text):
    begin, last, words = None, 0, []
    # Literals that `+` joins are one text; of a configuration or a page in a literal, each comment or element is one.
    for start, end, said in literals(text):
        if inner := reader_of(said):
            line = text.count("\n", 0, start) + 1
            yield from (Text(path, line + one.line, "message", one.words) for one in inner(path, said))
            continue
        if begin is not None and not re.fullmatch(r"\s*\+?\s*", text[last:start]):
            yield Text(path, text.count("\n", 0, begin) + 1, "message", "".join(words))
            begin = None
        if begin is None:
            begin, words = start, []
        words.append(said)
        last = end
    if begin is not None:
        yield Text(path, text.count("\n", 0, begin) + 1, "message", "".join(words))
    yield from comments(path, text, r"\s*//+ ?(?!MARK|swift-format-ignore|shellcheck|TODO)(.*)")


def reader_of(literal):
    """What reads a literal that is a configuration or a page; None for a text."""
    if re.search(r"^\s*# ", literal, re.MULTILINE) and re.search(r"^\s*\w+:", literal, re.MULTILINE):
        return hash_comments
    return html_texts if literal.lstrip().startswith("<!doctype") else None


def comments(path, text, form, kind="comment"):
    """Comment lines that follow each other are one text; an empty one, an item of a list and code between fences end it."""
    begin, words, fenced = None, [], False
    for number, line in enumerate(text.split("\n") + [""], 1):
        match = re.fullmatch(form, line)
        said = match[1] if match else ""
        if said.strip().startswith("```"):
            fenced = not fenced
            said = ""
        ends = not match or fenced or not said.strip() or said.startswith("    ")
        item = re.match(r"\s*([-*|]|\d+\.) ", said)
        if begin is not None and (ends or item):
            yield Text(path, begin, kind, " ".join(words))
            begin = None
        if not match:
            fenced = False
        if ends:
            continue
        said = re.sub(r"^\s*(?:[-*|]|\d+\.) ", "", said)
        said = re.sub(r"^- (?:Parameters?|Returns|Throws|Note|Important)\b[^:]*:", "", said)
        if begin is None:
            begin, words = number, []
        words.append(said)


# MARK: - What is not Swift

# A key that is commented out, or an example's `route:`: what follows its second `#` is a text, the key is none.
_KEY = r"\s*#\s*(?:- )?(?:[a-z_]+:|- )(?:\s|$)"


def hash_comments(path, text):
    yield from comments(path, text, rf"(?!{_KEY})\s*#+ ?(?!!)(.*)", "example")
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.fullmatch(rf"(?:{_KEY}|\s*[^#\s])[^#]*?\s#+ (.*)", line):
            yield Text(path, number, "example", match[1])


def markdown_texts(path, text):
    begin, words, fenced = None, [], False
    for number, line in enumerate(text.split("\n") + [""], 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
            line = ""
        elif fenced:
            continue
        bare = line.strip()
        fresh = not bare or re.match(r"\s*([-*|>]|\d+\.|#+|@|!\[|<!--|\})", line)
        if begin is not None and fresh:
            yield Text(path, begin, "manual", plain(" ".join(words)))
            begin = None
        if not bare or re.fullmatch(r"[-|: ]+|[@}].*|<!--.*", bare):
            continue
        if bare.startswith("|"):
            for cell in bare.strip("|").split("|"):
                yield Text(path, number, "manual", plain(cell))
            continue
        if begin is None:
            begin, words = number, []
        words.append(re.sub(r"^(?:[-*>]|\d+\.|#+) ", "", bare))
    if begin is not None:
        yield Text(path, begin, "manual", plain(" ".join(words)))


def plain(words):
    """Without Markdown's marks; code is one word."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", words)
    words = re.sub(r"<doc:(\w+)>", r"\1", words)
    return re.sub(r"`([^`]*)`", lambda code: code[1].replace(" ", "_") if " " in code[1] else code[1], words)


def html_texts(path, text):
    blanked = re.sub(r"(?s)<(script|style)\b.*?</\1>|<!--.*?-->", lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for match in re.finditer(r">([^<>]+)<|\b(?:title|placeholder|aria-label|alt)=\"([^\"]+)\"", blanked):
        yield Text(path, text.count("\n", 0, match.start()) + 1, "page", unescape(match[1] or match[2]))


_SCRIPT = re.compile(r"//[^\n]*|/\*.*?\*/|`(?:\\.|[^`\\])*`|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def script_texts(path, text):
    for match in _SCRIPT.finditer(text):
        if match[0][0] in "`\"'":
            said = re.sub(r"\$\{[^{}]*\}", "…", match[0][1:-1])
            yield Text(path, text.count("\n", 0, match.start()) + 1, "page", re.sub(r"<[^>]*>", " ", said))
    yield from comments(path, text, r"\s*//+ ?(.*)")


READERS = {".swift": swift_texts, ".md": markdown_texts, ".tutorial": markdown_texts, ".yaml": hash_comments,
           ".yml": hash_comments, ".html": html_texts, ".js": script_texts}
PLACES = ["Sources", "config", "README.md", ".github", "packaging/nas", "packaging/README.md", "Package.swift"]


def files(names):
    for name in names or PLACES:
        place = ROOT / name
        for path in sorted(place.rglob("*") if place.is_dir() else [place]):
            if path.suffix in READERS and path.is_file():
                yield path


def faults(sentence):
    count = len(WORD.findall(sentence))
    if count > LONGEST:
        yield f"{count} words"
    for phrase, advice in PHRASES:
        if found := phrase.search(sentence):
            yield f"'{found[0].strip()}': {advice}"


def main():
    options = argparse.ArgumentParser(prog="texts.sh")
    options.add_argument("--long", action="store_true")
    options.add_argument("--kind", action="append")
    options.add_argument("files", nargs="*")
    options = options.parse_args()
    counts, found = {}, 0
    for path in files(options.files):
        for text in READERS[path.suffix](path.relative_to(ROOT), path.read_text(encoding="utf-8")):
            if not is_sentence(text.words) or (options.kind and text.kind not in options.kind):
                continue
            if not options.long:
                print(text)
                continue
            for sentence in text.sentences():
                if len(WORD.findall(sentence)) < 3:
                    continue
                counts.setdefault(text.kind, []).append(len(WORD.findall(sentence)))
                for fault in faults(sentence):
                    found += 1
                    print(f"{text.path}:{text.line}: {text.kind}: {fault}\n    {sentence}")
    if options.long:
        for kind, lengths in sorted(counts.items()):
            mean = statistics.mean(lengths)
            print(f"{kind}: {len(lengths)} sentences, {mean:.1f} words on average")
            found += mean > MEAN
        print(f"{found} found")
        sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
