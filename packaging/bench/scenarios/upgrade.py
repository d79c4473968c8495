"""A journal of an earlier version with 10,000 open files, packed with all that belongs to it: what the test UpgradeTests goes on
with. The commit is checked out and built beside; INLET_BINARY names a binary to take instead.

By the first folder of a file: `small` and `both` wait for a store that hangs, some of them claimed by a process that was
killed; `big` are half uploaded; `gone` are parked, because the configuration has lost their destination; `archive` are
delivered and cannot be put away; `library` have been delivered and were not finished with when the process ended.
"""

import hashlib
import json
import os
import random
import signal
import tarfile
import time
from pathlib import Path
from typing import Any

from agent import Agent, configure, lines_of, opened, route, status
from report import Failed, Given, Row, bounded, table
from servers import Sandbox

# Bytes of the folder's path: whoever unpacks it makes one that is as long, and puts its name into the journal.
LENGTH = 80
COUNTS = {"small": 4000, "both": 2000, "gone": 1500, "archive": 1500, "library": 994, "big": 6}
PART = 5 << 20
TIME = 1_790_000_000

OPTIONS = {"commit": str, "file": (Path, "FILE.tar.xz")}


def content(name: str) -> bytes:
    """Nearly nothing when it is packed, and no two alike."""
    line = hashlib.sha256(name.encode()).hexdigest()[:16].encode() + b"\n"
    return line * ((PART * 2 + (1 << 20)) // len(line)) if name.startswith("big/") else line * 3


def fill(folder: Path, *kinds: str) -> None:
    """Their times are whole seconds, which an archive keeps: the journal knows files by them."""
    draft = folder / "draft"
    for name in (f"{kind}/{number // 500}/{number}.bin" for kind in kinds for number in range(COUNTS[kind])):
        path = folder / "drop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content(name))
        os.utime(draft, (TIME, TIME))
        draft.rename(path)


def configure_upgrade(folder: Path, sandbox: Sandbox, has_gone: bool, **more: Any) -> Path:
    ways = {"small": ["store"], "both": ["library", "store"], "archive": ["library"], "library": ["library"], "big": ["store"]}
    gone = {"gone": {"type": "folder", "path": "gone"}} if has_gone else {}
    endings = {"archive": "archive", "library": "delete"}
    return configure(
        folder, {"store": sandbox.s3(parallel_parts=1), "library": {"type": "folder", "path": "library"}} | gone,
        [route(kind, *to, key="{dir}/{name}", path=f"{kind}/**", on_success=endings.get(kind, "keep"))
         for kind, to in (ways | ({"gone": ["gone"]} if has_gone else {})).items()],
        {"path": "drop", "archive_dir": f"{folder}/archive"}, state_dir="state", **more)


def query(folder: Path, text: str) -> list[tuple[Any, ...]]:
    with opened(folder / "state/journal.sqlite") as journal:
        return journal.execute(text).fetchall()


def begin_uploads(folder: Path, config: Path, parts: Any) -> None:
    """`gone` wait for a folder that cannot be made, `big` have sent a few parts when the process is killed."""
    fill(folder, "gone")
    with Agent(config) as agent:
        agent.wait_for("admission", lambda: status(config)["pending"] >= COUNTS["gone"])
        fill(folder, "big")
        agent.wait_for("parts of big files", lambda: len(parts()) >= 4)
        agent.kill()


def wait_for_a_hung_store(folder: Path, config: Path, store: Sandbox, parts: Any) -> None:
    """The store hangs; all others are admitted, and what goes to the library arrives there."""
    library = folder / "library"
    with Agent(config) as agent:
        agent.wait_for("another part", lambda: len(parts()) >= 5)
        store.process.send_signal(signal.SIGSTOP)
        fill(folder, "small", "both", "archive")
        count = sum(COUNTS.values()) - COUNTS["library"]
        agent.wait_for("admission of all", lambda: sum(status(config)["files"].values()) >= count, every=0.2)
        agent.wait_for("delivery to the library", lambda: len(list(library.rglob("*.bin"))) >= COUNTS["both"] + COUNTS["archive"],
                       every=0.2)
        fill(folder, "library")
        agent.wait_for("some of the library", lambda: len(list((library / "library").rglob("*.bin"))) > 100)
        agent.kill()


def interrupt_finishing(folder: Path, config: Path) -> None:
    """At a moment when some have said what is to become of them, and it has not been done yet."""
    for _ in range(40):
        if query(folder, "SELECT 1 FROM file WHERE intent IS NOT NULL AND finished_at IS NULL"):
            return
        with Agent(config) as agent:
            time.sleep(random.uniform(0, 0.05))
            agent.kill()


def pack(folder: Path, about: dict[str, Any], target: Path) -> None:
    (folder / "about.json").write_text(json.dumps(about))
    with tarfile.open(target, "w:xz", preset=9) as archive:
        archive.add(folder, arcname=".", filter=lambda entry: None if entry.name.endswith(("-wal", "-shm")) else entry)


def run(outer: Path, given: Given) -> tuple[str, list[Row]]:
    folder = outer / "upgrade".ljust(LENGTH - len(str(outer)) - 1, "-")
    (folder / "library").mkdir(parents=True)
    # Nothing can be put below a file.
    for name in ("archive", "gone"):
        (folder / name).write_text("in the way")
    parts = lambda: list((folder / "sandbox").rglob("part-*"))
    store = Sandbox(folder)
    try:
        port = store.place["s3"].rsplit(":", 1)[1]
        if len(port) != 5:
            raise Failed(f"port {port} has not five digits: try again")
        begin_uploads(folder, configure_upgrade(folder, store, True, limits={"bandwidth": "3MiB/s"}), parts)
        config = configure_upgrade(folder, store, False)
        wait_for_a_hung_store(folder, config, store, parts)
        interrupt_finishing(folder, config)
    finally:
        # What has reached it and was not read is lost.
        store.process.kill()
        store.process.wait()
    for name in ("archive", "gone", "sandbox.json", "sandbox.err", "inlet.log"):
        (folder / name).unlink()
    query(folder, "PRAGMA wal_checkpoint(TRUNCATE)")
    table("deliveries", ["state", "count"], query(folder, "SELECT state, count(*) FROM delivery GROUP BY state"))
    receipts = len(lines_of("receipts", config=config))
    pack(folder, {"commit": given.commit, "folder": str(folder), "port": port, "parts": len(parts()), "finished": receipts,
                  "counts": COUNTS} | {key: store.place[key] for key in ("bucket", "access_key", "secret_key")}, given.file)
    return str(given.file), [bounded("MB", given.file.stat().st_size / 1e6, 2, "", 2)]
