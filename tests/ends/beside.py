"""Short downloads beside a long one.

    beside.py serve CONTROL
    beside.py fetch HOST LONG SHORT

The server answers a number with as many bytes and ends the connection. It uses the congestion
control `CONTROL`, with a right that the owner of a network namespace has. The client fetches `LONG`
bytes and, from 2.5 s on, four times `SHORT` bytes by new connections, one every 0.5 s. `LONG` may
be 0. It prints the seconds of the long one and of each short one, from the start of the connection
to its end.
"""

import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PORT = 4300


def answer(connection: socket.socket) -> None:
    """Send as many bytes as requested."""
    with connection:
        connection.sendall(bytes(int(connection.recv(100))))


def serve(control: str) -> None:
    """Answer connections at the same time."""
    with socket.create_server(("", PORT)) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


def fetch(host: str, size: int, after_s: float) -> float:
    """Return how long a download takes that starts after some time."""
    time.sleep(after_s)
    began = time.monotonic()
    with socket.create_connection((host, PORT)) as connection:
        connection.sendall(b"%d" % size)
        missing = size
        while data := connection.recv(65536):
            missing -= len(data)
    if missing:
        sys.exit(f"{missing} of {size} bytes are missing")
    return time.monotonic() - began


def main() -> None:
    """Run an end."""
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    host, long, short = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with ThreadPoolExecutor() as pool:
        first = pool.submit(fetch, host, long, 0)
        others = [pool.submit(fetch, host, short, 2.5 + 0.5 * index) for index in range(4)] if short else []
        sys.stdout.write(json.dumps([first.result(), [each.result() for each in others]]))


main()
