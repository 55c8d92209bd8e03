"""Sends random TCP segments into a network: `segments.py GATEWAY FROM TO COUNT PER_SECOND [syn]`.

`GATEWAY` is the Ethernet address of the next router. The ports are those of 64 connections to port
80 of the end that is not a mobile (10.1.0.0/16). With `syn` all are good SYNs from random ports.
Otherwise flags, numbers and lengths are random, one in ten has a wrong checksum, and one in twenty
has inverted bits anywhere.
"""

import random
import socket
import struct
import sys
import time

FLAGS = [0x02, 0x02, 0x06, 0x12, 0x10, 0x11, 0x04, 0x14, 0x00, 0xFF]
MOBILES = "10.1."


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def segment(chance: random.Random, ports: tuple[int, int], addresses: bytes, *, syn: bool) -> bytes:
    """Return a TCP segment."""
    flags = 2 if syn else chance.choice([*FLAGS, chance.randrange(256)])
    words = 5 if syn else chance.choice([5, 5, 5, 8, 15, 0, 4])
    body = b"" if syn else chance.randbytes(chance.choice([0, 0, 1, 12, 100, 1400]))
    numbers = (chance.randrange(2**32), chance.randrange(2**32))
    header = struct.pack(
        "!HHIIBBHHH", *ports, *numbers, words << 4, flags, chance.randrange(65536), 0, chance.randrange(65536)
    )
    sum_ = checksum(addresses + struct.pack("!BBH", 0, 6, len(header + body)) + header + body)
    if not syn and chance.random() < 0.1:
        sum_ ^= 1
    return header[:16] + struct.pack("!H", sum_) + header[18:] + body


def main() -> None:
    """Send the segments."""
    gateway, source, target, count, rate = sys.argv[1:6]
    syn = sys.argv[6:] == ["syn"]
    chance = random.Random(f"{source} {target}")
    addresses = socket.inet_aton(source) + socket.inet_aton(target)
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind(("eth0", 0))
    ethernet = bytes.fromhex(gateway.replace(":", "")) + raw.getsockname()[4] + b"\x08\0"
    began = time.monotonic()
    for number in range(int(count)):
        port = chance.randrange(1024, 65536) if syn else chance.randrange(30000, 30064)
        ports = (port, 80) if source.startswith(MOBILES) else (80, port)
        tcp = segment(chance, ports, addresses, syn=syn)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), number & 0xFFFF, 0x4000, 64, 6, 0) + addresses
        packet = bytearray(ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp)
        if not syn and chance.random() < 0.05:
            for _ in range(chance.randrange(1, 4)):
                packet[chance.randrange(len(packet))] ^= 1 << chance.randrange(8)
        raw.send(ethernet + packet)
        if number % 64 == 63:
            time.sleep(max(0.0, began + number / float(rate) - time.monotonic()))


main()
