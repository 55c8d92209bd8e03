"""Runs a program of one end with tcpdump and samples of the kernel's sockets beside it.

    around.py FOLDER END CONGESTION -- COMMAND...

`FOLDER/END.pcap` has what tcpdump takes at `air0`, with the offload of this interface. The routes
of the namespace get the congestion control: sysctl in a namespace accepts only what the host
allows.
`FOLDER/END.samples` has, every 10 ms, a heading of 12 bytes (nanoseconds since 1970, and the length
of what follows) and the kernel's answer about all TCP sockets of this namespace (sock_diag(7)).
It needs nothing but the standard library: it runs inside namespaces.
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

PERIOD_S = 0.01

AFTER_S = 0.7
"""Seconds that the end of the connections may take after the program's end."""

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
TCP_LISTEN = 10
INET_DIAG_INFO, INET_DIAG_CONG = 2, 4


def request(family: int) -> bytes:
    """The question for all TCP sockets of a family but the listening ones."""
    extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
    body = struct.pack("BBBBI", family, socket.IPPROTO_TCP, extensions, 0, 0xFFFF & ~(1 << TCP_LISTEN)) + bytes(48)
    return struct.pack("IHHII", 16 + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0) + body


def answer(kernel: socket.socket, family: int) -> bytes:
    """What the kernel answers to it."""
    kernel.send(request(family))
    whole = b""
    while True:
        part = kernel.recv(1 << 17)
        at = 0
        while at + 16 <= len(part):
            length, kind = struct.unpack_from("IH", part, at)
            if kind == NLMSG_DONE:
                return whole
            if kind == NLMSG_ERROR:
                (number,) = struct.unpack_from("i", part, at + 16)
                raise OSError(-number, f"sock_diag: {os.strerror(-number)}")
            whole += part[at : at + length]
            at += length + 3 & ~3


def sample(target: Path, stop: threading.Event) -> None:
    """Writes samples until `stop` is set."""
    with (
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel,
        target.open("wb") as samples,
    ):
        due = time.monotonic()
        while not stop.wait(max(0.0, due - time.monotonic())):
            now = time.time_ns()
            # Sockets of IPv6 serve IPv4, too.
            found = answer(kernel, socket.AF_INET) + answer(kernel, socket.AF_INET6)
            samples.write(struct.pack("<QI", now, len(found)) + found)
            due = max(due + PERIOD_S, time.monotonic())


def use(congestion: str) -> None:
    """Gives all routes of IPv4 a congestion control."""
    routes = subprocess.run(["ip", "route"], check=True, capture_output=True, text=True).stdout
    for route in routes.splitlines():
        # `linkdown` and the like are states, not options.
        words = [word for word in route.split() if word != "linkdown"]
        subprocess.run(["ip", "route", "change", *words, "congctl", congestion], check=True)


def main() -> int:
    """Parses the command line, and runs the program."""
    folder, end, congestion = Path(sys.argv[1]), *sys.argv[2:4]
    command = sys.argv[5:]
    use(congestion)
    capture = ["tcpdump", "-i", "air0", "-Z", "root", "-s", "128", "-B", "16384", "-U", "-w"]
    dump = subprocess.Popen([*capture, str(folder / f"{end}.pcap"), "tcp"], stderr=subprocess.PIPE, text=True)
    assert dump.stderr is not None
    report = []
    for line in dump.stderr:
        report.append(line)
        if "listening on" in line:
            break
    else:
        sys.exit("tcpdump: " + "".join(report))
    stop = threading.Event()
    sampler = threading.Thread(target=sample, args=(folder / f"{end}.samples", stop))
    sampler.start()
    # The link ends the server by a signal.
    process = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    time.sleep(AFTER_S if end == "mobile" else 0)
    stop.set()
    sampler.join()
    with contextlib.suppress(ProcessLookupError):
        dump.send_signal(signal.SIGINT)
    dump.wait()
    return code


if __name__ == "__main__":
    sys.exit(main())
