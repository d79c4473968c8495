"""Tests/CHECKLIST.tsv: what became of each capability of the five reference documents, and the tests that show it.

A line a row: id; state (`done`, `differently`, `partial`: some of it is still to come, `server`: the other side's work); tests,
each as `Module.Suite/name`, with ` | ` between them; why the state is not `done`. Exits 1 when anything is wrong. That each of
them ran is run_tests.py's to see.
"""

import json
import re
import sys
from collections import Counter, defaultdict, namedtuple
from itertools import zip_longest
from pathlib import Path

from swift_text import tests, without_comments_and_strings

TESTS = Path(__file__).resolve().parents[2] / "Tests"
IDS = [f"S{family}.{number:02}" for family, last in enumerate((34, 36, 32, 20, 35)) for number in range(1, last + 1)]
STATES = ("done", "differently", "partial", "server")
# A test's name stands in backticks there, unless it is one word; at the end file, line and column.
TEST_ID = re.compile(r"(.*?)[./](?:`([^`]+)`|(\w+))\(.*/(\S+:\d+):\d+$")
Row = namedtuple("Row", "id state tests why")


def declared():
    """How often each test is declared below Tests."""
    return Counter(".".join([path.relative_to(TESTS).parts[0], *suites]) + "/" + name for path in TESTS.rglob("*.swift")
                   for suites, name in tests(without_comments_and_strings(path.read_text())))


def events(stream):
    """What happened to each test: by its kind, with the words for it; and `at` which line it stands."""
    found = defaultdict(dict)
    # The last line of a process that died has no end, and neither has its test.
    for record in (json.loads(line) for line in stream if line.endswith("\n")):
        event = record["payload"]
        if record["kind"] == "event" and (match := TEST_ID.match(event.get("testID", ""))):
            words = " ".join(message["text"] for message in event.get("messages", []))
            found[match[1].replace("/", ".") + "/" + (match[2] or match[3])].update({event["kind"]: words, "at": match[4]})
    return found


def rows_of(text):
    for line in text.rstrip("\n").split("\n")[1:]:
        id, state, named, why = (line.split("\t") + [""] * 3)[:4]
        yield Row(id, state, named.split(" | ") if named else [], why)


def faults(text, known):
    if any(line.count("\t") != 3 for line in text.rstrip("\n").split("\n")) or not text.startswith("\t".join(Row._fields)):
        yield f"the columns are not {', '.join(Row._fields)} in every line"
    if wrong := [pair for pair in zip_longest((row.id for row in rows_of(text)), IDS) if pair[0] != pair[1]]:
        yield "{} stands where {} belongs".format(*(id or "nothing" for id in wrong[0]))
    for id, state, named, why in rows_of(text):
        if state not in STATES:
            yield f"{id}: '{state}' is none of {', '.join(STATES)}"
        if not re.fullmatch("" if state == "done" else r"[A-Z].{30,}\.", why):
            yield f"{id}: '{why}' " + ("explains what is done" if state == "done" else "is no sentence that says why")
        if not named:
            yield f"{id}: names no test"
        yield from (f"{id}: names {test} twice" for test, times in Counter(named).items() if times > 1)
        yield from (f"{id}: {test} is declared {known[test]} times" for test in dict.fromkeys(named) if known[test] != 1)


def not_run(text, streams):
    for id, test in ((row.id, test) for row in rows_of(text) for test in row.tests):
        seen = [stream[test] for stream in streams if test in stream]
        if not any({"testStarted", "testEnded"} <= kinds.keys() and "testSkipped" not in kinds for kinds in seen):
            yield f"{id}: {test} " + ("was skipped" if any("testSkipped" in kinds for kinds in seen) else "did not run")


if __name__ == "__main__":
    wrong = list(faults((TESTS / "CHECKLIST.tsv").read_text(), declared()))
    print("\n        ".join([f"{'FAIL' if wrong else 'ok  '}  every capability has a row and tests that exist", *wrong]))
    sys.exit(bool(wrong))
