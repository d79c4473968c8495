"""`checklist.py --self-test`: its rules on a table that is right, and on that table with one thing wrong."""

import json
from collections import Counter

from checklist import IDS, Row, events, faults, not_run
from swift_text import tests, without_comments_and_strings

KNOWN = Counter({"M.S/one": 1, "M.S/two": 1, "M.S/three": 2})
GOOD = "\n".join(["\t".join(Row._fields), *(f"{id}\tdone\tM.S/one | M.S/two\t" for id in IDS), ""])
WHY = "It is done in another way, which is better."
# What stands in the row S1.02 instead of its own cells, and what is then said.
BAD = (
    ("S1.02\tdone\tM.S/one", "the columns are not"), ("S1.03\tdone\tM.S/one\t", "S1.03 stands where S1.02 belongs"),
    ("S1.02\tnearly\tM.S/one\t" + WHY, "'nearly' is none of"), ("S1.02\tdone\tM.S/one\t" + WHY, "explains what is done"),
    ("S1.02\tdifferently\tM.S/one\t", "no sentence"), ("S1.02\tpartial\tM.S/one\tMost of it is.", "no sentence"),
    ("S1.02\tserver\tM.S/one\t" + WHY.rstrip("."), "no sentence"), ("S1.02\tserver\t\t" + WHY, "names no test"),
    ("S1.02\tdone\tM.S/one | M.S/one\t", "names M.S/one twice"), ("S1.02\tdone\tM.S/four\t", "M.S/four is declared 0 times"),
    ("S1.02\tdone\tM.S/three\t", "M.S/three is declared 2 times"),
)
CODE = """@Test func `alone`() {}
@Suite(.serialized) struct Outer { let brace = "{"; struct Inner { @Test(arguments: [#"{""#]) func `one`(_: String) {} }
    // @Test func `not this`() {}
    @Test func `a/b`() { _ = #/}"/# } }
extension Outer.Inner { @Test func `added`() {} }"""


def expect(found, wanted):
    if found != wanted:
        raise SystemExit(f"checklist: {found}, wanted {wanted}")


def stream(*happenings):
    payloads = [{"kind": kind, "testID": f"M.S/{name}/S.swift:1:6"} for name, kinds in happenings for kind in kinds.split()]
    return [json.dumps({"kind": "event", "payload": payload}) + "\n" for payload in [{"kind": "runStarted"}, *payloads]]


def self_test():
    expect(list(faults(GOOD, KNOWN)), [])
    good = "S1.02\tdone\tM.S/one | M.S/two\t"
    for row, words in BAD:
        found = list(faults(GOOD.replace(good, row), KNOWN))
        expect([words in fault for fault in found], [True])
    expect(len(list(faults(GOOD.replace(good + "\n", ""), KNOWN))), 1)
    expect(sorted(tests(without_comments_and_strings(CODE))),
           [([], "alone"), (["Outer"], "a/b"), (["Outer", "Inner"], "one"), (["Outer.Inner"], "added")])
    table = "\n".join(GOOD.split("\n")[:2])
    ran, skipped = ("`one`(_:)", "testStarted testCaseStarted testEnded"), ("`two`()", "testSkipped")
    for happenings, wanted in (
        ([ran, ("two()", ran[1])], []), ([ran], ["S0.01: M.S/two did not run"]), ([ran, skipped], ["S0.01: M.S/two was skipped"]),
        ([ran, ("`two`()", "testStarted")], ["S0.01: M.S/two did not run"]),
    ):
        expect(list(not_run(table, [events(stream(*happenings))])), wanted)
    # A line that its process could not finish, and a test that another stream has.
    streams = [events([*stream(ran, skipped), '{"kind": "ev']), events(stream(("`two`()", ran[1])))]
    expect(list(not_run(table, streams)), [])
    print("ok    checklist")
