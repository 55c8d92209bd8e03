"""Sites recorded through Chromium, and loaded again without their server."""

import http.server
import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airpath.page import PageProblemError, recording
from support import Command
from support.needs import needs

Need = Callable[..., str]


def png(seed: int) -> bytes:
    """Return a valid image of 16 × 16 pixels: Chromium cancels others while they arrive."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((seed * x * y) % 256 for x in range(48)) for y in range(16))
    header = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


FILES = {
    "/index.html": (
        "text/html",
        "<!doctype html><meta charset=iso-8859-1><link rel=icon href='data:,'><link rel=stylesheet href=css/main.css>"
        "<p>\u00e4</p><img src='b%20c.png?x=1'><script src=app.js></script>".encode("latin-1"),
    ),
    "/css/main.css": ("text/css", b"p { background: url('../d.png') }"),
    "/b%20c.png?x=1": ("image/png", png(9)),
    "/d.png": ("image/png", png(5)),
    "/app.js": ("text/javascript", b"fetch('moved').then(r => r.text()); new Worker('worker.js')"),
    "/data.json": ("application/json", b'{"a": 1}'),
    "/worker.js": ("text/javascript", b"fetch('from-worker.bin').then(r => r.arrayBuffer())"),
    "/from-worker.bin": ("application/octet-stream", b"\r\n\x00" * 99),
}


class Site(http.server.BaseHTTPRequestHandler):
    """Serves `FILES`; `/moved` is a redirection."""

    def do_GET(self) -> None:
        """Answer a request."""
        kind, body = FILES.get(self.path, ("text/plain", b""))
        self.send_response(302 if self.path == "/moved" else 200 if self.path in FILES else 404)
        if self.path == "/moved":
            self.send_header("Location", "data.json")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=60")
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Log nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@needs("tun")
def test_a_recorded_site_is_loaded_byte_for_byte_without_its_server(
    airpath_command: Command, site: str, need: Need, tmp_path: Path
) -> None:
    need("chromium")
    done = airpath_command("page", "record", f"{site}/index.html", "-o", "recorded")
    assert done.code == 0, done.err
    har = tmp_path / "recorded" / "site.har"
    served = recording.contents(har, compression=True)
    assert {url: content.body for url, content in served.items() if content.status == 200} == {
        f"{site}{path}": body for path, (_, body) in FILES.items()
    }
    assert served[f"{site}/moved"].status == 302
    # The site's server is not on the link.
    out = tmp_path / "out"
    done = airpath_command("page", "load", "recorded", "--link", "wired", "--repeat-view", "-o", str(out))
    assert done.code == 0, done.err
    first, again = json.loads((out / "page.json").read_text())
    assert (first["missing"], first["failed"], first["requests"]) == ([], {}, len(FILES) + 1)
    assert again["requests"] < first["requests"]
    entries = json.loads((out / "page.har").read_text())["log"]["entries"]
    sizes = {each["request"]["url"].removeprefix(site): each["response"]["content"]["size"] for each in entries[:9]}
    assert sizes == {path: len(body) for path, (_, body) in FILES.items()} | {"/moved": 0}
    # The simulator loads the same page.
    flow = f'kind = "page"\npage = "{tmp_path / "recorded" / "site.page"}"\n'
    (tmp_path / "simulated.toml").write_text(f'format = 1\n[bearer]\npreset = "wired"\n[[flow]]\n{flow}')
    assert airpath_command("run", "simulated.toml").code == 0
    shown = airpath_command("page", "show", "recorded/site.page", "--format", "json").json["object"]
    referrers = {each["name"]: each["referrer"] for each in shown[1:]}
    assert (referrers["/d.png"], referrers["/app.js"]) == ("/css/main.css", "/index.html")
    assert shown[1]["at"] == f"{FILES['/index.html'][1].index(b'<link rel=style')} B"


def test_nothing_is_left_of_a_site_that_cannot_be_recorded(
    airpath_command: Command, need: Need, tmp_path: Path
) -> None:
    need("chromium")
    done = airpath_command("page", "record", "http://127.0.0.1:9/", "-o", "recorded")
    assert (done.code, "ERR_" in done.err) == (2, True), done.err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    done = airpath_command("page", "record", "http://127.0.0.1:9/", "-o", "full")
    assert (done.code, "other files" in done.err) == (2, True), done.err
    # Nor a folder that has a HAR file and other files.
    (tmp_path / "full" / "site.har").write_text("{}")
    for folder in ("full", "full/../full", "."):
        done = airpath_command("page", "record", "http://127.0.0.1:9/", "-o", folder)
        assert (done.code, "other files" in done.err) == (2, True), done.err
    assert airpath_command("page", "record", "example.com", "-o", "recorded").code == 2
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "mine", "site.har"]


def entry(**content: Any) -> dict[str, Any]:
    """Return an entry of a HAR file."""
    response = {"status": 200, "headers": [], "content": {"size": 3, "mimeType": "text/html"} | content}
    return {"request": {"url": "http://a.test/"}, "response": response}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry()], "log.entries: 1 responses have no content"),
        ([entry(_file="../secret")], "log.entries.0.response.content._file: ../secret: it is outside"),
        ([entry(_file="contents/00000")], "contents/00000: there is no such file"),
        ([entry(text="###", encoding="base64")], "log.entries.0.response.content.text: no base64"),
        ([{"request": {"url": "http://a:b/"}, "response": {}}], "log.entries.0.request.url: port"),
        ([], "log.entries: no HTTP response"),
    ],
)
def test_errors_of_a_recording_name_the_field(tmp_path: Path, entries: list[Any], message: str) -> None:
    (tmp_path / "site.har").write_text(json.dumps({"log": {"entries": entries}}))
    with pytest.raises(PageProblemError) as error:
        recording.contents(tmp_path / "site.har", compression=True)
    assert message in str(error.value)


def test_a_har_file_with_contents_is_a_recording(tmp_path: Path) -> None:
    """As browsers save it, with texts and base64."""
    fields = [{"name": "Content-Encoding", "value": "br"}, {"name": "Content-Type", "value": "text/html"}]
    text = entry(text="text")
    text["response"]["headers"] = fields
    (tmp_path / "site.har").write_text(json.dumps({"log": {"entries": [text]}}))
    [plain] = recording.contents(tmp_path / "site.har", compression=False).values()
    assert (plain.body, plain.headers) == (b"text", (("content-type", "text/html"),))
    [packed] = recording.contents(tmp_path / "site.har", compression=True).values()
    assert dict(packed.headers)["content-encoding"] == "gzip"


def test_a_recording_needs_the_content_of_its_document(tmp_path: Path, airpath_command: Command, need: Need) -> None:
    """The command ends before it starts a link; other responses without content are listed."""
    need("chromium")

    def described(url: str, **content: Any) -> dict[str, Any]:
        each = entry(mimeType="text/html" if url.endswith("/") else "text/css", **content)
        return each | {"request": {"url": url}}

    har = tmp_path / "site.har"
    style, image = described("http://a.example/b.css", text="p {}"), described("http://a.example/c.png#x")
    har.write_text(json.dumps({"log": {"entries": [described("http://a.example/"), style]}}))
    done = airpath_command("page", "load", str(har), "--link", "wired", "-o", "out")
    assert done.code == 2, done.err
    assert "the document http://a.example/ has no content" in " ".join(done.err.split())
    har.write_text(json.dumps({"log": {"entries": [described("http://a.example/", text="<p>"), style, image]}}))
    found = recording.contents(har, compression=False)
    assert recording.check_document(har, found) == ["http://a.example/c.png"]
