"""The live page of a link: `python -m airpath.sidecar.live FD PROCESS TITLE`.

It samples the link's control socket (`airpath.control`) and serves a page on the loopback address,
at a port of the system's choice. It sends the page's address over `FD`, and ends when the other end
of `FD` is closed. Nothing is written to disk.
"""

import json
import os
import socket
import sys
import threading
import time
import webbrowser
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from airpath.control import NoLinkError, send
from airpath.files import printable
from airpath.theme import ALERT, DOWN, GRID, INK, MUTED, PAGE, UP

_PERIOD_S = 0.5
_MOST_SAMPLES = 20_000
"""Almost three hours."""
_DIRECTIONS = ("down", "up")


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the link at one time."""

    time_s: float
    delivered_bytes: tuple[int, int]
    """To the mobile, and from it, since the start."""
    queued_packets: tuple[int, int]
    """In all hops, down and up."""
    late_p99_s: float
    budget_s: float
    radio: str
    """Mode, RRC state, coding scheme and C/I; empty for a bearer without radio."""


def sample_of(status: dict[str, Any]) -> Sample:
    """Return the sample of a status (`crates/emu/src/control.rs`)."""
    rows = {
        direction: [each for each in status["links"] if each["direction"] == direction] for direction in _DIRECTIONS
    }
    # The path has its hops from the server to the mobile.
    last = (rows["down"][-1], rows["up"][0])
    return Sample(
        status["time_s"],
        (last[0]["delivered_bytes"], last[1]["delivered_bytes"]),
        (sum(each["queued_packets"] for each in rows["down"]), sum(each["queued_packets"] for each in rows["up"])),
        status["late_p99_s"],
        status["budget_s"],
        status.get("radio", ""),
    )


class Samples:
    """The samples of a link, taken in a thread of their own."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._samples: list[Sample] = []

    def take(self) -> None:
        """Take samples until this process ends."""
        while len(self._samples) < _MOST_SAMPLES:
            # It may not be ready, or have just ended.
            with suppress(NoLinkError):
                self._samples.append(sample_of(send(self._process, {"status": {}})))
            time.sleep(_PERIOD_S)

    def since(self, number: int) -> list[dict[str, Any]]:
        """Return the samples from a number on."""
        return [asdict(each) for each in self._samples[number:]]


def page(title: str) -> bytes:
    """Return the page."""
    from html import escape

    text = files("airpath.sidecar").joinpath("live.html").read_text(encoding="utf-8")
    colours = {"page": PAGE, "ink": INK, "muted": MUTED, "grid": GRID, "down": DOWN, "up": UP, "alert": ALERT}
    for name, colour in colours.items():
        text = text.replace(f"{{{name}}}", colour.light).replace(f"{{{name}-dark}}", colour.dark)
    text = text.replace("{most}", str(_MOST_SAMPLES))
    # Last: a title may contain the name of another value in braces.
    return text.replace("{title}", escape(printable(title))).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers requests for the page and for samples."""

    samples: Samples
    page: bytes

    def do_GET(self) -> None:
        """Answer with the page, or with samples."""
        # Other names are those of sites that want to read this page (DNS rebinding).
        if _host_name(self.headers["Host"]) not in ("127.0.0.1", "localhost"):
            self.send_error(403)
            return
        try:
            url = urlsplit(self.path)
        except ValueError:
            self.send_error(400)
            return
        if url.path == "/":
            self._answer("text/html; charset=utf-8", self.page)
        elif url.path == "/samples":
            try:
                number = max(0, int(parse_qs(url.query).get("since", ["0"])[0]))
            except ValueError:
                self.send_error(400)
                return
            self._answer("application/json", json.dumps(self.samples.since(number)).encode())
        else:
            self.send_error(404)

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Log nothing."""


def _host_name(host: str | None) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


class Server(ThreadingHTTPServer):
    """A server that prints nothing: standard error is the command's."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing."""


def serve(link: socket.socket, process: int, title: str) -> None:
    """Serve the page of a link until the other end of `link` is closed."""
    samples = Samples(process)
    handler = type("Handler", (Handler,), {"samples": samples, "page": page(title)})
    server = Server(("127.0.0.1", 0), handler)
    url = f"http://127.0.0.1:{server.server_port}/"
    for work in (samples.take, server.serve_forever):
        threading.Thread(target=work, daemon=True).start()
    link.send(url.encode())
    # Without a display, this would start a browser on the terminal of the command.
    if any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")):
        # It may wait for the browser's end.
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    link.recv(1)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own_end:
        serve(own_end, int(sys.argv[2]), sys.argv[3])
