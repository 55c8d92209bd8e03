"""The ends of benches/proxy.py: its server, and the clients that measure.

Each is a process in the namespace of the mobile or the server. The limit of open files of a host is
below 100,000. Several processes, each with a port of its own, hold that number of connections.
"""

import resource
import select
import socket
import time
from contextlib import suppress

ECHO_PORT, IDLE_PORT = 7000, 7001
AT_A_TIME = 64
# Connections of a process, below the usual hard limit of open files.
PER_PROCESS = 15000


def raise_file_limit() -> None:
    """Permit as many open files as the host does."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def serve(idle_port: int) -> None:
    """Answer each byte. Connections of the first port then end, those of the other are kept."""
    poll, listeners, connections = select.epoll(), {}, {}
    for port in (ECHO_PORT, idle_port) if idle_port == IDLE_PORT else (idle_port,):
        listener = socket.create_server(("", port), backlog=4096)
        listener.setblocking(False)
        listeners[listener.fileno()] = (listener, port)
        poll.register(listener, select.EPOLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in listeners:
                listener, port = listeners[descriptor]
                try:
                    connection, _ = listener.accept()
                except BlockingIOError:
                    continue
                connections[connection.fileno()] = (connection, port)
                poll.register(connection, select.EPOLLIN)
                continue
            connection, port = connections[descriptor]
            data = b""
            with suppress(OSError):
                data = connection.recv(1)
                connection.send(data)
            if port == ECHO_PORT or not data:
                poll.unregister(connection)
                del connections[descriptor]
                connection.close()


def rate(address: str, seconds: float) -> float:
    """Return finished connections per second: connect, one byte each way, close."""
    poll, sockets, finished = select.epoll(), {}, 0

    def begin() -> None:
        each = socket.socket()
        each.setblocking(False)
        each.connect_ex((address, ECHO_PORT))
        sockets[each.fileno()] = [each, False]
        poll.register(each, select.EPOLLOUT)

    for _ in range(AT_A_TIME):
        begin()
    start = time.monotonic()
    while (now := time.monotonic()) < start + seconds:
        for descriptor, _ in poll.poll(0.1):
            entry = sockets[descriptor]
            each, sent = entry
            try:
                if not sent:
                    each.send(b"x")
                    entry[1] = True
                    poll.modify(each, select.EPOLLIN)
                    continue
                finished += each.recv(1) == b"x"
            except OSError:
                pass
            poll.unregister(each)
            del sockets[descriptor]
            each.close()
            begin()
    return finished / (now - start)


def hold(address: str, port: int, count: int) -> None:
    """Open connections and keep them. On each line of the input, use each of them once."""
    sockets = []
    with suppress(OSError):
        sockets.extend(socket.create_connection((address, port), timeout=5) for _ in range(count))
    print(len(sockets), flush=True)
    # Each connection is open to its end if a byte comes back.
    while input():
        answered = 0
        for each in sockets:
            with suppress(OSError):
                each.send(b"x")
                answered += each.recv(1) == b"x"
        print(answered, flush=True)
