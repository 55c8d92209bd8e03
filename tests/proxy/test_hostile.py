"""Hostile packets on both sides of a live proxy: it stays, and bounds its memory."""

import re
import statistics
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.link import python, until
from support.proxy import MOBILE, SERVER, Network

INTERFACE = {"mobile": "mob0", "server": "wan0"}
SERVE = [sys.executable, "-m", "http.server", "--bind", "::", "8000"]
FLOODING, FLOODED = "10.1.0.99", "198.51.100.7"
"""A mobile and a server that answer nothing."""


def _gateway(network: Network, host: str) -> str:
    """Return the Ethernet address of the router for a host."""
    shown = network.run("router", "ip", "-o", "link", "show", INTERFACE[host]).out
    return shown.split("link/ether ")[1].split()[0]


def _kilobytes(process: int, field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1])


def _limited(network: Network) -> int:
    """Return how many SYNs passed because of the limit."""
    return network.proxy_state()["passed"].get("half-open-limit", 0)


@pytest.mark.parametrize("packets", [40_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_random_segments_of_both_sides_do_no_harm(network: Network, need, packets: int) -> None:
    curl = need("curl")
    with network.proxy(lines="[proxy]\nhalf_open = 32\nconnections = 100") as proxy:
        resident = []
        # Both sides at the same time: the first quarter, then the others.
        for part in (packets // 4, packets - packets // 4):
            sending = []
            for host, ends in (("mobile", (MOBILE, SERVER)), ("server", (SERVER, MOBILE))):
                words = python("segments.py", _gateway(network, host), *ends, part // 2, 1e6)
                sending.append(network.started(host, *words))
            with sending[0] as one, sending[1] as other:
                for each in (one, other):
                    assert each.wait(timeout=500) == 0, each.communicate()
            resident.append(_kilobytes(proxy.pid, "VmRSS"))
        assert proxy.poll() is None
        state = network.proxy_state()
        assert state["connections"] <= 100
        causes = Counter(state["dropped"]) + Counter(state["passed"])
        # The router drops wrong IP headers; one in ten of the others has a wrong checksum.
        assert state["dropped"]["checksum"] >= packets / 20
        assert len(causes) >= 4, causes
        assert max(resident) < 200_000, resident
        assert resident[1] < resident[0] + 20_000, resident
        # The mobile is still served.
        with network.started("server", *SERVE):
            network.run("mobile", curl, "-sS", "--retry", "5", "--retry-all-errors", f"http://{SERVER}:8000/")


def test_a_flood_of_one_mobile_does_not_slow_another(network: Network, need) -> None:
    curl = need("curl")
    # A network behind the server, from which nothing comes back.
    network.run("router", "ip", "route", "add", "198.51.100.0/24", "via", SERVER)
    fetch = [curl, "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{time_total}", f"http://{SERVER}:8000/"]

    def seconds() -> float:
        """Return the median of eleven fetches."""
        return statistics.median(float(network.run("mobile", *fetch).out) for _ in range(11))

    flood = python("segments.py", _gateway(network, "mobile"), FLOODING, FLOODED, 10**9, 3000, "syn")
    with network.started("server", *SERVE), network.proxy(lines="[proxy]\nhalf_open = 100"):
        until(lambda: ":8000 " in network.run("server", "ss", "-ltn").out, "the server listens")
        alone = seconds()
        with network.started("mobile", *flood):
            until(lambda: _limited(network) > 1000, "the limit is reached")
            beside = seconds()
        state = network.proxy_state()
        half_open = {each["mobile"]: each["half_open"] for each in state["mobiles"]}
        assert half_open[f"{FLOODING}/32"] == 100
        assert half_open.get(f"{MOBILE}/32", 0) == 0
    # A lost or delayed SYN would take a second.
    assert beside < 2 * alone + 0.05, (alone, beside)
