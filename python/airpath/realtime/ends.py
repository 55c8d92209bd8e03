"""The two ends of a download over real sockets: `python -m airpath.realtime.ends serve|fetch`.

They behave like the ends of a simulated download: the server writes all data at once and closes the
stream, the client reads data as it arrives. They run on one host, in namespaces with the same
clock, so that their times are comparable. Each writes one line of JSON per transfer.
"""

import argparse
import array
import fcntl
import json
import socket
import struct
import sys
import termios
import time
from pathlib import Path

PORT = 5001
"""Any unprivileged port: both namespaces are isolated."""

_CHUNK = 1 << 18
_POLL_S = 0.001
_MOST_POLLS = 100_000

_TCP_INFO_SIZE = 248
_COUNTER = struct.Struct("@I")
_TOTAL_RETRANS = 100
"""Where `tcpi_total_retrans` is in `struct tcp_info` (`include/uapi/linux/tcp.h`)."""
_DATA_SEGS_OUT = 156
"""Where `tcpi_data_segs_out` is."""


def serve(size: int, request: int, congestion: str | None, log: Path) -> None:
    """Send `size` bytes to each client after its request of `request` bytes, until killed."""
    payload = memoryview(bytes(_CHUNK))
    with socket.create_server(("", PORT), backlog=16) as listener, log.open("a", buffering=1) as lines:
        if congestion is not None:
            # Not by sysctl: a kernel may allow an algorithm to CAP_NET_ADMIN, but not as the
            # default of a namespace.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        while True:
            connection, _ = listener.accept()
            with connection:
                _read(connection, request)
                left = size
                while left > 0:
                    left -= connection.send(payload[: min(left, _CHUNK)])
                connection.shutdown(socket.SHUT_WR)
                _await_acknowledgements(connection)
                line = {"acknowledged": time.monotonic(), **_counters(connection)}
                connection.recv(1)  # returns when the client closes
            lines.write(json.dumps(line) + "\n")


def fetch(host: str, size: int, request: int, count: int, log: Path, server_log: Path) -> None:
    """Download `count` times, each over a new connection.

    Return when the server has written its lines, too.
    """
    buffer = bytearray(_CHUNK)
    with log.open("a", buffering=1) as lines:
        for number in range(count):
            began = time.monotonic()
            with socket.create_connection((host, PORT)) as connection:
                connected = time.monotonic()
                connection.sendall(bytes(request))
                first, received = None, 0
                while received < size:
                    taken = connection.recv_into(buffer)
                    if taken == 0:
                        raise ConnectionError(f"the server closed the connection after {received} of {size} bytes")
                    first = first or time.monotonic()
                    received += taken
                ended = time.monotonic()
            line = {"began": began, "connected": connected, "first_byte": first, "ended": ended}
            lines.write(json.dumps(line) + "\n")
            for _ in range(_MOST_POLLS):
                if server_log.exists() and server_log.read_bytes().count(b"\n") > number:
                    break
                time.sleep(_POLL_S)


def _read(connection: socket.socket, size: int) -> None:
    while size > 0:
        taken = len(connection.recv(size))
        if taken == 0:
            raise ConnectionError("the client closed the connection before its request was complete")
        size -= taken


def _await_acknowledgements(connection: socket.socket) -> None:
    """Wait until all data is acknowledged.

    The kernel counts the FIN as one byte; it may still be in flight.
    """
    unacknowledged = array.array("i", [0])
    while True:
        fcntl.ioctl(connection, termios.TIOCOUTQ, unacknowledged)
        if unacknowledged[0] <= 1:
            return
        time.sleep(_POLL_S)


def _counters(connection: socket.socket) -> dict[str, int]:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_SIZE)
    (retransmitted,), (segments,) = (_COUNTER.unpack_from(info, at) for at in (_TOTAL_RETRANS, _DATA_SEGS_OUT))
    return {"retransmitted_packets": retransmitted, "data_packets": segments}


def main() -> None:
    """Run one of the two ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("end", choices=["serve", "fetch"])
    parser.add_argument("--host", default="server")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--request", type=int, default=0)
    parser.add_argument("--congestion")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--server-log", type=Path)
    options = parser.parse_args()
    if options.end == "serve":
        serve(options.bytes, options.request, options.congestion, options.log)
    else:
        fetch(options.host, options.bytes, options.request, options.count, options.log, options.server_log)


if __name__ == "__main__":
    sys.exit(main())
