"""The programs beside which inlet is measured. Each does what it does as it comes; `note` says what that is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from clients import SECRETS, Client, run_to_end
from measure import HERE


def found(name):
    """A program of the virtual environment that throughput.sh makes, or of the machine."""
    place = os.environ.get("INLET_BENCH_PEERS", "")
    own = Path(place) / "bin" / name
    return str(own) if place and own.exists() else shutil.which(name)


def version(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return (done.stdout or done.stderr).strip().partition("\n")[0]


class Peer(Client):
    note = ""

    def __init__(self):
        self.program = found(self.name)

    def version(self):
        return version(self.program, "--version")

    def problem(self, load, scheme, verify):
        if not self.program:
            return "it is not installed"
        if verify not in ("size", "md5"):
            return "it has no such check"
        if load.count > self.most_files:
            return f"more than {self.most_files:,} files take it too long (--all)"
        return None


class Curl(Peer):
    name = "curl"
    is_compared = True
    note = "`curl -T`: no signature, no checksum; one file after another on one connection"

    def version(self):
        return " ".join(word for word in version(self.program, "-V").split() if word.startswith(("libcurl/", "OpenSSL/")))

    def problem(self, load, scheme, verify):
        return super().problem(load, scheme, verify) or (None if load.is_big else "it sends big files only")

    def send(self, sink, load, place):
        names = f"f[{0:06d}-{load.count - 1:06d}].bin"
        trust = ["--cacert", sink.authority] if sink.scheme == "https" else []
        return run_to_end(["curl", "-sS", "--fail", *trust, "-T", names, "-o", "/dev/null", f"{sink.url}/bench/curl/"],
                          folder=load.folder)


class S5cmd(Peer):
    name = "s5cmd"
    is_compared = True
    note = "SHA-256 for its signature over HTTP, MD5 of parts"

    def __init__(self):
        super().__init__()
        # What PyPI installs there is a script; the program that it starts is what is measured.
        place = Path(os.environ.get("INLET_BENCH_PEERS", "-"))
        for program in sorted(place.glob("lib/python3*/site-packages/s5cmd/bin/s5cmd")):
            self.program = str(program)

    def version(self):
        return version(self.program, "version")

    def send(self, sink, load, place):
        trust = {"AWS_CA_BUNDLE": str(sink.authority)} if sink.scheme == "https" else {}
        workers = ["--numworkers", self.connections] if self.connections else []
        return run_to_end([self.program, "--log", "error", "--endpoint-url", sink.url, *workers, "cp", f"{load.folder}/*",
                           "s3://bench/s5cmd/"], SECRETS | trust)


class Rclone(Peer):
    name = "rclone"
    note = "MD5 of files and parts; no lookups (--s3-no-head, --no-traverse), 32 transfers of small files"

    def send(self, sink, load, place):
        values = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": sink.url, "REGION": "us-east-1", "NO_CHECK_BUCKET": "true",
                  "ACCESS_KEY_ID": "bench", "SECRET_ACCESS_KEY": "bench", "NO_HEAD": "true"}
        sized = ["--transfers", "4", "--s3-upload-concurrency", "8", "--s3-chunk-size", "16M"] if load.is_big else [
            "--transfers", "32", "--checkers", "32"]
        trust = ["--ca-cert", sink.authority] if sink.scheme == "https" else []
        return run_to_end(
            [self.program, "copy", "--config", "", "--no-traverse", *sized, *trust, load.folder, "sink:bench/rclone"],
            {f"RCLONE_CONFIG_SINK_{name}": value for name, value in values.items()})


class AWS(Peer):
    name = "aws-cli"
    most_files = 10_000
    note = "its own transfer code; checksums only where the store requires them"

    def __init__(self):
        self.program = found("aws")

    def version(self):
        return super().version().partition(" ")[0]

    def send(self, sink, load, place):
        trust = {"AWS_CA_BUNDLE": str(sink.authority)} if sink.scheme == "https" else {}
        quiet = {"AWS_CONFIG_FILE": os.devnull, "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
                 "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required", "AWS_EC2_METADATA_DISABLED": "true"}
        return run_to_end([self.program, "--endpoint-url", sink.url, "s3", "cp", "--recursive", "--only-show-errors",
                           load.folder, "s3://bench/aws"], SECRETS | quiet | trust)


class CRT(Peer):
    """The library below the newer AWS tools, which has no command of its own."""

    name = "aws-crt"
    note = "unsigned"

    def __init__(self):
        self.program = found("python3") or sys.executable
        asked = subprocess.run(
            [self.program, "-c", "import awscrt; print(awscrt.__version__)"], capture_output=True, text=True)
        self._version = asked.stdout.strip()

    def version(self):
        return f"awscrt {self._version}"

    def sink_port(self, scheme):
        # Its Python interface takes a host without a port.
        return {"http": 80, "https": 443}[scheme]

    def problem(self, load, scheme, verify):
        return super().problem(load, scheme, verify) or (None if self._version else "awscrt is not installed")

    def send(self, sink, load, place):
        trust = [str(sink.authority)] if sink.scheme == "https" else []
        return run_to_end([self.program, "-B", HERE / "crt_put.py", load.folder, *trust])


PEERS = [Curl, S5cmd, Rclone, AWS, CRT]
