"""Samples of the kernel's sockets: from the netlink answers that `around.py` keeps to a table."""

import socket
import struct
from pathlib import Path

import polars as pl

HEADING = struct.Struct("<QI")
NLMSG_HEADER = 16
DIAG_MSG = 72
INET_DIAG_INFO = 2

STATES = {1: "established", 2: "syn-sent", 3: "syn-recv", 4: "fin-wait-1", 5: "fin-wait-2"}
STATES |= {6: "time-wait", 7: "close", 8: "close-wait", 9: "last-ack", 11: "closing"}

FIELDS = {
    "ca_state": ("B", 1),
    "retransmits": ("B", 2),
    "rto": ("I", 8),
    "snd_mss": ("I", 16),
    "unacked": ("I", 24),
    "lost": ("I", 32),
    "retrans": ("I", 36),
    "rtt": ("I", 68),
    "snd_ssthresh": ("I", 76),
    "snd_cwnd": ("I", 80),
    "total_retrans": ("I", 100),
    "bytes_acked": ("Q", 120),
    "bytes_received": ("Q", 128),
    "notsent_bytes": ("I", 144),
    "min_rtt": ("I", 148),
    "delivery_rate": ("Q", 160),
    "busy_time": ("Q", 168),
    "rwnd_limited": ("Q", 176),
    "sndbuf_limited": ("Q", 184),
    "snd_wnd": ("I", 228),
}
"""Fields of struct tcp_info (linux/tcp.h), with type and place. Times in microseconds."""


def table(kept: Path) -> pl.DataFrame:
    """The samples of one end: a row for each socket and time, in nanoseconds since 1970."""
    rows = []
    data = kept.read_bytes()
    at = 0
    while at + HEADING.size <= len(data):
        time, length = HEADING.unpack_from(data, at)
        at += HEADING.size
        rows += [{"time": time, **socket_} for socket_ in sockets(data[at : at + length])]
        at += length
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.sort("time") if len(frame) else frame


def sockets(answer: bytes) -> list[dict[str, int | str]]:
    """The sockets of one answer."""
    found: list[dict[str, int | str]] = []
    at = 0
    while at + NLMSG_HEADER + DIAG_MSG <= len(answer):
        (length,) = struct.unpack_from("I", answer, at)
        family, state = struct.unpack_from("BB", answer, at + NLMSG_HEADER)
        local, remote = struct.unpack_from(">HH", answer, at + NLMSG_HEADER + 4)
        row: dict[str, int | str] = {"state": STATES.get(state, str(state)), "local": local, "remote": remote}
        row["family"] = "ipv6" if family == socket.AF_INET6 else "ipv4"
        (row["queued"],) = struct.unpack_from("I", answer, at + NLMSG_HEADER + 60)
        attribute = at + NLMSG_HEADER + DIAG_MSG
        while attribute + 4 <= at + length:
            size, kind = struct.unpack_from("HH", answer, attribute)
            if kind == INET_DIAG_INFO and size - 4 > FIELDS["snd_wnd"][1]:
                for name, (form, place) in FIELDS.items():
                    (row[name],) = struct.unpack_from(form, answer, attribute + 4 + place)
            attribute += max(size, 4) + 3 & ~3
        if "snd_cwnd" in row:
            found.append(row)
        at += length + 3 & ~3
    return found
