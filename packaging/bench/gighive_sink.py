#!/usr/bin/env python3
"""A discarding server that speaks GigHive's two transports, for measurements: keeps nothing. It hashes what comes, unless
`--sha256` says what every file hashes to.

    POST  /api/uploads              multipart/form-data whose last part is the file; 201 with its SHA-256
    POST  /files/ · PATCH · HEAD    tus 1.0.0
    POST  /api/uploads/finalize     201 with the SHA-256 of the finished upload
    POST  /_/reset · GET /_/stats   zeroes and tells {"bytes"}
"""

import hashlib
import http.server
import itertools
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

PIECE = 1 << 20
TUS = {"Tus-Resumable": "1.0.0"}


class Known:
    """A digest of what is known already."""

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def update(self, piece: memoryview) -> None:
        """It takes no core from what is measured."""

    def hexdigest(self) -> str:
        return self.digest


class GigHive(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    numbers, received = itertools.count(1), 0
    # [bytes, length, digest] of each upload by tus.
    uploads: dict[str, list[Any]] = {}
    make_digest = hashlib.sha256

    def length(self) -> int:
        return int(self.headers.get("content-length") or 0)

    def pieces(self, left: int) -> Iterator[memoryview]:
        """So many bytes of the body; each view is valid until the next one."""
        buffer = memoryview(bytearray(min(PIECE, left)))
        while left and (count := self.rfile.readinto1(buffer[:left])):
            left -= count
            yield buffer[:count]

    def reply(self, status: int, headers: dict[str, str], value: Any = None) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in ({"Content-Type": "application/json", "Content-Length": str(len(body))} | headers).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def answer(self) -> None:
        if self.path.startswith("/_/"):
            if self.command == "POST":
                GigHive.received = 0
            self.reply(200, {}, {"bytes": GigHive.received})
        elif self.path == "/api/uploads/finalize":
            _, length, digest = self.uploads.pop(json.loads(self.rfile.read(self.length()))["upload_id"])
            self.filed(digest.hexdigest(), length)
        elif self.path.startswith("/api/"):
            self.form()
        elif self.path == "/files/" and self.command == "POST":
            name = f"{next(self.numbers):032x}"
            self.uploads[name] = [0, int(self.headers["upload-length"]), GigHive.make_digest()]
            self.reply(201, {"Location": f"http://{self.headers['host']}/files/{name}"} | TUS)
        elif self.path == "/files/":
            self.reply(200, {"Tus-Version": "1.0.0", "Tus-Extension": "creation,termination"} | TUS)
        else:
            self.tus(self.uploads.get(self.path.rsplit("/", 1)[-1]))

    do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = do_OPTIONS = answer

    def filed(self, digest: str, size: int) -> None:
        number = next(self.numbers)
        self.reply(201, {}, {
            "id": number, "asset_id": number, "event_id": 1, "event_item_id": number, "position": number,
            "file_name": f"{digest}.mp4", "file_type": "video", "mime_type": "video/mp4", "size_bytes": size,
            "checksum_sha256": digest, "delete_token": "0" * 64})

    def form(self) -> None:
        """The file is the last part, so that it ends where the closing boundary begins."""
        boundary = re.search(r'boundary="?([^";]+)', self.headers["content-type"])[1]
        footer, left, digest, is_file, line = len(f"\r\n--{boundary}--\r\n"), self.length(), GigHive.make_digest(), False, b""
        while not is_file or line != b"\r\n":
            line = self.rfile.readline()
            if not line:
                return
            left, is_file = left - len(line), is_file or b"filename=" in line
        size = left - footer
        for piece in self.pieces(size):
            digest.update(piece)
        self.rfile.read(footer)
        GigHive.received += size
        self.filed(digest.hexdigest(), size)

    def tus(self, upload: list[Any] | None) -> None:
        if upload is None:
            return self.reply(404, {}, "ERR_UPLOAD_NOT_FOUND: upload not found")
        if self.command == "PATCH":
            for piece in self.pieces(self.length()):
                upload[2].update(piece)
                upload[0] += len(piece)
                GigHive.received += len(piece)
        self.reply(204 if self.command == "PATCH" else 200,
                   {"Upload-Offset": str(upload[0]), "Upload-Length": str(upload[1])} | TUS)

    def log_message(self, *words: object) -> None:
        """Standard error is for what goes wrong."""


if __name__ == "__main__":
    if "--sha256" in sys.argv:
        known = Known(sys.argv[sys.argv.index("--sha256") + 1])
        GigHive.make_digest = lambda: known
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), GigHive)
    print(f"listening {server.server_port}", flush=True)
    server.serve_forever()
