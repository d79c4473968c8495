"""Peak memory while one huge file is sent, and while many small files wait and are then sent. Run memory.sh.

VmHWM is what the kernel counts at most, and what the target is held against. Inlet helps it down by unmapping code that it does
not run again; how high it is without that is measured too, in a second run, and what memory is of its own is told beside it.
"""

import argparse
import os
import socket
import sys
import time

import memory_peak
import outcome
from measure import Inlet, Server, Workspace, reset_peak_rss, table, write_config
from memory_peak import HEADER, MemoryPeak
from outcome import at_most

LIMIT_MIB = 40


def huge_file(folder, size, verify, environment):
    """While a sparse file of `size` bytes is sent."""
    folder.mkdir()
    with Server("sink.py", "--etag", verify) as sink:
        with Inlet(write_config(folder, sink.url, verify=verify), folder / "inlet.log", environment) as inlet:
            with MemoryPeak(inlet.pid) as peak:
                inlet.wait_ready()
                with open(folder / "huge.bin", "wb") as file:
                    file.truncate(size)
                os.rename(folder / "huge.bin", folder / "drop" / "huge.bin")
                inlet.wait_delivered("huge.bin", seconds=1800)
            return peak


def closed_port():
    """A port where nobody listens; sink.py can have it later."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def many_small_files(folder, count, environment):
    """While they wait, while they are sent, and the seconds that the sending took."""
    folder.mkdir()
    port = closed_port()
    config = write_config(folder, f"http://127.0.0.1:{port}")
    with Inlet(config, folder / "inlet.log", environment) as inlet:
        with MemoryPeak(inlet.pid) as waiting:
            inlet.wait_ready()
            for number in range(count):
                with open(folder / "drop" / f"small-{number:05}.bin", "wb") as file:
                    file.write(os.urandom(4096))
            inlet.wait_for(f"{count} job.admitted", lambda _: inlet.count("job.admitted") >= count, 600, every=0.5)
            # Waiting is a state of its own, not only the moment of admission.
            time.sleep(5)
        reset_peak_rss(inlet.pid)
        began = time.monotonic()
        with Server("sink.py", port=port), MemoryPeak(inlet.pid) as sending:
            # An outage is probed at most once a minute.
            inlet.wait_for(f"{count} job.delivered", lambda _: inlet.count("job.delivered") >= count, 900, every=0.5)
        return waiting, sending, time.monotonic() - began


def measure(folder, given, environment):
    """(what, MemoryPeak) of each load."""
    folder.mkdir()
    huge = huge_file(folder / "huge", int(given.gib * (1 << 30)), given.verify, environment)
    waiting, sending, seconds = many_small_files(folder / "small", given.files, environment)
    return [(f"sending {given.gib:g} GiB (sparse, verify: {given.verify})", huge),
            (f"{given.files:,} small files wait", waiting),
            (f"{given.files:,} small files are sent ({seconds:.0f} s, the probe's wait included)", sending)]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--gib", type=float, default=6)
    options.add_argument("--files", type=int, default=10_000)
    options.add_argument("--verify", choices=["size", "md5"], default="md5")
    options.add_argument("--once", action="store_true", help="without the second run, in which no code is given back")
    options.add_argument("--self-test", action="store_true")
    outcome.add_option(options)
    given = options.parse_args()
    if given.self_test:
        return memory_peak.self_test()
    with Workspace() as folder:
        found = measure(folder / "usual", given, None)
        environment = None if given.once else memory_peak.keeping_code(folder)
        kept = measure(folder / "kept", given, environment) if environment else []
    table("peak memory, MiB", ["", *HEADER], [[what, *peak.cells()] for what, peak in found])
    if kept:
        table("the same, MiB, if inlet gave back no code", ["", *HEADER], [[what, *peak.cells()] for what, peak in kept])
    return outcome.conclude([at_most(what, peak.kernel, LIMIT_MIB, " MiB") for what, peak in found],
                            is_report=given.report)


if __name__ == "__main__":
    sys.exit(main())
