"""Destinations beside each other: a fast folder, a slow store and one that hangs. Run lanes.sh.

First the time that the folder takes for big files, alone and beside the two others, which have the same files to take.
Then `kill -9` again and again while 10,000 small and 40 big files are on their way to all three; at the end the one that
hung answers and the slow one is slow no more. Nothing may be claimed that nobody holds, no key may have two objects, nothing
may fail as `agent_crashed`, and everything must be everywhere, whole.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import socket
import sqlite3
import sys
import threading
import time
from pathlib import Path

from measure import Inlet, Server, Workspace, inlet, instant, table, verdict

MIB = 1 << 20
SLOW = "1MiB/s"
BIG = 25 * MIB
TARGET = 1.2


class Hanging:
    """A port that takes connections and never answers; or, once it is told, nobody's."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._taken = []
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self):
        with contextlib.suppress(OSError):
            while True:
                self._taken.append(self._listener.accept()[0])

    def close(self):
        # shutdown wakes the thread in accept; close alone would leave the port taken until the next connection.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._taken:
            connection.close()


def write_config(folder, slow, hanging, limit=SLOW):
    for name in ("drop", "fast"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    store = "type: r2, dialect: v1, api_key: bench, verify: size, allow_http: true"
    rate = f", bandwidth: {limit}" if limit else ""
    path = folder / "inlet.yaml"
    path.write_text("\n".join([
        f"state_dir: {folder}/state",
        "log: { level: info, output: stderr, format: json }",
        "destinations:",
        f"  fast: {{ type: folder, path: {folder}/fast }}",
        f'  slow: {{ {store}, api: "{slow}"{rate} }}',
        f'  hanging: {{ {store}, api: "{hanging}" }}',
        "watch:",
        f"  - {{ path: {folder}/drop, settle: 0s }}",
        "routes:",
        '  - { name: alone, match: { path: ["warm-*", "alone-*"] }, to: [fast], key: "{name}" }',
        '  - { name: all, to: [fast, slow, hanging], key: "{name}", retry: { attempts: 100 } }',
        ""]))
    return path


def fill(folder, name, count, size, seed=0):
    """Files that are complete when they appear in `drop`, all at once. - Returns: {name: its MD5}."""
    source, sums = random.Random(f"{name} {seed}"), {}
    staging = folder / "staging"
    staging.mkdir(exist_ok=True)
    for number in range(count):
        content = source.randbytes(min(size, 4096)) * (size // min(size, 4096))
        sums[f"{name}-{number}"] = hashlib.md5(content).hexdigest()
        (staging / f"{name}-{number}").write_bytes(content)
    for file in sums:
        (staging / file).rename(folder / "drop" / file)
    return sums


def seconds_of(agent, folder, prefix, count):
    """From the first file that is there until the folder has all of this name."""
    fill(folder, prefix, count, BIG)
    begun = min((folder / "drop" / f"{prefix}-{number}").stat().st_ctime for number in range(count))

    def delivered(events):
        ends = [instant(event["ts"]) for event in events
                if event.get("event") == "job.delivered" and event.get("destination") == "fast"
                and Path(event["path"]).name.startswith(f"{prefix}-")]
        return len(ends) == count and max(ends)

    return agent.wait_for(f"{prefix} in the folder", delivered, 300, every=0.01) - begun


def measure_times(folder, config, given):
    """- Returns: the medians of the folder's times alone and beside the others."""
    alone, beside = [], []
    with Inlet(config, folder / "inlet.log") as agent:
        agent.wait_ready()
        seconds_of(agent, folder, "warm", given.big)
        for number in range(given.rounds):
            alone.append(seconds_of(agent, folder, f"alone-{number}", given.big))
        # From now on the two others have something to do, and more of it with each round.
        for number in range(given.rounds):
            beside.append(seconds_of(agent, folder, f"beside-{number}", given.big))
    return sorted(alone)[given.rounds // 2], sorted(beside)[given.rounds // 2]


def kill_again_and_again(folder, config, given):
    """- Returns: the sums of the files, and how many runs ended by themselves."""
    moments, sums, died = random.Random(given.seed), {}, 0
    small, big = given.small // given.kills + 1, max(1, given.kills // given.big_files)
    for number in range(given.kills):
        with Inlet(config, folder / "inlet.log") as agent:
            sums |= fill(folder, f"small-{number}", small, 1024, given.seed)
            if number % big == 0 and number // big < given.big_files:
                sums |= fill(folder, f"big-{number}", 1, 8 * MIB, given.seed)
            time.sleep(moments.uniform(0.05, 1.5))
            died += agent.process.poll() is not None
            agent.process.kill()
            agent.process.wait()
    return sums, died


def run_to_the_end(folder, config, seconds):
    """- Returns: how many files are still pending, and the exit code."""
    deadline, pending = time.monotonic() + seconds, None
    with Inlet(config, folder / "inlet.log") as agent:
        agent.wait_ready()
        for name in ("slow", "hanging"):
            inlet("resume", name, config=config)
        while time.monotonic() < deadline and pending != 0:
            if agent.process.poll() is not None:
                sys.exit(f"inlet ended with {agent.process.returncode}:\n{agent.tail()}")
            pending = json.loads(inlet("status", "--json", config=config))["pending"]
            time.sleep(0.5)
        agent.process.terminate()
        return pending, agent.process.wait(45)


def judge(folder, sums, reports):
    """- Returns: {what is counted: how many}; all of them should be 0."""
    journal = sqlite3.connect(f"file:{folder}/state/journal.sqlite?mode=ro", uri=True)

    def count(condition):
        return journal.execute(f"SELECT count(*) FROM delivery WHERE {condition}").fetchone()[0]

    twice = journal.execute(
        "SELECT count(*) FROM (SELECT 1 FROM delivery WHERE key IS NOT NULL GROUP BY destination, key HAVING count(*) > 1)")
    found = {
        "rows claimed or owned": count("state = 'claimed' OR owner IS NOT NULL"),
        "keys twice": twice.fetchone()[0],
        "failed as agent_crashed": count("code = 'agent_crashed'"),
        "not delivered": count("state <> 'delivered'"),
        "more than one attempt without a failure": count("state = 'delivered' AND attempts <> 1 AND crashes = 0"),
    }
    journal.close()
    fast = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in (folder / "fast").iterdir()}
    found["missing or changed in the folder"] = sum(fast.get(name) != md5 for name, md5 in sums.items())
    for name, report in reports.items():
        keys = [key.rpartition("/")[2] for key in report["objects"]]
        found[f"missing at {name}"] = len(set(sums) - set(keys))
        found[f"twice at {name}"] = len(keys) - len(set(keys))
    return found


def measure(folder, given):
    """- Returns: whether all is as it should be."""
    hanging = Hanging()
    slow = Server("spiral_store.py", "--dir", str(folder / "slow"), "--api-key", "bench")
    with slow:
        times = folder / "times"
        alone, beside = measure_times(times, write_config(times, slow.url, hanging.url), given)
        folder = folder / "kills"
        config = write_config(folder, slow.url, hanging.url)
        sums, died = kill_again_and_again(folder, config, given)
        hanging.close()
        with Server("spiral_store.py", "--dir", str(folder / "hanging"), "--api-key", "bench", port=hanging.port) as late:
            config = write_config(folder, slow.url, late.url, limit=None)
            pending, code = run_to_the_end(folder, config, given.seconds)
            found = judge(folder, sums, {"slow": slow.get("/_/report"), "hanging": late.get("/_/report")})
    found |= {"pending at the end": pending, "ended by itself": died, "exit code at the end": code}
    ratio = beside / alone
    rows = [["kills", given.kills, "", ""], ["files to all three", len(sums), "", ""],
            [f"{given.big} x 25 MiB to the folder, alone", f"{alone:.2f} s", "", ""],
            ["the same beside the others", f"{beside:.2f} s", "", ""],
            ["ratio", f"{ratio:.2f}", f"<= {TARGET}", verdict(ratio <= TARGET)]]
    rows += [[what, number, 0, verdict(number == 0)] for what, number in found.items()]
    table(f"a fast, a slow and a hanging destination, seed {given.seed}", ["", "found", "target", ""], rows)
    return all(row[3] != "MISSED" for row in rows)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("kills", type=int, nargs="?", default=200)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--small", type=int, default=10_000)
    options.add_argument("--big-files", type=int, default=40)
    options.add_argument("--big", type=int, default=12, help="files of 25 MiB for each time that is measured")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=600, help="for what is left after the last kill")
    given = options.parse_args()
    print(f"seed {given.seed}", flush=True)
    with Workspace() as folder:
        keep = os.environ.get("INLET_KEEP")
        os.environ["INLET_KEEP"] = "1"
        is_good = measure(Path(folder), given)
        if is_good and not keep:
            del os.environ["INLET_KEEP"]
    if not is_good:
        sys.exit(1)


if __name__ == "__main__":
    main()
