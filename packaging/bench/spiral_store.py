#!/usr/bin/env python3
"""A Spiral Storage stand-in that keeps what it receives: the dialects `seed`, `r2` and `v1`, written from their
description alone and sharing nothing with Inlet's own sandbox, so that each can show the other's mistakes.

    spiral_store.py --dir DIR [--port N] [--api-key KEY] [--expiry SECONDS]      prints `listening PORT`

Presigned URLs carry X-Amz-Date, X-Amz-Expires and a signature over method, path, query and content type. ETags are
true MD5s; R2's rules hold: parts 1..N, all but the last of one size and at least 5 MiB, an upload completes once.

    GET /_/report       every object, the uploads still open, and what was sent more than once
"""

import argparse
import hashlib
import os
import secrets
import threading
import urllib.parse

from loopback_http import Reply, serve
from presign import Signer, xml

MINIMUM_PART = 5 << 20
MAXIMUM_PARTS = 10_000


class Refusal(Exception):
    def __init__(self, status, words):
        super().__init__(words)
        self.reply = Reply.text(status, words)


class Store:
    def __init__(self, directory, origin, api_key, expiry):
        self._directory, self._origin, self._api_key = directory, origin, api_key
        self._signer = Signer(origin, expiry)
        self._lock = threading.Lock()
        self._uploads = {}
        self._objects = {}
        self._counts = dict.fromkeys(
            ("parts", "parts_resent", "part_bytes", "bytes", "completes", "single_puts", "aborts"), 0)
        os.makedirs(directory, exist_ok=True)

    def handle(self, request):
        path = urllib.parse.unquote(request.path)
        try:
            if path == "/_/report":
                return self._report()
            if path.startswith("/object/"):
                return self._put(request, path) if request.method == "PUT" else self._get(request, path)
            return self._call(request, path)
        except Refusal as refusal:
            return refusal.reply

    # Control calls -------------------------------------------------------------------------------------------------

    def _call(self, request, path):
        modern = path.startswith("/v1/")
        if modern and self._api_key and request.headers.get("x-api-key") != self._api_key:
            raise Refusal(401, "unknown API key")
        if modern and request.method == "GET" and path.startswith("/v1/objects/url/"):
            key = path.removeprefix("/v1/objects/url/")
            if key not in self._objects:
                raise Refusal(404, "no such object")
            return Reply.json({"url": self._signer.url("GET", "/object/" + key), "key": key})
        if request.method != "POST":
            raise Refusal(405, "POST only")
        body = request.json()
        key = body["key"]
        if not key or len(key.encode()) > 1024:
            raise Refusal(400, "a key has 1 to 1,024 bytes")
        if path == "/v1/presign/upload":
            return Reply.json({"url": self._signer.url("PUT", "/object/" + key, body["content_type"]), "key": key})
        for prefix in ("/v1/multipart/", "/r2/multipart/"):
            if path.startswith(prefix):
                return self._multipart(path.removeprefix(prefix), key, body, modern)
        raise Refusal(404, f"no such call: {path}")

    def _multipart(self, call, key, body, modern):
        if call == "create":
            return self._create(key, body, modern)
        if call == "complete":
            return self._complete(key, body, modern)
        if call == "abort":
            return self._abort(key, body)
        raise Refusal(404, f"no such call: {call}")

    def _create(self, key, body, modern):
        seed = "part_count" in body
        if seed and modern:
            raise Refusal(422, "v1 calls it `parts`")
        count = body["part_count"] if seed else body["parts"]
        if not 1 <= count <= MAXIMUM_PARTS or (not seed and not isinstance(body["content_type"], str)):
            raise Refusal(422, "1 to 10,000 parts and a content type")
        upload = secrets.token_hex(16)
        with self._lock:
            self._uploads[upload] = {"key": key, "count": count, "parts": {}}
        urls = [{"part_number": number,
                 "url": self._signer.url("PUT", "/object/" + key, uploadId=upload, partNumber=str(number))}
                for number in range(1, count + 1)]
        return Reply.json({"upload_id": upload, "key": key, "parts": urls} if seed else {"upload_id": upload, "part_urls": urls})

    def _complete(self, key, body, modern):
        with self._lock:
            upload = self._uploads.get(body["upload_id"])
            if upload is None or upload["key"] != key:
                raise Refusal(404, "no such upload")
            self._check_parts(upload, body["parts"])
            del self._uploads[body["upload_id"]]
        staged = self._staged()
        with open(staged, "wb") as whole:
            for number in range(1, upload["count"] + 1):
                with open(upload["parts"][number]["file"], "rb") as part:
                    while piece := part.read(1 << 20):
                        whole.write(piece)
                os.unlink(upload["parts"][number]["file"])
        hashes = b"".join(bytes.fromhex(upload["parts"][n]["md5"]) for n in range(1, upload["count"] + 1))
        self._keep(key, staged, f"{hashlib.md5(hashes).hexdigest()}-{upload['count']}", "completes")
        url = f"{self._origin}/object/{urllib.parse.quote(key)}"
        return Reply.json({"url": url, "key": key} if modern else {"object_url": url})

    @staticmethod
    def _check_parts(upload, listed):
        if [part["part_number"] for part in listed] != list(range(1, upload["count"] + 1)):
            raise Refusal(400, "InvalidPartOrder")
        for part in listed:
            have = upload["parts"].get(part["part_number"])
            if have is None or have["md5"] != part["etag"].strip('"'):
                raise Refusal(400, f"InvalidPart {part['part_number']}")
        sizes = {upload["parts"][number]["size"] for number in range(1, upload["count"])}
        if len(sizes) > 1 or (sizes and min(sizes) < MINIMUM_PART):
            raise Refusal(400, "EntityTooSmall, or parts of different sizes")

    def _abort(self, key, body):
        with self._lock:
            upload = self._uploads.get(body["upload_id"])
            if upload is None or upload["key"] != key:
                raise Refusal(404, "no such upload")
            del self._uploads[body["upload_id"]]
            self._counts["aborts"] += 1
            # Whatever was uploaded for nothing has to be sent again.
            self._counts["parts_resent"] += len(upload["parts"])
        for part in upload["parts"].values():
            os.unlink(part["file"])
        return Reply.json({})

    # Bodies --------------------------------------------------------------------------------------------------------

    def _staged(self):
        return os.path.join(self._directory, "staged-" + secrets.token_hex(12))

    def _put(self, request, path):
        fields, refused = self._signer.check(request, path)
        if refused:
            return refused
        staged, total = self._staged(), hashlib.md5()
        try:
            with open(staged, "wb") as file:
                for piece in request.pieces():
                    total.update(piece)
                    file.write(piece)
        except BaseException:
            # A part that was cut off never existed.
            os.unlink(staged)
            raise
        key = path.removeprefix("/object/")
        if "uploadId" not in fields:
            self._keep(key, staged, total.hexdigest(), "single_puts")
        elif not self._keep_part(fields["uploadId"], int(fields["partNumber"]), staged, total.hexdigest(), request.length):
            os.unlink(staged)
            return xml(404, "NoSuchUpload", "The upload was completed or aborted.")
        return Reply(200, headers={"ETag": f'"{total.hexdigest()}"'})

    def _keep_part(self, upload_id, number, staged, md5, size):
        with self._lock:
            upload = self._uploads.get(upload_id)
            if upload is None:
                return False
            self._counts["parts"] += 1
            self._counts["bytes"] += size
            self._counts["part_bytes"] += size
            before = upload["parts"].get(number)
            upload["parts"][number] = {"file": staged, "md5": md5, "size": size}
            if before:
                self._counts["parts_resent"] += 1
                os.unlink(before["file"])
        return True

    def _keep(self, key, staged, etag, how):
        target = os.path.join(self._directory, hashlib.sha256(key.encode()).hexdigest())
        size = os.path.getsize(staged)
        with self._lock:
            os.rename(staged, target)
            times = self._objects.get(key, {"times": 0})["times"] + 1
            self._objects[key] = {"file": target, "size": size, "etag": etag, "times": times}
            self._counts[how] += 1
            if how == "single_puts":
                self._counts["bytes"] += size

    def _get(self, request, path):
        # Without a signature this is the public address: open to readers, as a bucket behind a CDN is.
        if request.query:
            _, refused = self._signer.check(request, path)
            if refused:
                return refused
        stored = self._objects.get(path.removeprefix("/object/"))
        if stored is None:
            return xml(404, "NoSuchKey", "The key does not exist.")
        first, last = 0, stored["size"] - 1
        status, headers = 200, {"ETag": f'"{stored["etag"]}"', "Accept-Ranges": "bytes"}
        low, _, high = request.headers.get("range", "").removeprefix("bytes=").partition("-")
        if low and stored["size"]:
            first, last = int(low), min(int(high or last), last)
            status, headers["Content-Range"] = 206, f"bytes {first}-{last}/{stored['size']}"
        return Reply(status, pieces_of(stored["file"], first, last - first + 1), headers, body_length=last - first + 1)

    def _report(self):
        with self._lock:
            return Reply.json({"objects": self._objects, "open_uploads": [
                {"upload_id": name, "key": upload["key"], "parts": len(upload["parts"])}
                for name, upload in self._uploads.items()], "counts": self._counts})


def pieces_of(path, offset, count):
    with open(path, "rb") as file:
        file.seek(offset)
        while count > 0 and (piece := file.read(min(count, 1 << 20))):
            count -= len(piece)
            yield piece


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dir", required=True)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--api-key", default="")
    options.add_argument("--expiry", type=int, default=3600)
    given = options.parse_args()
    serve(given.port, lambda port: Store(given.dir, f"http://127.0.0.1:{port}", given.api_key, given.expiry).handle)


if __name__ == "__main__":
    main()
