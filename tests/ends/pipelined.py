"""Objects by HTTP/1.1: `pipelined.py serve DELAY_MS`, and `fetch HOST OBJECTS BYTES DEPTH`.

The server needs DELAY_MS for each object, and serves many connections at once. It cuts off the
object `/cut`, and closes. The client sends up to DEPTH requests before the first is answered,
compares every byte, and prints the seconds and the bytes that it received.
"""

import hashlib
import socket
import sys
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def content(number: int, size: int) -> bytes:
    """Return an object: text that compresses to about a half."""
    text = bytearray()
    while len(text) < size:
        text += hashlib.sha256(f"{number} {len(text)}".encode()).hexdigest().encode() + b"\n"
    return bytes(text[:size])


class Handler(BaseHTTPRequestHandler):
    """Answers `GET /NUMBER/SIZE`, and with `/CONTROL` after it, sets `Cache-Control`."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer after the delay."""
        time.sleep(float(sys.argv[2]) / 1e3)
        is_cut = self.path == "/cut"
        number, size, *control = ["0", "5000"] if is_cut else self.path.split("/")[1:]
        body = content(int(number), int(size))
        tag = f'"{number}"'
        has_it = bool(control) and self.headers["If-None-Match"] == tag
        self.send_response(304 if has_it else 200)
        if control:
            self.send_header("Cache-Control", control[0])
            self.send_header("ETag", tag)
        if has_it:
            self.end_headers()
            return
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.close_connection = is_cut

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the library)
        """Write nothing."""


def read(connection: socket.socket, buffer: bytearray, size: int) -> None:
    """Read until `buffer` has `size` bytes."""
    while len(buffer) < size:
        part = connection.recv(65536)
        if not part:
            sys.exit("the server has closed the connection")
        buffer += part


def fetch(host: str, objects: int, size: int, depth: int) -> None:
    """Fetch the objects over one connection."""
    begun = time.monotonic()
    received, waiting, buffer = 0, deque[int](), bytearray()
    with socket.create_connection((host, 80)) as connection:
        for number in range(objects + depth):
            if number >= depth and waiting:
                expected = waiting.popleft()
                while b"\r\n\r\n" not in buffer:
                    read(connection, buffer, len(buffer) + 1)
                head, _, rest = bytes(buffer).partition(b"\r\n\r\n")
                received += len(head) + 4 + size
                assert head.startswith(b"HTTP/1.1 200 OK\r\n"), head
                buffer = bytearray(rest)
                read(connection, buffer, size)
                assert buffer[:size] == content(expected, size), f"object {expected} differs"
                del buffer[:size]
            if number < objects:
                request = [f"GET /{number}/{size} HTTP/1.1", f"Host: {host}", "", ""]
                connection.sendall("\r\n".join(request).encode())
                waiting.append(number)
    sys.stdout.write(f"{time.monotonic() - begun:.2f} {received}\n")


if sys.argv[1] == "serve":
    ThreadingHTTPServer(("", 80), Handler).serve_forever()
else:
    fetch(sys.argv[2], *map(int, sys.argv[3:6]))
