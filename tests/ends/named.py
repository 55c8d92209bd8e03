"""Connects to port 8000 of each further name of the server; prints names and addresses."""

import os
import socket
import sys

for name, _, address in (pair.partition("=") for pair in os.environ["AIRPATH_HOSTS"].split()):
    assert socket.gethostbyname(name) == address, name
    with socket.create_connection((name, 8000), 5) as reached:
        sys.stdout.write(f"{name} {reached.getpeername()[0]}\n")
