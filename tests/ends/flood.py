"""Sends datagrams of 1,200 bytes and prints how many: `flood.py ADDRESS SECONDS [BITS_PER_SECOND]`.

Without a rate as fast as the kernel takes them.
"""

import contextlib
import socket
import sys
import time

SIZE = 1200

began = time.monotonic()
deadline = began + float(sys.argv[2])
interval_s = 8 * SIZE / float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
sent = 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
    while (now := time.monotonic()) < deadline:
        if (ahead_s := began + sent * interval_s - now) > 0:
            time.sleep(ahead_s)
        with contextlib.suppress(OSError):
            flood.sendto(bytes(SIZE), (sys.argv[1], 9))
        sent += 1
sys.stdout.write(f"{sent}\n")
