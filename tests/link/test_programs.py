"""Unmodified programs over a link: they measure the configured rate, delay and loss.

The link itself bounds the speed of a transfer from above, on every host. The lower bounds allow for
a busy host; they detect a link that barely works.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.link import DEVICES, LinkCommand, summary
from support.programs import PROGRAMS

Need = Callable[..., str]

RATE = 4e6
DELAY_S = 0.03


@pytest.fixture
def slow(link: LinkCommand) -> Path:
    """A link of 4 Mbit/s and 30 ms each way, with a queue for 60 ms more."""
    return link.wire(rate=f"{RATE:.0f} bit/s", delay=f"{1e3 * DELAY_S:g} ms", queue="{ packets = 20 }")


@pytest.mark.parametrize("server", ["server", "[fd61:6972:7061::1]"])
def test_curl_fetches_from_nginx(link: LinkCommand, slow: Path, web: str, need: Need, server: str) -> None:
    size = 300_000
    content = bytes(range(256)) * (size // 256)
    (link.folder / "files" / "file").write_bytes(content)
    report = "%{time_connect} %{time_starttransfer} %{time_total}"
    done = link(need("curl"), "-sS", "-o", "got", "-w", report, f"http://{server}/file", link=slow, serve=web)
    assert (link.folder / "got").read_bytes() == content
    connected, first, total = map(float, done.out.split())
    # Handshake and request take one round trip each; then the content passes at the link's rate.
    assert connected >= 2 * DELAY_S
    assert first >= 4 * DELAY_S
    assert total >= 4 * DELAY_S + 8 * len(content) / RATE
    assert total < 10 * (4 * DELAY_S + 8 * len(content) / RATE)


@pytest.mark.parametrize("server", ["server", "server6"])
def test_ping_sees_the_delay(link: LinkCommand, slow: Path, need: Need, server: str) -> None:
    # Echo requests of 56 bytes, plus ICMP and IP headers, have only their own transmission time.
    size = 56 + 8 + (40 if server.endswith("6") else 20)
    least_ms = 1e3 * 2 * (DELAY_S + 8 * size / RATE)
    done = link(need("ping", "iputils-ping"), "-c", 20, "-i", 0.02, server, link=slow, options="--budget 50ms")
    times = [float(each) for each in re.findall(r"time=([\d.]+) ms", done.out)]
    assert len(times) == 20
    # ping prints three digits.
    assert min(times) >= least_ms * 0.999
    assert sorted(times)[len(times) // 2] < least_ms + 10


@pytest.mark.parametrize("way", ["to the server", "to the mobile"])
@DEVICES
def test_iperf_measures_the_rate_of_tcp(link: LinkCommand, slow: Path, need: Need, way: str, device: str) -> None:
    iperf = need("iperf3")
    options = ["-R"] if way == "to the mobile" else []
    done = link(
        *(iperf, "-c", "server", "-J", "-t", 2, *options),
        link=slow,
        serve=f"{iperf} -s -1",
        options=f"--device {device}",
    )
    end = done.json["end"]
    measured = end["sum_received"]["bits_per_second"]
    # A full packet of 1,500 bytes has 1,448 bytes of payload.
    assert measured <= 1.02 * RATE * 1448 / 1500
    assert measured > 0.4 * RATE


@pytest.mark.parametrize("way", ["to the server", "to the mobile"])
def test_iperf_overloads_with_datagrams(link: LinkCommand, slow: Path, need: Need, way: str) -> None:
    iperf = need("iperf3")
    options = ["-R"] if way == "to the mobile" else []
    kept = link.folder / "kept"
    done = link(
        *(iperf, "-c", "server", "-J", "-u", "-b", f"{2 * RATE:.0f}", "-l", 1172, "-t", 2, *options),
        link=slow,
        serve=f"{iperf} -s -1",
        options=f"--out {kept} --no-log",
    )
    received = done.json["end"]["sum_received"]
    assert received["bits_per_second"] <= 1.05 * RATE * 1172 / 1200
    # The offered load is twice the link's rate: about half is lost if the sender kept up.
    assert 25 < received["lost_percent"] < 60
    full = "up" if way == "to the server" else "down"
    result = summary(kept)
    dropped = [row["dropped"] for row in result["links"] if row["direction"] == full]
    assert sum(each.get("queue-full", {"packets": 0})["packets"] for each in dropped) >= received["lost_packets"] > 0
    stream = max((flow for flow in result["flows"] if flow["kind"] == "udp"), key=lambda flow: flow["sent"])
    # Datagrams of 1,200 bytes, after a short one of iperf3 itself; at most 20 wait, one is sent.
    time = 8 * 1200 / RATE
    assert DELAY_S < stream["delay_min_s"] < stream["delay_max_s"] <= DELAY_S + 21 * time + 1e-6
    assert stream["inter_arrival_p50_s"] == pytest.approx(time, rel=1e-3)
    assert stream["gaps"] > 0
    assert stream["gap_most_lost"] > 0


def test_the_flows_name_the_kernel_and_its_congestion_control(link: LinkCommand, slow: Path, need: Need) -> None:
    iperf, kept = need("iperf3"), link.folder / "kept"
    options = f"--out {kept} --no-log --sysctl net.ipv4.tcp_congestion_control=reno"
    link(iperf, "-c", "server", "-n", "50K", link=slow, serve=f"{iperf} -s -1", options=options)
    result = summary(kept)
    host = result["emulation"]["host"]
    assert host["congestion_control"] == "reno"
    for flow in result["flows"]:
        assert flow["tcp"]["profile"] == f"Linux {host['kernel']}"
        assert flow["tcp"]["congestion"] == {"algorithm": "reno"}
        assert flow["tcp"]["negotiated"]["segment_size"] > 0


def test_nothing_but_the_server_is_on_a_closed_link(link: LinkCommand, slow: Path, need: Need) -> None:
    """Names and addresses of others fail at once, and put no packet on the link."""
    ping, kept = need("ping", "iputils-ping"), link.folder / "kept"
    others = ["192.0.2.99", "2001:db8::99", "name.example"]
    script = "; ".join(f"{ping} -c 1 -W 1 {other} 2>&1" for other in others)
    done = link("sh", "-c", f"{script}; {ping} -c 1 server", link=slow, options=f"--out {kept} --no-log")
    assert done.out.count("unreachable") == 2, done.out
    assert re.search("name.example: .*(resolution|not known)", done.out), done.out
    (flow,) = summary(kept)["flows"]
    assert (flow["kind"], flow["sent"]) == ("ping", 1)


def test_dig_queries_dnsmasq(link: LinkCommand, slow: Path, need: Need) -> None:
    dnsmasq, dig = need("dnsmasq", "dnsmasq-base"), need("dig", "bind9-dnsutils")
    flags = "--no-daemon --conf-file=/dev/null --no-resolv --no-hosts --user= --pid-file= --log-facility=-"
    serve = f"exec {dnsmasq} {flags} --address=/example.test/192.0.2.7 --txt-record=long.test,{'x' * 200}"
    query = f"{dig} @server +short +tries=2 +timeout=3"
    script = (
        f"{query} example.test A; {query} +tcp long.test TXT; {dig} @server +tries=1 example.test | grep 'Query time'"
    )
    done = link("sh", "-c", script, link=slow, serve=serve)
    address, text, query_time = done.out.splitlines()
    assert address == "192.0.2.7"
    assert text.strip('"') == "x" * 200
    milliseconds = int(re.sub(r"\D", "", query_time))
    # dig rounds the times of both packets down to milliseconds.
    assert milliseconds >= int(1e3 * 2 * DELAY_S) - 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_works_through_a_proxy(link: LinkCommand, slow: Path, need: Need, name: str) -> None:
    exchange = PROGRAMS[name](link.folder, need, "server")
    kept = link.folder / "kept"
    options = f"--proxy --out {kept} --no-log"
    exchange.check(link("sh", "-ec", exchange.client, link=slow, serve=exchange.serve, options=options).out)
    result = summary(kept)
    assert [flow["kind"] for flow in result["flows"]].count("tcp") >= exchange.connections
    # The proxy has taken segments out and made others.
    assert all(row["absorbed"]["packets"] > 0 for row in result["links"] if row["component"] == "proxy")
