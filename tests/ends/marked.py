"""Datagrams of all traffic classes.

    marked.py receive PORT COUNT
    marked.py send HOST PORT COUNT SIZE

The sender first waits until the receiver is ready. Datagram n has the traffic class n modulo 256:
its two lowest bits are ECN, the others DSCP (RFC 2474, RFC 3168). The receiver returns a line
`NUMBER CLASS` for each datagram, in the order of arrival, once `COUNT` have arrived or none has
arrived for a second. The sender prints these lines.
"""

import socket
import sys

MOST_S = 10


def receive(port: int, count: int) -> None:
    """Report the number and the traffic class of each datagram, over either version of IP."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_000_000)
        receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        receiver.bind(("::", port))
        hello, sender = receiver.recvfrom(16)
        receiver.sendto(hello, sender)
        receiver.settimeout(1)
        lines = []
        try:
            while len(lines) < count:
                data, ancillary, _, sender = receiver.recvmsg(65536, 256)
                [traffic_class] = [value[0] for _, _, value in ancillary]
                lines.append(f"{int(data[:8])} {traffic_class}")
        except TimeoutError:
            pass
        receiver.sendto("\n".join(lines).encode(), sender)


def send(host: str, port: int, count: int, size: int) -> None:
    """Send datagrams of `size` bytes, each with the next traffic class."""
    [(family, _, _, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    level, option = (
        (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if family == socket.AF_INET6 else (socket.IPPROTO_IP, socket.IP_TOS)
    )
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(MOST_S)
        sender.connect(address)
        sender.send(b"hello")
        sender.recv(16)
        for number in range(count):
            sender.setsockopt(level, option, number % 256)
            sender.send(b"%08d" % number + bytes(size - 8))
        sys.stdout.write(sender.recv(65536).decode())


if sys.argv[1] == "receive":
    receive(int(sys.argv[2]), int(sys.argv[3]))
else:
    send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
