"""Peak RSS while one huge file is sent, and while many small files wait and are then sent. Run memory.sh."""

import argparse
import os
import socket
import time

from measure import Inlet, Server, Workspace, peak_rss_mib, reset_peak_rss, table, verdict, write_config

LIMIT_MIB = 48


def huge_file(folder, size, verify):
    """Peak RSS while a sparse file of `size` bytes is sent."""
    folder.mkdir()
    with Server("sink.py", "--etag", verify) as sink:
        with Inlet(write_config(folder, sink.url, verify=verify), folder / "inlet.log") as inlet:
            inlet.wait_ready()
            with open(folder / "huge.bin", "wb") as file:
                file.truncate(size)
            os.rename(folder / "huge.bin", folder / "drop" / "huge.bin")
            inlet.wait_delivered("huge.bin", seconds=1800)
            return peak_rss_mib(inlet.pid)


def closed_port():
    """A port where nobody listens; sink.py can have it later."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def many_small_files(folder, count):
    """Peak RSS (while they wait, while they are sent), and the seconds that the sending took."""
    folder.mkdir()
    port = closed_port()
    config = write_config(folder, f"http://127.0.0.1:{port}")
    with Inlet(config, folder / "inlet.log") as inlet:
        inlet.wait_ready()
        for number in range(count):
            with open(folder / "drop" / f"small-{number:05}.bin", "wb") as file:
                file.write(os.urandom(4096))
        inlet.wait_for(f"{count} job.admitted", lambda _: inlet.count("job.admitted") >= count, 600, every=0.5)
        # Waiting is a state of its own, not only the moment of admission.
        time.sleep(5)
        waiting = peak_rss_mib(inlet.pid)
        reset_peak_rss(inlet.pid)
        began = time.monotonic()
        with Server("sink.py", port=port):
            # An outage is probed at most once a minute.
            inlet.wait_for(f"{count} job.delivered", lambda _: inlet.count("job.delivered") >= count, 900, every=0.5)
            return waiting, peak_rss_mib(inlet.pid), time.monotonic() - began


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--gib", type=float, default=6)
    options.add_argument("--files", type=int, default=10_000)
    options.add_argument("--verify", choices=["size", "md5"], default="md5")
    given = options.parse_args()
    with Workspace() as folder:
        huge = huge_file(folder / "huge", int(given.gib * (1 << 30)), given.verify)
        waiting, sending, seconds = many_small_files(folder / "small", given.files)
    rows = [[what, f"{peak:.1f}", f"<= {LIMIT_MIB}", verdict(peak <= LIMIT_MIB)] for what, peak in (
        (f"sending {given.gib:g} GiB (sparse, verify: {given.verify})", huge),
        (f"{given.files:,} small files wait", waiting),
        (f"{given.files:,} small files are sent ({seconds:.0f} s, the probe's wait included)", sending))]
    table("peak RSS", ["", "MiB", "target", ""], rows)


if __name__ == "__main__":
    main()
