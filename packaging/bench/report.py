"""What a scenario found: tables, targets, and the exit code that they give.

    0   every target was measured and reached
    1   a target was missed, or inlet failed at something
    3   none was missed, but some were not measured: a peer is not there, or was left out

With --report a missed target, or one that was not measured, leaves 0. Inlet's failures never do.
"""

import argparse
import time
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

MISSED, UNMEASURED = 1, 3
MIB, GIB = 1 << 20, 1 << 30
UNITS = {"KiB": 1 << 10, "MiB": MIB, "GiB": GIB}
# What a scenario's OPTIONS have become.
Given = argparse.Namespace
# What random choices begin with where no other is given.
SEED = int(time.time())


class Failed(Exception):
    """Inlet or a program beside it did not do what a scenario needs of it."""


class Row(NamedTuple):
    """One line of the last table; without a `target` it only tells. `reached` is None when it was not measured."""

    what: str
    measured: str
    target: str = ""
    reached: bool | None = True
    is_failure: bool = False


def figure(what: str, value: float | list[float], unit: str = "", digits: int = 1) -> Row:
    """Of several values the median, and their spread."""
    many = value if isinstance(value, list) else [value]
    spread = f" ({min(many):,.{digits}f}-{max(many):,.{digits}f})" if len(many) > 1 else ""
    return Row(what, f"{median(many):,.{digits}f}{unit}{spread}")


def bounded(what: str, value: float | list[float] | None, bound: float | None, unit: str = "", digits: int = 1, *,
            is_least: bool = False) -> Row:
    """`bound` is the most that may be, or the least; either is None when it was not measured."""
    said = "-" if value is None else figure(what, value, unit, digits).measured
    value = median(value) if isinstance(value, list) else value
    limit = "?" if bound is None else f"{bound:,.{digits if bound % 1 else 0}f}{unit}"
    reached = None if None in (value, bound) else value >= bound if is_least else value <= bound
    return Row(what, said, f"{'>=' if is_least else '<='} {limit}", reached)


def none(what: str, count: int) -> Row:
    """What must not be: a failure, no missed target."""
    return Row(what, str(count), "0", count == 0, is_failure=True)


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(title: str, header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> None:
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    print(f"\n{title}")
    for number, (first, *rest) in enumerate(cells):
        print("  " + "  ".join([first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:]))]))
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))


def verdict(row: Row) -> str:
    return "" if not row.target else {True: "reached", False: "MISSED", None: "not measured"}[row.reached]


def exit_code(rows: list[Row], is_report: bool = False) -> int:
    reached = [row.reached for row in rows if row.is_failure or not is_report]
    return MISSED if False in reached else UNMEASURED if None in reached else 0


def conclude(title: str, rows: list[Row], is_report: bool = False) -> int:
    """Prints the targets, and once more those that were missed, so that nobody has to look for them. - Returns: the exit code."""
    if not rows:
        return 0
    table(title, ["", "measured", "target", ""], [[row.what, row.measured, row.target, verdict(row)] for row in rows])
    targets = [row for row in rows if row.target]
    lines = []
    for how, chosen in (("missed", False), ("not measured", None)):
        if found := [row for row in targets if row.reached is chosen]:
            lines.append(f"{len(found)} of {len(targets)} targets {how}:")
            lines += [f"  {row.what}: {row.measured}, wanted {row.target}" for row in found]
    print("\n" + "\n".join(lines or [f"all {len(targets)} targets reached"]), flush=True)
    return exit_code(rows, is_report)
