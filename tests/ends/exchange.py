"""Requests and responses: `exchange.py serve SIZE`, and `exchange.py ask HOST NUMBER SIZE THINK_S BUFFER`.

The server answers one connection, each 100 bytes with `SIZE`, and ends with it.
"""

import socket
import sys
import time

PORT = 4100
REQUEST = bytes(100)


def read(connection: socket.socket, size: int) -> bool:
    """Read so many bytes, and tell whether they came."""
    while size > 0 and (data := connection.recv(min(size, 65536))):
        size -= len(data)
    return size == 0


def serve(size: int) -> None:
    """Answer one connection until its other end closes."""
    with socket.create_server(("", PORT)) as server:
        connection, _ = server.accept()
    with connection:
        while read(connection, len(REQUEST)):
            connection.sendall(bytes(size))


def ask(host: str, number: int, size: int, think_s: float, buffer: int) -> None:
    """Ask so many times for `size` bytes, with pauses between; a receive buffer of 0 bytes is the system's."""
    with socket.socket() as connection:
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.connect((host, PORT))
        for asked in range(number):
            if asked:
                time.sleep(think_s)
            connection.sendall(REQUEST)
            if not read(connection, size):
                sys.exit("the server closed within a response")


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    ask(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
