"""The rules of names.py, checklist.py, run_tests.py, nas_template.py and texts.py, on what is right and on that with one thing wrong; and
what icu_data.py keeps."""

import contextlib
import io
import json
import shutil
import struct
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))

import icu_data
import nas_template
import run_tests
import texts
from checklist import IDS, Row, events, faults, not_run
from names import unnamed
from swift_text import tests, without_comments_and_strings

PAGES_CODE = {"Sources/A/One.swift": "func go() {} ; init?(x)", "Sources/B/Two.swift": "static let rule = 1", "Sources/C/Two.swift": ""}
PAGE = "2 steps, 3 calls in all, in 2 files\n1. `One.swift:go`: asks `B/Two.swift:rule`\n2. `A/One.swift:init`\n`A/*.swift` `Two.swift`\n"
# What is put in the place of what, and what is then said.
PAGE_FAULTS = (
    ("One.swift:go", "One.swift:went", "declares no went"), ("A/*.swift", "A/X*.swift", "there is no A/X*.swift"),
    ("B/Two", "Two", "is one of Sources/B/Two.swift, Sources/C/Two.swift"), ("B/Two", "C/Two", "declares no rule"),
    ("2. `A", "`A", "has 1 steps, 2 calls in all, in 2 files"), ("3 calls", "4 calls", "says '2 steps, 4 calls"),
)


def names_of_pages():
    assert not list(unnamed("P", PAGE, PAGES_CODE)), list(unnamed("P", PAGE, PAGES_CODE))
    for old, new, said in PAGE_FAULTS:
        found = " ".join(unnamed("P", PAGE.replace(old, new, 1), PAGES_CODE))
        assert said in found, f"{new}: {found or 'nothing'}, wanted {said}"


KNOWN = Counter({"M.S/one": 1, "M.S/two": 1, "M.S/three": 2})
TABLE = "\n".join(["\t".join(Row._fields), *(f"{id}\tdone\tM.S/one | M.S/two\t" for id in IDS), ""])
WHY = "It is done in another way, which is better."
# What stands in the row S1.02 instead of its own cells, and what is then said.
TABLE_FAULTS = (
    ("S1.02\tdone\tM.S/one", "the columns are not"), ("S1.03\tdone\tM.S/one\t", "S1.03 stands where S1.02 belongs"),
    ("S1.02\tnearly\tM.S/one\t" + WHY, "'nearly' is none of"), ("S1.02\tdone\tM.S/one\t" + WHY, "explains what is done"),
    ("S1.02\tdifferently\tM.S/one\t", "no sentence"), ("S1.02\tpartial\tM.S/one\tMost of it is.", "no sentence"),
    ("S1.02\tserver\tM.S/one\t" + WHY.rstrip("."), "no sentence"), ("S1.02\tserver\t\t" + WHY, "names no test"),
    ("S1.02\tdone\tM.S/one | M.S/one\t", "names M.S/one twice"), ("S1.02\tdone\tM.S/four\t", "M.S/four is declared 0 times"),
    ("S1.02\tdone\tM.S/three\t", "M.S/three is declared 2 times"),
)
SUITES = """@Test func `alone`() {}
@Suite(.serialized) struct Outer { let brace = "{"; struct Inner { @Test(arguments: [#"{""#]) func `one`(_: String) {} }
    // @Test func `not this`() {}
    @Test func `a/b`() { _ = #/}"/# } }
extension Outer.Inner { @Test func `added`() {} }"""


SOURCE = """/// Waits for the disk,
/// and then writes. Never blocks.
///
/// - Parameter most: the most that it writes.
func f() { // said "by" nobody
    fail("the file \\(name(of: "x")) is " + "not there; mount its disk")
    read(sql: "SELECT name FROM file WHERE id = ?")
}
"""
# The sentences of what is above, and what is found in sentences.
SENTENCES = ["the file … is not there; mount its disk", "Waits for the disk, and then writes.", "Never blocks.",
             "Parameter most: the most that it writes."]
SAID = {"What moves is shown here.": "name the thing", "What moves, and why?": "", "Inlet shows what moves.": "",
        "Others are told of it.": "notify", "It waits " + "and waits " * 15: "32 words", "Check the setup.": ""}


def sentences():
    found = [sentence for text in texts.swift_texts("S.swift", SOURCE) if texts.is_sentence(text.words)
             for sentence in text.sentences()]
    expect(found, SENTENCES)
    for sentence, wanted in SAID.items():
        said = " ".join(texts.faults(sentence))
        expect((wanted in said, bool(said)), (True, bool(wanted)))


def expect(found, wanted):
    if found != wanted:
        raise SystemExit(f"{found}, wanted {wanted}")


def stream(*happenings):
    payloads = [{"kind": kind, "testID": f"M.S/{name}/S.swift:1:6"} for name, kinds in happenings for kind in kinds.split()]
    return [json.dumps({"kind": "event", "payload": payload}) + "\n" for payload in [{"kind": "runStarted"}, *payloads]]


def checklists():
    expect(list(faults(TABLE, KNOWN)), [])
    good = "S1.02\tdone\tM.S/one | M.S/two\t"
    for row, words in TABLE_FAULTS:
        found = list(faults(TABLE.replace(good, row), KNOWN))
        expect([words in fault for fault in found], [True])
    expect(len(list(faults(TABLE.replace(good + "\n", ""), KNOWN))), 1)
    expect(sorted(tests(without_comments_and_strings(SUITES))),
           [([], "alone"), (["Outer"], "a/b"), (["Outer", "Inner"], "one"), (["Outer.Inner"], "added")])
    table = "\n".join(TABLE.split("\n")[:2])
    ran, skipped = ("`one`(_:)", "testStarted testCaseStarted testEnded"), ("`two`()", "testSkipped")
    for happenings, wanted in (
        ([ran, ("two()", ran[1])], []), ([ran], ["S0.01: M.S/two did not run"]), ([ran, skipped], ["S0.01: M.S/two was skipped"]),
        ([ran, ("`two`()", "testStarted")], ["S0.01: M.S/two did not run"]),
    ):
        expect(list(not_run(table, [events(stream(*happenings))])), wanted)
    # A line that its process could not finish, and a test that another stream has.
    streams = [events([*stream(ran, skipped), '{"kind": "ev']), events(stream(("`two`()", ran[1])))]
    expect(list(not_run(table, streams)), [])


# A bundle that does what its `--filter` says, and an agent that leaves a word.
BUNDLE = f"""#!{sys.executable}
import json, os, signal, sys
arguments = [word for word in sys.argv[1:] if word != "--quiet"]
given = dict(zip(arguments[::2], arguments[1::2]))
stream = open(given["--event-stream-output-path"], "w")
def tell(kind, **more):
    event = {{"kind": kind, "testID": "M.S/`a/b`()/S.swift:7:6", **more}}
    stream.write(json.dumps({{"kind": "event", "payload": event}}) + "\\n")
    stream.flush()
what = given["--filter"]
if what != "nothing":
    tell("testSkipped" if what == "skipped" else "testStarted", messages=[{{"text": "why"}}])
open(os.environ["INLET_AGENT_LOGS"] + f"/S.swift:7 {{os.getpid()}}.log", "w").write("its last word")
open(os.environ["INLET_AGENT_LOGS"] + "/S.swift:70 1.log", "w").write("another's word")
if what == "died":
    os.kill(os.getpid(), signal.SIGKILL)
if what == "failed":
    tell("issueRecorded")
if what not in ("nothing", "skipped", "never ended"):
    tell("testEnded")
sys.exit(what == "failed")
"""
# What is run, what ends the script, and words that stand in its output.
RUNS = (
    ("passed", 0, ["ok    --filter passed: 1 tests", "1 passed, 0 failed"]),
    ("failed", 1, ["FAIL  --filter failed", "its last word", "again: packaging/test.sh --filter 'M.S'", "1 failed"]),
    ("died", 1, ["FAIL  --filter died", "the process ended with -9", "never ended: M.S/a/b", "its last word"]),
    ("never ended", 1, ["never ended: M.S/a/b"]),
    ("nothing", 1, ["FAIL  --filter nothing: 0 tests"]),
    ("skipped", 1, ["FAIL  --filter skipped: 0 tests", "left  why"]),
)


def runs_of_tests():
    with tempfile.TemporaryDirectory() as folder:
        bundle, run_tests.KEPT = Path(folder, "bundle"), Path(folder, "kept")
        bundle.write_text(BUNDLE)
        bundle.chmod(0o755)
        for what, code, words in RUNS:
            shutil.rmtree(run_tests.KEPT, ignore_errors=True)
            run_tests.KEPT.mkdir()
            earlier = run_tests.KEPT / "of a whole run"
            earlier.touch()
            with contextlib.redirect_stdout(io.StringIO()) as said:
                ended = run_tests.main(bundle, "--filter", what)
            if ended != code or any(word not in said.getvalue() for word in words) or "another's word" in said.getvalue():
                raise SystemExit(f"run_tests, {what}: ended with {ended} and said\n{said.getvalue()}")
            # Of the three that failed, and of no other; and what a whole run has kept.
            kept = set(run_tests.KEPT.glob("*"))
            if earlier not in kept or len(kept) != 1 + (what in ("failed", "died", "never ended")):
                raise SystemExit(f"run_tests, {what}: kept {sorted(kept)}")


# What stands in the template in the place of what, and what is then said.
TEMPLATE_FAULTS = (
    ('Target="UMASK"', 'Target="UMAKS"', "variable UMASK is only in"), ('Target="/state"', 'Target="/store"', "path /store is only in"),
    ("--read-only ", "", "option --read-only is only in"), ("--cap-drop=ALL ", "", "option --cap-drop=ALL is only in"),
    ("--stop-timeout=60", "--stop-timeout=10", "option --stop-timeout=60 is only in"), ("--init ", "", "option --init is only in"),
    ("--tmpfs=/tmp ", "", "option --tmpfs=/tmp is only in"), (' Mask="true"', ' Mask="false"', "variable SPIRAL_KEY is only in"),
    ("--cap-add=LEASE ", "", "capability LEASE is only in"), (">99<", ">1000<", "PUID is '1000'"), ("</Container>", "", "not well formed"),
)


def templates():
    template, compose = nas_template.PACKAGING / "nas/unraid-inlet.xml", nas_template.PACKAGING / "docker/compose.yaml"
    assert not list(nas_template.differences(template, compose))
    with tempfile.TemporaryDirectory() as folder:
        for old, new, said in TEMPLATE_FAULTS:
            wrong = Path(folder, "wrong.xml")
            wrong.write_text(template.read_text().replace(old, new, 1))
            found = " ".join(nas_template.differences(wrong, compose))
            assert said in found, f"{new}: {found or 'nothing'}, wanted {said}"


def package(items: dict[str, bytes]) -> bytes:
    """ICU's data with these items, in the order of their names."""
    names = [f"icudt76l/{name}".encode() + b"\0" for name in items]
    toc, text, place = b"", 4 + 8 * len(items), 4 + 8 * len(items) + sum(map(len, names))
    place += -place % 16
    for name, block in zip(names, items.values()):
        toc += struct.pack("=II", text, place)
        text, place = text + len(name), place + len(block)
    body = struct.pack("=I", len(items)) + toc + b"".join(names)
    return struct.pack("=H", 32) + bytes(30) + body + bytes(-len(body) % 16) + b"".join(items.values())


def icu_packages():
    kept = {"coll/root.res": b"R" * 16, "de.res": b"D" * 32, "lang/en.res": b"E" * 16, "zoneinfo64.res": b"Z" * 48}
    dropped = {"coll/zh.res": b"1" * 16, "euc-jp-2007.cnv": b"2" * 16, "translit/root.res": b"3" * 32, "unames.icu": b"4" * 16}
    whole = package(dict(sorted((kept | dropped).items())))
    assert icu_data.reduced(whole) == package(kept), "icu_data: not just what is kept, in its order"


if __name__ == "__main__":
    for test in (names_of_pages, sentences, checklists, runs_of_tests, templates, icu_packages):
        test()
