"""Hostile packets on both sides of a live proxy: it stays, and bounds its memory."""

import sys
from pathlib import Path

from support.proxy import SERVER, Network

ATTACK = r"""
import random, socket, struct, sys
random.seed(1)
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("eth0", 0))
gateway, own = bytes.fromhex(sys.argv[1]), raw.getsockname()[4]
mobile, server = socket.inet_aton("10.1.0.2"), socket.inet_aton("192.0.2.2")
source, destination = (mobile, server) if sys.argv[2] == "up" else (server, mobile)

def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF

for number in range(20000):
    flags = random.choice([2, 2, 6, 0x12, 0x10, 0x11, 4, 0x14, 0, 0xFF, random.randrange(256)])
    ports = (random.randrange(30000, 30064), 80) if sys.argv[2] == "up" else (80, random.randrange(30000, 30064))
    words = random.choice([5, 5, 5, 8, 15, 0, 4])
    body = random.randbytes(random.choice([0, 0, 1, 12, 100, 1400]))
    header = struct.pack("!HHIIBBHHH", *ports, random.randrange(2**32), random.randrange(2**32), words << 4, flags,
                         random.randrange(65536), 0, random.randrange(65536))
    pseudo = source + destination + struct.pack("!BBH", 0, 6, len(header + body))
    good = checksum(pseudo + header + body)
    segment = header[:16] + struct.pack("!H", good if number % 10 else 1) + header[18:] + body
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), number & 0xFFFF, 0x4000, 64, 6, 0) + source + destination
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    raw.send(gateway + own + b"\x08\0" + ip + segment)
"""


def test_random_segments_of_both_sides_do_no_harm(network: Network, need, tmp_path: Path) -> None:
    need("curl")
    with network.proxy(lines="[proxy]\nhalf_open = 32\nconnections = 100") as proxy:
        for host, interface, direction in (("mobile", "mob0", "up"), ("server", "wan0", "down")):
            words = network.run("router", "ip", "-o", "link", "show", interface).out.split()
            address = words[words.index("link/ether") + 1]
            network.run(host, sys.executable, "-c", ATTACK, address.replace(":", ""), direction)
        assert proxy.poll() is None
        state = network.proxy_state()
        assert state["connections"] <= 100
        assert state["dropped"]["checksum"] >= 1000
        status = Path(f"/proc/{proxy.pid}/status").read_text()
        assert int(status.split("VmRSS:")[1].split()[0]) < 300_000
        # The mobile is still served.
        serve = [sys.executable, "-m", "http.server", "--bind", "::", "8000"]
        with network.started("server", *serve):
            network.run("mobile", "curl", "-sS", "--retry", "5", "--retry-all-errors", f"http://{SERVER}:8000/")
