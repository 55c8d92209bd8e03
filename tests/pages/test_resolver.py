"""The resolver of pages, beside messages of RFC 1035 and a client that is not airpath's."""

import socket
import struct

import pytest

from airpath.page.resolver import answer

KNOWN = {"www.example.com": "192.0.2.1"}


def query(name: str, kind: int, flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 0x1234, flags, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def test_a_known_name_has_an_address() -> None:
    asked = query("www.Example.com", 1)
    answered = answer(asked, KNOWN)
    assert answered is not None
    assert struct.unpack("!6H", answered[:12]) == (0x1234, 0x8580, 1, 1, 0, 0)
    # The question is as the client sent it, also its case.
    assert answered[12 : len(asked)] == asked[12:]
    record = answered[len(asked) :]
    assert struct.unpack("!HHHIH", record[:12]) == (0xC00C, 1, 1, 3600, 4)
    assert socket.inet_ntoa(record[12:]) == "192.0.2.1"


@pytest.mark.parametrize(
    ("name", "kind", "code"), [("www.example.com", 28, 0), ("other.example.com", 1, 3), ("", 1, 3)]
)
def test_other_answers_have_no_records(name: str, kind: int, code: int) -> None:
    answered = answer(query(name, kind) if name else struct.pack("!6H", 1, 0, 1, 0, 0, 0) + b"\0\0\1\0\1", KNOWN)
    assert answered is not None
    flags, questions, answers = struct.unpack("!3H", answered[2:8])
    assert (flags & 0xF, questions, answers) == (code, 1, 0)


def test_what_is_not_a_query_has_no_answer() -> None:
    asked = query("www.example.com", 1)
    for length in range(len(asked)):
        assert answer(asked[:length], KNOWN) is None
    assert answer(query("www.example.com", 1, flags=0x8100), KNOWN) is None
    assert answer(asked[:4] + b"\0\2" + asked[6:], KNOWN) is None
    assert answer(asked[:12] + b"\xc0\x0c" + asked[-4:], KNOWN) is None
