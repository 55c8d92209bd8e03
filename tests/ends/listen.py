"""Listens at port 9 and does nothing else: `listen.py [SECONDS CODE]`.

After `SECONDS` it ends with exit code `CODE`.
"""

import signal
import socket
import sys
import time

with socket.create_server(("::", 9), family=socket.AF_INET6):
    if len(sys.argv) > 1:
        time.sleep(float(sys.argv[1]))
        sys.exit(int(sys.argv[2]))
    signal.pause()
