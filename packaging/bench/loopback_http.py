"""A small HTTP/1.1 server on loopback, one thread a connection, whose bodies can be thrown away in the kernel.

Standard library only. http.server is not used: it copies every body through Python and hides when the first byte came.
"""

import hashlib
import json
import socket
import threading
import time

PIECE = 1 << 20
HEAD_LIMIT = 64 << 10
REASONS = {200: "OK", 201: "Created", 204: "No Content", 206: "Partial Content", 400: "Bad Request", 401: "Unauthorized",
           403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 411: "Length Required"}


class Disconnected(Exception):
    """The client went away in the middle of a request."""


class Request:
    """One request. The body is still in the socket: discard(), digest() or pieces() take it."""

    def __init__(self, sock, head, rest, accepted_ns, first_byte_ns):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.path, _, self.query = self.target.partition("?")
        self.headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.accepted_ns = accepted_ns
        self.first_byte_ns = first_byte_ns
        self._sock = sock
        self._rest = rest
        self.length = int(self.headers.get("content-length", "0"))
        self.left = self.length

    @property
    def chunked(self):
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    def _continue(self):
        """curl -T waits for this before it sends a large body."""
        if self.left and self.headers.pop("expect", "").lower() == "100-continue":
            self._sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def pieces(self, size=PIECE):
        """The body, piece by piece; each view is valid until the next one."""
        self._continue()
        if self._rest:
            rest, self._rest = self._rest[: self.left], b""
            self.left -= len(rest)
            yield rest
        buffer = memoryview(bytearray(min(size, max(self.left, 1))))
        while self.left:
            count = self._sock.recv_into(buffer, min(len(buffer), self.left))
            if count == 0:
                raise Disconnected
            self.left -= count
            yield buffer[:count]

    def read(self, limit=32 << 20):
        if self.length > limit:
            raise ValueError("body too large")
        return b"".join(bytes(piece) for piece in self.pieces())

    def json(self):
        return json.loads(self.read() or b"{}")

    def digest(self):
        """The body's MD5 in hex, nothing kept."""
        total = hashlib.md5()
        for piece in self.pieces():
            total.update(piece)
        return total.hexdigest()

    def discard(self):
        """Throws the body away inside the kernel: on Linux TCP, MSG_TRUNC takes bytes off the queue without copying."""
        self._continue()
        self.left -= min(len(self._rest), self.left)
        self._rest = b""
        buffer = _SCRATCH.buffer()
        while self.left:
            count = self._sock.recv_into(buffer, min(PIECE, self.left), socket.MSG_TRUNC | socket.MSG_WAITALL)
            if count == 0:
                raise Disconnected
            self.left -= count


class _Scratch(threading.local):
    """recv_into wants a buffer as long as what it takes, even where nothing is written to it."""

    def buffer(self):
        if not hasattr(self, "bytes"):
            self.bytes = bytearray(PIECE)
        return self.bytes


_SCRATCH = _Scratch()


class Reply:
    def __init__(self, status=200, body=b"", headers=None, body_length=None):
        """`body` is bytes, or an iterator of bytes together with `body_length`."""
        self.status = status
        self.headers = dict(headers or {})
        self.body = body
        self.length = len(body) if body_length is None else body_length

    @classmethod
    def json(cls, value, status=200):
        return cls(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    @classmethod
    def text(cls, status, words):
        return cls(status, words.encode(), {"Content-Type": "text/plain"})


def _read_head(sock):
    """(head, what followed it, when its first byte came), or None when the client closed between two requests."""
    data = sock.recv(HEAD_LIMIT)
    first_byte_ns = time.monotonic_ns()
    while data and b"\r\n\r\n" not in data:
        more = sock.recv(HEAD_LIMIT)
        if not more or len(data) > HEAD_LIMIT:
            return None
        data += more
    if not data:
        return None
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest, first_byte_ns


def _send(sock, method, reply):
    reply.headers["Content-Length"] = str(reply.length)
    lines = [f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    if isinstance(reply.body, bytes):
        sock.sendall(head + (b"" if method == "HEAD" else reply.body))
        return
    sock.sendall(head)
    if method != "HEAD":
        for piece in reply.body:
            sock.sendall(piece)


def _serve_connection(sock, handle, accepted_ns):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while (parts := _read_head(sock)) is not None:
            request = Request(sock, *parts[:2], accepted_ns, parts[2])
            if request.chunked:
                _send(sock, request.method, Reply.text(411, "a length is needed"))
                return
            try:
                reply = handle(request)
            except (ValueError, KeyError, TypeError) as error:
                reply = Reply.text(400, f"{type(error).__name__}: {error}")
            request.discard()
            _send(sock, request.method, reply)
            if request.headers.get("connection", "").lower() == "close":
                return
    except (Disconnected, OSError, ValueError):
        pass
    finally:
        sock.close()


def serve(port, handler_for):
    """Serves until the process ends; `handler_for(port)` makes the handler: Request -> Reply.

    Prints `listening PORT` once connections are accepted.
    """
    listener = socket.create_server(("127.0.0.1", port), backlog=512)
    port = listener.getsockname()[1]
    handle = handler_for(port)
    print(f"listening {port}", flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=_serve_connection, args=(sock, handle, time.monotonic_ns()), daemon=True).start()
