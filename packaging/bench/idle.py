"""What inlet costs while nothing happens: CPU, wake-ups of each thread, disk. Run idle.sh [SECONDS]."""

import argparse
import sys
import time

import outcome
from measure import (
    Inlet, Server, Workspace, cpu_seconds, io_counters, peak_rss_mib, table, wake_ups, write_config)
from outcome import at_most, target


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("seconds", type=int, nargs="?", default=30)
    options.add_argument("--directories", type=int, default=1000)
    outcome.add_option(options)
    given = options.parse_args()
    with Workspace() as folder, Server("sink.py") as sink:
        config = write_config(folder, sink.url)
        for number in range(given.directories):
            (folder / "drop" / f"camera-{number:04}").mkdir()
        with Inlet(config, folder / "inlet.log") as inlet:
            inlet.wait_ready()
            # Start-up work (the scan, a first checkpoint) is not idling.
            time.sleep(10)
            cpu, threads, disk = cpu_seconds(inlet.pid), wake_ups(inlet.pid), io_counters(inlet.pid)
            time.sleep(given.seconds)
            cpu = cpu_seconds(inlet.pid) - cpu
            after, disk_after = wake_ups(inlet.pid), io_counters(inlet.pid)
            peak = peak_rss_mib(inlet.pid)
    rates = {tid: (name, (count - threads.get(tid, (name, 0))[1]) / given.seconds) for tid, (name, count) in after.items()}
    table(f"wake-ups over {given.seconds} s", ["thread", "name", "per second"],
          [[tid, name, f"{rate:.2f}"] for tid, (name, rate) in sorted(rates.items(), key=lambda item: -item[1][1])])
    busiest = max(rate for _, rate in rates.values())
    share = 100 * cpu / given.seconds
    moved = {name: disk_after[name] - disk[name] for name in ("rchar", "wchar", "read_bytes", "write_bytes")}
    table(f"idle for {given.seconds} s, {given.directories:,} watched directories", ["", "measured"],
          [*([name, bytes_] for name, bytes_ in moved.items()), ["peak RSS MiB", f"{peak:.1f}"]])
    # rchar and wchar count calls on pipes and inotify too; the disk sees the other two only.
    rows = [target("CPU", f"{share:.2f} %", "0.0 %", share < 0.05),
            at_most("busiest thread's wake-ups per second", busiest, 1, digits=2)]
    rows += [target(name, str(moved[name]), "0", moved[name] == 0) for name in ("read_bytes", "write_bytes")]
    return outcome.conclude(rows, is_report=given.report)


if __name__ == "__main__":
    sys.exit(main())
