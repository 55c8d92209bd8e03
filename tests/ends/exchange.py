"""Requests and responses over one TCP connection.

    exchange.py serve SIZE
    exchange.py request HOST NUMBER SIZE THINK_S BUFFER

The server accepts one connection, answers each 100 bytes with `SIZE` bytes, and ends with the
connection.
"""

import socket
import sys
import time

PORT = 4100
REQUEST = bytes(100)


def read(connection: socket.socket, size: int) -> bool:
    """Read `size` bytes; return whether all of them arrived."""
    while size > 0 and (data := connection.recv(min(size, 65536))):
        size -= len(data)
    return size == 0


def serve(size: int) -> None:
    """Answer the requests of one connection until the client closes it."""
    with socket.create_server(("", PORT)) as server:
        connection, _ = server.accept()
    with connection:
        while read(connection, len(REQUEST)):
            connection.sendall(bytes(size))


def request(host: str, number: int, size: int, think_s: float, buffer: int) -> None:
    """Request `size` bytes `number` times, with pauses of `think_s` between.

    A `buffer` of 0 bytes leaves the system's default receive buffer.
    """
    with socket.socket() as connection:
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.connect((host, PORT))
        for sent in range(number):
            if sent:
                time.sleep(think_s)
            connection.sendall(REQUEST)
            if not read(connection, size):
                sys.exit("the server closed within a response")


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    request(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
