"""Inlet as a client of the S3 sink, in two ways, and what it shares with the peers of peers.py.

A client has a `name`, says why it cannot be measured (`problem`), and sends a load: `send` returns seconds, CPU seconds
and peak RSS in MiB.
"""

import os
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from measure import Inlet, binary, cpu_seconds, instant, peak_rss_mib

PATIENCE = 1800
SECRETS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}


class Client:
    name = ""
    # What targets compare takes part in every round; others, which are slower, in the first --other-rounds.
    is_compared = False
    most_files = 1 << 30
    # Small files sent at once; None: as it comes.
    connections = None

    def problem(self, load, scheme, verify):
        """Why it takes no part; None when it does."""
        return None

    def sink_port(self, scheme):
        """The only port that it can speak to; 0: any."""
        return 0

    def takes_part(self, number, load, given):
        """In the round of this number, from 0."""
        return self.is_compared or number < given.other_rounds

    def send(self, sink, load, place):
        raise NotImplementedError


def run_to_end(command, environment=None, folder=None):
    """(seconds, CPU seconds, peak RSS in MiB) of a command; ends the measurement when it fails."""
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=folder,
            env=os.environ | (environment or {}))
        peak = Peak(process.pid)
        limit = threading.Timer(PATIENCE, process.kill)
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            said.seek(0)
            words = said.read()[-600:].decode(errors="replace").strip()
            raise CommandFailed(f"{Path(str(command[0])).name} ended with {process.returncode}: {words}")
        return seconds, usage.ru_utime + usage.ru_stime, peak.mib(usage)


class CommandFailed(Exception):
    pass


class Peak(threading.Thread):
    """Peak RSS of a child. What wait4 tells is exact, but never below the peak of this process, whose memory the child had
    until its exec; where that hides it, what /proc said last counts."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self._pid, self._seen = pid, 0.0
        self.start()

    def run(self):
        pause = 0.001
        try:
            while True:
                # Popen has returned, so its exec is done. Some end within milliseconds.
                self._seen = max(self._seen, peak_rss_mib(self._pid))
                time.sleep(pause)
                pause = min(0.02, 1.5 * pause)
        except OSError:
            # It has ended.
            return

    def mib(self, usage):
        self.join(5)
        hidden = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return usage.ru_maxrss / 1024 if usage.ru_maxrss > hidden or not self._seen else self._seen


# Inlet ---------------------------------------------------------------------------------------------------------------


def write_config(place, sink, client):
    """One destination of the client's kind, everything else as it comes."""
    more = f", connections: {client.connections}" if client.connections else ""
    trust = f", ca_file: {sink.authority}" if sink.scheme == "https" else ""
    keys = {
        "s3": f'endpoint: "{sink.url}", bucket: bench, access_key: bench, secret_key: bench',
        "r2": f'api: "{sink.url}", dialect: v1, api_key: bench',
    }[client.kind]
    (place / "drop").mkdir(parents=True)
    path = place / "inlet.yaml"
    path.write_text(f"""\
state_dir: {place}/state
destinations:
  store: {{ type: {client.kind}, {keys}, verify: {client.verify}{more}{trust} }}
watch:
  - {{ path: {place}/drop, settle: 0s }}
routes:
  - {{ name: everything, to: [store], key: "{{name}}" }}
""")
    path.chmod(0o600)
    return path


class Ours(Client):
    """`kind` is the destination's type: s3 signs every request and, over plain HTTP, the SHA-256 of every body, as S3's own
    tools do; r2 sends to presigned URLs and hashes only what `verify` asks for."""

    is_compared = True

    def __init__(self, kind):
        self.kind, self.verify = kind, "size"
        self.name = f"{self.way} {kind}"

    def problem(self, load, scheme, verify):
        self.verify = verify
        if self.kind == "r2" and verify in ("crc32c", "sha256"):
            return f"type: r2 has no verify: {verify}"
        return None


class Run(Ours):
    """`inlet run`, from the moment that the files appear in its folder to the last receipt: watching, admission, journal with
    fsync and receipts are in it. A new agent each time, so that it knows none of the files; the CPU time of its start is not
    in it, its memory is."""

    way = "inlet run"

    def send(self, sink, load, place):
        config = write_config(place, sink, self)
        staged = place / "staged"
        staged.mkdir()
        for name in load.wanted:
            os.link(load.folder / name, staged / name)
        with Inlet(config, place / "inlet.log") as agent:
            agent.wait_ready()
            spent, began = cpu_seconds(agent.pid), time.time()
            # A folder that is renamed into the watched one: all files are there at once, and complete.
            os.rename(staged, place / "drop" / "batch")
            ended = wait_finished(agent, load.count)
            spent = cpu_seconds(agent.pid) - spent
            return ended - began, spent, peak_rss_mib(agent.pid)


def wait_finished(agent, count):
    """When the last receipt was written, by its line. The log is only searched, so as not to compete for the cores."""
    seen, offset, end = 0, 0, time.monotonic() + PATIENCE
    with open(agent.log, "rb") as log:
        while time.monotonic() < end:
            log.seek(offset)
            piece = log.read()
            whole = piece.rfind(b"\n") + 1
            offset += whole
            seen += piece[:whole].count(b'"event":"job.finished"')
            if seen >= count:
                last = [line for line in piece[:whole].splitlines() if b'"event":"job.finished"' in line][-1]
                return instant(last.partition(b'"ts":"')[2].partition(b'"')[0].decode())
            if agent.process.poll() is not None:
                raise CommandFailed(f"inlet ended:\n{agent.tail()}")
            time.sleep(0.05)
    raise CommandFailed(f"only {seen} of {count} files within {PATIENCE} s:\n{agent.tail()}")


class Send(Ours):
    """`inlet send FILE…`: the whole command, with a journal that begins empty."""

    way = "inlet send"

    def takes_part(self, number, load, given):
        return load.is_big or number < given.other_rounds

    def send(self, sink, load, place):
        config = write_config(place, sink, self)
        # Names without folders, from within theirs: 50,000 of them fit in one command line.
        return run_to_end([Path(binary()).resolve(), "send", "--config", config, "--to", "store", *load.wanted],
                          {"XDG_STATE_HOME": str(place / "own")}, load.folder)


def fresh(folder, name):
    """An empty place for one round."""
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return place
