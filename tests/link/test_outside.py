"""Links to the outside of a host, in a chain, with the kernel's address translation and routers."""

import re
import shlex

import pytest

from support.link import LinkCommand, SmallHost, python

NEIGHBOURS = pytest.mark.parametrize("neighbour", ["192.0.2.254", "2001:db8::254"])


@NEIGHBOURS
def test_links_nest(link: LinkCommand, host: SmallHost, neighbour: str) -> None:
    far, near = link.wire(delay="20 ms", name="far.toml"), link.wire(delay="30 ms", name="near.toml")
    ping = ["ping", "-c", "3", "-i", "0.2", neighbour]
    [outer, both] = host.run_leaving_nothing(
        {"words": link.line(*ping, link=far, serve=None)},
        {"words": link.line(*link.line(*ping, link=near, serve=None), link=far, serve=None)},
    )
    for ran, least_ms in ((outer, 40), (both, 100)):
        assert ran["code"] == 0, ran["out"]
        times = [float(each) for each in re.findall(r"time=([\d.]+) ms", ran["out"])]
        assert len(times) == 3
        assert min(times) >= least_ms


@NEIGHBOURS
def test_a_packet_too_big_further_on_is_answered_by_icmp(link: LinkCommand, host: SmallHost, neighbour: str) -> None:
    ping = ["ping", "-M", "do", "-c", "3", "-i", "0.2", "-W", "1", "-s", "1400", neighbour]
    send = python("send.py", neighbour, 300_000)
    sink = shlex.join(python("sink.py"))
    [pinged, sent] = host.run_leaving_nothing(
        *(
            {"words": link.line(*link.line(*words, serve=None), serve=None, options="--mtu 1300")}
            for words in (ping, send)
        ),
        prepare=[f"nsenter --net --target $(cat neighbour) {sink} &"],
    )
    assert pinged["code"] != 0
    # The router in the middle reports the first packet, the kernel the others, from its MTU cache.
    assert re.search(r"Frag needed and DF set \(mtu = 1300\)|Packet too big: mtu=1300", pinged["out"]), pinged["out"]
    # TCP uses the same path MTU discovery.
    assert (sent["code"], sent["out"].splitlines()[0]) == (0, "300000"), sent["out"]
