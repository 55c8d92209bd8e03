"""Mixed UDP and TCP traffic, for tests of links: `traffic.py serve` and `traffic.py use HOST`."""

import contextlib
import random
import socket
import sys
import threading
import time

PORT = 9009
SECONDS = 1.5
BULK = 40_000


def serve() -> None:
    """Answer each datagram with one of another size, and each connection with some bytes."""
    random.seed(2)
    listener = socket.create_server(("0.0.0.0", PORT))

    def connections() -> None:
        while True:
            connection, _ = listener.accept()
            connection.recv(1)
            connection.sendall(bytes(BULK))
            connection.close()

    threading.Thread(target=connections, daemon=True).start()
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("0.0.0.0", PORT))
    while True:
        _, peer = datagrams.recvfrom(65535)
        datagrams.sendto(bytes(random.randrange(1, 1400)), peer)


def use(host: str) -> None:
    """Send datagrams in bursts for a while, and fetch some bytes at the same time."""
    random.seed(1)
    stop = time.monotonic() + SECONDS

    def fetch() -> None:
        # A slow link may not finish it in time.
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host, PORT), timeout=SECONDS) as connection,
        ):
            connection.sendall(b"x")
            while connection.recv(65536):
                pass

    threading.Thread(target=fetch, daemon=True).start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        while time.monotonic() < stop:
            for _ in range(random.randrange(1, 6)):
                datagrams.sendto(bytes(random.randrange(1, 1400)), (host, PORT))
            time.sleep(random.random() * 0.04)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        use(sys.argv[2])
