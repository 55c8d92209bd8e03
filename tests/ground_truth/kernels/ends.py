"""The programs at the two ends: `ends.py serve …` and `ends.py get|put|talk … HOST`; see `main`.

A request has 100 bytes. Each connection has a thread at the server.
"""

import argparse
import contextlib
import socket
import struct
import sys
import threading
import time

PORT = 4100
REQUEST = bytes(100)
NO_LINGER = struct.pack("ii", 1, 0)


def read(connection: socket.socket, size: int, chunk: int = 65536) -> bool:
    """Reads `size` bytes; returns whether all of them arrived."""
    while size > 0 and (data := connection.recv(min(size, chunk))):
        size -= len(data)
    return size <= 0


def drain(connection: socket.socket) -> None:
    """Reads to the end of the stream."""
    while connection.recv(65536):
        pass


def answer(connection: socket.socket, how: argparse.Namespace) -> None:
    """Serves one connection."""
    with connection, contextlib.suppress(OSError):
        if how.send_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, how.send_buffer)
        if how.mode == "sink":
            time.sleep(how.sleep)
            drain(connection)
        elif how.mode == "both":
            threading.Thread(target=drain, args=(connection,)).start()
            connection.sendall(bytes(how.size))
            connection.shutdown(socket.SHUT_WR)
            time.sleep(60)
        else:
            while read(connection, how.request):
                time.sleep(how.sleep)
                for sent in range(how.pieces):
                    if sent:
                        time.sleep(how.every)
                    connection.sendall(bytes(how.size))
                if how.reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
                    return


def serve(how: argparse.Namespace) -> None:
    """Serves all connections."""
    with socket.create_server(("", PORT)) as server:
        if how.receive_buffer:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, how.receive_buffer)
        while True:
            connection, _ = server.accept()
            threading.Thread(target=answer, args=(connection, how), daemon=True).start()


def get(connection: socket.socket, how: argparse.Namespace) -> None:
    """Requests, reads, thinks."""
    for number in range(how.number):
        if number:
            time.sleep(how.think)
        connection.sendall(REQUEST)
        if how.pause:
            read(connection, how.size // 4)
            time.sleep(how.pause)
            read(connection, how.size - how.size // 4)
        elif how.chunk:
            left = how.size
            while left > 0:
                read(connection, min(how.chunk, left), how.chunk)
                left -= how.chunk
                time.sleep(how.every)
        elif how.abort:
            read(connection, how.abort)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            return
        else:
            read(connection, how.size)
    time.sleep(how.idle)


def put(connection: socket.socket, how: argparse.Namespace) -> None:
    """Sends, and waits until the server has read all."""
    if how.delay:
        time.sleep(how.delay)
    connection.sendall(bytes(how.size))
    connection.shutdown(socket.SHUT_WR)
    drain(connection)


def talk(connection: socket.socket, how: argparse.Namespace) -> None:
    """Exchanges small messages; each request is written in two parts."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, how.no_delay)
    for _ in range(how.number):
        connection.sendall(REQUEST)
        connection.sendall(REQUEST)
        read(connection, how.size)
        time.sleep(how.think)


def run(how: argparse.Namespace) -> None:
    """Runs one connection of the client."""
    with socket.socket() as connection, contextlib.suppress(ConnectionResetError):
        if how.receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, how.receive_buffer)
        if how.send_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, how.send_buffer)
        if how.keep_alive:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, how.keep_alive)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, how.keep_alive)
        connection.connect((how.host, PORT))
        {"get": get, "put": put, "talk": talk}[how.verb](connection, how)


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["serve", "get", "put", "talk"])
    parser.add_argument("host", nargs="?", default="")
    parser.add_argument("--mode", choices=["answer", "sink", "both"], default="answer")
    for name in ("receive-buffer", "send-buffer", "size", "chunk", "abort", "keep-alive", "no-delay"):
        parser.add_argument(f"--{name}", type=int, default=0)
    for name in ("sleep", "every", "think", "pause", "idle", "delay"):
        parser.add_argument(f"--{name}", type=float, default=0)
    for name in ("number", "pieces", "parallel"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--request", type=int, default=len(REQUEST))
    parser.add_argument("--reset", action="store_true")
    how = parser.parse_args()
    if how.verb == "serve":
        serve(how)
    threads = [threading.Thread(target=run, args=(how,)) for _ in range(how.parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
