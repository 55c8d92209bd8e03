"""Pages in Chromium over links: protocols, servers, what is kept of a view."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from airpath.page.load import UsageError
from airpath.page.load import load as load_page
from support import Command
from support.link import SmallHost
from support.needs import needs

Need = Callable[..., str]

PAGE = """\
format = 1
name = "two-origins"
title = "a page of two origins"
[[object]]
name = "index.html"
type = "document"
size = "8 kB"
compressed = "3 kB"
cache = "revalidate"
[[object]]
name = "main.css"
type = "style"
size = "4 kB"
at = "200 B"
cache = "fresh"
[[object]]
name = "a.gif"
type = "image"
size = "20 kB"
at = "1 kB"
[[object]]
name = "b.gif"
type = "image"
size = "30 kB"
at = "2 kB"
origin = "cdn.example.com"
[[object]]
name = "app.js"
type = "script"
size = "5 kB"
at = "3 kB"
origin = "cdn.example.com"
[[object]]
name = "late.json"
type = "data"
size = "2 kB"
referrer = "app.js"
origin = "cdn.example.com"
"""
ORIGINS = {"www.example.com", "cdn.example.com"}

pytestmark = needs("tun")


@pytest.fixture
def page(tmp_path: Path, need: Need) -> Path:
    need("chromium")
    path = tmp_path / "two.page"
    path.write_text(PAGE)
    return path


def load(
    command: Command, target: Path | str, *options: str, link: str = "wired", code: int = 0, name: str = "out"
) -> Path:
    """Load a page; return the result folder."""
    out = command.folder / name
    done = command("page", "load", str(target), "--link", link, *options, "-o", str(out))
    assert done.code == code, done.err
    return out


def views_of(out: Path) -> list[dict]:
    return json.loads((out / "page.json").read_text())


def fields(capture: Path, *names: str, only: str) -> set[tuple[str, ...]]:
    """Return the values of fields as tshark decodes them."""
    shown = [word for name in names for word in ("-e", name)]
    words = ["tshark", "-r", str(capture), "-Y", only, "-T", "fields", *shown]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {tuple(line.split("\t")) for line in done.stdout.splitlines() if line.strip()}


@pytest.mark.parametrize(
    ("options", "protocol", "tls"),
    [
        ((), "http/1.1", "none"),
        (("--protocol", "http/1.0"), "http/1.0", "none"),
        (("--protocol", "h1", "--tls", "TLSv1.2"), "http/1.1", "TLSv1.2"),
        (("--tls", "TLSv1.3"), "http/1.1", "TLSv1.3"),
        (("--protocol", "h2"), "h2", "TLSv1.3"),
        (("--protocol", "h3"), "h3", "TLSv1.3"),
    ],
)
def test_a_page_is_served_by_each_protocol(
    airpath_command: Command, page: Path, need: Need, options: tuple[str, ...], protocol: str, tls: str
) -> None:
    """Each origin has a name, an address and a certificate of its own."""
    need("tshark")
    out = load(airpath_command, page, *options, "--repeat-view")
    first, again = views_of(out)
    assert (first["protocol"], first["tls"]) == (protocol, tls)
    assert (first["missing"], first["failed"], again["failed"]) == ([], {}, {})
    # In the second view, the CSS is fresh.
    assert (first["requests"], again["requests"]) == (6, 5)
    assert first["first_byte_s"] <= first["first_contentful_paint_s"] <= first["page_time_s"] + 1
    log = json.loads((out / "page.har").read_text())["log"]
    entries = [each for each in log["entries"] if each["pageref"] == "run_0_view_0"]
    addresses = {(each["request"]["url"].split("/")[2], each["serverIPAddress"]) for each in entries}
    assert {name for name, _ in addresses} == ORIGINS
    assert len(dict(addresses)) == len({address for _, address in addresses}) == 2
    compressed = [each for each in entries if each["request"]["url"].endswith("/index.html")]
    assert compressed[0]["response"]["content"]["size"] == pytest.approx(8_000, rel=0.02)
    # The captures, as tshark decodes them.
    capture = out / "captures" / "0000-mobile.pcapng"
    transport = "udp" if protocol == "h3" else "tcp"
    port = "80" if tls == "none" else "443"
    assert {each for (each,) in fields(capture, f"{transport}.dstport", only="ip.dst != 100.64.0.2")} == {port}
    if tls == "none":
        assert fields(capture, "http.host", "ip.dst", only="http.request") == addresses
    else:
        assert fields(capture, "tls.handshake.extensions_server_name", "ip.dst", only="tls.handshake.type == 1") == (
            addresses
        )
    if protocol == "h3":
        assert not fields(capture, "frame.number", only="tcp")


def test_names_are_looked_up_over_the_link(airpath_command: Command, page: Path, need: Need) -> None:
    need("tshark")
    delay = ("--set", "bearer.downlink.delay=100 ms", "--set", "bearer.uplink.delay=100 ms")
    out = load(airpath_command, page, "--dns", *delay)
    [view] = views_of(out)
    assert (view["missing"], view["failed"]) == ([], {})
    for end in ("mobile", "server"):
        capture = out / "captures" / f"0000-{end}.pcapng"
        answered = fields(capture, "dns.qry.name", "dns.a", only="dns.flags.response == 1 && dns.a")
        assert {name for name, _ in answered} == ORIGINS
        assert answered == fields(capture, "http.host", "ip.dst", only="http.request")
    # Look-up, handshake and request take a round trip of 0.2 s each. Chromium begins the look-up up
    # to some milliseconds before the time from which it counts.
    entries = json.loads((out / "page.har").read_text())["log"]["entries"]
    assert entries[0]["timings"]["dns"] > 0
    assert view["first_byte_s"] > 0.5


def test_a_filmstrip_has_the_progress_of_the_page(airpath_command: Command, page: Path) -> None:
    [view] = views_of(out := load(airpath_command, page, link="umts-dch-384"))
    film = view["filmstrip"]
    assert len(film) > 2
    assert (film[0]["time_s"], film[0]["progress"], film[-1]["progress"]) == (0, 0, 1)
    assert [each["time_s"] for each in film] == sorted(each["time_s"] for each in film)
    assert film[-1]["time_s"] <= view["page_time_s"] + 1
    for each in film:
        assert (out / each["file"]).read_bytes().startswith(b"\xff\xd8\xff")
    assert len(list((out / "filmstrip").rglob("*.jpg"))) == len(film)
    # Nothing is visible before the first paint.
    assert view["first_contentful_paint_s"] - 0.1 <= view["speed_index_s"] <= film[-1]["time_s"]
    # The same load replaces all of it. A load of another page or over another link does not.
    load(airpath_command, page, link="umts-dch-384")
    assert len(list((out / "filmstrip").rglob("*.jpg"))) == len(views_of(out)[0]["filmstrip"])
    for target, link, fault in (
        (str(page), "wired", "the result of another scenario"),
        ("static-site", "umts-dch-384", "views of another page (http://"),
    ):
        done = airpath_command("page", "load", target, "--link", link, "-o", "out")
        assert (done.code, f"out has {fault}" in done.err) == (2, True), done.err
    assert len(views_of(out)) == 1


def test_a_load_replaces_one_with_the_same_options_only(airpath_command: Command, page: Path) -> None:
    words = ("page", "load", str(page), "--link", "wired", "-o", "out")
    out = load(airpath_command, page, "--tls", "TLSv1.3")
    before = views_of(out)
    for options, fault in (
        (("--protocol", "http/1.0", "--tls", "TLSv1.3"), 'another value of `protocol` ("http/1.1")'),
        (("--tls", "TLSv1.2"), 'another value of `tls` ("TLSv1.3")'),
        (("--tls", "TLSv1.3", "--no-compression"), "another value of `compression` (true)"),
    ):
        done = airpath_command(*words, *options)
        assert (done.code, f"out has views with {fault}: nothing was run" in done.err) == (2, True), done.err
    assert views_of(out) == before
    load(airpath_command, page, "--tls", "TLSv1.3", "--protocol", "h1")
    assert views_of(out) != before
    # Views without their options, as written before: page and URL decide.
    (out / "page.json").write_text(json.dumps([{k: v for k, v in each.items() if k != "options"} for each in before]))
    load(airpath_command, page, "--tls", "TLSv1.2")


def test_a_server_that_does_not_listen_is_explained(airpath_command: Command, need: Need) -> None:
    need("chromium")
    serve = f"exec {sys.executable} -m http.server 8000"
    words = ("page", "load", "http://server:8001/", "--serve", serve, "--link", "wired", "-o", "out")
    done = airpath_command(*words)
    assert done.code == 1
    assert "no server listens at server:8001 (net::ERR_CONNECTION_REFUSED)" in done.err
    assert "next: check that it runs, its port" in done.err


def test_a_proxy_is_put_before_the_bearer(airpath_command: Command, page: Path) -> None:
    out = load(airpath_command, page, "--proxy", "http", "--set", "proxy.http.pipelining=2", link="umts-dch-384")
    assert views_of(out)[0]["missing"] == []
    summary = json.loads((out / "summary.json").read_text())
    assert summary["emulation"]["middleboxes"]["proxy"]["requests"] == 6


def test_a_server_of_the_user_has_names(airpath_command: Command, tmp_path: Path, need: Need) -> None:
    need("chromium")
    (tmp_path / "index.html").write_text('<p>text<img src="http://img.test:8000/a.txt">')
    (tmp_path / "a.txt").write_text("no image")
    serve = f"exec {sys.executable} -m http.server 8000"
    options = ("--serve", serve, "--host", "img.test")
    [view] = views_of(load(airpath_command, "http://server:8000/index.html", *options))
    assert (view["protocol"], view["failed"]) == ("http/1.0", {})
    assert view["requests"] >= 2
    [other] = views_of(load(airpath_command, "http://www.test:8000/index.html", *options, name="other"))
    assert other["url"] == "http://www.test:8000/index.html"


def test_a_url_outside_is_loaded_as_root(host: SmallHost, tmp_path: Path, need: Need) -> None:
    need("chromium")
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<link rel=icon href=data:,><p>outside")
    serve = f"nsenter --net --target $(cat neighbour) {sys.executable} -m http.server 8000 -d {site} 2> /dev/null &"
    words = [sys.executable, "-m", "airpath", "page", "load", "http://192.0.2.254:8000/"]
    words += ["--link", "wired", "--timeout", "40", "-o", str(tmp_path / "out")]
    [ran] = host.run_leaving_nothing({"words": words}, prepare=[serve])
    assert ran["code"] == 0, ran
    [view] = views_of(tmp_path / "out")
    assert (view["requests"], view["failed"]) == (1, {})


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("static-site", ("--serve", "true"), "a server needs a URL"),
        ("static-site", ("--protocol", "h2", "--tls", "none"), "h2 needs TLS"),
        ("static-site", ("--protocol", "h3", "--tls", "TLSv1.2"), "h3 needs TLS 1.3"),
        ("http://server/", ("--tls", "TLSv1.3"), "--tls is for pages"),
        ("http://server/", ("--protocol", "h2"), "h2 needs TLS"),
        ("http://server/", ("--protocol", "http/1.0"), "cannot send HTTP/1.0"),
        ("http://server/", ("--host", "a.test"), "--host names a server"),
        ("ftp://server/", (), "not a URL with http://"),
        ("http://server/", ("--dns",), "--dns is for pages"),
        ("http://server:port/", (), "port"),
    ],
)
def test_arguments_that_do_not_fit_are_errors(
    airpath_command: Command, need: Need, target: str, options: tuple[str, ...], message: str
) -> None:
    need("chromium")
    done = airpath_command("page", "load", target, "--link", "wired", *options, "-o", "out")
    assert (done.code, message in done.err, "next:" in done.err) == (2, True, True), done.err


def test_what_has_no_effect_on_the_link_of_a_page_is_noted(airpath_command: Command, page: Path) -> None:
    scenario = airpath_command.folder / "wired.toml"
    change = '[[change]]\nat = "60 s"\noutage = "1 s"\n'
    scenario.write_text(f'format = 1\nbearer.preset = "wired"\nduration = "1 min"\n{change}')
    done = airpath_command("page", "load", str(page), "--link", str(scenario), "-o", "out")
    assert "note: a link does not use `duration` of the scenario" in done.err
    assert "note: change.0 at 60 s has no effect: the run ended with its browser, " in done.err


def test_dns_needs_an_origin_with_a_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load_page.__globals__, "executable", lambda: None)
    page = tmp_path / "local.page"
    document = PAGE.split("[[object]]")[:2]
    page.write_text("[[object]]".join(document) + 'origin = "server"\n')
    with pytest.raises(UsageError, match=r"no origin has a name with a domain \(server\)"):
        load_page(page, "wired", tmp_path / "out", dns=True)


def test_a_document_that_is_not_served_is_an_error(airpath_command: Command, tmp_path: Path, need: Need) -> None:
    """A server that refuses, or closes early, or ends, leaves a message and no process."""
    need("chromium")
    closing = "import socket; s = socket.create_server(('', 8000))\nwhile 1: c, _ = s.accept(); c.recv(9999); c.close()"
    for port, serve, reason in (
        (8001, f"exec {sys.executable} -m http.server 8000", "ERR_CONNECTION_REFUSED"),
        (8000, f'exec {sys.executable} -c "{closing}"', "ERR_EMPTY_RESPONSE"),
        (8000, "exit 3", "the server"),
    ):
        options = ("--link", "wired", "--serve", serve, "-o", str(tmp_path / "out"))
        done = airpath_command("page", "load", f"http://server:{port}/", *options)
        assert (done.code, reason in done.err) == (1, True), done.err
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_an_error_of_the_server_is_no_page(airpath_command: Command) -> None:
    done = airpath_command(
        *("page", "load", "http://server:8000/none.html", "--serve", "python3 -m http.server 8000"),
        *("--link", "wired", "-o", "out"),
    )
    assert done.code == 1
    assert "http://server:8000/none.html: the server answered with status 404" in done.err
    assert "check the path of the URL" in done.err
