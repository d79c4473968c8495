"""Programs that watch a folder and say which files they noticed, as watch.py sees them: inlet and its peers."""

import json
import os
import re
import select
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from agent import Agent, Tail, configure, route, spiral, status
from process import Child, cpu_seconds, end, until
from report import Failed
from servers import closed_port

# The names of watch.py's files.
NAME = rb"f(\d+)\.bin"


class Watcher(Child):
    """Runs below `folder` and watches `root`. What it says goes to a file, or to a pipe (`piped`) that the caller empties.
    `is_idle`: it only watches."""

    name = ""
    # One match for each file that it reports.
    report = re.compile(NAME)
    is_ready = re.compile(rb"")

    def __init__(self, folder: Path, root: Path, piped: bool = False, is_idle: bool = False) -> None:
        self.folder, self.root, self.piped, self.is_idle = folder, root, piped, is_idle
        folder.mkdir(parents=True, exist_ok=True)
        self.said, self.numbers = folder / "inlet.log", set()
        # What watches, where that is not the process that reports.
        self.server: subprocess.Popen | None = None

    def start(self, output: Any) -> subprocess.Popen:
        raise NotImplementedError

    def __enter__(self):
        # The new process says something only after this.
        self._tail, self.began = Tail(self.said), time.monotonic()
        with open(self.said, "ab") as file:
            self.process = self.start(subprocess.PIPE if self.piped else file)
        self.pid = (self.server or self.process).pid
        return self

    def __exit__(self, *failure: object) -> None:
        super().__exit__()
        if self.server:
            end(self.server)

    def wait_ready(self, seconds: float = 900) -> float:
        """Seconds from its start until it watches the whole tree."""
        until(lambda: self.is_ready.search(self._tail.new("ready")), seconds, f"{self.name} that is ready", 0.01, self.process,
              lambda: self.said.read_text(errors="replace")[-2000:])
        return time.monotonic() - self.began

    def noticed(self) -> int:
        """How many different files it has reported so far."""
        self.numbers.update(self.report.findall(self._tail.new("reports")))
        return len(self.numbers)

    def wait_noticed(self, count: int, quiet: float) -> tuple[int, float]:
        """(files, seconds): waits for `count` files, or until no new one has come for `quiet` seconds."""
        began = last = time.monotonic()
        seen = self.noticed()
        while seen < count and time.monotonic() - last < quiet:
            time.sleep(0.05)
            if (now := self.noticed()) > seen:
                seen, last = now, time.monotonic()
        return seen, (last if seen < count else time.monotonic()) - began

    def arrivals(self, count: int, seconds: float) -> dict[int, int]:
        """{number: when its report came through the pipe}, until all `count` are there."""
        seen: dict[int, int] = {}
        pipe, rest = self.process.stdout.fileno(), b""
        over = time.monotonic() + seconds
        while len(seen) < count and time.monotonic() < over:
            if not select.select([pipe], [], [], 0.5)[0]:
                continue
            piece, now = os.read(pipe, 1 << 20), time.monotonic_ns()
            if not piece:
                raise Failed(f"{self.name} ended")
            lines, newline, rest = (rest + piece).rpartition(b"\n")
            for number in self.report.findall(lines + newline):
                seen.setdefault(int(number), now)
        return seen


class Inlet(Watcher):
    """A file counts as noticed when it is admitted: found complete, and durable in the journal. Nothing is sent: its
    destination is a port where nobody listens. `more` are further keys of the watched folder."""

    name = "inlet"
    report = re.compile(rb'"event":"job\.admitted","job":\d+,"path":"[^"]*' + NAME)
    is_ready = re.compile(rb'"event":"watch\.added"')
    # Keys that this kind of it always has. Most files are empty here, which is not to be waited for.
    always: dict[str, Any] = {"settle_empty": "0s"}

    def __init__(self, folder: Path, root: Path, piped: bool = False, is_idle: bool = False, **more: Any) -> None:
        super().__init__(folder, root, piped, is_idle)
        self._watch = self.always | more

    def start(self, output: Any) -> subprocess.Popen:
        config = configure(self.folder, {"nobody": spiral(f"http://127.0.0.1:{closed_port()}", verify="size")},
                           [route("everything", "nobody", key="{dir}/{name}")], self._watch, [self.root])
        self.agent = Agent(config, output=output if self.piped else None)
        return self.agent.process

    def wait_settled(self, seconds: float) -> float:
        """Seconds from its start until it, being ready, has looked at all that it found. It is asked only once it seems to rest:
        a question about a million files takes time of what is measured."""
        def settled() -> float:
            busy, spent = time.monotonic(), cpu_seconds(self.pid)
            time.sleep(0.25)
            rests = cpu_seconds(self.pid) - spent < 0.02 and status(self.agent.config)["roots"][0].get("settling") == 0
            return rests and busy - self.began

        return self.agent.wait_for("rest", settled, seconds, every=0)


class MarkedInlet(Inlet):
    """With one mark for the file system instead of a watch for each folder; only root may do that."""

    name = "inlet+fanotify"
    always = Inlet.always | {"mode": "fanotify"}


class Inotifywait(Watcher):
    name = "inotifywait"
    is_ready = re.compile(rb"Watches established")

    def start(self, output: Any) -> subprocess.Popen:
        with open(self.said, "ab") as errors:
            return subprocess.Popen(["inotifywait", "-m", "-r", "-e", "close_write", "-e", "moved_to", "--format", "%w%f",
                                     self.root], stdout=output, stderr=errors)


class Watchman(Watcher):
    """The server of its own; a client of it subscribes to the files and prints them."""

    name = "watchman"
    is_ready = re.compile(rb'"subscribe":"bench"')

    def _client(self, *question: Any, options: tuple[str, ...] = (), output: Any = subprocess.DEVNULL) -> subprocess.Popen:
        # Without stdbuf it collects 4 KiB before it says anything to a file.
        client = subprocess.Popen(["stdbuf", "-oL", "watchman", f"--sockname={self.folder}/sock", "--no-spawn", "-j", *options],
                                  stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL)
        client.stdin.write(json.dumps(question).encode() + b"\n")
        client.stdin.close()
        return client

    def start(self, output: Any) -> subprocess.Popen:
        files = {"sockname": "sock", "logfile": "server.log", "pidfile": "pid", "statefile": "state"}
        self.server = subprocess.Popen(
            ["watchman", "--foreground", "--no-save-state", *(f"--{name}={self.folder}/{file}" for name, file in files.items())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with socket.socket(socket.AF_UNIX) as client:
            until(lambda: client.connect_ex(f"{self.folder}/sock") == 0, 20, "watchman", 0.02, self.server)
        self.began, root = time.monotonic(), str(self.root)
        # The query is answered when the tree has been crawled.
        for question in (["watch", root], ["query", root, {"expression": ["false"], "sync_timeout": 600_000}]):
            if self._client(*question).wait() != 0:
                raise Failed(f"watchman: {question}")
        wanted = {"expression": ["type", "f"], "fields": ["name"], "empty_on_fresh_instance": True}
        return self._client("subscribe", root, "bench", wanted, options=("-p", "--no-pretty", "--server-encoding=json"),
                            output=output)


class Lsyncd(Watcher):
    """With rsync into a folder beside; a file counts as noticed when it is there."""

    name = "lsyncd"

    def start(self, output: Any) -> subprocess.Popen:
        target = self.folder / "target"
        target.mkdir(exist_ok=True)
        self.is_ready = re.compile(rb"bench: watching" if self.is_idle else rb"Startup of .* finished")
        action = """{
  init = function(event) log("Normal", "bench: watching") end,
  action = function(inlet) inlet.discardEvent(inlet.getEvent()) end, delay = 1, maxProcesses = 1 }"""
        (self.folder / "lsyncd.lua").write_text(
            "settings { nodaemon = true, inotifyMode = 'CloseWrite' }\n"
            f"sync {{ {action if self.is_idle else 'default.rsync'}, delay = 1, source = '{self.root}', target = '{target}' }}\n")
        return subprocess.Popen(["lsyncd", "-nodaemon", self.folder / "lsyncd.lua"], stdout=output, stderr=subprocess.STDOUT)

    def noticed(self) -> int:
        return sum(len(names) for _, _, names in os.walk(self.folder / "target"))


def installed() -> list[type[Watcher]]:
    return [kind for kind in (Inotifywait, Watchman, Lsyncd) if shutil.which(kind.name)]
