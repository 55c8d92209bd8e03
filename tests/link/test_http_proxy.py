"""The application level of the proxy with real programs: pipelining, compression, truncation."""

import shlex
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from support.link import BROWSER, LinkCommand, python, summary

Need = Callable[..., str]

PIPELINED = "pipelined.py"
CODINGS = ["gzip", "br", "zstd"]


def counters(folder: Path) -> dict[str, int]:
    """Return the counters of the proxy."""
    return summary(folder)["emulation"]["middleboxes"]["proxy"]


def fetch(link: LinkCommand, options: str, *arguments: object) -> tuple[float, int, dict[str, int]]:
    """Fetch objects that take 100 ms each; return seconds, bytes, the proxy's counters."""
    out = link.folder / f"out-{time.monotonic_ns()}"
    client = python(PIPELINED, "fetch", "server", *arguments)
    serve = shlex.join(python(PIPELINED, "serve", 100))
    done = link(*client, link=link.wire(), serve=serve, options=f"--proxy {options} --out {out}")
    seconds, size = done.out.split()[-2:]
    return float(seconds), int(size), counters(out)


def test_pipelined_requests_are_fetched_at_the_same_time(link: LinkCommand) -> None:
    serial, size, one = fetch(link, "--set proxy.http.pipelining=1", 16, 3000, 8)
    parallel, same_size, eight = fetch(link, "--set proxy.http.pipelining=8", 16, 3000, 8)
    # The client compares every byte.
    assert size == same_size
    assert serial > 16 * 0.1
    assert parallel < serial / 3
    assert one["requests"] == eight["requests"] == 16
    assert one["response_bytes"] == eight["response_bytes"] == size
    assert eight["parallel_requests"] >= 8


def test_a_server_for_one_connection_at_a_time_answers_all(link: LinkCommand) -> None:
    out = link.folder / "out"
    link(
        *python("http.py", "pipelined", "server"),
        link=link.wire(),
        serve=shlex.join(python("http.py", "serve")),
        options=f"--proxy --set proxy.http.pipelining=8 --out {out}",
    )
    assert counters(out)["requests"] == 8
    assert counters(out)["retries"] > 0


def test_curl_decompresses_what_the_proxy_has_compressed(link: LinkCommand, need: Need) -> None:
    plain, packed, out = link.folder / "plain", link.folder / "packed", link.folder / "out"
    curl = f"{need('curl')} --silent --show-error --fail"
    lines = [f"{curl} -o {plain} server/7/50000"]
    lines += [f"{curl} --compressed -H 'Accept-Encoding: {name}' -o {packed}.{name} server/7/50000" for name in CODINGS]
    link(
        "sh",
        "-ec",
        "\n".join(lines),
        link=link.wire(),
        serve=shlex.join(python(PIPELINED, "serve", 0)),
        options=f"--proxy --set proxy.http.compression=true --out {out}",
    )
    for name in CODINGS:
        assert Path(f"{packed}.{name}").read_bytes() == plain.read_bytes(), name
    counted = counters(out)
    assert counted["uncompressed_bytes"] == len(CODINGS) * 50_000
    assert counted["compressed_bytes"] < counted["uncompressed_bytes"] * 2 / 3


def test_clients_share_what_is_stored(link: LinkCommand, need: Need) -> None:
    out = link.folder / "out"
    curl = f"{need('curl')} --silent --show-error --fail"
    fresh, stale, private = (f"server/7/20000/{control}" for control in ("max-age=60", "max-age=1", "private"))
    lines = [f"{curl} -o {link.folder}/{name}-{turn} {url}" for turn in range(3) for name, url in (("f", fresh),)]
    lines += [f"{curl} -o {link.folder}/s-0 {stale}", "sleep 2", f"{curl} -o {link.folder}/s-1 {stale}"]
    lines += [f"{curl} -o {link.folder}/p-{turn} {private}" for turn in range(2)]
    lines += [f"{curl} -H 'If-None-Match: \"7\"' -w '%{{http_code}}' {fresh}"]
    done = link(
        "sh",
        "-ec",
        "\n".join(lines),
        link=link.wire(),
        serve=shlex.join(python(PIPELINED, "serve", 200)),
        options=f"--proxy --set proxy.http.cache=1MB --out {out}",
    )
    assert done.out == "304"
    whole = (link.folder / "f-0").read_bytes()
    assert len(whole) == 20_000
    for name in ("f-1", "f-2", "s-0", "s-1", "p-0", "p-1"):
        assert (link.folder / name).read_bytes() == whole, name
    counted = counters(out)
    # Fresh twice and for the 304; stale and confirmed once; private objects never.
    assert counted["cache_hits"] == 3
    assert counted["cache_validations"] == 1
    assert counted["cache_stored"] == 2
    assert counted["cached_bytes"] == 3 * 20_000


def test_a_server_connection_outlives_its_client(link: LinkCommand, need: Need) -> None:
    out = link.folder / "out"
    curl = f"{need('curl')} --silent --show-error --fail"
    url = "server/7/20000"
    lines = [f"{curl} -o {link.folder}/got-{turn} {url}" for turn in range(3)]
    # What cannot be repeated has a connection of its own, and so has what is not HTTP.
    lines += [f"{curl} -o {link.folder}/got-3 -X POST {url} || true", f"{curl} -o {link.folder}/got-4 {url}"]
    link(
        "sh",
        "-ec",
        "\n".join(lines),
        link=link.wire(),
        serve=shlex.join(python(PIPELINED, "serve", 0)),
        options=f"--proxy --set proxy.http.server_pool=2 --out {out}",
    )
    whole = (link.folder / "got-0").read_bytes()
    assert len(whole) == 20_000
    assert all((link.folder / f"got-{turn}").read_bytes() == whole for turn in (1, 2, 4))
    # The third of the server's answers is 501 with `Connection: close`.
    assert counters(out)["reused_servers"] == 4
    flows = summary(out)["flows"]
    assert len(flows) == 5 + 2


def png(width: int, height: int, level: int) -> bytes:
    """Return a PNG of a gradient in three colours, without filters."""
    rows = (bytes([0]) + bytes(v % 256 for x in range(width) for v in (x, y, x + y)) for y in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(rows), level)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + content


def test_images_become_smaller(link: LinkCommand, need: Need) -> None:
    out, files = link.folder / "out", link.folder / "files"
    files.mkdir()
    (files / "a.png").write_bytes(png(100, 100, 0))
    (files / "bomb.png").write_bytes(png(3000, 1500, 9))
    curl = f"{need('curl')} --silent --show-error --fail -w '%{{http_code}} %{{content_type}} %{{size_download}} '"
    lines = [
        f"{curl} -o {link.folder}/png server/a.png",
        f"{curl} -o {link.folder}/webp -H 'Accept: image/webp' server/a.png",
        f"{curl} -o {link.folder}/same -H 'Cache-Control: no-transform' server/a.png",
        f"{curl} -o {link.folder}/bomb server/bomb.png",
    ]
    serve = [sys.executable, "-m", "http.server", "-p", "HTTP/1.1", "-d", str(files), "80"]
    done = link(
        "sh",
        "-ec",
        "\n".join(lines),
        link=link.wire(),
        serve=shlex.join(serve),
        options=f"--proxy --set proxy.http.image_quality=50 --out {out}",
    )
    answers = done.out.split()
    assert answers[0:9:3] == ["203", "203", "200"]
    assert answers[1:9:3] == ["image/png", "image/webp", "image/png"]
    original = (files / "a.png").read_bytes()
    assert (link.folder / "same").read_bytes() == original
    assert (link.folder / "bomb").read_bytes() == (files / "bomb.png").read_bytes(), "it has too many pixels"
    small, webp = (link.folder / "png").read_bytes(), (link.folder / "webp").read_bytes()
    assert small.startswith(b"\x89PNG") and small[16:24] == original[16:24]
    assert webp.startswith(b"RIFF") and webp[8:16] == b"WEBPVP8L"
    counted = counters(out)
    assert counted["recoded_images"] == 2
    assert counted["original_image_bytes"] == 2 * len(original)
    assert counted["recoded_image_bytes"] == len(small) + len(webp) < len(original)


def test_a_truncated_object_does_not_look_complete(link: LinkCommand, need: Need) -> None:
    for option in ("pipelining=8", "compression=true"):
        curl = [need("curl"), "--silent", "--compressed", "--http1.1", "--write-out", "%{size_download}", "server/cut"]
        done = link(
            *curl,
            link=link.wire(),
            serve=shlex.join(python(PIPELINED, "serve", 0)),
            options=f"--proxy --set proxy.http.{option}",
            code=None,
        )
        # CURLE_PARTIAL_FILE, or for the chunks of a compressed object CURLE_RECV_ERROR.
        assert done.code in (18, 56), done


def test_what_is_not_http_passes(link: LinkCommand) -> None:
    out = link.folder / "out"
    size = 100_000
    server = (
        "import socket; s = socket.create_server(('', 80)); c, _ = s.accept(); c.recv(3);"
        f" c.sendall(b'hello ' * {size}); c.shutdown(1); c.recv(1); s.accept()"
    )
    client = (
        "import socket, sys; c = socket.create_connection(('server', 80)); c.sendall(b'\\x16\\x03\\x01');"
        " d = b''.join(iter(lambda: c.recv(65536), b''));"
        f" sys.exit(d != b'hello ' * {size})"
    )
    link(
        *python(client),
        link=link.wire(),
        serve=shlex.join(python(server)),
        options=f"--proxy --set proxy.http.pipelining=8 --out {out}",
    )
    counted = counters(out)
    assert counted["bypassed_bytes_tls"] == 6 * size


EXPLICIT = (
    "--proxy --set proxy.http.address=10.99.0.1:3128 --set proxy.http.resolver=100.64.0.1:53"
    " --set proxy.http.ports=[8000]"
)
"""An explicit proxy that queries the resolver of [`names`], and no transparent one."""


def names(need: Need, serve: list[str]) -> str:
    """Return a server with a resolver, which gives its address for every name of `test`."""
    dnsmasq = [need("dnsmasq"), "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root"]
    dnsmasq += ["--no-resolv", "--no-hosts", "--address=/test/100.64.0.1"]
    return f"{shlex.join(dnsmasq)} & exec {shlex.join(serve)}"


def through_explicit(
    link: LinkCommand, need: Need, lines: list[str], serve: list[str], options: str = "", timeout: float = 60
) -> tuple[str, dict[str, int]]:
    """Run a client behind the explicit proxy; return its output and the proxy's counters."""
    out = link.folder / "out"
    done = link(
        "sh",
        "-ec",
        "\n".join(lines),
        link=link.wire(),
        serve=f"sh -c {shlex.quote(names(need, serve))}",
        options=f"{EXPLICIT} {options} --out {out}",
        timeout=timeout,
    )
    return done.out, counters(out)


def listens(need: Need, url: str) -> str:
    """Return a shell command that waits for a server: a link waits for the resolver only."""
    return f"until {need('curl')} -sko /dev/null {url}; do sleep 0.1; done"


def test_an_explicit_proxy_fetches_from_several_servers(link: LinkCommand, need: Need) -> None:
    curl = f"{need('curl')} --silent --show-error -x 10.99.0.1:3128 -w '%{{http_code}} %{{num_connects}} '"
    urls = [f"http://{name}/7/20000" for name in ("a.test", "b.test", "100.64.0.1", "a.test")]
    several = " ".join(f"-o {link.folder}/got-{turn} {url}" for turn, url in enumerate(urls))
    refused = ["http://127.0.0.1/", "http://10.99.0.1:3128/", "http://100.64.0.1:1/", "http://nowhere.example/"]
    lines = [
        listens(need, "http://server/7/1"),
        f"{curl} {several}",
        *(f"{curl} -o /dev/null {url}" for url in refused),
    ]
    lines += [f"{curl} -o /dev/null -H 'Via: 1.1 10.99.0.1:3128' {urls[0]}"]
    printed, counted = through_explicit(link, need, lines, python(PIPELINED, "serve", 0))
    answers = printed.split()
    assert answers[0::2] == ["200"] * 4 + ["403", "403", "502", "502", "502"]
    assert sum(map(int, answers[1:8:2])) == 1, "one connection carries the requests to all servers"
    whole = (link.folder / "got-0").read_bytes()
    assert len(whole) == 20_000
    assert all((link.folder / f"got-{turn}").read_bytes() == whole for turn in range(4))
    assert counted["requests"] == 9
    assert counted["refused_requests"] == 5
    assert counted["name_queries"] == 3


def test_tls_passes_through_an_explicit_proxy(link: LinkCommand, need: Need) -> None:
    openssl = need("openssl")
    make = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
    make += ["-subj", "/CN=a.test", "-addext", "subjectAltName=DNS:a.test"]
    subprocess.run(make, cwd=link.folder, check=True, capture_output=True)
    (link.folder / "content").write_bytes(bytes(range(256)) * 1000)
    serve = [openssl, "s_server", "-accept", "443", "-key", "key.pem", "-cert", "cert.pem", "-WWW", "-quiet"]
    curl = f"{need('curl')} --silent --show-error -x 10.99.0.1:3128 --cacert cert.pem"
    lines = [listens(need, "https://server/content"), f"{curl} -o got https://a.test/content"]
    lines += [f"{curl} -o /dev/null -w '%{{http_connect}}' https://a.test:{port}/ || true" for port in (22, 444)]
    printed, counted = through_explicit(link, need, lines, serve, "--set proxy.http.connect_ports=[443,444]")
    assert printed == "403502"
    assert (link.folder / "got").read_bytes() == (link.folder / "content").read_bytes()
    assert counted["tunnels"] == 1
    assert counted["bypassed_bytes_connect"] > 256_000


def test_a_browser_uses_an_explicit_proxy(link: LinkCommand, need: Need, web: str) -> None:
    page = "".join(f'<script src="http://{name}.test/{name}.js"></script>' for name in "bcd")
    (link.folder / "files" / "index.html").write_text(f"<p id=text>none</p>{page}")
    for name in "bcd":
        script = f"document.getElementById('text').textContent += ' {name}'"
        (link.folder / "files" / f"{name}.js").write_text(script)
    browser = [need("chromium")] + [option for option in BROWSER if option != "--no-proxy-server"]
    browser += ["--proxy-server=10.99.0.1:3128", f"--user-data-dir={link.folder / 'profile'}"]
    lines = [listens(need, "http://server/"), f"exec {shlex.join(browser)} --dump-dom http://a.test/index.html"]
    printed, counted = through_explicit(link, need, lines, shlex.split(web), timeout=120)
    assert "none b c d" in printed
    assert counted["requests"] >= 4
    assert counted["name_queries"] >= 4


def test_a_new_version_is_coded_against_the_old_one(link: LinkCommand, need: Need) -> None:
    out, files = link.folder / "out", link.folder / "files"
    files.mkdir()
    lines = [f"<li>{number} {zlib.crc32(str(number).encode())}</li>\n" for number in range(1500)]
    (files / "old.html").write_text("".join(lines))
    lines[700:710] = ["<li>this is new</li>\n"] * 5
    (files / "new.html").write_text("".join(lines))
    serve = [sys.executable, "-m", "http.server", "-p", "HTTP/1.1", "-d", str(files), "80"]
    done = link(
        *python("dictionary.py", need("zstd")),
        link=link.wire(),
        serve=shlex.join(serve),
        options=f"--proxy --set proxy.http.dictionaries=1MB --out {out}",
    )
    whole, coded = map(int, done.out.split())
    assert whole > 30_000 and coded < 500
    counted = counters(out)
    assert counted["delta_responses"] == 2
    assert counted["stored_dictionaries"] == 2


def test_the_objects_of_a_page_are_fetched_before(link: LinkCommand, need: Need) -> None:
    urls = "http://server/ " + " ".join(f"http://server/{number}.png" for number in (0, 1, 2, 3, 5))
    times = []
    for options in ("", " --set proxy.http.prefetch=6"):
        out = link.folder / f"out{len(times)}"
        done = link(
            *(need("curl"), "-sS", "--fail", "-w", "\n%{time_total} %{size_download}\n", *urls.split()),
            link=link.wire(delay="200 ms"),
            serve=shlex.join(python("images.py", 0.3)),
            options=f"--proxy --set proxy.http.cache=1MB{options} --out {out}",
        )
        lines = [line.split() for line in done.out.splitlines() if len(line.split()) == 2]
        times.append(sum(float(line[0]) for line in lines))
        assert [int(line[1]) for line in lines[1:]] == [3000] * 5
    counted = counters(out)
    assert times[1] < times[0] - 0.3
    # The fifth is not requested, and the sixth must not be stored.
    assert counted["prefetched"] == 5
    assert counted["prefetched_used"] == 4
    assert counted["prefetched_unused"] == 1
    assert counted["prefetches_failed"] == 1
    assert counted["prefetched_bytes"] == 5 * 3000
