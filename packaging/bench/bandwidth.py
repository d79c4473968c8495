"""How well bandwidth limits hold, and what they do to small files. Run bandwidth.sh.

64 connections, to two destinations with a sink each, are in the middle of bodies all the while; `inlet limit` and a timetable
change their rates. What is measured is what the sinks took, from one second after each change on.
"""

import argparse
import sys
import time

import bandwidth_lab
import outcome
from bandwidth_lab import BODY, CONNECTIONS, DESTINATIONS, Lab, bytes_a_second, files_for, next_edge
from measure import GIB, Workspace, percentile, table
from outcome import at_most, target
from s3_sink import build

DEVIATION, UNFAIR, SMALL_MS = 5, 10, 300
FIRST, SECOND = DESTINATIONS
BIG_FILES, SMALL_RATE, SMALL = 8, "5MiB/s", 256 << 10
# Of the timetable: before its edge, after it, and for one destination after it.
BEFORE, AFTER, AFTER_SECOND = "4MiB/s", "20MiB/s", "5MiB/s"


# Rows ----------------------------------------------------------------------------------------------------------------


def off_by(rate, held):
    return (held / bytes_a_second(rate) - 1) * 100


def rate_target(what, rate, held):
    off = off_by(rate, held)
    return target(f"{what}: off by", f"{off:+.1f} %", f"<= {DEVIATION} %", abs(off) <= DEVIATION)


def all_targets(rate, found):
    """Of a rate for all destinations together: that it holds, over how many connections, and that it is shared equally."""
    shares = [share / found.all * 2 - 1 for share in found.rates.values()] if found.all else [1]
    unfair = 100 * max(map(abs, shares))
    return [rate_target(f"{rate} for all", rate, found.all),
            target(f"{rate} for all: connections within a body", f"{found.connections:.0f}", f">= {CONNECTIONS}",
                   found.connections >= CONNECTIONS),
            at_most(f"{rate} for all: a destination's share, from the half", unfair, UNFAIR, " %")]


def stopped_target(found):
    return target("0 for all: sent", f"{found.all:.0f} B/s", "0 B/s", found.all == 0)


def shown(name, found):
    return [name, *(f"{found.rates.get(one, 0) / (1 << 20):.2f}" for one in DESTINATIONS), f"{found.all / (1 << 20):.2f}",
            f"{found.connections:.0f}"]


# Phases --------------------------------------------------------------------------------------------------------------


def settled(lab, seconds):
    time.sleep(1)
    return lab.measure(seconds)


def commands(folder, program, given):
    """Rates by command: for all, for one destination, none at all."""
    rows, targets = [], []
    rates = given.rates.split(",")
    with Lab(folder, program) as lab:
        lab.limit(rates[0])
        count = files_for([*rates, "20MiB/s", "20MiB/s"], given.seconds)
        for name in DESTINATIONS:
            lab.drop(name, "many", count=count)
        lab.wait_sending(CONNECTIONS)
        for rate in rates:
            lab.limit(rate)
            found = settled(lab, given.seconds)
            rows.append(shown(f"{rate} for all", found))
            targets += all_targets(rate, found)
        lab.limit("0")
        found = settled(lab, given.seconds)
        rows.append(shown("0 for all", found))
        targets.append(stopped_target(found))
        lab.limit("20MiB/s")
        lab.limit("5MiB/s", "--to", FIRST)
        found = settled(lab, given.seconds)
        rows.append(shown(f"20MiB/s for all, 5MiB/s for {FIRST}", found))
        targets += [rate_target(f"5MiB/s for {FIRST}", "5MiB/s", found.rates[FIRST]),
                    rate_target("the rest of 20MiB/s for the other", "15MiB/s", found.rates[SECOND])]
        lab.limit("off")
        lab.limit("5MiB/s", "--to", SECOND)
        found = settled(lab, given.seconds)
        rows.append(shown("5MiB/s for each", found))
        targets += [rate_target(f"5MiB/s for {name} alone", "5MiB/s", found.rates[name]) for name in DESTINATIONS]
        targets.append(at_most("transfers that a command ended", lab.ended_transfers(), 0, digits=0))
    return rows, targets


def timetable(folder, program, given):
    """Rates by the clock: an edge of the timetable while the files are sent."""
    edge, clock = next_edge(time.time(), given.seconds + 12)
    later = time.strftime("%H:%M", time.gmtime(edge + 3600))
    entry = f'from: "{clock}", to: "{later}"'
    limits = f"bandwidth: {BEFORE}, schedule: [{{ {entry}, bandwidth: {AFTER} }}], zone: UTC"
    own = {SECOND: f"schedule: [{{ {entry}, bandwidth: {AFTER_SECOND} }}]"}
    with Lab(folder, program, limits=limits, own=own) as lab:
        for name in DESTINATIONS:
            lab.drop(name, "many", count=files_for([BEFORE], 75) + files_for([AFTER], given.seconds))
        lab.wait_sending(CONNECTIONS, 5)
        time.sleep(max(0, edge - given.seconds - 1 - time.time()))
        before = lab.measure(given.seconds)
        time.sleep(max(0, edge + 1 - time.time()))
        after = lab.measure(given.seconds)
        ended = lab.ended_transfers()
    return [shown(f"before the edge, {BEFORE}", before), shown(f"after it, {AFTER}, {AFTER_SECOND} for {SECOND}", after)], [
        rate_target("timetable, before its edge", BEFORE, before.all),
        rate_target("timetable, after its edge", AFTER, after.all),
        rate_target(f"timetable of {SECOND}, after its edge", AFTER_SECOND, after.rates[SECOND]),
        at_most("transfers that the timetable ended", ended, 0, digits=0)]


def small_files(folder, program, given):
    """Milliseconds from each small file's appearing to its being whole at the sink, one after the other beside big ones."""
    times = []
    with Lab(folder, program, names=(FIRST,), workers=BIG_FILES) as lab:
        lab.limit(SMALL_RATE)
        lab.drop(FIRST, "big", 4 * GIB, BIG_FILES)
        lab.wait_sending(1)
        time.sleep(2)
        for number in range(given.files):
            name = f"small-{number:03}"
            appeared = lab.drop(FIRST, name, SMALL)
            times.append((lab.arrived(FIRST, f"{name}-00000.bin") - appeared) * 1000)
        beside = lab.measure(2)
        ended = lab.ended_transfers()
    middle, what = percentile(times, 0.5), f"{len(times)} files of {SMALL >> 10} KiB beside {BIG_FILES} big ones"
    return [shown(f"big files, {SMALL_RATE}", beside)], [
        at_most(f"{what} at {SMALL_RATE}: p50", middle, SMALL_MS, " ms", 0),
        at_most("the same: longest", max(times), 4 * SMALL_MS, " ms", 0),
        at_most("transfers that small files ended", ended, 0, digits=0)]


PHASES = {"commands": commands, "timetable": timetable, "small": small_files}


def self_test():
    bandwidth_lab.self_test()
    outcome.self_test()
    found = bandwidth_lab.Measured
    even, odd = {FIRST: 10 << 20, SECOND: 10 << 20}, {FIRST: 12 << 20, SECOND: 8 << 20}
    for rates, sending, wanted in (
        (even, [64, 63, 64], [True, True, True]), (odd, [64], [True, True, False]), (even, [63, 64, 63], [True, False, True]),
        ({FIRST: 11 << 20, SECOND: 10.1 * (1 << 20)}, [64], [False, True, True]),
        ({FIRST: 0, SECOND: 0}, [0], [False, False, False]),
    ):
        if [row["reached"] for row in all_targets("20MiB/s", found(rates, sending))] != wanted:
            raise SystemExit(f"bandwidth: {rates} over {sending} must be {wanted}")
    for rate, reached in ((0, True), (0.1, False)):
        if stopped_target(found({FIRST: rate}, [1]))["reached"] != reached:
            raise SystemExit(f"bandwidth: {rate} B/s is not stopped")
    print("ok    bandwidth")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rates", default="100KiB/s,1MiB/s,20MiB/s,100MiB/s")
    options.add_argument("--seconds", type=int, default=10, help="of each measurement")
    options.add_argument("--files", type=int, default=30, help="small ones")
    options.add_argument("--only", action="append", choices=PHASES)
    options.add_argument("--self-test", action="store_true")
    outcome.add_option(options)
    given = options.parse_args()
    if given.self_test:
        return self_test()
    rows, targets = [], []
    with Workspace() as folder:
        program = build(folder)
        for name in given.only or PHASES:
            more, reached = PHASES[name](folder / name, program, given)
            rows, targets = rows + more, targets + reached
    table(f"MiB/s at the sinks over {given.seconds} s each, bodies of {BODY >> 20} MiB",
          ["", *DESTINATIONS, "together", "connections within a body"], rows)
    return outcome.conclude(targets, is_report=given.report)


if __name__ == "__main__":
    sys.exit(main())
