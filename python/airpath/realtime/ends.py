"""The two ends of downloads over real sockets: `python -m airpath.realtime.ends serve|fetch`.

They behave like the ends of a simulated download: the server writes all data at once and closes the
stream, the client reads data as it arrives. They run on one host, in namespaces with the same
clock, so that their times are comparable. Each writes one line of JSON per download, with the
client's port. Uploads only use the link at the same time, and have no lines.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

PORT = 5001
"""Any unprivileged port: both namespaces are isolated."""
UPLOAD_PORT = 5002

_CHUNK = 1 << 18
_POLL_S = 0.001
_MOST_POLLS = 100_000

_TCP_INFO_SIZE = 248
_COUNTER = struct.Struct("@I")
_TOTAL_RETRANS = 100
"""Where `tcpi_total_retrans` is in `struct tcp_info` (`include/uapi/linux/tcp.h`)."""
_DATA_SEGS_OUT = 156
"""Where `tcpi_data_segs_out` is."""
_RATE = struct.Struct("@Q")
_DELIVERY_RATE = 160
"""Where `tcpi_delivery_rate` is: bytes per second."""

_TCP_CC_INFO = 26
_BBR_INFO = struct.Struct("@5I")
"""`struct tcp_bbr_info`: bandwidth, least round trip, gains of pacing and window in 256ths."""
_SAMPLE_S = 0.002
"""From one sample of the gains to the next."""
_UNIT = 256
"""A gain of 1. ProbeRTT is the only state of BBR in which the gain of the window is 1."""
_PROBE_RTT_SEGMENTS = 4
"""ProbeRTT counts its 200 ms from when at most these segments are in flight."""
_IN_FLIGHT = struct.Struct("@4I")
_UNACKED = 24
"""Where `tcpi_unacked`, `tcpi_sacked`, `tcpi_lost` and `tcpi_retrans` are."""


@dataclass(frozen=True, slots=True)
class Concurrent:
    """The connections that a client has at the same time."""

    downloads: int
    uploads: int
    """Each of the same number of bytes as a download."""
    stagger: float
    """Seconds from the start of each to that of the next of its kind."""
    congestion: str | None
    """Congestion control of the uploads."""


def serve(size: int, request: int, congestion: str | None, log: Path) -> None:
    """Send `size` bytes to each client after its request of `request` bytes, until killed."""
    with socket.create_server(("", PORT), backlog=256) as listener, log.open("a", buffering=1) as lines:
        _select(listener, congestion)
        _in_threads(_listen_for_uploads)
        while True:
            connection, (_, port, *_) = listener.accept()
            _in_threads(lambda connection=connection, port=port: lines.write(_send(connection, port, size, request)))


def _send(connection: socket.socket, port: int, size: int, request: int) -> str:
    with connection:
        _read(connection, request)
        samples = _BbrSamples(connection)
        _write(connection, size)
        connection.shutdown(socket.SHUT_WR)
        _await_acknowledgements(connection)
        line = {"port": port, "acknowledged": time.monotonic(), **_counters(connection), **samples.end()}
        connection.recv(1)  # returns when the client closes
    return json.dumps(line) + "\n"


def _listen_for_uploads() -> None:
    with socket.create_server(("", UPLOAD_PORT), backlog=256) as listener:
        while True:
            connection, _ = listener.accept()
            _in_threads(lambda connection=connection: _discard(connection))


def _discard(connection: socket.socket) -> None:
    buffer = bytearray(_CHUNK)
    with connection:
        while connection.recv_into(buffer):
            pass


def fetch(host: str, size: int, request: int, rounds: int, log: Path, server_log: Path, options: Concurrent) -> None:
    """Download `rounds` times, in each round over several connections at the same time.

    Return when the server has written its lines, too.
    """
    with log.open("a", buffering=1) as lines:

        def download(number: int) -> None:
            time.sleep(number * options.stagger)
            lines.write(_receive(host, size, request))

        def upload(number: int) -> None:
            time.sleep(number * options.stagger)
            with socket.socket() as connection:
                _select(connection, options.congestion)
                connection.connect((host, UPLOAD_PORT))
                _write(connection, size)

        for number in range(rounds):
            downloads = _in_threads(*(lambda each=each: download(each) for each in range(options.downloads)))
            _in_threads(*(lambda each=each: upload(each) for each in range(options.uploads)))
            for thread in downloads:
                thread.join()
            for _ in range(_MOST_POLLS):
                if server_log.exists() and server_log.read_bytes().count(b"\n") >= (number + 1) * options.downloads:
                    break
                time.sleep(_POLL_S)


def _receive(host: str, size: int, request: int) -> str:
    buffer = bytearray(_CHUNK)
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
        port = connection.getsockname()[1]
    line = {"port": port, "began": began, "connected": connected, "first_byte": first, "ended": ended}
    return json.dumps(line) + "\n"


def _in_threads(*jobs: Callable[[], object]) -> Sequence[Thread]:
    """Start each job in a thread that does not keep the process running."""
    threads = [Thread(target=job, daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    return threads


def _select(sender: socket.socket, congestion: str | None) -> None:
    """Select the congestion control of a socket, or of those that a listener accepts.

    Not by sysctl: a kernel may allow an algorithm to CAP_NET_ADMIN, but not as the default of a
    namespace.
    """
    if congestion is not None:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())


def _write(connection: socket.socket, size: int) -> None:
    payload = memoryview(bytes(_CHUNK))
    while size > 0:
        size -= connection.send(payload[: min(size, _CHUNK)])


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


class _BbrSamples:
    """Samples the gains of a BBR connection; without BBR there are no samples."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._gains: dict[int, int] = {}
        self._probes: list[tuple[float, float]] = []
        name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        self._is_bbr = name.split(b"\0")[0] == b"bbr"
        self._is_over = Event()
        (self._thread,) = _in_threads(self._sample if self._is_bbr else lambda: None)

    def _sample(self) -> None:
        began: float | None = None
        low: float | None = None
        while not self._is_over.wait(_SAMPLE_S):
            info = self._connection.getsockopt(socket.IPPROTO_TCP, _TCP_CC_INFO, _BBR_INFO.size)
            *_, gain, window_gain = _BBR_INFO.unpack(info)
            self._gains[gain] = self._gains.get(gain, 0) + 1
            now = time.monotonic()
            if window_gain == _UNIT:
                began = began or now
                if low is None and self._in_flight() <= _PROBE_RTT_SEGMENTS:
                    low = now
            elif began is not None:
                self._probes.append((now - began, now - (low or now)))
                began = low = None

    def _in_flight(self) -> int:
        info = self._connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_SIZE)
        unacknowledged, sacked, lost, retransmitted = _IN_FLIGHT.unpack_from(info, _UNACKED)
        return unacknowledged - sacked - lost + retransmitted

    def end(self) -> dict[str, Any]:
        """Return the share of samples with each pacing gain, and the lengths of ProbeRTT."""
        self._is_over.set()
        self._thread.join()
        count = sum(self._gains.values())
        gains = {str(gain): samples / count for gain, samples in sorted(self._gains.items())}
        return {"gains": gains, "probes": self._probes}


def _counters(connection: socket.socket) -> dict[str, int]:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_SIZE)
    (retransmitted,), (segments,) = (_COUNTER.unpack_from(info, at) for at in (_TOTAL_RETRANS, _DATA_SEGS_OUT))
    (rate,) = _RATE.unpack_from(info, _DELIVERY_RATE)
    return {"retransmitted_packets": retransmitted, "data_packets": segments, "delivery_rate_bps": 8 * rate}


def main() -> None:
    """Run one of the two ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("end", choices=["serve", "fetch"])
    parser.add_argument("--host", default="server")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--request", type=int, default=0)
    parser.add_argument("--congestion")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--downloads", type=int, default=1)
    parser.add_argument("--uploads", type=int, default=0)
    parser.add_argument("--stagger", type=float, default=0.0)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--server-log", type=Path)
    options = parser.parse_args()
    if options.end == "serve":
        serve(options.bytes, options.request, options.congestion, options.log)
    else:
        concurrent = Concurrent(options.downloads, options.uploads, options.stagger, options.congestion)
        fetch(options.host, options.bytes, options.request, options.rounds, options.log, options.server_log, concurrent)


if __name__ == "__main__":
    sys.exit(main())
