"""A program that watches a folder and says which files it noticed, as watch.py sees it; and inlet as one."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from measure import binary, cpu_seconds, instant

# The names of watch_load.py's files.
NAME = rb"f(\d+)\.bin"


class Watcher:
    """Runs below `folder` and watches `root`. What it says goes to a file, or to a pipe (`piped`) that the caller
    empties."""

    name = ""
    # One match for each file that it reports.
    report = re.compile(NAME)
    is_ready = re.compile(rb"")

    def __init__(self, folder, root, piped=False):
        self.folder, self.root, self.piped = Path(folder), Path(root), piped
        self.folder.mkdir(parents=True, exist_ok=True)
        self.said = self.folder / "said"
        self.numbers, self._offset = set(), 0

    def command(self):
        raise NotImplementedError

    def prepare(self):
        """What must be there before it starts."""

    def __enter__(self):
        self.prepare()
        # The new process says something only after this.
        self._offset = self.said.stat().st_size if self.said.exists() else 0
        self._first = self._offset
        self.began = time.monotonic()
        with open(self.said, "ab") as file:
            self.process = subprocess.Popen(
                self.command(), stdout=subprocess.PIPE if self.piped else file,
                stderr=subprocess.STDOUT if self.is_said_on_stderr and self.piped else file)
        self.pid = self.process.pid
        return self

    # Where its reports go.
    is_said_on_stderr = False

    def __exit__(self, *failure):
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def text(self):
        """All that it has said since it was started."""
        with open(self.said, "rb") as file:
            file.seek(self._first)
            return file.read()

    def wait_ready(self, seconds=900):
        """Seconds from its start until it watches the whole tree."""
        self.wait(seconds, lambda: self.is_ready.search(self.text()))
        return time.monotonic() - self.began

    def wait(self, seconds, condition, every=0.01):
        deadline = time.monotonic() + seconds
        while not (result := condition()):
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                sys.exit(f"{self.name}: nothing for {seconds} s:\n{self.tail()}")
            time.sleep(every)
        return result

    def noticed(self):
        """How many different files it has reported so far."""
        with open(self.said, "rb") as file:
            file.seek(self._offset)
            piece = file.read()
        whole = piece.rfind(b"\n") + 1
        self._offset += whole
        self.numbers.update(int(number) for number in self.report.findall(piece[:whole]))
        return len(self.numbers)

    def wait_noticed(self, count, quiet, every=0.05):
        """(files, seconds): waits for `count` files, or until no new one has come for `quiet` seconds."""
        began = last = time.monotonic()
        seen = self.noticed()
        while seen < count and time.monotonic() - last < quiet:
            time.sleep(every)
            now = self.noticed()
            if now > seen:
                seen, last = now, time.monotonic()
        return seen, (last if seen < count else time.monotonic()) - began

    def arrivals(self, count, seconds):
        """{number: when its report came through the pipe}, until all `count` are there."""
        seen, rest = {}, b""
        pipe = self.process.stdout.fileno()
        os.set_blocking(pipe, False)
        deadline = time.monotonic() + seconds
        while len(seen) < count and time.monotonic() < deadline:
            if not select.select([pipe], [], [], 0.5)[0]:
                continue
            piece, now = os.read(pipe, 1 << 20), time.monotonic_ns()
            if not piece:
                sys.exit(f"{self.name} ended")
            lines, newline, rest = (rest + piece).rpartition(b"\n")
            for number in self.report.findall(lines + newline):
                seen.setdefault(int(number), now)
        return seen

    def tail(self, lines=15):
        return "\n".join(self.said.read_text(errors="replace").splitlines()[-lines:])


class Inlet(Watcher):
    """A file counts as noticed when it is admitted: found complete, and durable in the journal. Nothing is sent: its
    destination is a port where nobody listens. `more` are further keys of the watched folder."""

    name = "inlet"
    report = re.compile(rb'"event":"job\.admitted","job":\d+,"path":"[^"]*' + NAME)
    is_ready = re.compile(rb'"event":"watch\.added"')
    is_said_on_stderr = True

    # Keys that this kind of it always has.
    always = ""

    def __init__(self, folder, root, piped=False, more=""):
        super().__init__(folder, root, piped)
        self.more, self._admitted = self.always + more, 0
        self.config = self.folder / "inlet.yaml"

    def prepare(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            nobody = listener.getsockname()[1]
        self.config.write_text(f"""\
state_dir: {self.folder}/state
log: {{ level: info, output: stderr, format: json }}
destinations:
  nobody: {{ type: r2, api: "http://127.0.0.1:{nobody}", dialect: v1, api_key: bench, verify: size }}
watch:
  - {{ path: {self.root}, settle: 0s{self.more} }}
routes:
  - {{ name: everything, to: [nobody], key: "{{dir}}/{{name}}" }}
""")
        self.config.chmod(0o600)

    def command(self):
        return [binary(), "run", "--config", str(self.config)]

    def moment(self, event):
        """When it first said `event`, in seconds; by its own clock."""
        line = re.search(rb'"ts":"([^"]+)"[^\n]*"event":"' + re.escape(event.encode()) + rb'"', self.text())
        return instant(line.group(1).decode()) if line else None

    def scan_seconds(self):
        return self.moment("watch.added") - self.moment("agent.started")

    def admitted(self):
        """How many lines of admission there are; cheaper than `noticed`, for a million."""
        with open(self.said, "rb") as file:
            file.seek(self._offset)
            piece = file.read()
        whole = piece.rfind(b"\n") + 1
        self._offset += whole
        self._admitted += piece[:whole].count(b'"event":"job.admitted"')
        return self._admitted

    def root_status(self):
        done = subprocess.run(
            [binary(), "status", "--json", "--config", str(self.config)], capture_output=True, timeout=60)
        return json.loads(done.stdout)["roots"][0] if done.returncode == 0 else {}

    def wait_settled(self, seconds):
        """Seconds from its start until it has looked at all that it found. It is asked only once it seems to rest: a
        question about a million files takes time of what is measured."""
        self.wait_ready(seconds)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            busy, spent = time.monotonic(), cpu_seconds(self.pid)
            time.sleep(0.25)
            if cpu_seconds(self.pid) - spent < 0.02 and self.root_status().get("settling") == 0:
                return busy - self.began
        sys.exit(f"inlet does not come to rest within {seconds} s:\n{self.tail()}")


class MarkedInlet(Inlet):
    """With one mark for the file system instead of a watch for each folder; only root may do that."""

    name = "inlet+fanotify"
    always = ", mode: fanotify"
