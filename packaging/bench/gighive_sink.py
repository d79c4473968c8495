#!/usr/bin/env python3
"""A discarding server that speaks GigHive's two transports, for measurements: hashes what comes, keeps nothing.

    gighive_sink.py [--port N]      prints `listening PORT`

    POST  /api/uploads              multipart/form-data whose last part is the file; 201 with its SHA-256
    POST  /files/ · PATCH · HEAD    tus 1.0.0
    POST  /api/uploads/finalize     201 with the SHA-256 of the finished upload
    POST  /_/reset · GET /_/stats   zeroes and tells {"bytes", "cpu_seconds"}
"""

import argparse
import hashlib
import re
import threading
import time

from loopback_http import Reply, serve


class Upload:
    def __init__(self, length):
        self.length, self.offset, self.digest = length, 0, hashlib.sha256()


class Sink:
    def __init__(self, port):
        self.origin = f"http://127.0.0.1:{port}"
        self._lock = threading.Lock()
        self._uploads = {}
        self._number = 0
        self._reset()

    def _reset(self):
        self._bytes = 0
        self._cpu = time.process_time()

    def handle(self, request):
        path = request.path
        if path.startswith("/_/"):
            if request.method == "POST":
                self._reset()
            return Reply.json({"bytes": self._bytes, "cpu_seconds": time.process_time() - self._cpu})
        if path == "/api/uploads/finalize":
            upload = self._uploads.pop(request.json()["upload_id"])
            return self._filed(upload.digest.hexdigest(), upload.length)
        if path.startswith("/api/"):
            return self._form(request)
        if path == "/files/" and request.method == "POST":
            return self._create(request)
        if path == "/files/":
            return Reply(200, headers={"Tus-Resumable": "1.0.0", "Tus-Version": "1.0.0", "Tus-Extension": "creation,termination"})
        return self._tus(request, path.rsplit("/", 1)[-1])

    def _filed(self, digest, size):
        with self._lock:
            self._number += 1
            number = self._number
        return Reply.json({
            "id": number, "asset_id": number, "event_id": 1, "event_item_id": number, "position": number,
            "file_name": f"{digest}.mp4", "file_type": "video", "mime_type": "video/mp4", "size_bytes": size,
            "checksum_sha256": digest, "delete_token": "0" * 64}, status=201)

    def _form(self, request):
        """The file is the last part, so that it ends where the closing boundary begins."""
        boundary = re.search(r'boundary="?([^";]+)', request.headers["content-type"]).group(1)
        footer = len(f"\r\n--{boundary}--\r\n")
        digest, head, size, left = hashlib.sha256(), b"", 0, None
        for piece in request.pieces():
            if left is None:
                head += bytes(piece)
                start = head.find(b"\r\n\r\n", head.find(b"filename="))
                if start < 0:
                    continue
                piece = head[start + 4:]
                left = request.length - start - 4 - footer
            count = max(0, min(len(piece), left))
            digest.update(piece[:count])
            left -= count
            size += count
        self._count(size)
        return self._filed(digest.hexdigest(), size)

    def _create(self, request):
        with self._lock:
            self._number += 1
            name = f"{self._number:032x}"
        self._uploads[name] = Upload(int(request.headers["upload-length"]))
        return Reply(201, headers={"Location": f"{self.origin}/files/{name}", "Tus-Resumable": "1.0.0"})

    def _tus(self, request, name):
        upload = self._uploads.get(name)
        if upload is None:
            return Reply.text(404, "ERR_UPLOAD_NOT_FOUND: upload not found")
        if request.method == "PATCH":
            for piece in request.pieces():
                upload.digest.update(piece)
                upload.offset += len(piece)
            self._count(request.length)
        headers = {"Tus-Resumable": "1.0.0", "Upload-Offset": str(upload.offset), "Upload-Length": str(upload.length)}
        return Reply(204 if request.method == "PATCH" else 200, headers=headers)

    def _count(self, size):
        with self._lock:
            self._bytes += size


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, default=0)
    serve(options.parse_args().port, lambda port: Sink(port).handle)


if __name__ == "__main__":
    main()
