"""What the measuring scripts share: inlet and the servers as child processes, /proc readings, tables."""

import datetime
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
GIB, TICKS = 1 << 30, os.sysconf("SC_CLK_TCK")
# As an exception, so that a measurement that is stopped leaves no server and no temporary directory behind.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def binary():
    """The inlet to measure; bench/*.sh build it and set this variable."""
    path = os.environ.get("INLET_BINARY", "")
    if not path:
        sys.exit("INLET_BINARY is not set: run the .sh of the same name")
    return path


class Workspace:
    """A temporary directory, below $TMPDIR, that goes when the measurement ends (kept with INLET_KEEP=1)."""

    def __enter__(self):
        self.path = Path(tempfile.mkdtemp(prefix="inlet-bench-"))
        return self.path

    def __exit__(self, *failure):
        if os.environ.get("INLET_KEEP"):
            print(f"kept: {self.path}")
        else:
            shutil.rmtree(self.path, ignore_errors=True)


class Server:
    """sink.py or spiral_store.py on a port of the system's choice, or on `port`."""

    def __init__(self, script, *arguments, port=0):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / script), "--port", str(port), *arguments], stdout=subprocess.PIPE, text=True)
        announced = self.process.stdout.readline().split()
        if not announced:
            sys.exit(f"{script} did not start; its message is above")
        self.port = int(announced[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.kill()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=120) as answer:
            return json.load(answer)

    def post(self, path, value):
        request = urllib.request.Request(self.url + path, json.dumps(value).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


def write_config(folder, url, *, verify="size", settle="0s", key="{name}", routes=None, destination=""):
    """A configuration with one destination, `spiral`, and one root, `drop`, below `folder`.

    `routes` is {folder of the root: on_success}; without it one route keeps everything. `destination` adds keys.
    """
    (folder / "drop").mkdir(parents=True, exist_ok=True)
    lines = [
        f"state_dir: {folder}/state",
        "log: { level: info, output: stderr, format: json }",
        "destinations:",
        f'  spiral: {{ type: r2, api: "{url}", dialect: v1, api_key: bench, verify: {verify}{destination} }}',
        "watch:",
        f"  - {{ path: {folder}/drop, settle: {settle} }}",
        "routes:",
    ]
    for name, on_success in (routes or {"everything": "keep"}).items():
        lines.append(f"  - name: {name}")
        if routes:
            lines.append(f'    match: {{ path: "{name}/**" }}')
        lines += ["    to: [spiral]", f'    key: "{key}"', f"    on_success: {on_success}"]
    path = folder / "inlet.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


class Inlet:
    """A running `inlet run`. Its log goes to a file: a pipe that nobody empties would stop what is measured.

    `before` is a command that runs another in its own process, as `prlimit` does.
    """

    def __init__(self, config, log, environment=None, before=()):
        self.config, self.log = config, Path(log)
        self._offset = self.log.stat().st_size if self.log.exists() else 0
        self._events = []
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(
                [*before, binary(), "run", "--config", str(config)], stdout=output, stderr=output, env=environment)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(45)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def events(self):
        """Every log line so far, as dictionaries."""
        with open(self.log, "rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                try:
                    self._events.append(json.loads(line))
                except ValueError:
                    # Not a log line: a crash report. It stays in the file.
                    continue
        return self._events

    def wait_for(self, what, condition, seconds, every=0.05):
        """The first true value of condition(events); ends the measurement when inlet dies or time is up."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if result := condition(self.events()):
                return result
            if self.process.poll() is not None:
                sys.exit(f"inlet ended with {self.process.returncode} while waiting for {what}:\n{self.tail()}")
            time.sleep(every)
        sys.exit(f"no {what} within {seconds} s:\n{self.tail()}")

    def wait_ready(self):
        return self.wait_for("agent.ready", lambda events: any(e.get("event") == "agent.ready" for e in events), 30)

    def wait_delivered(self, name, seconds=900):
        """The seconds between job.started and job.delivered of the file whose path ends in `name`."""

        def delivered(events):
            jobs = {e.get("job") for e in events if str(e.get("path", "")).endswith(name)} - {None}
            mine = [e for e in events if e.get("job") in jobs]
            started = [e for e in mine if e.get("event") == "job.started"]
            ended = [e for e in mine if e.get("event") == "job.delivered"]
            return started and ended and (instant(started[0]["ts"]), instant(ended[-1]["ts"]))

        started, ended = self.wait_for(f"job.delivered of {name}", delivered, seconds)
        return ended - started

    def count(self, event):
        return sum(1 for e in self.events() if e.get("event") == event)

    def tail(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def instant(text):
    """RFC 3339 in UTC, as seconds."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def inlet(*arguments, config):
    """One of inlet's other commands; its standard output."""
    done = subprocess.run([binary(), *arguments, "--config", str(config)], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"inlet {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


# /proc ---------------------------------------------------------------------------------------------------------------


def cpu_seconds(pid):
    """User and system time; the kernel counts in ticks of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def status_field(path, name):
    for line in Path(path).read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0


def peak_rss_mib(pid):
    return status_field(f"/proc/{pid}/status", "VmHWM") / 1024


def reset_peak_rss(pid):
    """From here on VmHWM counts anew (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def wake_ups(pid):
    """Voluntary context switches of each thread: {tid: (name, count)}."""
    threads = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            threads[task.name] = ((task / "comm").read_text().strip(), status_field(task / "status", "voluntary_ctxt_switches"))
        except FileNotFoundError:
            # The thread ended between listing and reading.
            continue
    return threads


def io_counters(pid):
    return {name: int(value) for name, _, value in
            (line.partition(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())}


# Figures -------------------------------------------------------------------------------------------------------------


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


median = statistics.median


def table(title, header, rows):
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        print("  " + "  ".join(cell.ljust(width) if not column else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(row, widths))))
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))
    sys.stdout.flush()


def verdict(reached):
    return "not measured" if reached is None else "reached" if reached else "MISSED"
