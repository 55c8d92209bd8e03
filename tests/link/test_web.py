"""Web traffic over a link: a browser that loads a page of many objects, and HTTP/3 over QUIC."""

import html
import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.link import BROWSER, LinkCommand, python, summary

Need = Callable[..., str]

RATE = 2e6
DELAY_S = 0.05


@pytest.fixture
def slow(link: LinkCommand) -> Path:
    """A link of 2 Mbit/s and 50 ms each way."""
    return link.wire(rate=f"{RATE:.0f} bit/s", delay=f"{1e3 * DELAY_S:g} ms", queue="{ packets = 100 }")


def test_a_browser_loads_a_page_of_70_objects(link: LinkCommand, slow: Path, web: str, need: Need) -> None:
    chromium = need("chromium")
    page = subprocess.run(python("page.py", link.folder / "files"), capture_output=True, text=True, check=True)
    written = json.loads(page.stdout)
    kept = link.folder / "kept"
    profile = f"--user-data-dir={link.folder / 'profile'}"
    browser = [chromium, *BROWSER, profile, "--dump-dom", "http://server/index.html"]
    done = link(*browser, link=slow, serve=web, options=f"--out {kept} --no-log", timeout=100)
    seen = re.search(r"\{.*\}", html.unescape(done.out))
    assert seen is not None, done
    timings = json.loads(seen[0])
    assert (timings["objects"], timings["bytes"]) == (written["objects"], written["bytes"])
    # Bounds from the link: the first byte takes the round trip of its request, and the part of the
    # handshake after the browser's navigation start. Then the requests for the page's objects take
    # one more round trip, and the objects pass at the link's rate at most.
    round_trip_s = 2 * DELAY_S
    transfer_s = 8 * written["bytes"] / RATE
    assert timings["first_byte_ms"] >= 1e3 * round_trip_s
    assert timings["load_ms"] >= 1e3 * (2 * round_trip_s + transfer_s)
    # HTTP/1.1: at most six connections to a host with one request at a time, and a few speculative
    # connections.
    connections = [row for row in summary(kept)["flows"] if row["kind"] == "tcp"]
    assert 2 <= len(connections) <= 12


def test_http3_over_quic(link: LinkCommand, slow: Path, need: Need) -> None:
    client, server = need("gtlsclient", "ngtcp2-client"), need("gtlsserver", "ngtcp2-server")
    files = link.folder / "files"
    files.mkdir()
    content = bytes(range(256)) * 800
    (files / "file").write_bytes(content)
    certificate = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=server"
    made = [need("openssl"), *certificate.split(), "-keyout", "key", "-out", "cert"]
    subprocess.run(made, cwd=link.folder, capture_output=True, check=True)
    serve = f"exec {server} -q -d files '*' 443 key cert"
    words = [client, "-q", "--exit-on-all-streams-close", f"--download={link.folder}"]
    kept = link.folder / "kept"
    before = time.monotonic()
    options = f"--out {kept} --no-log"
    link(*words, "server", "443", "https://server/file", link=slow, serve=serve, options=options)
    took_s = time.monotonic() - before
    assert (link.folder / "file").read_bytes() == content
    # Two round trips for handshake and request, then the content at the link's rate.
    assert took_s >= 4 * DELAY_S + 8 * len(content) / RATE
    [connection] = [row for row in summary(kept)["flows"] if row["kind"] == "udp"]
    assert connection["down"]["delivered_bytes"] > len(content)
