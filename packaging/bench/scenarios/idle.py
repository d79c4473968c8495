"""What inlet costs while nothing happens: CPU, wake-ups of each thread, disk."""

import time
from pathlib import Path

from agent import Agent, configure, spiral
from process import cpu_seconds, field, peak_mib
from report import Given, Row, bounded, figure, table
from servers import Sink

OPTIONS = {"seconds": 30, "--directories": 1000}


def wake_ups(pid: int) -> dict[str, int]:
    """Voluntary context switches of each thread, by its number and name."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found[f"{task.name} {(task / 'comm').read_text().strip()}"] = field(f"{task}/status", "voluntary_ctxt_switches")
        except FileNotFoundError:
            # The thread ended between listing and reading.
            continue
    return found


def counters(pid: int) -> dict[str, int]:
    # rchar and wchar count calls on pipes and inotify too; the disk sees the other two only.
    return {name: field(f"/proc/{pid}/io", name) for name in ("rchar", "wchar", "read_bytes", "write_bytes")}


def run(folder: Path, given: Given) -> tuple[str, list[Row]]:
    with Sink() as sink:
        config = configure(folder, {"store": spiral(sink.url, verify="size")})
        for number in range(given.directories):
            (folder / "drop" / f"camera-{number:04}").mkdir()
        with Agent(config) as agent:
            # Start-up work (the scan, a first checkpoint) is not idling.
            time.sleep(10)
            cpu, before, disk = cpu_seconds(agent.pid), wake_ups(agent.pid), counters(agent.pid)
            time.sleep(given.seconds)
            cpu = cpu_seconds(agent.pid) - cpu
            after, moved = wake_ups(agent.pid), {name: now - disk[name] for name, now in counters(agent.pid).items()}
            peak = peak_mib(agent.pid)
    rates = {thread: (count - before.get(thread, 0)) / given.seconds for thread, count in after.items()}
    table(f"wake-ups over {given.seconds} s", ["thread", "per second"],
          [[thread, f"{rate:.2f}"] for thread, rate in sorted(rates.items(), key=lambda one: -one[1])])
    return f"idle for {given.seconds} s, {given.directories:,} watched directories", [
        bounded("CPU", 100 * cpu / given.seconds, 0.05, " %", 2), figure("peak RSS", peak, " MiB"),
        bounded("busiest thread's wake-ups per second", max(rates.values()), 1, digits=2),
        *(bounded(name, moved[name], 0, " B", 0) for name in ("read_bytes", "write_bytes")),
        *(Row(name, str(moved[name])) for name in ("rchar", "wchar"))]
