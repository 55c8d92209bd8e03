"""Page files from WARC files."""

import gzip
import io
import zlib
from pathlib import Path

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from airpath.page import PageProblemError, from_warc, recording
from support import Command

SITE = "https://www.example.org/"
HTML = b"<!doctype html><link rel=stylesheet href=a.css><img src='//cdn.example.org/b.png#top'>" + b" " * 2_000


def warc(*further: tuple[str, str, bytes, str], packed: bool = True) -> bytes:
    """Return a WARC file: a page, and further responses by URL, media type, body and status."""
    file = io.BytesIO()
    writer = WARCWriter(file, gzip=packed)
    responses = [
        (SITE, "text/html", brotli.compress(HTML), "200 OK", "br"),
        (f"{SITE}a.css", "text/css", b"p { background: url(c.png) }", "200 OK", None),
        ("https://cdn.example.org/b.png", "image/png", b"\x00" * 700, "200 OK", None),
        (f"{SITE}c.png", "image/png", b"\x01" * 90, "200 OK", None),
        (f"{SITE}late.json", "application/json", b"{}", "200 OK", None),
        (f"{SITE}gone", "text/html", b"gone", "404 Not Found", None),
        *((*each, "br" if each[3].startswith(("204", "304", "500")) else None) for each in further),
    ]
    writer.write_record(writer.create_warcinfo_record("site.warc", {"software": "test"}))
    for url, kind, body, status, encoding in responses:
        fields = [("Content-Type", kind), ("Cache-Control", "max-age=60")]
        fields += [("Content-Encoding", encoding)] if encoding else []
        headers = StatusAndHeaders(status, fields, protocol="HTTP/1.1")
        writer.write_record(writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=headers))
    return file.getvalue()


def write(folder: Path, content: bytes, name: str = "site.warc.gz") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("packed", [True, False])
def test_a_warc_file_becomes_a_page(tmp_path: Path, airpath_command: Command, packed: bool) -> None:
    """Contents are decoded; references have their bytes."""
    path = write(tmp_path, warc(packed=packed), "site.warc.gz" if packed else "site.warc")
    done = airpath_command("page", "import", str(path), "-o", "site.page")
    assert done.code == 0, done.err
    rows = {each["name"]: each for each in from_warc(path).objects}
    assert list(rows) == ["/", "/a.css", "/b.png", "/c.png", "/late.json"]
    assert (rows["/"]["size"], rows["/"]["cache"], rows["/"]["origin"]) == (
        f"{len(HTML)} B",
        "fresh",
        "www.example.org",
    )
    assert rows["/a.css"]["at"] == f"{HTML.index(b'<link')} B"
    assert (rows["/b.png"]["origin"], rows["/b.png"]["at"]) == ("cdn.example.org", f"{HTML.index(b'<img')} B")
    assert (rows["/c.png"]["referrer"], rows["/late.json"]["referrer"]) == ("/a.css", "/")


def test_a_warc_file_is_a_recorded_site(tmp_path: Path) -> None:
    """A server can answer with its responses, of any status."""
    path = write(tmp_path, warc())
    assert recording.file_of(path) == path
    assert (recording.document_of(path), recording.name_of(path)) == (SITE, "site")
    served = recording.contents(path, compression=True)
    document = served[SITE]
    assert gzip.decompress(document.body) == HTML
    assert dict(document.headers) == {
        "content-type": "text/html",
        "cache-control": "max-age=60",
        "content-encoding": "gzip",
    }
    assert (served[f"{SITE}gone"].status, served[f"{SITE}c.png"].body) == (404, b"\x01" * 90)
    assert recording.contents(path, compression=False)[SITE].body == HTML


@pytest.mark.parametrize(
    ("status", "body", "is_served"),
    [("204 No Content", b"", True), ("304 Not Modified", b"", True), ("500 Error", b"none", False), ("OK", b"", False)],
)
def test_an_unusual_record_does_not_make_a_file_unusable(
    tmp_path: Path, status: str, body: bytes, is_served: bool
) -> None:
    path = write(tmp_path, warc((f"{SITE}x", "text/plain", body, status)))
    assert from_warc(path).objects
    assert (f"{SITE}x" in recording.contents(path, compression=False)) == is_served


def test_a_crawl_has_many_pages(tmp_path: Path, airpath_command: Command) -> None:
    """Of several documents, the page has what it refers to."""
    other = (f"{SITE}other", "text/html", b"<img src=late.json>", "200 OK")
    path = write(tmp_path, warc(other))
    assert [each["name"] for each in from_warc(path).objects] == ["/", "/a.css", "/b.png", "/c.png"]
    assert [each["name"] for each in from_warc(path, f"{SITE}other").objects] == ["/other", "/late.json"]
    done = airpath_command("page", "import", str(path), "--page", f"{SITE}none", "-o", "site.page")
    assert (done.code, f"{SITE}other" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no record; is this a WARC file?"),
        (b"<html>", "site.warc.gz: "),
        (warc(packed=False)[:-200], "site.warc.gz: the file does not end with a complete record"),
        (warc()[:900], "site.warc.gz: "),
        (warc(packed=False).replace(b"\x01" * 90, b"\x02" * 90), "site.warc.gz: record 5: "),
        (zlib.compress(b"abc"), "site.warc.gz: "),
        (gzip.compress(b"abc", mtime=0) + b"abc", "site.warc.gz: "),
    ],
)
def test_errors_of_a_warc_file_name_the_record(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(PageProblemError) as error:
        from_warc(write(tmp_path, content))
    assert message in str(error.value)


WHOLE = warc(packed=False)


@given(at=st.integers(0, len(WHOLE) - 1), removed=st.integers(0, 40), added=st.binary(max_size=20))
def test_any_change_of_a_warc_file_is_a_page_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, removed: int, added: bytes
) -> None:
    """Broken bytes never cause another exception."""
    path = write(tmp_path_factory.mktemp("warc"), WHOLE[:at] + added + WHOLE[at + removed :])
    try:
        assert from_warc(path).objects
    except PageProblemError as error:
        assert str(path) in str(error)
