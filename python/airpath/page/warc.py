"""A page from a WARC file (ISO 28500), as crawlers and `wget --warc-file` write it.

Times of servers are not in such a file: `wait` is zero. References are found in HTML and CSS.
"""

import gzip
import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urldefrag, urlsplit

from airpath import extras
from airpath.page.files import PageFile, PageProblemError, name_of
from airpath.page.har import caching
from airpath.page.resources import Resource, add_objects

_BROKEN = (ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError)
_NEXT = "write the file again, or check it with `warcio check`"


@dataclass(frozen=True, slots=True)
class Response:
    """A response of HTTP in a WARC file."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    """Its fields, with names in lower case."""
    body: bytes
    """The body without transfer and content encoding."""


def is_warc(path: Path) -> bool:
    """Return whether a file is named as WARC."""
    return path.name.endswith((".warc", ".warc.gz"))


def from_warc(path: Path, document: str | None = None) -> PageFile:
    """Return the page of a WARC file.

    A file with several HTML documents is a crawl: then the page has the objects to which its
    document, or an object of it, refers. Otherwise it has all.

    Args:
        path: The file.
        document: The URL of the document; the first HTML response by default.

    Raises:
        ExtraMissingError: `warcio` is not installed.
        PageProblemError: The file is broken, or has no such document.
        OSError: It cannot be read.
    """
    taken: set[str] = set()
    successful = responses(path, only_successful=True)
    resources = [_resource(each, taken) for each in {each.url: each for each in reversed(successful)}.values()][::-1]
    documents = [each for each in resources if each.type == "document"]
    chosen = [each for each in documents if document is None or each.url == urldefrag(document).url]
    if not chosen:
        known = ", ".join(each.url for each in documents[:5]) or "none"
        wanted = "no HTML response" if document is None else f"no HTML response of {document}"
        raise PageProblemError(f"{path}: {wanted}", next_step=f"its HTML documents are: {known}")
    page = PageFile(
        path.name.partition(".warc")[0], chosen[0].url, f"WARC file {path.name}; compressed sizes are those of gzip"
    )
    ordered = [chosen[0], *(each for each in resources if each is not chosen[0])]
    add_objects(page, ordered, referenced_only=len(documents) > 1)
    return page


def _resource(response: Response, taken: set[str]) -> Resource:
    parts = urlsplit(response.url)
    fields = dict(response.headers)
    return Resource(
        response.url,
        name_of(parts, taken),
        fields.get("content-type", ""),
        response.body,
        origin=parts.netloc,
        cache=caching(fields),
    )


def responses(path: Path, *, only_successful: bool = False) -> list[Response]:
    """Return the responses of HTTP in a WARC file, in its order.

    Args:
        path: The file.
        only_successful: Skip responses whose status is not 2xx.

    Raises:
        ExtraMissingError: `warcio` is not installed.
        PageProblemError: The file is broken.
        OSError: It cannot be read.
    """
    extras.require("page", "warcio", "brotli")
    import brotli
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    found: list[Response] = []
    number, place = 0, ""
    with path.open("rb") as file:
        try:
            _check_end(file)
            place = "record 1: "
            for record in ArchiveIterator(file, check_digests="raise"):  # pyright: ignore[reportArgumentType]
                response = _response(record, only_successful=only_successful)
                number += 1
                place = f"record {number + 1}: "
                if response is not None:
                    found.append(response)
        # The library raises various exceptions for bytes that it does not expect.
        except (*_BROKEN, ArchiveLoadFailed, brotli.error, gzip.BadGzipFile, zlib.error) as error:
            reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
            raise PageProblemError(f"{path}: {place}{reason[0]}", next_step=_NEXT) from None
    if not number:
        raise PageProblemError(f"{path}: no record", next_step="is this a WARC file?")
    return found


def _check_end(file: BinaryIO) -> None:
    """Check that the last record is complete: the library ends without an error if it is not."""
    is_packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    last = b""
    content = gzip.GzipFile(fileobj=file) if is_packed else file
    while block := content.read(1 << 20):
        last = (last + block)[-4:]
    file.seek(0)
    if last not in (b"", b"\r\n\r\n"):
        raise EOFError("the file does not end with a complete record")


def _response(record: Any, *, only_successful: bool) -> Response | None:
    """Return a record as a response; `None` if it is skipped, or none of HTTP."""
    import brotli

    url = urldefrag((record.rec_headers.get_header("WARC-Target-URI") or "").strip("<>")).url
    if record.rec_headers.get_header("Content-Length") is None:
        raise EOFError("it has no Content-Length; the file may be cut short")
    raw = record.raw_stream.read()
    if record.raw_stream.limit > 0:
        raise EOFError(f"it ends {record.raw_stream.limit} bytes early")
    if record.rec_type != "response" or not url.startswith(("http://", "https://")):
        return None
    if record.http_headers is None:
        raise EOFError("it has no head of HTTP")
    _ = urlsplit(url).port  # it raises ValueError
    fields = tuple((name.lower(), value) for name, value in record.http_headers.headers)
    status = record.http_headers.get_statuscode()
    if not re.fullmatch(r"[1-9][0-9]{2}", status):
        return None
    is_successful = status.startswith("2")
    if only_successful and not is_successful:
        return None
    try:
        body = _decoded(raw, dict(fields))
    except (*_BROKEN, brotli.error, gzip.BadGzipFile, zlib.error):
        if is_successful:
            raise
        return None
    return Response(url, int(status), fields, body)


def _decoded(raw: bytes, fields: dict[str, str]) -> bytes:
    """Return a body without transfer and content encoding.

    Some crawlers remove the encoding, but keep its field.
    """
    import brotli
    from warcio.bufferedreaders import ChunkedDataReader

    body = raw
    if "chunked" in fields.get("transfer-encoding", "").lower():
        body = ChunkedDataReader(io.BytesIO(raw)).read(len(raw)) or b""
    if not body:
        return body
    encoding = fields.get("content-encoding", "").lower()
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompress(body, wbits=47) if body.startswith(b"\x1f\x8b") else body
    if encoding == "deflate":
        # Servers send it with and without the head of zlib.
        return zlib.decompress(body, wbits=15 if body[:1] == b"\x78" else -15)
    if encoding == "br":
        return brotli.decompress(body)
    if encoding not in ("", "identity"):
        raise ValueError(f"the content encoding `{encoding}` is not known")
    return body
