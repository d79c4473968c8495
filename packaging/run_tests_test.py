"""What run_tests.py says of bundles in which one thing goes wrong, and of one in which nothing does."""

import contextlib
import io
import shutil
import sys
import tempfile
from pathlib import Path

import run_tests

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


def main():
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
                ended = run_tests.main([str(bundle), "--filter", what])
            if ended != code or any(word not in said.getvalue() for word in words) or "another's word" in said.getvalue():
                raise SystemExit(f"run_tests, {what}: ended with {ended} and said\n{said.getvalue()}")
            # Of the three that failed, and of no other; and what a whole run has kept.
            kept = set(run_tests.KEPT.glob("*"))
            if earlier not in kept or len(kept) != 1 + (what in ("failed", "died", "never ended")):
                raise SystemExit(f"run_tests, {what}: kept {sorted(kept)}")
    print("ok    run_tests")


if __name__ == "__main__":
    main()
