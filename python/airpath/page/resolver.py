"""Look-ups over a link: a resolver at the server's end, and a stub resolver at the mobile.

On a closed link, programs query 127.0.0.1 (docs/link.md). The stub there forwards their queries to
the resolver, over the link.
"""

import socket
import struct
import threading
from collections.abc import Mapping
from select import select

PORT = 53
_A = struct.pack("!HH", 1, 1)
"""Type A, class IN (RFC 1035 §3.2)."""
_LIFETIME = 3600
"""Seconds for which an answer may be stored."""
_NAME_ERROR = 3
_MOST_WAITING = 256
"""Queries without an answer that the stub stores. The oldest is forgotten."""


def serve(address: str, known: Mapping[str, str]) -> None:
    """Answer queries at an address in a thread: names have these IPv4 addresses.

    Raises:
        OSError: The port cannot be used.
    """
    server = _bound(address)

    def run() -> None:
        while True:
            # A client may be unreachable: then it repeats its query.
            try:
                query, client = server.recvfrom(65_535)
                if (reply := answer(query, known)) is not None:
                    server.sendto(reply, client)
            except OSError:
                continue

    threading.Thread(target=run, daemon=True).start()


def forward(resolver: str, address: str = "127.0.0.1") -> None:
    """Forward the queries that arrive at an address to a resolver, in a thread.

    Raises:
        OSError: The port cannot be used.
    """
    stub = _bound(address)
    upstream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    upstream.connect((resolver, PORT))
    waiting: dict[bytes, tuple[str, int]] = {}

    def run() -> None:
        while True:
            for ready in select([stub, upstream], [], [])[0]:
                # The network or the resolver may be unreachable: then the client repeats its query.
                try:
                    message, client = ready.recvfrom(65_535)
                    key = message[:2] + (_question(message) or b"").lower()
                    if ready is stub:
                        waiting[key] = client
                        if len(waiting) > _MOST_WAITING:
                            del waiting[next(iter(waiting))]
                        upstream.send(message)
                    elif key in waiting:
                        stub.sendto(message, waiting.pop(key))
                except OSError:
                    continue

    threading.Thread(target=run, daemon=True).start()


def answer(query: bytes, known: Mapping[str, str]) -> bytes | None:
    """Return the answer to a query (RFC 1035 §4); `None` if it is malformed or not a query.

    A known name has an IPv4 address and no other records.
    """
    question = _question(query)
    if question is None or query[2] & 0x80:
        return None
    labels, rest = [], question[:-5]
    while rest:
        labels.append(rest[1 : 1 + rest[0]].decode("latin-1").lower())
        rest = rest[1 + rest[0] :]
    address = known.get(".".join(labels))
    record = b""
    if address is not None and question[-4:] == _A:
        # The name is that of the question: a pointer to it (RFC 1035 §4.1.4).
        data = socket.inet_aton(address)
        record = b"\xc0\x0c" + _A + struct.pack("!IH", _LIFETIME, len(data)) + data
    # Response, authoritative, the client's request for recursion, recursion available.
    flags = 0x8480 | (query[2] & 1) << 8 | (_NAME_ERROR if address is None else 0)
    return query[:2] + struct.pack("!5H", flags, 1, bool(record), 0, 0) + question + record


def _question(message: bytes) -> bytes | None:
    """Return the question of a message that has one: name, type and class."""
    end = 12
    if message[4:6] != b"\0\1":
        return None
    while end < len(message) and message[end]:
        if message[end] > 63:
            return None
        end += 1 + message[end]
    return message[12 : end + 5] if end + 5 <= len(message) else None


def _bound(address: str) -> socket.socket:
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind((address, PORT))
    return own
