"""The resolver of pages, beside messages of RFC 1035 and a client that is not airpath's."""

import socket
import struct
from collections.abc import Mapping

import pytest

from airpath.page import resolver
from airpath.page.resolver import answer

ADDRESSES = {"www.example.com": "192.0.2.1"}


def query(name: str, kind: int, flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 0x1234, flags, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def test_a_name_has_an_address() -> None:
    message = query("www.Example.com", 1)
    reply = answer(message, ADDRESSES)
    assert reply is not None
    assert struct.unpack("!6H", reply[:12]) == (0x1234, 0x8580, 1, 1, 0, 0)
    # The question is as the client sent it, also its case.
    assert reply[12 : len(message)] == message[12:]
    record = reply[len(message) :]
    assert struct.unpack("!HHHIH", record[:12]) == (0xC00C, 1, 1, 3600, 4)
    assert socket.inet_ntoa(record[12:]) == "192.0.2.1"


@pytest.mark.parametrize(
    ("name", "kind", "code"), [("www.example.com", 28, 0), ("other.example.com", 1, 3), ("", 1, 3)]
)
def test_other_answers_have_no_records(name: str, kind: int, code: int) -> None:
    reply = answer(query(name, kind) if name else struct.pack("!6H", 1, 0, 1, 0, 0, 0) + b"\0\0\1\0\1", ADDRESSES)
    assert reply is not None
    flags, questions, answers = struct.unpack("!3H", reply[2:8])
    assert (flags & 0xF, questions, answers) == (code, 1, 0)


def test_what_is_not_a_query_has_no_answer() -> None:
    message = query("www.example.com", 1)
    for length in range(len(message)):
        assert answer(message[:length], ADDRESSES) is None
    assert answer(query("www.example.com", 1, flags=0x8100), ADDRESSES) is None
    assert answer(message[:4] + b"\0\2" + message[6:], ADDRESSES) is None
    assert answer(message[:12] + b"\xc0\x0c" + message[-4:], ADDRESSES) is None


def test_the_server_goes_on_after_an_error_of_its_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[socket.socket] = []

    def bind(address: str) -> socket.socket:
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.bind((address, 0))
        bound.append(own)
        return own

    monkeypatch.setattr(resolver, "_bound", bind)
    resolver.serve("127.0.0.1", ADDRESSES)
    [server] = bound
    message = query("www.example.com", 1)
    calls = 0
    original = resolver.answer

    def failing(message: bytes, known: Mapping[str, str]) -> bytes | None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("the network is unreachable")
        return original(message, known)

    monkeypatch.setattr(resolver, "answer", failing)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.connect(server.getsockname())
        client.send(message)
        client.send(message)
        assert client.recv(65_535) == answer(message, ADDRESSES)
    assert calls == 2
