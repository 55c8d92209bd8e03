"""A transfer over MPTCP: `serve BYTES` at the server, `fetch HOST` at the mobile.

`fetch` prints seconds, bytes, the longest gap between reads, and the number of further subflows.
"""

import socket
import struct
import sys
import time

PORT = 5001
SOL_MPTCP = 284
MPTCP_INFO = 1


def serve(size: int) -> None:
    """Send this number of bytes to each client, one after the other."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", PORT))
        listener.listen()
        while True:
            client, _ = listener.accept()
            with client:
                client.sendall(bytes(size))
                client.shutdown(socket.SHUT_WR)
                client.recv(1)


def fetch(host: str) -> None:
    """Read everything, and print how long it took."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP) as client:
        begin = last = time.monotonic()
        client.connect((host, PORT))
        received, longest, subflows = 0, 0.0, 0
        while read := client.recv(1 << 16):
            now = time.monotonic()
            longest, last = max(longest, now - last), now
            received += len(read)
            # The first field of `struct mptcp_info` is one byte: the subflows beside the first.
            info = client.getsockopt(SOL_MPTCP, MPTCP_INFO, 64)
            subflows = max(subflows, struct.unpack_from("B", info)[0])
        sys.stdout.write(f"{time.monotonic() - begin} {received} {longest} {subflows}\n")


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    fetch(sys.argv[2])
