"""Many small files through `type: s3` to a discarding sink, against s5cmd to the same sink. Run small.sh.

Inlet's time is from the first of the files appearing in its folder to the last receipt: watching, admission, journal with
fsync and receipts are in it. s5cmd's is its whole run.
"""

import argparse
import os
import subprocess
import time

from measure import HERE, Inlet, Server, Workspace, cpu_seconds, median, peak_rss_mib, table, verdict

KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}


class Sink(Server):
    """s3_sink.c, built for this measurement."""

    def __init__(self, folder, delay):
        program = folder / "s3_sink"
        if not program.exists():
            subprocess.run(["cc", "-O2", "-o", str(program), str(HERE / "s3_sink.c")], check=True)
        self.process = subprocess.Popen([str(program), "--delay", str(delay)], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.url = f"http://127.0.0.1:{self.port}"


def make_files(folder, count, size):
    folder.mkdir()
    for number in range(count):
        (folder / f"f{number:06d}.bin").write_bytes(os.urandom(size))


def s5cmd_round(sink, source, count, connections):
    """(files/s, CPU seconds, peak RSS in MiB)."""
    sink.post("/_/reset", {})
    before = time.monotonic()
    process = subprocess.Popen(
        [os.environ["S5CMD"], "--endpoint-url", sink.url, "--numworkers", str(connections), "cp",
         f"{source}/*", "s3://bench/peer/"], stdout=subprocess.DEVNULL, env=os.environ | KEYS)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    seconds = time.monotonic() - before
    if status:
        raise SystemExit("s5cmd failed; its message is above")
    check(sink, count)
    return count / seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def inlet_round(sink, folder, source, count, connections, number):
    """A new agent for each round, so that it knows none of the files. (files/s, CPU seconds, peak RSS in MiB)."""
    place = folder / f"round-{number}"
    drop = place / "drop"
    place.mkdir()
    drop.mkdir()
    config = place / "inlet.yaml"
    config.write_text(f"""\
state_dir: {place}/state
destinations:
  archive: {{ type: s3, endpoint: "{sink.url}", bucket: bench, access_key: bench, secret_key: bench, verify: size, connections: {connections} }}
watch:
  - {{ path: {drop}, settle: 0s }}
routes:
  - {{ name: everything, to: [archive], key: "{{name}}" }}
""")
    staged = place / "staged"
    subprocess.run(["cp", "-al", str(source), str(staged)], check=True)
    sink.post("/_/reset", {})
    with Inlet(config, place / "inlet.log") as inlet:
        inlet.wait_ready()
        spent = cpu_seconds(inlet.pid)
        before = time.monotonic()
        # A folder that is renamed into the watched one: all files are there at once.
        os.rename(staged, drop / "batch")
        finished = wait_finished(inlet, count)
        seconds = finished - before
        spent = cpu_seconds(inlet.pid) - spent
        peak = peak_rss_mib(inlet.pid)
    check(sink, count)
    return count / seconds, spent, peak


def wait_finished(inlet, count):
    """When the last receipt was written; the log is only searched for its lines, so as not to compete for the cores."""
    seen, offset = 0, inlet.log.stat().st_size
    with open(inlet.log, "rb") as log:
        end = time.monotonic() + 300
        while time.monotonic() < end:
            log.seek(offset)
            piece = log.read()
            whole = piece.rfind(b"\n") + 1
            offset += whole
            seen += piece[:whole].count(b'"event":"job.finished"')
            if seen >= count:
                return time.monotonic()
            if inlet.process.poll() is not None:
                raise SystemExit(f"inlet ended:\n{inlet.tail()}")
            time.sleep(0.05)
    raise SystemExit(f"only {seen} of {count} files within 300 s:\n{inlet.tail()}")


def check(sink, count):
    puts = sink.get("/_/stats")["puts"]
    if puts != count:
        raise SystemExit(f"the sink got {puts} objects of {count}")


def compare(folder, source, given, delay, connections):
    peers, ours = [], []
    with Sink(folder, delay) as sink:
        for number in range(given.rounds):
            peers.append(s5cmd_round(sink, source, given.files, connections))
            ours.append(inlet_round(sink, folder, source, given.files, connections, f"{delay}-{number}"))

    def row(name, results):
        speed, cpu, peak = (median(column) for column in zip(*results))
        spread = f"{min(r[0] for r in results):.0f}-{max(r[0] for r in results):.0f}"
        return [name, f"{speed:.0f}", spread, f"{cpu:.2f}", f"{peak:.1f}"]

    table(f"{given.files:,} x {given.kib} KiB, {connections} connections, {delay} ms an answer, median of {given.rounds}",
          ["", "files/s", "spread", "CPU s", "peak RSS MiB"], [row("s5cmd", peers), row("inlet", ours)])
    return median(r[0] for r in ours) / median(r[0] for r in peers)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--files", type=int, default=5000)
    options.add_argument("--kib", type=int, default=16)
    given = options.parse_args()
    with Workspace() as folder:
        source = folder / "source"
        make_files(source, given.files, given.kib << 10)
        near = compare(folder, source, given, 0, 32)
        far = compare(folder, source, given, 30, 32)
    table("targets", ["", "measured", "target", ""], [
        ["of s5cmd's files/s", f"{near:.2f}", ">= 1.20", verdict(near >= 1.2)],
        ["the same with 30 ms an answer", f"{far:.2f}", ">= 0.80", verdict(far >= 0.8)],
    ])


if __name__ == "__main__":
    main()
