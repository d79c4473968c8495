"""kill -9 at random moments while a folder fills; then every source is compared with what every destination holds.

Deliveries go to all kinds of destinations: `inlet sandbox`, and spiral_store.py, which shares no code with inlet. One kill
in four comes while inlet recovers, some of them twice in a row. Run crash.sh.
"""

import argparse
import json
import mmap
import os
import random
import re
import sys
import time
from pathlib import Path

import aftermath
import evidence
import judge
import judge_test
from filler import Filler
from measure import HERE, Inlet, Server, Workspace, binary, inlet, table, verdict
from sandbox import MIB, PART, Sandbox, body_bytes, write_config

FORM_OVERHEAD = 4 << 10
# Files that are long enough on their way for a kill to find them there.
NOTICEABLE = 64 << 10


def wait_for_the_moment(agent, moments, is_early):
    """One kill in four while inlet recovers; of the others half at any time, half while something is being sent."""
    if is_early:
        after_start, pause = moments.random() < 0.5, moments.uniform(0, 0.08)
        deadline = time.monotonic() + 2
        # Half of them at any time, half from the moment on that it says it has begun.
        while after_start and agent.process.poll() is None and time.monotonic() < deadline:
            if any(event.get("event") == "agent.started" for event in agent.events()):
                pause /= 8
                break
            time.sleep(0.001)
        return time.sleep(pause)
    if moments.random() < 0.5:
        return time.sleep(moments.uniform(0.05, 2))
    # Drawn here, however the waiting ends: the later moments must not depend on it.
    pause, deadline = moments.uniform(0, 0.04), time.monotonic() + 2
    while agent.process.poll() is None and time.monotonic() < deadline:
        if max(judge.in_flight(agent.events()).values(), default=0) > NOTICEABLE:
            break
        time.sleep(0.001)
    time.sleep(pause)


def kill_again_and_again(config, log, filler, given):
    """`cycles` runs of inlet, each killed. - Returns: the events of each run, and how many ended by themselves."""
    moments, runs, died = random.Random(given.seed), [], 0
    again = False
    for _ in range(given.cycles):
        is_early = again or moments.random() < 0.25
        again = is_early and not again and moments.random() < 0.5
        filler.allow(given.files_per_cycle)
        with Inlet(config, log) as agent:
            wait_for_the_moment(agent, moments, is_early)
            if agent.process.poll() is not None:
                died += 1
                print(f"inlet ended by itself with {agent.process.returncode}:\n{agent.tail()}")
                break
            agent.process.kill()
            agent.process.wait()
            runs.append(list(agent.events()))
    return runs, died


def run_to_the_end(config, log, filler, seconds):
    """One more run, until nothing is pending and every file has its receipt. - Returns: its events, and its exit code."""
    deadline = time.monotonic() + seconds
    with Inlet(config, log) as agent:
        filler.finish()
        agent.wait_ready()
        while time.monotonic() < deadline:
            if agent.process.poll() is not None:
                sys.exit(f"inlet ended with {agent.process.returncode}:\n{agent.tail()}")
            status = json.loads(inlet("status", "--json", config=config))
            # Of each unit one list goes to S3.
            files = len(filler.sources) + len(evidence.units(filler.sources))
            if status["pending"] == 0 and len(receipt_rows(config)) >= files:
                break
            time.sleep(0.5)
        else:
            print(f"still pending after {seconds} s: {status['files']}")
        agent.process.terminate()
        code = agent.process.wait(45)
        return list(agent.events()), code


def receipt_rows(config):
    text = inlet("receipts", "--limit", "1000000", config=config)
    return [json.loads(line) for line in text.splitlines() if line]


def traffic(folder, sources, report, other, runs):
    """{what is counted: (bytes received by servers, needed by them, what the kills may have cost)}; both for all files and
    for those that are longer than a part, which small ones would hide."""
    # A folder has no server; of a unit's two copies one goes to S3, and with it a list.
    sizes = [source.size for source in sources if source.is_sent and source.kind != "library"]
    forms = report["gighive"]["server"]["requests"].get("upload", 0) * FORM_OVERHEAD
    return {
        "bytes": (body_bytes(report) + other["counts"]["bytes"],
                  sum(sizes) + sum(evidence.sent_lists(folder).values()), judge.allowance(runs) + forms),
        "bytes in parts": (body_bytes(report, parts_only=True) + other["counts"]["part_bytes"],
                           sum(size for size in sizes if size > PART), judge.allowance(runs, above=PART)),
    }


def mib(count):
    return f"{count / MIB:.1f} MiB"


def has_failpoints(program):
    """Whether a binary can be told to end itself. By a meaning of theirs: as short a text as `INLET_FAILPOINT` itself stands in
    no data section of an optimized build."""
    source = (HERE.parent.parent / "Sources/InletLinux/Process/Failpoint.swift").read_text()
    meaning = re.search(r'case \.opening: "([^"]{30,})"', source)
    if not meaning:
        sys.exit("Failpoint.swift has no meaning of `opening`")
    with open(program, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(meaning.group(1).encode()) >= 0


def print_result(given, sources, found, died, code, bytes_of, runs):
    """- Returns: whether all targets are reached."""
    hit, early = sum(bool(judge.in_flight(events)) for events in runs[:-1]), judge.killed_early(runs[:-1])
    # A few cycles may happen to have none.
    target = ["> 0", verdict(early > 0)] if given.cycles >= 50 else ["", ""]
    rows = [["cycles", given.cycles, "", ""], ["kills with files in flight", hit, "> 0", verdict(hit > 0)],
            ["killed before ready", early, *target], ["files", len(sources), "", ""]]
    rows += [[kind, found.counts[kind], 0, verdict(not found.counts[kind])] for kind in found.KINDS]
    rows += [["ended by itself", died, 0, verdict(not died)], ["exit code at the end", code, 0, verdict(code == 0)]]
    for what, (sent, needed, allowed) in bytes_of.items():
        again = max(0, sent - needed)
        rows += [[f"{what} sent", mib(sent), "", ""], [f"{what} needed", mib(needed), "", ""],
                 [f"{what} re-sent", mib(again), f"<= {mib(allowed)}", verdict(again <= allowed)]]
    table(f"{given.cycles} x kill -9, seed {given.seed}", ["", "found", "target", ""], rows)
    return all(row[3] != "MISSED" for row in rows)


def measure(folder, given):
    """- Returns: whether all is as it should be."""
    store = Server("spiral_store.py", "--dir", str(folder / "other"), "--api-key", "bench")
    with store, Sandbox(folder, given.sandbox_binary) as sandbox:
        config = write_config(folder, sandbox.place, store.url, evidence=True)
        log = folder / "inlet.log"
        filler = Filler(folder, given.seed)
        filler.start()
        runs, died = kill_again_and_again(config, log, filler, given)
        last, code = run_to_the_end(config, log, filler, given.seconds)
        runs.append(last)
        status = json.loads(inlet("status", "--json", config=config))
        rows = receipt_rows(config)
        report, other = sandbox.report(), store.get("/_/report")
        (folder / "report.json").write_text(json.dumps({"report": report, "other": other, "status": status}))
        found = aftermath.compare(folder, filler.sources, report, other)
    aftermath.judge_receipts(found, folder, filler.sources, rows)
    judge.balance(found, status, len(filler.sources) + len(evidence.units(filler.sources)))
    judge.finished(found, runs)
    bytes_of = traffic(folder, filler.sources, report, other, runs)
    for line in found.lines[:40]:
        print("  " + line)
    return print_result(given, filler.sources, found, died, code, bytes_of, runs)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cycles", type=int, nargs="?", default=50)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--files-per-cycle", type=int, default=6)
    options.add_argument("--seconds", type=int, default=180, help="for what is left after the last kill")
    options.add_argument("--sandbox-binary", help="another inlet for the servers")
    options.add_argument("--self-test", action="store_true", help="only try the judgements on made-up findings")
    given = options.parse_args()
    if given.self_test:
        return judge_test.main()
    # A build of crash.sh's own is one for people.
    if os.environ.get("INLET_BUILD") == "release" and has_failpoints(binary()):
        sys.exit("the release binary has failpoints")
    print(f"seed {given.seed}", flush=True)
    with Workspace() as folder:
        # Kept until it is known to be of no use.
        keep = os.environ.get("INLET_KEEP")
        os.environ["INLET_KEEP"] = "1"
        is_good = measure(folder, given)
        if is_good and not keep:
            del os.environ["INLET_KEEP"]
        elif not is_good:
            print(f"seed {given.seed}: the log is {folder}/inlet.log, what arrived {folder}/report.json")
    if not is_good:
        sys.exit(1)


if __name__ == "__main__":
    main()
