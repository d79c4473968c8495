"""The servers that inlet sends to, each a process of its own: the discarding S3 sink, Python's stores, and inlet's sandbox."""

import ctypes
import functools
import json
import os
import socket
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from agent import HERE, binary
from process import Child, until
from report import Failed


@functools.cache
def _tools() -> Path:
    """Where programs are built; it goes with this process."""
    _tools.folder = tempfile.TemporaryDirectory(prefix="inlet-bench-tools-")
    return Path(_tools.folder.name)


@functools.cache
def sink_program() -> Path:
    program = _tools() / "s3_sink"
    sources = sorted((HERE / "s3_sink").glob("*.c"))
    subprocess.run(["cc", "-O2", "-o", program, *sources, "-lssl", "-lcrypto", "-lpthread"], check=True)
    return program


@functools.cache
def built(name: str, *words: str) -> Path:
    """A C source of this folder, built."""
    program = _tools() / Path(name).stem
    done = subprocess.run(["cc", "-O2", "-o", program, HERE / name, *words], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{name} cannot be built: {done.stderr.strip()[:600]}")
    return program


@functools.cache
def crc_function() -> Callable[[int, int, bytes], int]:
    """Of a kind (0: CRC-32C, 1: CRC-64/NVME), of the CRC so far and of more bytes, as the sink computes it."""
    more = ctypes.CDLL(str(built("s3_sink/crc.c", "-shared", "-fPIC"))).crc_more
    more.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t]
    more.restype = ctypes.c_uint64
    return lambda kind, crc, data: more(kind, crc, data, len(data))


@functools.cache
def certificate(name: str = "sink") -> Path:
    """Of 127.0.0.1, with its key, signed by itself: clients trust just it."""
    path = _tools() / f"{name}.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName = IP:127.0.0.1, DNS:localhost",
                    "-keyout", path.with_suffix(".key"), "-out", path], check=True, capture_output=True)
    return path


def closed_port() -> int:
    """A port where nobody listens; a server can have it later."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server(Child):
    """A program that prints `listening PORT`, on a port of the system's choice, or on `port`."""

    def __init__(self, *words: Any, port: int = 0, scheme: str = "http", trust: ssl.SSLContext | None = None) -> None:
        self.process = subprocess.Popen([str(word) for word in (*words, "--port", port)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        announced = self.process.stdout.readline().split()
        if not announced:
            raise Failed(f"{Path(str(words[0])).name}: {self.process.communicate()[1].strip()}")
        self.port = int(announced[1])
        self.url, self._trust = f"{scheme}://127.0.0.1:{self.port}", trust

    def _open(self, path: str, data: bytes | None = None) -> bytes:
        with urllib.request.urlopen(self.url + path, data=data, timeout=120, context=self._trust) as answer:
            return answer.read()

    def reset(self) -> None:
        self._open("/_/reset", b"")

    def stats(self) -> dict[str, Any]:
        return json.loads(self._open("/_/stats"))


class Request(NamedTuple):
    """One that the sink answered."""

    # Of its first byte, in time.monotonic().
    at: float
    status: int
    method: str
    # The access key that signed it.
    agent: str
    path: str
    query: str

    @property
    def is_part(self) -> bool:
        return self.method == "PUT" and "partNumber=" in self.query

    @property
    def is_end(self) -> bool:
        """Of an upload of parts."""
        return self.method == "POST" and "uploadId=" in self.query


class Sink(Server):
    """s3_sink/, which speaks S3 and the Spiral Storage API and keeps names and sizes only."""

    def __init__(self, scheme: str = "http", etag: str = "size", delay: int = 0, port: int = 0, checksums: str = "echo",
                 sums: Path | None = None, conditions: str = "ignore", is_logging: bool = False) -> None:
        """`sums`: what is known of the bodies (Load.sums), which are then not hashed. `conditions`: `enforce` makes
        `If-None-Match: *` count."""
        self.authority = certificate() if scheme == "https" else None
        secure = ["--cert", self.authority, "--key", self.authority.with_suffix(".key")] if self.authority else []
        table = ["--sums", sums] if sums else []
        super().__init__(sink_program(), "--etag", etag, "--checksums", checksums, "--delay", delay, *secure, *table,
                         "--conditions", conditions, "--log", "yes" if is_logging else "no", port=port, scheme=scheme,
                         trust=ssl.create_default_context(cafile=self.authority) if self.authority else None)

    def objects(self) -> dict[str, tuple[int, str]]:
        """{name without folders: (size, MD5 of its ETag, or "-")}. Objects whose names end alike are told as one, with a "!"."""
        found: dict[str, tuple[int, str]] = {}
        for key, size, md5 in self.listing():
            name = key.rsplit("/", 1)[-1]
            found[name + "!" if name in found else name] = (size, md5)
        return found

    def listing(self) -> list[tuple[str, int, str]]:
        """(key, size, MD5 of its ETag, or "-")"""
        lines = (line.split(" ", 2) for line in self._open("/_/objects").decode().splitlines())
        return [(key.removeprefix("/object/"), int(size), md5) for size, md5, key in lines]

    def hold(self, parts: int) -> None:
        """The next part is held whose upload has so many, until `release`."""
        self._open(f"/_/hold?count={parts}", b"")

    def held(self) -> str:
        """Who sent what is held; "" while nothing is."""
        return self._open("/_/held").decode().partition("\n")[0]

    def release(self) -> None:
        self._open("/_/release", b"")

    def refuse(self, count: int) -> None:
        """So many of the next uploads that are ended are answered with 412, and are there nevertheless."""
        self._open(f"/_/refuse?count={count}", b"")

    def requests(self) -> list[Request]:
        """In the order of the answers, where it keeps a log."""
        rows = (line.split(" ", 5) for line in self._open("/_/requests").decode().splitlines())
        return [Request(int(at) / 1e9, int(status), *words) for at, status, *words in rows]

    def put(self, path: str, content: bytes) -> None:
        """As a client of another kind does it."""
        urllib.request.urlopen(urllib.request.Request(self.url + path, content, method="PUT"), timeout=120).close()

    def first_byte(self, key: str) -> int:
        """When the first byte of this object's PUT came, in CLOCK_MONOTONIC ns; 0 until it has come whole."""
        return json.loads(self._open(f"/_/first?key={key}"))["ns"]


class Sandbox(Child):
    """`inlet sandbox`, which keeps what it receives below `folder`."""

    def __init__(self, folder: Path, trouble: float = 0.0, seed: int = 1) -> None:
        ready = folder / "sandbox.json"
        faults = ["--trouble", str(trouble), "--seed", str(seed)] if trouble else []
        with open(folder / "sandbox.err", "wb") as errors:
            self.process = subprocess.Popen(
                [binary(), "sandbox", "--dir", str(folder / "sandbox"), "--ready-file", str(ready), *faults],
                stdout=subprocess.DEVNULL, stderr=errors)
        until(ready.exists, 120, "sandbox", 0.02, self.process, (folder / "sandbox.err").read_text)
        self.place = json.loads(ready.read_text())

    def s3(self, **more: Any) -> dict[str, Any]:
        """Its S3 store as a destination, with the smallest parts that there are."""
        keys = {key: self.place[key] for key in ("bucket", "access_key", "secret_key")}
        return {"type": "s3", "endpoint": self.place["s3"], "region": "us-east-1", "part_size": "5MiB",
                "multipart_threshold": "5MiB"} | keys | more

    def report(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.place["control"] + "/", timeout=120) as answer:
            return json.load(answer)
