"""Runs a test bundle in groups, as many side by side as there are cores, and says what failed, was skipped or never ended.

Prints a line a group, `ok` or `FAIL`, and behind that all that the group said; `left` stands before what was skipped. Exits 1
when a test failed, a process died, or a row of Tests/CHECKLIST.tsv was not shown.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import checklist

# The longest first, so that no long one is left at the end. Whatever none of them names runs as one more.
GROUPS = (
    "InletAgentTests", "CommandTests", "InletPipelinesTests", "InletJournalTests", "Inlet(Linux|Transfer)Tests",
    "Inlet(Core|Config|Media|Sandbox)Tests", "InteropTests",
)
# Of one group. Those tests that compute, and those that start servers, agents and processes, would starve each other's bounds.
AT_ONCE = 16
# A group that takes so long hangs.
BOUND = 45 * 60


def run(bundle, name, arguments, folder):
    """What a group wrote, how it ended, and what its event stream tells."""
    stream, begin = folder / f"{abs(hash(name))}.jsonl", time.monotonic()
    command = [bundle, "--testing-library", "swift-testing", "--quiet", "--event-stream-output-path", stream,
               "--experimental-maximum-parallelization-width", str(AT_ONCE), *arguments]
    try:
        done = subprocess.run(command, env={**os.environ, "NO_COLOR": "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=BOUND)
        ended, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        ended, said = f"no end after {BOUND} s", late.stdout or b""
    happened = checklist.events(stream.open(errors="replace")) if stream.exists() else {}
    return name, ended, said.decode(errors="replace"), happened, time.monotonic() - begin


def told(name, ended, said, happened, seconds):
    """The lines for a group."""
    failed = [test for test, kinds in happened.items() if "issueRecorded" in kinds]
    ran = [test for test, kinds in happened.items() if "testEnded" in kinds]
    unfinished = [test for test, kinds in happened.items() if "testStarted" in kinds and "testEnded" not in kinds]
    yield f"{'FAIL' if ended else 'ok  '}  {name}: {len(ran)} tests in {seconds:.0f} s"
    if ended:
        yield from ("        " + line for line in said.splitlines())
        yield from (f"        never ended (the process: {ended}): {test}" for test in unfinished)
        yield from (f"        again: packaging/test.sh --filter '{test.split('/')[0]}'" for test in failed)
    yield from (f"left  {test}: {kinds['testSkipped']}" for test, kinds in happened.items() if "testSkipped" in kinds)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("bundle", type=Path)
    bundle = options.parse_args().bundle.resolve()
    # Under nohup they would ignore the end of their terminals as well.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    groups = [(name, ["--filter", f"^({name})\\."]) for name in GROUPS]
    groups.append(("all others", ["--skip", f"^({'|'.join(GROUPS)})\\."]))
    passed = failed = 0
    streams = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as lanes:
        for group in as_completed([lanes.submit(run, bundle, *one, Path(folder)) for one in groups]):
            name, ended, said, happened, seconds = group.result()
            print("\n".join(told(name, ended, said, happened, seconds)), flush=True)
            bad = sum("issueRecorded" in kinds or "testEnded" not in kinds for kinds in happened.values() if "testStarted" in kinds)
            # A process that died without a word has failed as well.
            failed += max(bad, int(ended != 0))
            passed += sum("testEnded" in kinds and "issueRecorded" not in kinds for kinds in happened.values())
            streams.append(happened)
    missing = list(checklist.not_run((checklist.TESTS / "CHECKLIST.tsv").read_text(), streams))
    print(f"{'FAIL' if missing else 'ok  '}  every capability of the reference documents was shown", *missing, sep="\n        ")
    print(f"{passed} passed, {failed + len(missing)} failed")
    return int(failed + len(missing) > 0)


if __name__ == "__main__":
    sys.exit(main())
