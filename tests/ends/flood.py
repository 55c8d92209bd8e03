"""Sends datagrams as fast as the kernel takes them, and prints how many: `flood.py ADDRESS SECONDS`."""

import contextlib
import socket
import sys
import time

deadline = time.monotonic() + float(sys.argv[2])
sent = 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            flood.sendto(bytes(1200), (sys.argv[1], 9))
        sent += 1
sys.stdout.write(f"{sent}\n")
