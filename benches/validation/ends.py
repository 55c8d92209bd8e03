"""The two ends of parallel downloads over real sockets: `python ends.py serve|fetch`.

The server sends to each client until it has sent the bytes or the client closes. The client opens a
connection at each start, and prints the bytes and the time of each as a line of JSON.
"""

import argparse
import json
import socket
import sys
import threading
import time

PORT = 5001
_CHUNK = 1 << 16


def serve(size: int, congestion: str) -> None:
    """Send `size` bytes to each client, without limit if it is 0, until killed."""
    with socket.create_server(("", PORT), backlog=64) as listener:
        # Per socket: a kernel may allow an algorithm to CAP_NET_ADMIN, but not as the default of a
        # namespace.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_send, args=(connection, size), daemon=True).start()


def _send(connection: socket.socket, size: int) -> None:
    payload = memoryview(bytes(_CHUNK))
    sent = 0
    with connection:
        try:
            while not size or sent < size:
                sent += connection.send(payload[: min(_CHUNK, size - sent)] if size else payload)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)  # returns when the client closes
        except OSError:
            pass  # the client has closed


def fetch(host: str, size: int, starts: list[float], duration: float) -> None:
    """Receive over a connection from each start, for all `size` bytes or until a time."""
    origin = time.monotonic() + 0.05
    received = [0] * len(starts)
    times: list[float | None] = [None] * len(starts)

    def receive(number: int) -> None:
        time.sleep(max(0.0, origin + starts[number] - time.monotonic()))
        began = time.monotonic()
        with socket.create_connection((host, PORT)) as connection:
            while taken := len(connection.recv(_CHUNK)):
                received[number] += taken
                if size and received[number] >= size:
                    times[number] = time.monotonic() - began
                    return

    threads = [threading.Thread(target=receive, args=(number,), daemon=True) for number in range(len(starts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, origin + duration - time.monotonic()))
    # Open connections end with the process.
    print(json.dumps({"delivered": received, "times": times}), flush=True)


def main() -> None:
    """Run one of the two ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("end", choices=["serve", "fetch"])
    parser.add_argument("--host", default="server")
    parser.add_argument("--bytes", type=int, default=0)
    parser.add_argument("--congestion", default="reno")
    parser.add_argument("--starts", type=lambda text: [float(start) for start in text.split(",")], default=[0.0])
    parser.add_argument("--duration", type=float, default=10)
    options = parser.parse_args()
    if options.end == "serve":
        serve(options.bytes, options.congestion)
    else:
        fetch(options.host, options.bytes, options.starts, options.duration)


if __name__ == "__main__":
    sys.exit(main())
