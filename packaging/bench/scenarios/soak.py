"""inlet for minutes or days beside servers that fail now and then, while files come without end: in the profiles by which
Litestream soaks: constant, wave, burst. What has arrived is made to go, so that the disk stays as it is."""

import math
import os
import random
import shutil
import statistics
import time
from pathlib import Path

import judge
from agent import Agent, status
from everywhere import KINDS, configure_everywhere
from process import Worker, field, held
from report import MIB, SEED, Given, Row, none
from servers import Sandbox

INTERVAL = 5
# Connections and threads come and go with the load: this many more are no leak.
SLACK = 3
# In fewer minutes than these every process still grows into its load: readings are shown, and not judged.
LEAST_MINUTES = 5
# Seconds of one wave of the load, and how long what has arrived is left where it is.
WAVE, STAY = 120, 30
HOUR = 3600
# Growth a second: what is too much over a day, and what a run of less than an hour can tell from noise.
MOST, LEAST_TOLD = MIB / HOUR, (64 << 10) / 60

Points = list[tuple[float, float]]

# The share of requests that go wrong.
TROUBLE = 0.01

OPTIONS = {"minutes": 10.0, "--seed": SEED}


# Whether a quantity that is measured again and again (seconds, value) grows, beyond what its own noise explains


def slope(points: Points) -> float:
    """Theil-Sen: the median of the slopes of all pairs; a few wild points do not move it."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for at, a in enumerate(points) for b in points[at + 1:] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0.0


def bound(points: Points) -> float:
    """The steepest slope that still passes: 1 MiB an hour, or twice the spread (the middle half of what is left when the trend is
    taken out) over the time that was measured, where that is more; never less than 64 KiB a minute in less than an hour."""
    time_, trend = points[-1][0] - points[0][0] or 1, slope(points)
    left = sorted(value - trend * when for when, value in points)
    spread = left[3 * len(left) // 4] - left[len(left) // 4]
    return max(MOST, 2 * spread / time_, LEAST_TOLD if time_ < HOUR else 0)


def settled(points: Points) -> Points:
    """Without the warm-up: the first quarter of the time, but at least the first full wave of the load."""
    begin, end = points[0][0], points[-1][0]
    since = begin + max(0.25 * (end - begin), min(WAVE, 0.5 * (end - begin)))
    return [point for point in points if point[0] >= since]


def step(points: Points) -> float:
    """By how much the lowest of the last third is above the lowest of the first: for counts, which follow the load, and whose
    low-water mark only a leak lifts."""
    third, values = max(1, len(points) // 3), [value for _, value in points]
    return min(values[-third:]) - min(values[:third])


class Stream(Worker):
    """Drops files until `stop`: 4 small ones a second; 0 to 8 more, up and down in two minutes; 60 at once each half minute,
    with one of 12 MiB."""

    SMALL = ["spiral", "s3", "stage", "library"] * 12 + ["products", "spaces"]

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__()
        self._folder, self._random, self.count = folder, random.Random(seed), 0

    def work(self) -> None:
        begin = before = time.monotonic()
        owed, bursts, tidied = 0.0, 0, 0.0
        while not self.ended.wait(0.1):
            now = time.monotonic()
            owed += (now - before) * (4 + 4 * (1 - math.cos((now - begin) / WAVE * 2 * math.pi)))
            before = now
            while owed >= 1:
                self._drop(self._random.randrange(0, 32 << 10))
                owed -= 1
            if (now - begin) // 30 > bursts:
                bursts += 1
                for _ in range(60):
                    self._drop(self._random.randrange(0, 8 << 10))
                self._drop(12 * MIB)
            if now - tidied > 5:
                tidied = now
                tidy(self._folder)

    def _drop(self, size: int) -> None:
        kind = self._random.choice(self.SMALL if size < MIB else self.SMALL[:4])
        policy, name = self._random.choice(["archive", "delete"]), f"f{self.count:07}.{KINDS[kind][0]}"
        # A video is never empty, and GigHive tells files by their bytes.
        (self._folder / "staging" / name).write_bytes(os.urandom(size + 64))
        os.rename(self._folder / "staging" / name, self._folder / "drop" / kind / policy / name)
        self.count += 1


def tidy(folder: Path) -> None:
    """Removes what has been archived, copied or fetched for a while, and empties what the servers keep."""
    horizon = time.time() - STAY

    def old(place: Path) -> list[Path]:
        return [path for _, path in judge.files(place) if path.stat().st_ctime < horizon]

    for place in (folder / "drop" / ".inlet" / "done", folder / "library"):
        for path in old(place):
            path.unlink(missing_ok=True)
    for path in old(folder / "results"):
        if path.name == "product.json":
            shutil.rmtree(path.parent, ignore_errors=True)
    for path in old(folder / "sandbox"):
        is_kept = path.suffix in (".json", ".info") or {"uploads", "tus"} & set(path.parts)
        if not is_kept and path.stat().st_size > 4096:
            os.truncate(path, 0)


def watch(agent: Agent, readings: dict[str, Points], stream: Stream, minutes: float) -> list[str]:
    """- Returns: what did not add up, each minute."""
    problems, begin = [], time.monotonic()
    end, next_minute = begin + 60 * minutes, begin + 60
    while time.monotonic() < end:
        time.sleep(INTERVAL)
        agent.wait_for("a reading", lambda: agent.process.poll() is None)
        now = held(agent.pid, agent.config.parent / "state") | {"memory": field(f"/proc/{agent.pid}/status", "VmRSS") * 1024}
        for name, points in readings.items():
            points.append((time.monotonic() - begin, now[name]))
        if time.monotonic() >= next_minute:
            next_minute += 60
            problem = judge.balance_problem(status(agent.config))
            print(f"{(time.monotonic() - begin) // 60:.0f} min: {stream.count} files, {now['memory'] / MIB:.1f} MiB, "
                  f"{now['descriptors']} descriptors, {problem or 'balanced'}", flush=True)
            problems += [problem] if problem else []
    return problems


def growth_rows(readings: dict[str, Points]) -> list[Row]:
    is_long = readings["memory"][-1][0] >= 60 * LEAST_MINUTES - 2 * INTERVAL

    def judged(what: str, said: str, target: str, reached: bool) -> Row:
        return Row(what, said, target if is_long else "", reached or not is_long)

    memory, journal = settled(readings["memory"]), readings["journal"]
    per_hour, grows, most = HOUR / MIB, slope(memory), bound(memory)
    rows = [judged("memory, slope", f"{grows * per_hour:+.2f} MiB/h", f"<= {most * per_hour:.2f} MiB/h", grows <= most),
            Row("memory, first / last", f"{memory[0][1] / MIB:.1f} / {memory[-1][1] / MIB:.1f} MiB"),
            Row("journal, first / last", f"{journal[0][1] / MIB:.1f} / {journal[-1][1] / MIB:.1f} MiB")]
    for name in ("descriptors", "threads"):
        more = step(settled(readings[name]))
        rows.append(judged(f"{name}, least", f"{more:+g} of {readings[name][-1][1]}", f"<= {SLACK}", more <= SLACK))
    return rows if is_long else [*rows, Row("too short to judge growth", f"less than {LEAST_MINUTES} minutes")]


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    readings: dict[str, Points] = {name: [] for name in ("memory", "descriptors", "threads", "journal")}
    with Sandbox(folder, TROUBLE, given.seed) as sandbox:
        config = configure_everywhere(folder, sandbox, retry={"attempts": 50, "backoff": "200ms"})
        stream = Stream(folder, given.seed)
        with Agent(config) as agent:
            stream.start()
            problems = watch(agent, readings, stream, given.minutes)
            stream.stop()
            agent.wait_idle(180, lambda: status(config)["files"]["delivered"] >= stream.count)
            delivered = status(config)["files"]["delivered"]
        faults = sum(part["server"]["faults"] for part in sandbox.report().values())
    return f"{given.minutes:g} minutes, seed {given.seed}", [
        *growth_rows(readings), Row("files delivered", f"{delivered} of {stream.count}", "all", delivered == stream.count),
        none("minutes out of balance", len(problems)), Row("requests that met a fault", str(faults), "> 0", faults > 0)]
