"""Server at port 9: reads each connection to its end, then returns its number of bytes."""

import socket
import socketserver


class _Reader(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        count = 0
        while data := self.request.recv(65536):
            count += len(data)
        self.wfile.write(f"{count}\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6  # and IPv4 with it
    allow_reuse_address = True
    daemon_threads = True


with _Server(("", 9), _Reader) as server:
    server.serve_forever(poll_interval=60)
