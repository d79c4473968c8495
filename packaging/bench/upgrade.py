"""A journal of an earlier version with 10,000 open files, packed with all that belongs to it. Run upgrade.sh.

By the first folder of a file: `small` and `both` wait for a store that hangs, some of them claimed by a process that was
killed; `big` are half uploaded; `gone` are parked, because the configuration has lost their destination; `archive` are
delivered and cannot be put away; `library` have been delivered and were not finished with when the process ended.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from measure import Inlet, Workspace, binary, inlet

# Bytes of the folder's path: whoever unpacks it makes one that is as long, and puts its name into the journal.
LENGTH = 80
COUNTS = {"small": 4000, "both": 2000, "gone": 1500, "archive": 1500, "library": 994, "big": 6}
PART = 5 << 20
TIME = 1_790_000_000


def content(name):
    """Nearly nothing when it is packed, and no two alike."""
    line = hashlib.sha256(name.encode()).hexdigest()[:16].encode() + b"\n"
    return line * ((PART * 2 + (1 << 20)) // len(line)) if name.startswith("big/") else line * 3


def fill(folder, kind):
    """Their times are whole seconds, which an archive keeps: the journal knows files by them."""
    draft = folder / "draft"
    for number in range(COUNTS[kind]):
        name = f"{kind}/{number // 500}/{number}.bin"
        path = folder / "drop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content(name))
        os.utime(draft, (TIME, TIME))
        draft.rename(path)


def configure(folder, place, has_gone, more=()):
    lines = [
        "state_dir: state", "log: { level: info, output: stderr, format: json }", *more,
        "destinations:",
        f'  store: {{ type: s3, endpoint: "{place["s3"]}", region: us-east-1, bucket: {place["bucket"]},'
        f' access_key: {place["access_key"]}, secret_key: {place["secret_key"]}, part_size: 5MiB,'
        " multipart_threshold: 5MiB, parallel_parts: 1 }",
        "  library: { type: folder, path: library }",
        *(["  gone: { type: folder, path: gone }"] if has_gone else []),
        "watch:", f'  - {{ path: drop, settle: 0s, archive_dir: "{folder}/archive" }}', "routes:"]
    ways = {"small": "[store]", "both": "[library, store]", "archive": "[library]", "library": "[library]", "big": "[store]"}
    if has_gone:
        ways["gone"] = "[gone]"
    for kind, to in ways.items():
        ending = {"archive": "archive", "library": "delete"}.get(kind, "keep")
        lines.append(f'  - {{ name: {kind}, match: {{ path: "{kind}/**" }}, to: {to}, key: "{{dir}}/{{name}}",'
                     f" on_success: {ending} }}")
    path = folder / "inlet.yaml"
    path.write_text("\n".join(lines) + "\n")
    os.chmod(path, 0o600)
    return path


def status(config):
    return json.loads(inlet("status", "--json", config=config))


def wait(what, agent, condition, seconds=600):
    deadline = time.monotonic() + seconds
    while not condition():
        if agent.process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"no {what}:\n{agent.tail()}")
        time.sleep(0.2)


def start_store(folder):
    ready = folder / "place.json"
    process = subprocess.Popen(
        [binary(), "sandbox", "--dir", str(folder / "sandbox"), "--ready-file", str(ready)], stdout=subprocess.DEVNULL)
    while not ready.exists():
        if process.poll() is not None:
            sys.exit("the sandbox does not run")
        time.sleep(0.05)
    return process, json.loads(ready.read_text())


def parts(folder):
    return list((folder / "sandbox").rglob("part-*"))


def count_rows(folder, what):
    return int(subprocess.run(["sqlite3", str(folder / "state/journal.sqlite"), f"SELECT count(*) FROM {what}"], check=True,
                              capture_output=True, text=True).stdout)


def kill(agent):
    agent.process.kill()
    agent.process.wait()


def make(folder, log):
    for name in ("drop", "library"):
        (folder / name).mkdir()
    # Nothing can be put below a file.
    for name in ("archive", "gone"):
        (folder / name).write_text("in the way")
    store, place = start_store(folder)
    try:
        limited = configure(folder, place, True, ["limits: { bandwidth: 3MiB/s }"])
        fill(folder, "gone")
        with Inlet(limited, log) as agent:
            agent.wait_ready()
            wait("admission", agent, lambda: status(limited)["pending"] >= COUNTS["gone"])
            fill(folder, "big")
            wait("parts of big files", agent, lambda: len(parts(folder)) >= 4)
            kill(agent)
        config = configure(folder, place, False)
        with Inlet(config, log) as agent:
            agent.wait_ready()
            wait("another part", agent, lambda: len(parts(folder)) >= 5)
            store.send_signal(signal.SIGSTOP)
            for kind in ("small", "both", "archive"):
                fill(folder, kind)
            count = sum(COUNTS.values()) - COUNTS["library"]
            wait("admission of all", agent, lambda: sum(status(config)["files"].values()) >= count)
            wait("delivery to the library", agent, lambda: len(list((folder / "library").rglob("*.bin")))
                 >= COUNTS["both"] + COUNTS["archive"])
            fill(folder, "library")
            wait("some of the library", agent, lambda: len(list((folder / "library/library").rglob("*.bin"))) > 100)
            kill(agent)
        # At a moment when some have said what is to become of them, and it has not been done yet.
        for _ in range(40):
            if count_rows(folder, "file WHERE intent IS NOT NULL AND finished_at IS NULL"):
                break
            with Inlet(config, log) as agent:
                agent.wait_ready()
                time.sleep(random.uniform(0, 0.05))
                kill(agent)
        found = status(config)
    finally:
        # What has reached it and was not read is lost.
        store.kill()
        store.wait()
    for name in ("archive", "gone"):
        (folder / name).unlink()
    subprocess.run(["sqlite3", str(folder / "state/journal.sqlite"), "PRAGMA wal_checkpoint(TRUNCATE)"], check=True,
                   stdout=subprocess.DEVNULL)
    return place, found


def pack(folder, place, commit, target):
    port = place["s3"].rsplit(":", 1)[1]
    if len(port) != 5:
        sys.exit(f"port {port} has not five digits: try again")
    receipts = len(inlet("receipts", "--limit", "20000", config=folder / "inlet.yaml").splitlines())
    about = {"commit": commit, "folder": str(folder), "port": port, "bucket": place["bucket"],
             "access_key": place["access_key"], "secret_key": place["secret_key"], "parts": len(parts(folder)), "finished": receipts, "counts": COUNTS}
    (folder / "about.json").write_text(json.dumps(about))
    with tarfile.open(target, "w:xz", preset=9) as archive:
        archive.add(folder, arcname=".", filter=lambda entry: None if entry.name.endswith(("-wal", "-shm")) else entry)


def main():
    commit, target = sys.argv[1:]
    with Workspace() as outer:
        folder = outer / "upgrade".ljust(LENGTH - len(str(outer)) - 1, "-")
        folder.mkdir()
        place, found = make(folder, outer / "inlet.log")
        (folder / "place.json").unlink()
        print(json.dumps(found["files"]), file=sys.stderr)
        subprocess.run(["sqlite3", "-header", str(folder / "state/journal.sqlite"),
                        "SELECT state, count(*) FROM delivery GROUP BY state; SELECT intent IS NOT NULL AS intent, count(*) FROM file WHERE finished_at IS NULL AND state <> 'pending' GROUP BY 1;"], check=False)
        pack(folder, place, commit, target)
    size = os.stat(target).st_size
    print(f"{target}: {size / 1e6:.2f} MB")
    if size > 2_000_000:
        sys.exit("more than 2 MB")


if __name__ == "__main__":
    main()
