"""Sends zeros to the sink; prints how many bytes the sink received: `send.py HOST BYTES`."""

import socket
import sys

with socket.create_connection((sys.argv[1], 9)) as connection:
    connection.sendall(bytes(int(sys.argv[2])))
    connection.shutdown(socket.SHUT_WR)
    sys.stdout.write(connection.makefile().read())
