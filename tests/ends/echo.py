"""Datagrams of a call and their echoes: `echo.py serve` and `echo.py call HOST COUNT`.

The client connects its socket, sends a datagram of 32 bytes each 20 ms, and fails if not all of
them come back in order.
"""

import socket
import sys
import time

PORT = 5000
MOST_S = 20


def serve() -> None:
    """Return each datagram."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("0.0.0.0", PORT))
        while True:
            server.sendto(*server.recvfrom(2000))


def call(host: str, count: int) -> None:
    """Send `count` datagrams, and compare their echoes."""
    sent = [bytes([number % 256]) * 32 for number in range(count)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(MOST_S)
        client.connect((host, PORT))
        for datagram in sent:
            client.send(datagram)
            time.sleep(0.02)
        if [client.recv(2000) for _ in sent] != sent:
            sys.exit("an echo is missing, late or changed")


if sys.argv[1] == "serve":
    serve()
else:
    call(sys.argv[2], int(sys.argv[3]))
