"""Runs a test bundle in groups, as many side by side as there are cores, and says what failed, was skipped or never ended.

Prints a line a group, `ok` or `FAIL` with all that the group said; `left` stands before what was skipped. What the agents of a
failed test said is kept below .build/failed-tests. Exits 1 when a test failed, a process died, a group ran nothing, or a row of
Tests/CHECKLIST.tsv was not shown. With arguments of a bundle (--filter, --skip) there is one group, and no table.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import checklist

# The longest first, so that no long one is left at the end. Whatever none of them names runs as one more.
GROUPS = (
    "CommandTests", "InletAgentTests", "InletPipelinesTests", "Inlet(Core|Config|Media|Sandbox)Tests", "InletJournalTests",
    "InteropTests", "Inlet(Linux|Transfer)Tests",
)
# A group that takes so long hangs, in seconds; with all of its work, three times as long.
BOUND = 40 * 60 * (3 if os.environ.get("INLET_TESTS") == "full" else 1)
KEPT = Path(__file__).resolve().parents[2] / ".build" / "failed-tests"
# Of a test that failed so many logs are shown, and so many of the last characters of each.
LOGS, SHOWN = 3, 3000


@dataclass
class Run:
    """What a group did: how its process ended, what it wrote, and what its event stream tells of each test."""

    name: str
    ended: object
    said: str
    happened: dict
    seconds: float
    logs: Path

    def tests(self, *kinds, without=()):
        return [test for test, seen in self.happened.items() if all(kind in seen for kind in kinds)
                and not any(kind in seen for kind in without)]

    @property
    def passed(self):
        return self.tests("testEnded", without=["issueRecorded"])

    @property
    def failed(self):
        """The tests that did; where none did and the group is no good all the same, its name."""
        bad = self.tests("issueRecorded") + self.tests("testStarted", without=["testEnded", "issueRecorded"])
        return bad or ([self.name] if self.ended != 0 or not self.passed else [])

    def lines(self):
        yield f"{'FAIL' if self.failed else 'ok  '}  {self.name}: {len(self.passed)} tests passed in {self.seconds:.0f} s"
        if self.failed:
            yield from ("        " + line for line in self.said.splitlines())
            yield f"        the process ended with {self.ended}"
            yield from (f"        never ended: {test}" for test in self.tests("testStarted", without=["testEnded"]))
            for test in self.failed:
                yield from self.agents(test)
            for suite in sorted({test.split("/")[0] for test in self.failed if "/" in test}):
                yield f"        again: packaging/test.sh --filter '{suite}'"
        yield from (f"left  {self.happened[test]['testSkipped']}" for test in self.tests("testSkipped"))

    def agents(self, test):
        """What the agents of a test said at last, and where all of it is kept: in files called after the line of the test."""
        place = self.happened.get(test, {}).get("at")
        logs = sorted((log for log in self.logs.glob(f"{place} *") if log.stat().st_size), key=os.path.getmtime, reverse=True)
        for number, log in enumerate(logs):
            KEPT.mkdir(parents=True, exist_ok=True)
            kept = shutil.move(log, KEPT)
            if number < LOGS:
                yield f"        an agent of {test} said at last (all of it: {kept}):"
                yield from ("          " + line for line in Path(kept).read_text(errors="replace")[-SHOWN:].splitlines())
        if len(logs) > LOGS:
            yield f"        {len(logs) - LOGS} more agents of it: {KEPT}/{place} *"


def run(bundle, number, name, arguments, folder, is_alone):
    stream, log, begin = folder / f"{number}.jsonl", folder / f"{number}.log", time.monotonic()
    logs = folder / f"{number}.agents"
    logs.mkdir()
    command = [bundle, "--testing-library", "swift-testing", "--quiet", "--event-stream-output-path", stream, *arguments]
    environment = {**os.environ, "NO_COLOR": "1", "INLET_AGENT_LOGS": logs}
    # One that is alone is seen at once. Others write into a file: a pipe would wait for whatever program of a test outlives it.
    with log.open("wb") as output:
        try:
            ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=None if is_alone else output,
                                   stderr=None if is_alone else subprocess.STDOUT, timeout=BOUND).returncode
        except subprocess.TimeoutExpired:
            ended = f"no end within {BOUND} s"
    happened = checklist.events(stream.open(errors="replace")) if stream.exists() else {}
    return Run(name, ended, log.read_text(errors="replace"), happened, time.monotonic() - begin, logs)


def main(bundle, *given):
    """`given`: arguments of the bundle."""
    bundle = Path(bundle).resolve()
    # In the background of a script, or under nohup, some are ignored: the programs of the tests would do so as well.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    groups = [(name, ["--filter", f"^({name})\\."]) for name in GROUPS]
    groups.append(("all others", ["--skip", f"^({'|'.join(GROUPS)})\\."]))
    if given:
        groups = [(" ".join(given), given)]
    else:
        # What a whole run has kept is still to be looked at while its failures are run again.
        shutil.rmtree(KEPT, ignore_errors=True)
    runs = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as lanes:
        is_alone = len(groups) == 1
        started = [lanes.submit(run, bundle, number, *group, Path(folder), is_alone) for number, group in enumerate(groups)]
        for ended in as_completed(started):
            runs.append(ended.result())
            print("\n".join(runs[-1].lines()), flush=True)
    faults = []
    if not given:
        # What a machine cannot show, an ordinary user's for one, is no fault of the change.
        missing = list(checklist.not_run((checklist.TESTS / "CHECKLIST.tsv").read_text(), [run.happened for run in runs]))
        faults = [row for row in missing if os.environ.get("CI") or not row.endswith("was skipped")]
        print(f"{'FAIL' if faults else 'ok  '}  every capability of the reference documents was shown", *missing, sep="\n        ")
    failed = sum(len(run.failed) for run in runs) + len(faults)
    print(f"{sum(len(run.passed) for run in runs)} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
