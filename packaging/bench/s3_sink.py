"""s3_sink/, the discarding S3 server, built for one measurement; and a certificate for it."""

import json
import ssl
import subprocess
import urllib.request

from measure import HERE, Server

SOURCES = sorted((HERE / "s3_sink").glob("*.c"))


def build(folder):
    """- Returns: the program."""
    program = folder / "s3_sink"
    subprocess.run(["cc", "-O2", "-o", str(program), *map(str, SOURCES), "-lssl", "-lcrypto", "-lpthread"], check=True)
    return program


def make_certificates(folder):
    """A certificate authority that nobody else trusts, and what it signed for 127.0.0.1. - Returns: its file for clients."""
    authority, request, extensions = folder / "ca.pem", folder / "sink.csr", folder / "extensions"
    extensions.write_text("subjectAltName = IP:127.0.0.1, DNS:localhost\n")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for command in (
        ["req", "-x509", *curve, "-days", "2", "-subj", "/CN=bench", "-keyout", folder / "ca.key", "-out", authority],
        ["req", *curve, "-subj", "/CN=127.0.0.1", "-keyout", folder / "sink.key", "-out", request],
        ["x509", "-req", "-in", request, "-CA", authority, "-CAkey", folder / "ca.key", "-set_serial", "1", "-days", "2",
         "-extfile", extensions, "-out", folder / "sink.pem"],
    ):
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
    return authority


class Sink(Server):
    """The sink on a port of the system's choice, or on `port`."""

    def __init__(self, folder, scheme="http", etag="size", delay=0, port=0):
        secure = ["--cert", folder / "sink.pem", "--key", folder / "sink.key"] if scheme == "https" else []
        command = [folder / "s3_sink", "--port", port, "--etag", etag, "--delay", delay, *secure]
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        announced = self.process.stdout.readline().split()
        if not announced:
            raise OSError(self.process.communicate()[1].strip())
        self.port = int(announced[1])
        self.authority = folder / "ca.pem"
        self.scheme, self.etag = scheme, etag
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._trust = ssl.create_default_context(cafile=self.authority) if secure else None

    def _open(self, path, data=None):
        with urllib.request.urlopen(self.url + path, data=data, timeout=120, context=self._trust) as answer:
            return answer.read()

    def reset(self):
        self._open("/_/reset", b"")

    def stats(self):
        return json.loads(self._open("/_/stats"))

    def objects(self):
        """{name without folders: (size, MD5 in hex, or "-")}. Objects whose names end alike are told as one, with a "!"."""
        return read_objects(self._open("/_/objects").decode())


def read_objects(text):
    found = {}
    for line in text.splitlines():
        size, md5, key = line.split(" ", 2)
        name = key.rsplit("/", 1)[-1]
        found[name + "!" if name in found else name] = (int(size), md5)
    return found
