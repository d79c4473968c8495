"""A running `inlet run`, its configuration and its log, and inlet's other commands."""

import contextlib
import datetime
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from process import Child, end, until
from report import Failed

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# As an exception, so that a measurement that is stopped leaves no server and no temporary directory behind.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

Event = dict[str, Any]


def binary() -> str:
    """The inlet to measure; bench.sh builds it and sets this variable."""
    return os.environ.get("INLET_BINARY") or sys.exit("INLET_BINARY is not set: run the .sh of the same name")


def route(name: str, *to: str, path: str = "**", key: str = "{name}", **more: Any) -> dict[str, Any]:
    """`path` is what it matches: words with commas between."""
    return {"name": name, "match": {"path": path.split(",")}, "to": list(to), "key": key, **more}


def configure(folder: Path, destinations: dict[str, dict[str, Any]], routes: list[dict[str, Any]] | None = None,
              watch: dict[str, Any] | None = None, roots: Sequence[Path] = (), places: dict[str, Path] | None = None,
              **more: Any) -> Path:
    """`inlet.yaml` below `folder`, with the root `drop` and one route to all destinations unless there are others. Values are
    JSON, which is YAML. `places`: shares that agents of a fleet watch together."""
    roots = list(roots) or [folder / "drop"]
    for root in roots:
        # A pattern's folders come with their disks.
        if "*" not in str(root):
            root.mkdir(parents=True, exist_ok=True)
    settings = {
        "state_dir": f"{folder}/state", "log": {"level": "info", "output": "stderr", "format": "json"},
        "destinations": destinations, "routes": routes or [route("all", *destinations)],
        "watch": [{"path": str(root), "settle": "0s"} | (watch or {}) for root in roots] +
                 [{"path": str(root), "settle": "0s", "place": place} for place, root in (places or {}).items()]} | more
    path = folder / "inlet.yaml"
    path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items()))
    path.chmod(0o600)
    return path


def spiral(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "r2", "api": url, "dialect": "v1", "api_key": "bench"} | more


def s3(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "s3", "endpoint": url, "bucket": "bench", "access_key": "bench", "secret_key": "bench"} | more


def command(*words: Any, config: Path) -> str:
    """One of inlet's other commands; its standard output."""
    done = subprocess.run([binary(), *map(str, words), "--config", str(config)], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failed(f"inlet {' '.join(map(str, words))}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def lines_of(*words: Any, config: Path) -> list[dict[str, Any]]:
    """All that a command lists."""
    return [json.loads(line) for line in command(*words, "--limit", 1_000_000, config=config).splitlines()]


def status(config: Path) -> dict[str, Any]:
    return json.loads(command("status", "--json", config=config))


@contextlib.contextmanager
def opened(journal: Path) -> Iterator[sqlite3.Connection]:
    """A journal, while no agent has it. Commits at the end."""
    with contextlib.closing(sqlite3.connect(journal)) as database, database:
        yield database


def instant(text: str) -> float:
    """RFC 3339 in UTC, as seconds."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Tail:
    """The whole lines by which a file grows from now on, for readers that do not disturb each other."""

    def __init__(self, path: Path) -> None:
        self.path, self._begin = path, path.stat().st_size if path.exists() else 0
        self._offsets: dict[str, int] = {}

    def new(self, reader: str = "") -> bytes:
        """Since this reader's last call."""
        offset = self._offsets.get(reader, self._begin)
        with open(self.path, "rb") as file:
            file.seek(offset)
            piece = file.read()
        whole = piece.rfind(b"\n") + 1
        self._offsets[reader] = offset + whole
        return piece[:whole]


class Agent(Child):
    """As a context it has started when that begins, and is stopped at its end. Its log goes to a file: a pipe that nobody empties
    would stop what is measured; `output` is another place. `before` is a command that runs another in its own process, as
    `prlimit` does. Who kills it before it is ready says so (`is_awaited`)."""

    def __init__(self, config: Path, environment: dict[str, str] | None = None, before: Sequence[str] = (),
                 output: int | None = None, is_awaited: bool = True, **popen: Any) -> None:
        self.config, self.log = config, config.with_name("inlet.log")
        self._tail, self._is_awaited = Tail(self.log), is_awaited
        self._counts: Counter[str] = Counter()
        self._last: dict[str, bytes] = {}
        self._events: list[Event] = []
        self.began = time.time()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*before, binary(), "run", "--config", str(config)], stdout=output or log,
                                            stderr=subprocess.STDOUT, env=environment, **popen)
        self.pid = self.process.pid

    def __enter__(self) -> "Agent":
        if self._is_awaited:
            try:
                self.wait_count("agent.ready", 1, 30)
            except BaseException:
                self.kill()
                raise
        return self

    def stop(self) -> int:
        """- Returns: its exit code."""
        return end(self.process)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def events(self, name: str = "") -> list[Event]:
        """Every log line so far, or those of one event."""
        for line in self._tail.new("events").splitlines():
            # What is not JSON is a crash report. It stays in the file.
            with contextlib.suppress(ValueError):
                self._events.append(json.loads(line))
        return [event for event in self._events if event.get("event") == name] if name else self._events

    def count(self, event: str) -> int:
        """How many lines say so; the log is only searched, so as not to compete for the cores."""
        mark, lines = f'"event":"{event}"'.encode(), self._tail.new(event)
        if (at := lines.rfind(mark)) >= 0:
            self._last[event] = lines[lines.rfind(b"\n", 0, at) + 1:at]
            self._counts[event] += lines.count(mark)
        return self._counts[event]

    def moment(self, event: str) -> float:
        """When it last said so among those counted, by its own clock."""
        self.count(event)
        return instant(re.search(rb'"ts":"([^"]+)"', self._last[event])[1].decode())

    def wait_for(self, what: str, condition: Callable[[], Any], seconds: float = 600, every: float = 0.05) -> Any:
        """The first true value of `condition`."""
        return until(condition, seconds, what, every, self.process, self.tail)

    def wait_count(self, event: str, count: int, seconds: float = 600, every: float = 0.05) -> float:
        """- Returns: when the last of so many lines was written."""
        self.wait_for(f"{count:,} x {event}", lambda: self.count(event) >= count, seconds, every)
        return self.moment(event)

    def wait_idle(self, seconds: float, condition: Callable[[], bool] = lambda: True) -> int:
        """Until nothing is pending and `condition` holds, or time is up. - Returns: how many files are pending."""
        until(lambda: not status(self.config)["pending"] and condition(), seconds, every=0.5, process=self.process)
        if (code := self.process.poll()) is not None:
            raise Failed(f"it ended with {code} before nothing was pending:\n{self.tail()}")
        return status(self.config)["pending"]

    def tail(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
