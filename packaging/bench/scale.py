"""What grows with the queue, and what may not. Run scale.sh.

* start: process start to agent.ready with an empty journal, and with a million finished and a million queued jobs.
* status: what a running agent with a million queued jobs takes to answer, and `inlet status` as a whole.
* history: the finished ones go to the compact history: how fast, what they take there, and what status answers meanwhile.
* claims: files/s of the first 1,000 deliveries to a discarding sink, by the length of the queue behind them.
* workers, parts: 8 x 128 MiB to the sink with 1 to 64 of them; throughput may not fall as they grow.
* size: the binary, and what is left of it without symbols.

Each journal is a small one that inlet has written, with its rows multiplied by SQL.
"""

import argparse
import http.client
import os
import socket
import sys
import time

import binary
import outcome
import scale_journal
import scale_sweep
from measure import Workspace, inlet, instant, median, percentile, table
from measure import binary as measured_binary
from outcome import at_most, target
from s3_sink import Sink, build
from scale_journal import Journals, history_state, pause

FIRST = 1000
SECTIONS = ("start", "status", "history", "claims", "workers", "parts", "size")
STARTS, START_MS, START_FULL_MS, STATUS_MS = 10, 150, 1000, 50
LEAST_OF_FIRST = 0.8


# Sections ------------------------------------------------------------------------------------------------------------


def ready_ms(place):
    """From the start of the process to agent.ready, in ms."""
    before = time.time()
    with place.run() as agent:
        agent.wait_ready()
        ready = next(e for e in agent.events() if e.get("event") == "agent.ready")
    return (instant(ready["ts"]) - before) * 1000


def start(journals, given):
    place, rows, targets = journals.place, [], []
    for kind, text, most in (("empty", "an empty journal", START_MS), ("finished", f"{given.rows:,} finished", START_FULL_MS),
                             ("queued", f"{given.rows:,} queued", START_FULL_MS)):
        place.use(journals.get(kind))
        # Queued files stay queued: the model's destination is paused.
        times = [ready_ms(place) for _ in range(STARTS)]
        rows.append([text, f"{median(times):.0f}", f"{min(times):.0f}-{max(times):.0f}"])
        targets.append(at_most(f"start to agent.ready, {text}", median(times), most, " ms", 0))
    table(f"start to agent.ready, ms, {STARTS} starts", ["", "median", "spread"], rows)
    return targets


class ControlSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def answer_ms(place):
    """What the running agent takes to answer."""
    before = time.monotonic()
    control = ControlSocket(place.state / "control.sock")
    control.request("GET", "/api/v1/status")
    answer = control.getresponse()
    body = answer.read()
    taken = (time.monotonic() - before) * 1000
    control.close()
    if answer.status != 200:
        raise SystemExit(f"status: {answer.status} {body[:200]}")
    return taken


def status(journals, given):
    place = journals.place
    place.use(journals.get("queued"))
    commands = []
    with place.run() as agent:
        agent.wait_ready()
        answers = [answer_ms(place) for _ in range(50)]
        for _ in range(10):
            before = time.monotonic()
            inlet("status", config=place.config)
            commands.append((time.monotonic() - before) * 1000)
    rows = [[name, f"{median(times):.1f}", f"{percentile(times, 0.99):.1f}"]
            for name, times in (("the agent's answer", answers), ("inlet status, as a process", commands))]
    table(f"status with {given.rows:,} queued, ms", ["", "p50", "p99"], rows)
    return [at_most("status answers, p50", median(answers), STATUS_MS, " ms"),
            at_most("status answers, p99", percentile(answers, 0.99), STATUS_MS, " ms")]


def first_rate(place, sink):
    """Files/s of the first 1,000 deliveries, without the very first ones: until then the destination is looked at."""
    pause(place.journal, "archive")
    with place.run() as agent:
        agent.wait_ready()
        sink.reset()
        inlet("resume", "archive", config=place.config)
        marks, end = [], time.monotonic() + 120
        while len(marks) < 2 and time.monotonic() < end:
            puts = sink.stats()["puts"]
            if puts >= (FIRST if marks else FIRST // 10):
                marks.append((time.monotonic(), puts))
            time.sleep(0.002)
        if len(marks) < 2:
            raise SystemExit(f"fewer than {FIRST} files within 120 s:\n{agent.tail()}")
        inlet("pause", "archive", config=place.config)
    (before, few), (after, many) = marks
    return (many - few) / (after - before) if after > before else 0.0


def claims(journals, given, sink):
    lengths = sorted({FIRST, max(FIRST, given.rows // 10), given.rows})
    rates = {length: [] for length in lengths}
    for _ in range(given.rounds):
        for length in lengths:
            journals.place.use(journals.get("queued", length))
            rates[length].append(first_rate(journals.place, sink))
    best = median(rates[lengths[0]])
    table(f"the first {FIRST:,} deliveries, median of {given.rounds}", ["queued", "files/s", "spread", "of the first"],
          [[f"{length:,}", f"{median(r):.0f}", f"{min(r):.0f}-{max(r):.0f}", f"{median(r) / best:.2f}"]
           for length, r in rates.items()])
    ratio = median(rates[lengths[-1]]) / best
    return [target(f"claims with {lengths[-1]:,} queued, of {lengths[0]:,}", f"{ratio:.2f}", f">= {LEAST_OF_FIRST:.2f}",
                   ratio >= LEAST_OF_FIRST)]


def history(journals, given):
    """Finished files that go to the compact history, while `status` is asked; and a start with all of them there."""
    place = journals.place
    place.use(journals.get("finished"))
    answers = []
    place.write(journals.sink, more="journal_history: { after: 1s }")
    before = os.stat(place.journal).st_size
    with place.run() as agent:
        agent.wait_ready()

        def moved(events):
            answers.append(answer_ms(place))
            pruned = [e for e in events if e.get("event") == "journal.pruned"]
            return sum(e["files"] for e in pruned) >= given.rows and sum(e["took_ms"] for e in pruned) / 1000

        seconds = agent.wait_for(f"journal.pruned of {given.rows:,} files", moved, 3600, every=0.5)
    pages, free, left = history_state(place.journal)
    place.write(journals.sink)
    with place.run() as agent:
        agent.wait_ready()
        answers.append(answer_ms(place))
    starts = [ready_ms(place) for _ in range(STARTS)]
    table(f"{given.rows:,} finished files go to the history", ["", ""], [
        ["files/s, its rests included", f"{given.rows / seconds:,.0f}"], ["journal before, MiB", f"{before / (1 << 20):.1f}"],
        ["afterwards, pages in use, MiB", f"{(pages - free) / (1 << 20):.1f}"],
        ["status meanwhile, ms, p50 / longest", f"{median(answers):.1f} / {max(answers):.1f}"]])
    return [target("finished files that are no history after it", str(left), "0", left == 0),
            at_most("status answers meanwhile, p50", median(answers), STATUS_MS, " ms"),
            at_most("journal's pages in use, of before", (pages - free) / before, 0.5, "", 2),
            at_most(f"start to agent.ready, {given.rows:,} in the history", median(starts), START_FULL_MS, " ms", 0)]


def size(folder):
    binary.show(measured_binary(), folder)
    return []


def self_test():
    outcome.self_test()
    binary.self_test()
    scale_journal.self_test()
    scale_sweep.self_test()
    print("ok    scale")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", action="append", choices=SECTIONS)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--mib", type=int, default=128, help="of each of the eight big files")
    options.add_argument("--self-test", action="store_true")
    outcome.add_option(options)
    given = options.parse_args()
    if given.self_test:
        return self_test()
    if given.rows < 10 * FIRST:
        options.error(f"--rows: from {10 * FIRST:,}")
    wanted = given.only or SECTIONS
    targets = []
    with Workspace() as folder, build(folder) and Sink(folder) as sink:
        journals = Journals(folder, sink, given.rows)
        for section in (s for s in SECTIONS if s in wanted):
            match section:
                case "start": targets += start(journals, given)
                case "status": targets += status(journals, given)
                case "claims": targets += claims(journals, given, sink)
                case "history": targets += history(journals, given)
                case "size": targets += size(folder)
                case _: targets += scale_sweep.sweep(folder, given, sink, section)
    return outcome.conclude(targets, is_report=given.report)


if __name__ == "__main__":
    sys.exit(main())
