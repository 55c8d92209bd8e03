"""A server of a page with six images: `images.py DELAY_S`. All but `/5.png` may be stored."""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers `GET /` with the page, and `GET /NUMBER.png` with 3000 bytes."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer after the delay."""
        time.sleep(float(sys.argv[1]))
        is_page = self.path == "/"
        images = "".join(f"<img src=/{number}.png>" for number in range(6))
        body = f"<p>page</p>{images}".encode() if is_page else self.path.encode() * 500
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if is_page else "image/png")
        self.send_header("Content-Length", str(len(body)))
        if self.path != "/5.png":
            self.send_header("Cache-Control", "max-age=60")
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("", 80), Handler).serve_forever()
