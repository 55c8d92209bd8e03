"""A link treats packets as a router does: sizes, markings, order, checksums; it counts each one."""

import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from airpath import load
from support.link import DEVICES, LinkCommand, listener, python, summary, words_of

Need = Callable[..., str]


@DEVICES
@pytest.mark.parametrize(
    ("mtu", "server", "headers"),
    [(576, "server", 28), (1400, "server", 28), (1500, "server6", 48), (9000, "server", 28)],
)
def test_packets_up_to_the_mtu_pass_and_larger_ones_are_refused(
    link: LinkCommand, need: Need, device: str, mtu: int, server: str, headers: int
) -> None:
    ping = f"{need('ping', 'iputils-ping')} -c 1 -W 2 -M do {server} -s"
    fits = mtu - headers
    done = link("sh", "-c", f"{ping} {fits} && ! {ping} {fits + 1} 2>&1", options=f"--mtu {mtu} --device {device}")
    assert f"{fits + 8} bytes from" in done.out
    assert re.search(rf"mtu[:=] ?{mtu}", done.out), done.out


@DEVICES
@pytest.mark.parametrize("server", ["server", "server6"])
def test_markings_and_order_are_kept(link: LinkCommand, device: str, server: str) -> None:
    count = 300
    done = link(
        *python("marked.py", "send", server, 7, count, 200),
        link=link.wire(rate="10 Mbit/s", delay="5 ms"),
        serve=shlex.join(python("marked.py", "receive", 7, count)),
        options=f"--device {device}",
    )
    assert arrivals(done.out) == [(number, number % 256) for number in range(count)]


def arrivals(report: str) -> list[tuple[int, int]]:
    """Return the number and the traffic class of each datagram, as the receiver reported them."""
    return [(int(number), int(traffic_class)) for number, traffic_class in map(str.split, report.splitlines())]


def test_codel_marks_instead_of_dropping(link: LinkCommand) -> None:
    count = 800
    kept = link.folder / "kept"
    codel = '{ discipline = "codel", target = "5 ms", interval = "20 ms", ecn = true, packets = 1000 }'
    done = link(
        *python("marked.py", "send", "server", 7, count, 500),
        link=link.wire(rate="4 Mbit/s", queue=codel),
        serve=shlex.join(python("marked.py", "receive", 7, count)),
        options=f"--out {kept} --no-log",
    )
    arrived = dict(arrivals(done.out))
    assert len(arrived) > count / 2
    changed = {number: traffic_class for number, traffic_class in arrived.items() if traffic_class != number % 256}
    # The queue marks only ECN-capable packets and keeps their DSCP; it drops packets that are not
    # ECN-capable instead.
    assert changed
    for number, traffic_class in changed.items():
        assert number % 4 in {1, 2}
        assert traffic_class == number % 256 | 3
    lost = {number for number in range(count) if number not in arrived}
    assert lost
    assert {number % 4 for number in lost} == {0}
    dropped = [row["dropped"] for row in summary(kept)["links"]]
    assert sum(each.get("queue-management", {"packets": 0})["packets"] for each in dropped) == len(lost)


def test_a_middlebox_clears_the_ecn_field_and_keeps_the_dscp(link: LinkCommand) -> None:
    count = 300
    kept = link.folder / "kept"
    wire = link.wire(rate="10 Mbit/s")
    wire.write_text(wire.read_text(encoding="utf-8") + '[middlebox]\nkind = "clear-ecn"\n', encoding="utf-8")
    done = link(
        *python("marked.py", "send", "server", 7, count, 500),
        link=wire,
        serve=shlex.join(python("marked.py", "receive", 7, count)),
        options=f"--out {kept} --no-log",
    )
    assert arrivals(done.out) == [(number, number % 256 & ~3) for number in range(count)]
    # Of four fields in turn, one is clear already.
    assert summary(kept)["emulation"]["middleboxes"]["middlebox"]["cleared"] >= 225


@DEVICES
@pytest.mark.parametrize("offload", ["--offload", "--no-offload"])
def test_captures_events_and_counters_agree(link: LinkCommand, need: Need, device: str, offload: str) -> None:
    kept = link.folder / "kept"
    lossy = link.wire("loss = 0.02", rate="20 Mbit/s", delay="10 ms", queue="{ packets = 30 }")
    script = shlex.join(python("send.py", "server", 400_000)) + "; " + shlex.join(python("send.py", "server6", 200_000))
    options = f"--device {device} {offload} --out {kept} --capture"
    done = link("sh", "-c", script, link=lossy, serve=shlex.join(python("sink.py")), options=options)
    assert done.out.split() == ["400000", "200000"]
    result = load(kept)
    server, mobile = (
        [packet for path in result.captures() if end in path.name for packet in dissected(need("tshark"), path)]
        for end in ("server", "mobile")
    )
    # Every checksum is valid; no packet is larger than the link's MTU.
    for packet in server + mobile:
        assert packet["wrong"] == {}
        assert packet["size"] <= 1500
    # The captures of both ends agree with the counters of the links and with the events.
    links = {(row["component"], row["direction"]): row for row in summary(kept)["links"]}
    packets = result.packets
    for direction, near, far, first, last in (
        ("up", mobile, server, "bearer-mobile", "fixed"),
        ("down", server, mobile, "fixed", "bearer-mobile"),
    ):
        sent, received = (count(packets, step, direction) for step in ("sent", "received"))
        assert sent > 0
        assert [sum(is_from(packet, direction) for packet in each) for each in (near, far)] == [sent, received]
        assert links[first, direction]["offered_packets"] == sent
        assert links[last, direction]["delivered_packets"] == received
        lost = lost_by([links[first, direction], links[last, direction]])
        inside = sum(links[component, direction]["queued_packets"] for component in (first, last))
        assert sent == received + lost + inside
        assert lost == count(packets, "dropped", direction)
    assert lost_by(links.values()) > 0


@DEVICES
def test_packets_that_are_lost_before_the_link_make_the_run_invalid(link: LinkCommand, device: str) -> None:
    flood = shlex.join(python("flood.py", "100.64.0.1", 2))
    options = f"--device {device} --out kept --no-log"
    with link.started("sh", "-c", f"echo ready; exec {flood}", options=options) as process:
        words_of(process.stdout, "ready")
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=30)
    emulation = summary(link.folder / "kept")["emulation"]
    assert emulation["overruns"] > 1000
    assert not emulation["lateness"]["valid"]
    assert f"this run is invalid: the kernel dropped {emulation['overruns']} packets before the link" in err


@pytest.mark.parametrize(("option", "value"), [("--offload", "1"), ("--no-offload", "0")])
def test_the_offload_of_virtual_ethernet_can_be_disabled(link: LinkCommand, option: str, value: str) -> None:
    program = python("features.py")
    done = link(*program, serve=f"{shlex.join(program)} >&2; exec {listener()}", options=f"--device veth {option}")
    assert (done.out.split(), done.err.split()) == ([value] * 3, [value] * 3)


def lost_by(links: Iterable[dict[str, Any]]) -> int:
    """Return the number of packets that these links lost."""
    return sum(each["packets"] for row in links for each in row["dropped"].values())


def count(packets: pl.DataFrame, step: str, direction: str) -> int:
    """Return the number of events of a kind."""
    return packets.filter((pl.col("step") == step) & (pl.col("direction") == direction)).height


def is_from(packet: dict[str, Any], direction: str) -> bool:
    """Whether a packet goes in this direction."""
    return packet["from"].endswith(("0.2", "::2") if direction == "up" else ("0.1", "::1"))


def dissected(tshark: str, capture: Path) -> Iterator[dict[str, Any]]:
    """Yield the packets of a capture, with the wrong checksums and their values."""
    protocols = ("ip", "tcp", "udp")
    checks = [word for each in protocols for word in ("-o", f"{each}.check_checksum:TRUE")]
    fields = ["frame.len", "ip.src", "ipv6.src"]
    fields += [f"{each}.checksum{what}" for each in protocols for what in ("", ".status")]
    words = [tshark, "-r", str(capture), *checks, "-T", "fields", "-E", "separator=;"]
    words += [word for field in fields for word in ("-e", field)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        size, source4, source6, *checked = line.split(";")
        values = zip(protocols, checked[::2], checked[1::2], strict=True)
        # In one's complement, all ones are zero as well (RFC 1624). Linux writes them for zero;
        # tshark warns about them.
        wrong = {name: value for name, value, status in values if status not in ("", "1") and value != "0xffff"}
        yield {"size": int(size), "from": source4 or source6, "wrong": wrong}
