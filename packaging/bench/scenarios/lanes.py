"""Destinations beside each other: a fast folder, a slow store, one that hangs and one that is down.

First the time that the folder takes for big and for small files, alone and beside the three others, which have the same files
to take. It should be as fast as alone, to 90 %. Then `kill -9` again and again while 10,000 small and 40 big files are on their way to the first three; at the end the one that
hung answers and the slow one is slow no more. Nothing may be claimed that nobody holds, no key may have two objects, nothing
may fail as `agent_crashed`, and everything must be everywhere, whole.
"""

import random
import socket
import time
from pathlib import Path
from statistics import median
from typing import Any

from agent import Agent, command, configure, instant, opened, route, spiral
from judge import digest_of
from loads import drop_together
from report import MIB, SEED, Given, Row, bounded, none
from servers import Sink

# Files that are measured at a time, and those that are killed with the small ones.
SLOW, BIG, BIG_COUNT, BIG_KILLED, TARGET = "1MiB/s", 25 * MIB, 12, 40, 1 / 0.9
SMALL, SMALL_COUNT = 4096, 2000
# Seconds for what is left after the last kill.
REST = 600

OPTIONS = {
    "kills": 200,
    "--seed": SEED,
    "--small": 10_000,
    "--rounds": 3,
}


def configure_lanes(folder: Path, slow: str, hanging: str, down: str | None = None, **limit: str) -> Path:
    (folder / "fast").mkdir(parents=True, exist_ok=True)
    others = {
        "slow": spiral(slow, verify="size", allow_http=True, **limit),
        "hanging": spiral(hanging, verify="size", allow_http=True)}
    if down:
        others["down"] = spiral(down, verify="size", allow_http=True)
    return configure(folder, {"fast": {"type": "folder", "path": f"{folder}/fast"}} | others,
        [route("alone", "fast", path="warm-*,alone-*"), route("all", "fast", *others, retry={"attempts": 100})])


def seconds_of(agent: Agent, folder: Path, prefix: str, count: int, size: int) -> float:
    """From the first file that is there until the folder has all of this name."""
    drop_together(folder, folder / "drop", prefix, count, size)
    begun = min((folder / "drop" / f"{prefix}-{number}").stat().st_ctime for number in range(count))

    def delivered() -> Any:
        ends = [instant(event["ts"]) for event in agent.events("job.delivered")
                if event["destination"] == "fast" and Path(event["path"]).name.startswith(f"{prefix}-")]
        return len(ends) == count and max(ends)

    return agent.wait_for(f"{prefix} in the folder", delivered, 300, every=0.01) - begun


def folder_seconds(folder: Path, config: Path, given: Given) -> list[tuple[float, float]]:
    """The medians of the folder's times alone and beside the others, for big and for small files."""
    kinds = [("big", BIG_COUNT, BIG), ("small", SMALL_COUNT, SMALL)]
    with Agent(config) as agent:
        for kind, *load in kinds:
            seconds_of(agent, folder, f"warm-{kind}", *load)
        # After these the others have something to do, and more of it with each round.
        times = {(name, kind): median(seconds_of(agent, folder, f"{name}-{kind}-{number}", *load)
                                      for number in range(given.rounds))
                 for name in ("alone", "beside") for kind, *load in kinds}
    return [(times["alone", kind], times["beside", kind]) for kind, *_ in kinds]


def kill_again_and_again(folder: Path, config: Path, given: Given) -> tuple[dict[str, str], int]:
    """- Returns: the sums of the files, and how many runs ended by themselves."""
    moments, sums, died, drop = random.Random(given.seed), {}, 0, folder / "drop"
    small, big = given.small // given.kills + 1, max(1, given.kills // BIG_KILLED)
    for number in range(given.kills):
        with Agent(config, is_awaited=False) as agent:
            sums |= drop_together(folder, drop, f"small-{number}", small, 1024, given.seed)
            if number % big == 0 and number // big < BIG_KILLED:
                sums |= drop_together(folder, drop, f"big-{number}", 1, 8 * MIB, given.seed)
            time.sleep(moments.uniform(0.05, 1.5))
            died += agent.process.poll() is not None
            agent.kill()
    return sums, died


# In the journal, all of these should be none.
WRONG = {
    "rows claimed or owned": "state = 'claimed' OR owner IS NOT NULL",
    "keys twice": "id IN (SELECT max(id) FROM delivery WHERE key IS NOT NULL GROUP BY destination, key HAVING count(*) > 1)",
    "failed as agent_crashed": "code = 'agent_crashed'",
    "not delivered": "state <> 'delivered'",
    "more than one attempt without a failure": "state = 'delivered' AND attempts <> 1 AND crashes = 0",
}


def judge(folder: Path, sums: dict[str, str], stores: dict[str, Sink]) -> list[Row]:
    with opened(folder / "state/journal.sqlite") as journal:
        rows = [none(what, journal.execute(f"SELECT count(*) FROM delivery WHERE {condition}").fetchone()[0])
                for what, condition in WRONG.items()]
    held = {"the folder": {path.name: digest_of(path, "md5") for path in (folder / "fast").iterdir()}}
    held |= {name: {key: md5 for key, (_, md5) in store.objects().items()} for name, store in stores.items()}
    for name, objects in held.items():
        # Of what is sent in parts the MD5 is another.
        wrong = (objects.get(key) != md5 and "-" not in objects.get(key, "") for key, md5 in sums.items())
        rows += [none(f"missing or changed at {name}", sum(wrong)), none(f"twice at {name}", len(set(objects) - set(sums)))]
    return rows


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    # The kernel takes connections, and nobody answers. Those of killed agents stay until it is closed.
    hanging, times, kills = socket.create_server(("127.0.0.1", 0), backlog=4096), folder / "times", folder / "kills"
    port = hanging.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    # Nobody listens there.
    with socket.create_server(("127.0.0.1", 0)) as closed:
        down = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with Sink(etag="md5") as slow:
        big, small = folder_seconds(times, configure_lanes(times, slow.url, url, down, bandwidth=SLOW), given)
        slow.reset()
        sums, died = kill_again_and_again(kills, configure_lanes(kills, slow.url, url, bandwidth=SLOW), given)
        hanging.close()
        with Sink(etag="md5", port=port) as late:
            with Agent(configure_lanes(kills, slow.url, late.url)) as agent:
                for name in ("slow", "hanging"):
                    command("resume", name, config=agent.config)
                pending, code = agent.wait_idle(REST), agent.stop()
            rows = judge(kills, sums, {"slow": slow, "hanging": late})
    speeds = [row for what, (alone, beside) in ((f"{BIG_COUNT} x 25 MiB", big), (f"{SMALL_COUNT} x 4 KiB", small)) for row in (
        Row(f"{what} to the folder, alone", f"{alone:.2f} s"), Row("the same beside the others", f"{beside:.2f} s"),
        bounded("ratio", beside / alone, TARGET, "", 2))]
    return f"a fast destination beside a slow, a hanging and a down one, seed {given.seed}", [
        Row("kills", str(given.kills)), Row("files to all three", str(len(sums))), *speeds, *rows,
        none("pending at the end", pending), none("ended by itself", died), none("exit code at the end", code)]
