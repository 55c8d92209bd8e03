"""Requests to the control socket of a link that is too busy to read them."""

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from airpath import control

PROCESS = os.getpid()


@pytest.fixture
def connections() -> Iterator[list[bytes]]:
    """A link that resets the first connection, and answers the others; what it has read.

    Its answer to a change with `end` is cut.
    """
    read: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{control._PREFIX}{PROCESS}")
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    # Bytes that are unread at the end reset the connection (unix(7)).
                    data = client.recv(1 if not read else 4096)
                    if data:
                        read.append(data)
                    if data and len(read) > 1:
                        client.sendall(b'{"time_s": 1.0}\n'[: 5 if b"end" in data else None])

        thread = threading.Thread(target=serve)
        thread.start()
        yield read
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_query_is_sent_again(connections: list[bytes]) -> None:
    assert control.send(PROCESS, {"status": {}}) == {"time_s": 1.0}
    assert connections == [b"{", b'{"status": {}}\n']


def test_a_change_that_the_link_may_have_received_is_not(connections: list[bytes]) -> None:
    with pytest.raises(control.NoLinkError, match="without a whole answer"):
        control.send(PROCESS, {"change": {"outage": "3 s"}})
    assert connections == [b"{"]


def test_a_link_that_ends_in_its_answer_is_no_link(connections: list[bytes]) -> None:
    connections.append(b"an earlier connection")
    with pytest.raises(control.NoLinkError, match="without a whole answer"):
        control.send(PROCESS, {"change": {"end": "0 s"}})


def test_a_change_that_was_not_sent_is_sent_again(connections: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    connections.append(b"an earlier connection")
    left = [BrokenPipeError(), ConnectionResetError()]

    class Refused(socket.socket):
        def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]
            if left:
                raise left.pop()
            super().sendall(data, flags)

    monkeypatch.setattr(socket, "socket", Refused)
    assert control.send(PROCESS, {"change": {"outage": "3 s"}}) == {"time_s": 1.0}
    assert connections[-1] == b'{"change": {"outage": "3 s"}}\n'


@pytest.mark.parametrize("link", [None, "3", "kept"])
def test_where_no_link_runs_one_can_be_started(link: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "running", list)
    with pytest.raises(control.NoLinkError) as found:
        control.find(link)
    assert found.value.next_step == "start one with `airpath link`"
