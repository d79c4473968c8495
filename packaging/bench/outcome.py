"""What a bench ends with: its targets as a table, those that were missed as a list, and an exit code.

    0   every target was measured and reached
    1   a target was missed, or inlet failed at something
    3   none was missed, but some were not measured: a peer is not there, or was left out

With --report a bench only reports: a missed target, or one that was not measured, leaves 0. Inlet's failures never do.
"""

from measure import table, verdict

MISSED, UNMEASURED = 1, 3


def target(what, measured, aim, reached):
    """- Parameter reached: None when it was not measured."""
    return {"what": what, "measured": measured, "target": aim, "reached": reached}


def at_most(what, value, most, unit="", digits=1):
    """A target that is an upper bound; `value` None when it was not measured."""
    said = "-" if value is None else f"{value:.{digits}f}{unit}"
    return target(what, said, f"<= {most:g}{unit}", None if value is None else value <= most)


def told(row):
    """The row's words in front of its figures."""
    return f"{row['group']}: {row['what']}" if row.get("group") else row["what"]


def exit_code(rows, failures, is_report):
    if failures:
        return MISSED
    if is_report:
        return 0
    reached = [row["reached"] for row in rows]
    return MISSED if False in reached else UNMEASURED if None in reached else 0


def summary_lines(rows, failures):
    """What went wrong, so that nobody has to look for it in the tables."""
    lines = []
    for title, chosen in (("missed", False), ("not measured", None)):
        found = [row for row in rows if row["reached"] is chosen]
        if found:
            lines.append(f"{len(found)} of {len(rows)} targets {title}:")
            lines += [f"  {told(row)}: {row['measured']}, wanted {row['target']}" for row in found]
    if failures:
        lines += ["inlet failed:", *(f"  {one}" for one in failures)]
    return lines or [f"all {len(rows)} targets reached"]


def conclude(rows, failures=(), is_report=False):
    """Prints it all. - Returns: the exit code."""
    if rows:
        table("targets", ["", "measured", "target", ""],
              [[told(row), row["measured"], row["target"], verdict(row["reached"])] for row in rows])
    print("\n" + "\n".join(summary_lines(rows, failures)), flush=True)
    return exit_code(rows, failures, is_report)


def add_option(options):
    options.add_argument("--report", action="store_true", help="exit 0 also when a target is missed or not measured")


def self_test():
    good, bad, open_ = (target(word, "1", "<= 2", reached) for word, reached in
                        (("good", True), ("bad", False), ("open", None)))
    for rows, failures, is_report, code in (
        ([good], [], False, 0), ([good, bad], [], False, 1), ([good, open_], [], False, 3), ([open_, bad], [], False, 1),
        ([good, bad, open_], [], True, 0), ([good], ["send"], False, 1), ([good], ["send"], True, 1), ([], [], False, 0),
    ):
        if exit_code(rows, failures, is_report) != code:
            raise SystemExit(f"outcome: {rows} {failures} {is_report} must end with {code}")
    lines = "\n".join(summary_lines([good, bad, open_], ["run"]))
    for words, is_there in (("bad: 1, wanted <= 2", True), ("open: 1", True), ("good", False), ("  run", True)):
        if (words in lines) != is_there:
            raise SystemExit(f"outcome: '{words}' is wrong in\n{lines}")
    if [at_most("a", value, 40)["reached"] for value in (40.0, 40.1, None)] != [True, False, None]:
        raise SystemExit("outcome: at_most is wrong")
    print("ok    outcome")
