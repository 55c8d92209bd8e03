"""Eight objects by HTTP/1.1: `http.py serve`, and `http.py separate|persistent|pipelined HOST`.

Object n, from 1, has 1000·n bytes. The client opens a connection for each, or one for all; then it
awaits each response before the next request, or only the first.
"""

import socket
import sys

PORT = 80
OBJECTS = range(1, 9)


def serve() -> None:
    """Answer connections one after the other, and the requests of each in their order."""
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as requests:
                while line := requests.readline():
                    if line.startswith(b"GET"):
                        size = 1000 * int(line.split()[1].removeprefix(b"/"))
                        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\r\n"
                        connection.sendall(head.encode() + b"x" * size)


def request(connection: socket.socket, *numbers: int) -> None:
    """Request objects, in one segment."""
    requests = [f"GET /{number} HTTP/1.1\r\nHost: server\r\n\r\n" for number in numbers]
    connection.sendall("".join(requests).encode())


def response(connection: socket.socket, number: int) -> None:
    """Read an object, and nothing of what follows it."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    missing = 1000 * number
    while missing > 0:
        missing -= len(connection.recv(missing))


def fetch(how: str, host: str) -> None:
    """Fetch all objects."""
    if how == "separate":
        for number in OBJECTS:
            with socket.create_connection((host, PORT)) as connection:
                request(connection, number)
                response(connection, number)
        return
    with socket.create_connection((host, PORT)) as connection:
        if how == "persistent":
            for number in OBJECTS:
                request(connection, number)
                response(connection, number)
            return
        request(connection, 1)
        response(connection, 1)
        request(connection, *OBJECTS[1:])
        for number in OBJECTS[1:]:
            response(connection, number)


if sys.argv[1] == "serve":
    serve()
else:
    fetch(sys.argv[1], sys.argv[2])
