"""The application level of a live proxy with real programs."""

import json
import sys
from pathlib import Path

import pytest

from support.link import ENDS, until
from support.proxy import OTHER, ROUTER, SERVER, SERVER6, Network, airpath

PIPELINED = ENDS / "pipelined.py"


def _fetch(network: Network, address: str, *arguments: object) -> tuple[float, int]:
    """Return the seconds and the bytes of a client that compares every byte."""
    done = network.run("mobile", sys.executable, "-I", PIPELINED, "fetch", address, *arguments)
    seconds, size = done.out.split()
    return float(seconds), int(size)


@pytest.mark.parametrize("log", [False, True])
def test_pipelined_requests_are_fetched_at_the_same_time(network: Network, log: bool, tmp_path: Path) -> None:
    options = ["--out", tmp_path / "out"] if log else []
    lines = "[proxy]\n[proxy.http]\npipelining = 8"
    with network.started("server", sys.executable, "-I", PIPELINED, "serve", 100):
        until(lambda: ":80 " in network.run("server", "ss", "-ltn").out, "the server listens")
        with network.proxy(*options, lines=lines):
            fetched = [_fetch(network, SERVER, 16, 3000, 8) for _ in range(2)]
            assert max(seconds for seconds, _ in fetched) < 16 * 0.1
            state = network.proxy_state()
            assert state["http"]["requests"] == 32
            assert state["http"]["parallel_requests"] >= 16
            assert state["http"]["response_bytes"] == sum(size for _, size in fetched)
            assert "HTTP: 32 requests" in network.ctl().out
            # HTTP is switched on and off by the configuration.
            network.configure("[proxy]")
            network.ctl("reload")
            _fetch(network, SERVER, 2, 3000, 1)
            assert network.proxy_state()["http"] == {}
    if log:
        summary = json.loads((tmp_path / "out" / "summary.json").read_text())
        assert summary["complete"]


def test_ipv6_and_compression(network: Network, need, tmp_path: Path) -> None:
    curl = need("curl")
    serve = """
import http.server, socket
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b"text " * 10000
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
Server(("::", 80), Handler).serve_forever()
"""
    with network.started("server", sys.executable, "-c", serve):
        until(lambda: ":80 " in network.run("server", "ss", "-ltn").out, "the server listens")
        with network.proxy(lines="[proxy]\n[proxy.http]\ncompression = true"):
            got = tmp_path / "got"
            network.run("mobile", curl, "-sS", "--compressed", "-o", got, f"http://[{SERVER6}]/")
            assert got.read_bytes() == b"text " * 10000
            counted = network.proxy_state()["http"]
            assert counted["uncompressed_bytes"] == 50_000
            assert counted["compressed_bytes"] < 1000


def _check(network: Network, lines: str, code: int = 0) -> str:
    return network.run("router", airpath(), "proxy", "check", network.configure(lines), code=code).out


def test_an_explicit_proxy_is_checked(network: Network) -> None:
    lines = '[proxy]\n[proxy.http]\naddress = "{}:3128"\nresolver = "{}:53"'.format
    before = network.state()
    # Nothing listens there.
    checked = _check(network, lines("10.99.0.1", SERVER))
    assert "ok       proxy.http.address: 10.99.0.1 is not an address of this host" in checked
    assert f"limited  proxy.http.resolver: {SERVER}:53 accepts no connection" in checked
    for address, resolver, expected in (
        (ROUTER, SERVER, f"missing  proxy.http.address: this host has the address {ROUTER}"),
        ("10.99.0.1", ROUTER, f"missing  proxy.http.resolver: this host has the address {ROUTER}"),
        ("10.99.0.1", "203.0.113.1", "missing  proxy.http.resolver: this host has no route to 203.0.113.1:53"),
    ):
        assert expected in _check(network, lines(address, resolver), code=1)
    assert network.state() == before


def test_mobiles_name_the_proxy(network: Network, need, tmp_path: Path) -> None:
    lines = f'[proxy]\n[proxy.http]\naddress = "10.99.0.1:3128"\nresolver = "{SERVER}:53"'
    dnsmasq = [need("dnsmasq"), "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root"]
    dnsmasq += ["--no-resolv", "--no-hosts", f"--address=/test/{SERVER}"]
    curl = [need("curl"), "-sS", "-x", "10.99.0.1:3128", "-o", tmp_path / "got", "-w", "%{http_code}"]
    with (
        network.started("server", sys.executable, "-I", PIPELINED, "serve", 0),
        network.started("server", *dnsmasq),
    ):
        until(lambda: network.run("server", "ss", "-ltn").out.count(":53 ") > 1, "the resolver listens")
        until(lambda: ":80 " in network.run("server", "ss", "-ltn").out, "the server listens")
        assert f"ok       proxy.http.resolver: {SERVER}:53 accepts connections" in _check(network, lines)
        with network.proxy(lines=lines):
            assert network.run("mobile", *curl, "http://a.test/7/20000").out == "200"
            assert (tmp_path / "got").stat().st_size == 20_000
            # The server's answers to another mobile would not come back to the proxy.
            assert network.run("mobile", *curl, f"http://{OTHER}/").out == "502"
            assert network.run("mobile", *curl, "http://10.99.0.1:3128/").out == "403"
            counted = network.proxy_state()["http"]
            assert (counted["requests"], counted["refused_requests"]) == (3, 2)
        # Only listed mobiles use it.
        with network.proxy(lines=lines):
            network.configure(lines, mobiles=["10.1.0.9/32"])
            network.ctl("reload")
            assert network.run("mobile", *curl, "-m", "3", "http://a.test/7/20", code=None).out == "000"
