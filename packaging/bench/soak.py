"""inlet for minutes or days beside servers that fail now and then, while files come without end. Run soak.sh."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import trend
from holdings import holdings
from measure import Inlet, Workspace, inlet, status_field, table, verdict
from sandbox import MIB, Sandbox, write_config
from stream import Stream

INTERVAL = 5
# Connections and threads come and go with the load: this many more are no leak.
SLACK = 3
# In fewer minutes than these every process still grows into its load: readings are shown, and not judged.
LEAST_MINUTES = 5


class Readings:
    """What a process holds, each few seconds."""

    def __init__(self, pid, state):
        self._pid, self._state = pid, state
        self._begin = time.monotonic()
        self.rss, self.descriptors, self.threads, self.journal = [], [], [], []

    def take(self):
        now = time.monotonic() - self._begin
        status = f"/proc/{self._pid}/status"
        self.rss.append((now, status_field(status, "VmRSS") * 1024))
        held = holdings(self._pid, self._state)
        self.threads.append((now, held.threads))
        self.descriptors.append((now, held.descriptors))
        self.journal.append((now, held.journal))


def balance_problem(config):
    """What does not add up in `inlet status --json`; None when all does."""
    status = json.loads(inlet("status", "--json", config=config))
    states = status["files"]
    if status["seen"] != sum(states.values()) + status["ignored"]:
        return f"seen {status['seen']}, but {states} and {status['ignored']} ignored"
    lost = {name: count for name, count in states.items() if count and name not in ("delivered", "pending")}
    return f"not delivered: {lost}" if lost else None


def run(agent, config, readings, stream, minutes):
    """- Returns: what did not add up, each minute."""
    problems, end, next_minute = [], time.monotonic() + 60 * minutes, time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(INTERVAL)
        if agent.process.poll() is not None:
            sys.exit(f"inlet ended with {agent.process.returncode}:\n{agent.tail()}")
        readings.take()
        if time.monotonic() >= next_minute:
            next_minute += 60
            problem = balance_problem(config)
            print(f"{len(readings.rss) * INTERVAL // 60} min: {stream.count} files, "
                  f"{readings.rss[-1][1] / MIB:.1f} MiB, {readings.descriptors[-1][1]} descriptors, "
                  f"{problem or 'balanced'}", flush=True)
            problems += [problem] if problem else []
    return problems


def wait_until_idle(config, stream, seconds=180):
    """- Returns: how many files are delivered, when nothing waits any more or time is up."""
    deadline = time.monotonic() + seconds
    while True:
        states = json.loads(inlet("status", "--json", config=config))["files"]
        if states["pending"] == 0 and states["delivered"] >= stream.count or time.monotonic() > deadline:
            return states["delivered"]
        time.sleep(1)


def print_result(title, readings, stream, delivered, problems, faults):
    """- Returns: whether all targets are reached."""
    memory = trend.settled(readings.rss)
    slope = trend.slope(memory)
    most = trend.bound(memory, slope)
    descriptors = trend.step(trend.settled(readings.descriptors))
    threads = trend.step(trend.settled(readings.threads))
    reached = [slope <= most, descriptors <= SLACK, threads <= SLACK, delivered == stream.count, not problems, faults > 0]
    is_long = readings.rss[-1][0] >= 60 * LEAST_MINUTES - 2 * INTERVAL
    grows = ["reached" if reached[index] else "MISSED" if is_long else "too short" for index in range(3)]
    per_hour = 3600 / MIB
    rows = [
        ["memory, slope", f"{slope * per_hour:+.2f} MiB/h", f"<= {most * per_hour:.2f} MiB/h", grows[0]],
        ["memory, first / last", f"{memory[0][1] / MIB:.1f} / {memory[-1][1] / MIB:.1f} MiB", "", ""],
        ["descriptors, least", f"{descriptors:+g} of {readings.descriptors[-1][1]}", f"<= {SLACK}", grows[1]],
        ["threads, least", f"{threads:+g} of {readings.threads[-1][1]}", f"<= {SLACK}", grows[2]],
        ["journal, first / last", f"{readings.journal[0][1] / MIB:.1f} / {readings.journal[-1][1] / MIB:.1f} MiB", "", ""],
        ["files delivered", f"{delivered} of {stream.count}", "all", verdict(reached[3])],
        ["minutes out of balance", len(problems), 0, verdict(reached[4])],
        ["requests that met a fault", faults, "> 0", verdict(reached[5])],
    ]
    table(title, ["", "found", "target", ""], rows)
    return all(reached[3:]) and "MISSED" not in grows


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("minutes", type=float, nargs="?", default=10)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--trouble", type=float, default=0.01, help="the share of requests that go wrong")
    options.add_argument("--sandbox-binary", help="another inlet for the servers")
    options.add_argument("--self-test", action="store_true", help="only try the rules on made-up readings")
    given = options.parse_args()
    if given.self_test:
        return trend.self_test()
    print(f"seed {given.seed}", flush=True)
    with Workspace() as folder, Sandbox(folder, given.sandbox_binary, given.trouble, given.seed) as sandbox:
        config = write_config(folder, sandbox.place, more=", retry: { attempts: 50, backoff: 200ms }")
        stream = Stream(Path(folder), given.seed)
        with Inlet(config, folder / "inlet.log") as agent:
            agent.wait_ready()
            readings = Readings(agent.pid, folder / "state")
            stream.start()
            problems = run(agent, config, readings, stream, given.minutes)
            stream.stop()
            delivered = wait_until_idle(config, stream)
        report = sandbox.report()
        faults = sum(part["server"]["faults"] for part in report.values())
        is_good = print_result(
            f"{given.minutes:g} minutes, seed {given.seed}", readings, stream, delivered, problems, faults)
        if not is_good:
            os.environ["INLET_KEEP"] = "1"
            sys.exit(f"seed {given.seed}: the log is {folder}/inlet.log")


if __name__ == "__main__":
    main()
