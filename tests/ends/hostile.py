"""Sends random and malformed IP packets past the kernel's own checks: `hostile.py SECONDS SEED`.

Prints the number of sent packets. Each packet starts well formed, over IPv4 or IPv6, and is then
corrupted: inverted bits, wrong lengths, truncation, impossible header values, or random bytes
throughout. Some stay unchanged. Every fourth packet has a random offload header, which a driver
would have to interpret (virtio, 5.1.6.1).
"""

import contextlib
import random
import socket
import struct
import sys
import time

ETHERNET = 1
SOL_PACKET, PACKET_VNET_HDR = 263, 15
INTERFACE = "air0"
FROM_V4, TO_V4 = socket.inet_aton("100.64.0.2"), socket.inet_aton("100.64.0.1")
FROM_V6, TO_V6 = (socket.inet_pton(socket.AF_INET6, f"fd61:6972:7061::{end}") for end in (2, 1))
PROTOCOLS = [0, 1, 2, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60, 132, 255]
MARTIANS = [socket.inet_aton(each) for each in ("127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "240.1.2.3")]


def main() -> None:
    """Send random packets for `SECONDS`."""
    deadline = time.monotonic() + float(sys.argv[1])
    chance = random.Random(int(sys.argv[2]))
    sent = 0
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as plain,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as offloading,
    ):
        offloading.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        offloading.bind((INTERFACE, 0))
        _, _, _, hardware, address = offloading.getsockname()
        while time.monotonic() < deadline:
            for _ in range(64):
                packet = spoilt(chance, well_formed(chance))
                kind = 0x86DD if packet and packet[0] >> 4 == 6 else 0x0800
                link_header = address + address + struct.pack("!H", kind) if hardware == ETHERNET else b""
                # The kernel refuses some offload headers, empty packets, and a full queue.
                with contextlib.suppress(OSError):
                    if chance.random() < 0.25:
                        offloading.send(offload_header(chance) + link_header + packet)
                    else:
                        plain.sendto(packet, (INTERFACE, kind))
                    sent += 1
    sys.stdout.write(f"{sent}\n")


def offload_header(chance: random.Random) -> bytes:
    """Return a random `virtio_net_hdr`, sometimes a valid one."""
    flags = chance.choice([0, 0, 1, 1, 2, 255])
    kind = chance.choice([0, 0, 1, 3, 4, 5, 0x81, chance.randrange(256)])
    numbers = [chance.choice([0, 20, 40, 60, 536, 1448, chance.randrange(65536)]) for _ in range(4)]
    return struct.pack("=BBHHHH", flags, kind, *numbers)


def well_formed(chance: random.Random) -> bytes:
    """Return a packet with valid lengths and, over IPv4, a valid header checksum."""
    payload = chance.randbytes(chance.choice([0, 1, 7, 8, 20, 100, 1000, 1400]))
    protocol = chance.choice(PROTOCOLS)
    if chance.random() < 0.5:
        source, destination = (chance.choice([usual, usual, usual, *MARTIANS]) for usual in (FROM_V4, TO_V4))
        options = chance.randbytes(4 * chance.choice([0, 0, 0, 1, 10]))
        words = (len(options) + 20) // 4
        fragment = chance.choice([0, 0x4000, 0x2000, 0x1FFF, chance.randrange(65536)])
        head = struct.pack("!BBHHHBBH4s4s", 0x40 | words, chance.randrange(256), 20 + len(options) + len(payload), 0,
                           fragment, chance.randrange(256), protocol, 0, source, destination) + options  # fmt: skip
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload
    extension = chance.choice([b"", b"", struct.pack("!BB6x", protocol, 0), chance.randbytes(8)])
    following = 0 if extension else protocol
    return struct.pack("!IHBB16s16s", 6 << 28 | chance.randrange(1 << 28), len(extension) + len(payload), following,
                       chance.randrange(256), FROM_V6, TO_V6) + extension + payload  # fmt: skip


def spoilt(chance: random.Random, packet: bytes) -> bytes:
    """Return the packet corrupted in one way, or unchanged."""
    match chance.randrange(6):
        case 0:
            return packet
        case 1:
            bits = bytearray(packet)
            for _ in range(chance.randrange(1, 8)):
                place = chance.randrange(min(len(bits), 60))
                bits[place] ^= 1 << chance.randrange(8)
            return bytes(bits)
        case 2:
            return packet[: chance.randrange(len(packet) + 1)]
        case 3:
            return packet[:2] + struct.pack("!H", chance.randrange(65536)) + packet[4:]
        case 4:
            return packet + chance.randbytes(chance.randrange(1, 90))
        case _:
            return chance.randbytes(chance.randrange(1, 1400))


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


main()
