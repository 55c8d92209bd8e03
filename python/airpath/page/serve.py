"""Web servers for a page, at the other end of a link: `python -m airpath.page.serve PLAN.json`.

When all listen, the file `ready` of the plan is written: empty, or with the reason why they do not.
Each origin has the address of its name. HTTP/1 is served by Python's library, with a thread for
each connection, HTTP/2 and HTTP/3 by hypercorn (`streams`).
"""

import argparse
import asyncio
import json
import os
import ssl
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airpath.files import replacing
from airpath.page import authority, recording, resolver
from airpath.page.origins import Origin, addresses
from airpath.page.site import Content, Site, contents

_IDLE = 120
"""Seconds after which an idle connection is closed."""


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = _IDLE

    def __getattr__(self, name: str) -> Any:
        # The library looks up a method for each method of HTTP.
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        if length := self.headers.get("Content-Length", ""):
            self.rfile.read(int(length) if length.isdecimal() else 0)
        scheme = "http" if server.context is None else "https"
        content = server.site.find(f"{scheme}://{self.headers.get('Host', '')}{self.path}")
        time.sleep(content.wait)
        conditions = {name.lower(): value for name, value in self.headers.items()}
        status, fields, body = content.answer(conditions)
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Log errors only: requests are in the HAR file."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A browser opens all its connections at once.
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], site: Site, context: ssl.SSLContext | None, version: str) -> None:
        self.site, self.context = site, context
        handler = type("_Handler", (_Handler,), {"protocol_version": version})
        super().__init__(address, handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        if self.context is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(_IDLE)
        with self.context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a line: browsers close connections that they do not need."""
        sys.stderr.write(f"{client_address[0]}:{client_address[1]}: {sys.exception()!r}\n")


def _contents(plan: Mapping[str, Any]) -> dict[str, Content]:
    if plan["page"] is None:
        return recording.contents(Path(plan["recording"]), compression=plan["compression"])
    return contents(plan["page"], compression=plan["compression"], scheme=urlsplit(plan["url"]).scheme)


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("plan", type=Path)
    arguments = parser.parse_args()
    plan = json.loads(arguments.plan.read_text(encoding="utf-8"))
    try:
        _serve(plan)
    except Exception as error:
        _report(plan, f"{type(error).__name__}: {error}")
        raise


def _report(plan: Mapping[str, Any], reason: str = "") -> None:
    """Report to the browser that the servers listen, or why they do not."""
    with replacing(Path(plan["ready"])) as draft:
        draft.write_text(reason, encoding="utf-8")


def _serve(plan: Mapping[str, Any]) -> None:
    site, protocol, known = Site(lambda: _contents(plan)), plan["protocol"], addresses(plan["hosts"])
    if plan["dns"]:
        resolver.serve(os.environ["AIRPATH_SERVER"], known)
    multiplexed = []
    for origin in (Origin(*each) for each in plan["origins"]):
        if origin.is_secure and protocol in ("h2", "h3"):
            multiplexed.append(origin)
            continue
        certificates = Path(plan["certificates"])
        context = authority.context(origin.host, certificates, plan["tls"], protocol) if origin.is_secure else None
        version = "HTTP/1.0" if protocol == "http/1.0" else "HTTP/1.1"
        server = _Server((known[origin.host], origin.port), site, context, version)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    if multiplexed:
        from airpath.page.streams import serve

        asyncio.run(serve(site, multiplexed, known, plan, lambda: _report(plan)))
    else:
        _report(plan)
        threading.Event().wait()


if __name__ == "__main__":
    main()
