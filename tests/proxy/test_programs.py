"""Unmodified programs through a live proxy."""

import json
from itertools import product
from pathlib import Path

import pytest

from support.link import until
from support.programs import PROGRAMS
from support.proxy import SERVER, SERVER6, Network


def test_iperf3_in_both_directions(network: Network, need) -> None:
    iperf3 = need("iperf3")
    with network.proxy():
        for address, more in product((SERVER, SERVER6), ([], ["-R"], ["-R", "-P", "4"], ["--bidir"])):
            # A server for each test: behind the proxy, the client is done before the server.
            with network.started("server", iperf3, "-s", "-1") as server:
                until(lambda: ":5201 " in network.run("server", "ss", "-ltn").out, "the server listens")
                words = [iperf3, "-c", address, "-n", "20M", "-J", *more]
                report = json.loads(network.run("mobile", *words, timeout=60).out)
                assert "error" not in report, (address, more)
                server.wait(timeout=20)
                # The receiver stops when all was sent; buffers still contain the rest.
                assert report["end"]["sum_received"]["bytes"] > 1_000_000
        assert network.proxy_state()["opened"] >= 2 * (2 + 2 + 5 + 3)


def test_https_passes_end_to_end(network: Network, need, tmp_path: Path) -> None:
    openssl, curl = need("openssl"), need("curl")
    content = bytes(range(256)) * 8000
    (tmp_path / "content").write_bytes(content)
    names = ["-subj", "/CN=server", "-addext", f"subjectAltName=IP:{SERVER}"]
    make = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", *names]
    network.run("server", *make)
    serve = [openssl, "s_server", "-accept", "443", "-key", "key.pem", "-cert", "cert.pem", "-WWW", "-quiet"]
    with network.started("server", *serve), network.proxy(lines='[proxy]\naccept = "deferred"'):
        until(lambda: ":443 " in network.run("server", "ss", "-ltn").out, "the server listens")
        got = tmp_path / "got"
        words = [curl, "-sS", "--cacert", "cert.pem", "-o", got, f"https://{SERVER}/content"]
        network.run("mobile", *words)
        assert got.read_bytes() == content
        # A refused connection is refused, and an unreachable host is not accepted.
        refused = network.run("mobile", curl, "-sS", "-m", "5", f"http://{SERVER}:81/", code=7)
        assert "Connection refused" in refused.err or "Couldn't connect" in refused.err


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_works_as_without_the_proxy(network: Network, need, tmp_path: Path, name: str) -> None:
    exchange = PROGRAMS[name](tmp_path, need, SERVER)
    with network.started("server", "sh", "-c", exchange.serve), network.proxy():
        until(lambda: f":{exchange.port} " in network.run("server", "ss", "-ltn").out, "the server listens")
        exchange.check(network.run("mobile", "sh", "-ec", exchange.client).out)
        state = network.proxy_state()
    assert state["opened"] >= exchange.connections, state
