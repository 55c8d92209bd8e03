"""A web server for a page, at the other end of a link: `python -m airpath.page.serve PAGE.json`.

It is the server of Python's library, with a thread for each connection. It has the address of
all hosts of the page; the field Host distinguishes them.
"""

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from airpath.page.site import Content, contents

PORT = 8000


class _Handler(BaseHTTPRequestHandler):
    site: dict[tuple[str, str], Content]
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 120

    def do_GET(self) -> None:
        content = self.site.get((self.headers.get("Host", ""), self.path))
        if content is None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.send_header("Cache-Control", "max-age=86400")
            self.end_headers()
            return
        time.sleep(content.wait)
        if content.cache == "revalidate" and self.headers.get("If-None-Match"):
            self.send_response(304)
            self.send_header("ETag", '"1"')
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", content.media_type)
        self.send_header("Content-Length", str(len(content.body)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Timing-Allow-Origin", "*")
        if content.encoding:
            self.send_header("Content-Encoding", content.encoding)
        match content.cache:
            case "fresh":
                self.send_header("Cache-Control", "max-age=86400")
            case "revalidate":
                self.send_header("Cache-Control", "no-cache")
                self.send_header("ETag", '"1"')
            case _:
                self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content.body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Log errors only: requests are in the HAR file."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A browser opens all its connections at once.
    request_queue_size = 128


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=Path)
    parser.add_argument("--no-compression", action="store_true")
    parser.add_argument("--protocol", choices=["HTTP/1.0", "HTTP/1.1"], default="HTTP/1.1")
    arguments = parser.parse_args()
    page = json.loads(arguments.page.read_text(encoding="utf-8"))
    _Handler.site = contents(page, compression=not arguments.no_compression)
    _Handler.protocol_version = arguments.protocol
    with _Server(("0.0.0.0", PORT), _Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
