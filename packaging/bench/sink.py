#!/usr/bin/env python3
"""A discarding server that speaks the Spiral Storage `v1` dialect, for measurements. Takes plain `curl -T` PUTs too.

    sink.py [--port N] [--etag size|md5]      prints `listening PORT`

    --etag size   ETags are made from part number and size; bodies never leave the kernel (for `verify: size`)
    --etag md5    ETags are the bodies' MD5, as R2 answers

    POST /_/reset {"etag": "md5"}   zeroes the counters (and switches the ETags)
    GET  /_/stats                   {"bytes", "puts", "cpu_seconds"} since the reset
    GET  /_/wait?NAME               answers when a PUT whose path ends in NAME is done: its times in CLOCK_MONOTONIC ns
"""

import argparse
import threading
import time
import urllib.parse

from loopback_http import Reply, serve


class Sink:
    def __init__(self, etag, port):
        self.etag = etag
        self.origin = f"http://127.0.0.1:{port}"
        self._changed = threading.Condition()
        self._uploads = {}
        self._objects = {}
        self._reset()

    def _reset(self):
        self._bytes = 0
        self._puts = 0
        self._cpu = time.process_time()
        self._finished = {}

    def handle(self, request):
        if request.path.startswith("/_/"):
            return self._control(request)
        if request.method == "PUT":
            return self._put(request)
        if request.method in ("GET", "HEAD"):
            return self._get(request)
        if request.method == "POST":
            return self._call(request.path, request.json())
        return Reply(405)

    def _control(self, request):
        if request.path == "/_/wait":
            return self._wait(request.query)
        if request.path == "/_/reset":
            self.etag = request.json().get("etag", self.etag)
            with self._changed:
                self._reset()
        with self._changed:
            return Reply.json({"bytes": self._bytes, "puts": self._puts, "cpu_seconds": time.process_time() - self._cpu})

    def _wait(self, name):
        with self._changed:
            if self._changed.wait_for(lambda: name in self._finished, timeout=90):
                return Reply.json(self._finished[name])
        return Reply.text(404, f"no PUT of {name} within 90 s")

    def _put(self, request):
        if self.etag == "md5":
            etag = request.digest()
        else:
            request.discard()
            etag = f"discarded-{request.length}"
        name = urllib.parse.unquote(request.path).rsplit("/", 1)[-1]
        with self._changed:
            self._bytes += request.length
            self._puts += 1
            self._finished[name] = {
                "accepted_ns": request.accepted_ns,
                "first_byte_ns": request.first_byte_ns,
                "done_ns": time.monotonic_ns(),
                "bytes": request.length,
            }
            upload, _, number = request.query.partition("&part=")
            if number:
                self._uploads.setdefault(upload, {})[int(number)] = request.length
            else:
                self._objects[urllib.parse.unquote(request.path)] = request.length
            self._changed.notify_all()
        return Reply(200, headers={"ETag": f'"{etag}"'})

    def _call(self, path, body):
        key = body["key"]
        url = f"{self.origin}/object/{urllib.parse.quote(key)}"
        if path == "/v1/presign/upload":
            return Reply.json({"url": url, "key": key})
        if path == "/v1/multipart/create":
            upload = f"upload-{time.monotonic_ns()}"
            parts = [{"part_number": n, "url": f"{url}?{upload}&part={n}"} for n in range(1, body["parts"] + 1)]
            return Reply.json({"upload_id": upload, "part_urls": parts})
        if path == "/v1/multipart/complete":
            with self._changed:
                self._objects["/object/" + key] = sum(self._uploads.pop(body["upload_id"], {}).values())
            return Reply.json({"url": url, "key": key})
        if path == "/v1/multipart/abort":
            with self._changed:
                self._uploads.pop(body["upload_id"], None)
            return Reply.json({})
        return Reply.text(404, f"no such call: {path}")

    def _get(self, request):
        path = urllib.parse.unquote(request.path)
        if path.startswith("/v1/objects/url/"):
            key = path.removeprefix("/v1/objects/url/")
            if "/object/" + key not in self._objects:
                return Reply.text(404, "no such object")
            return Reply.json({"url": f"{self.origin}/object/{urllib.parse.quote(key)}", "key": key})
        if (size := self._objects.get(path)) is None:
            return Reply.text(404, "no such object")
        # What was thrown away reads as zeros: only its size can be checked.
        first, last = 0, size - 1
        span = request.headers.get("range", "").removeprefix("bytes=")
        if span and size:
            low, _, high = span.partition("-")
            first, last = (int(low), min(int(high or last), last)) if low else (max(size - int(high), 0), last)
            headers = {"Content-Range": f"bytes {first}-{last}/{size}"}
            return Reply(206, zeros(last - first + 1), headers, body_length=last - first + 1)
        return Reply(200, zeros(size), body_length=size)


def zeros(count):
    block = bytes(1 << 20)
    while count > 0:
        yield block[:count]
        count -= len(block)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--etag", choices=["size", "md5"], default="size")
    chosen = options.parse_args()
    serve(chosen.port, lambda port: Sink(chosen.etag, port).handle)


if __name__ == "__main__":
    main()
