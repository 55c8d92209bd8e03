"""HTTP/2 and HTTP/3: hypercorn serves the contents of a page."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve as serve_application
from hypercorn.config import Config, Sockets

from airpath.page import authority
from airpath.page.origins import Origin
from airpath.page.site import Site

_UNSENT = 16_384
"""Unsent bytes up to which the server writes to a socket, `unsent` of the simulated server."""


class _Config(Config):
    """The settings of one origin."""

    def __init__(self, origin: Origin, address: str, plan: Mapping[str, Any], bound: Callable[[], None]) -> None:
        super().__init__()
        self._bound = bound
        self._address, self._plan, self._origin = (address, origin.port), plan, origin
        self.certfile = self.keyfile = str(authority.path_of(origin.host, Path(plan["certificates"])))
        self.alpn_protocols = ["h2"]
        self.keep_alive_timeout = 120
        self.keep_alive_max_requests = 1_000_000
        self.include_server_header = False
        self.errorlog = "-"
        self.loglevel = "WARNING"

    def create_ssl_context(self) -> ssl.SSLContext:
        """Return the TLS settings, those of the HTTP/1 server."""
        return authority.context(self._origin.host, Path(self._plan["certificates"]), self._plan["tls"], "h2")

    def create_sockets(self) -> Sockets:
        """Return the sockets of the origin: UDP for HTTP/3, else TCP."""
        is_quic = self._plan["protocol"] == "h3"
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if is_quic else socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not is_quic:
            # Accepted sockets inherit both.
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
        bound.bind(self._address)
        bound.setblocking(False)
        self._bound()
        return Sockets([], [], [bound]) if is_quic else Sockets([bound], [], [])


async def serve(
    site: Site,
    origins: Sequence[Origin],
    known: Mapping[str, str],
    plan: Mapping[str, Any],
    ready: Callable[[], None],
) -> None:
    """Serve until the process is ended; call `ready` when all origins listen."""
    left = len(origins)

    def bound() -> None:
        nonlocal left
        left -= 1
        if not left:
            # hypercorn listens at a socket before it lets others run.
            asyncio.get_running_loop().call_soon(ready)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        # A request body is read: flow control would stop a browser that sends one.
        while (await receive()).get("more_body"):
            pass
        fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        path = scope["raw_path"].decode("latin-1")
        query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
        content = site.find(f"https://{fields.get('host', '')}{path}{query}")
        await asyncio.sleep(content.wait)
        status, answered, body = content.answer(fields)
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answered]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        with contextlib.suppress(ConnectionError):
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    never = asyncio.Event()
    configurations = [_Config(origin, known[origin.host], plan, bound) for origin in origins]
    await asyncio.gather(
        *(serve_application(application, each, shutdown_trigger=never.wait) for each in configurations)
    )
