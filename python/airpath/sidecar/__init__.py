"""Processes beside a link, in the host's network.

An ordinary user's link is in namespaces that it cannot leave. So what needs the host's network is
another process, started before the link:

| module | what |
| --- | --- |
| `host_ports` | relays connections from the link to ports of this host |
| `live` | serves the page that shows the link while it runs |

Such a process ends when the link's end of its socket is closed, however the link ended.
"""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST_END_S = 5.0


@contextmanager
def sidecar(module: str, *arguments: str) -> Iterator[socket.socket]:
    """Run a module of this package as a process of its own, until the end of the block.

    Yields:
        The link's end of the socket to it. Its own end is its first argument, as a descriptor.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", f"{__name__}.{module}", str(theirs.fileno()), *arguments],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # Ctrl-C is for the command; the result is written after it.
            start_new_session=True,
        )
    try:
        yield ours
    finally:
        ours.close()
        try:
            process.wait(_LONGEST_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
