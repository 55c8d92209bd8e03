"""A recorded site: a HAR or WARC file with contents of responses, which a server can answer again.

The contents of a HAR file are `content.text` of HAR 1.2, as browsers save them, or files that
`content._file` names, relative to the HAR file, as `airpath page record` and Playwright write them.
"""

import base64
import binascii
import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from airpath.page.files import DOCUMENT_TYPES, PageProblemError
from airpath.page.har import read_entries
from airpath.page.site import Content
from airpath.page.warc import is_warc, responses

HAR = "site.har"
PAGE = "site.page"
CONTENTS = "contents"
_OF_CONNECTION = frozenset(
    {"alt-svc", "connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding", "upgrade"}
)
"""Fields that the server writes itself, or that name other servers."""
_OF_TIME = frozenset({"age", "date", "expires"})
"""Fields that would make each response older than its recording."""


def file_of(source: Path) -> Path | None:
    """Return the HAR or WARC file of a recorded site; `None` if `source` is none."""
    if source.is_dir():
        return source / HAR
    return source if source.suffix == ".har" or is_warc(source) else None


def name_of(file: Path) -> str:
    """Return the name of a recorded site: that of its folder, or of a WARC file."""
    return file.name.partition(".warc")[0] if is_warc(file) else file.resolve().parent.name


def document_of(file: Path) -> str:
    """Return the URL of the first document.

    Raises:
        PageProblemError: The file cannot be used, or has no document.
        OSError: It cannot be read.
    """
    for url, status, media_type in _described(file):
        if status < 300 and media_type.partition(";")[0].strip().lower() in DOCUMENT_TYPES:
            return url
    raise PageProblemError(f"{file}: no HTML document", next_step="record the page again")


def check_document(file: Path, found: Mapping[str, Content]) -> list[str]:
    """Return the URLs of a recorded site whose responses have no content, in their order.

    Args:
        file: The HAR or WARC file.
        found: Its contents.

    Raises:
        PageProblemError: The document has no content.
        OSError: The file cannot be read.
    """
    if (document := document_of(file)) not in found:
        raise PageProblemError(
            f"{file}: the document {document} has no content",
            next_step="save it with contents, or use `airpath page record`",
        )
    urls = (url for url, status, _ in _described(file) if 200 <= status <= 599)
    return [url for url in dict.fromkeys(urls) if url.startswith(("http://", "https://")) and url not in found]


def _described(file: Path) -> Iterator[tuple[str, float, str]]:
    """Yield URL, status and media type of all responses."""
    if is_warc(file):
        for each in responses(file):
            yield each.url, each.status, dict(each.headers).get("content-type", "")
        return
    for entry in read_entries(file):
        response = entry["response"]
        yield entry["request"]["url"].partition("#")[0], response["status"], str(response["content"].get("mimeType"))


def contents(file: Path, *, compression: bool) -> dict[str, Content]:
    """Return the contents by URL; the first response of each URL is taken.

    Args:
        file: The HAR or WARC file.
        compression: Whether responses that were compressed are compressed, by gzip.

    Raises:
        ExtraMissingError: `warcio` is not installed.
        PageProblemError: The file cannot be used, or lacks contents.
        OSError: A file cannot be read.
    """
    return (_of_warc if is_warc(file) else _of_har)(file, compression=compression)


def _of_warc(file: Path, *, compression: bool) -> dict[str, Content]:
    found: dict[str, Content] = {}
    for each in responses(file):
        if each.url not in found and 200 <= each.status <= 599:
            found[each.url] = _content(each.headers, each.status, each.body, compression=compression)
    if not found:
        raise PageProblemError(f"{file}: no HTTP response", next_step="write the file again")
    return found


def _of_har(har: Path, *, compression: bool) -> dict[str, Content]:
    found: dict[str, Content] = {}
    without = 0
    for number, entry in enumerate(read_entries(har)):
        response = entry["response"]
        url = entry["request"]["url"].partition("#")[0]
        if url in found or not url.startswith(("http://", "https://")) or not 200 <= response["status"] <= 599:
            continue
        body = _body(har, response, number)
        if body is None:
            without += 1
            continue
        fields = [(str(each["name"]).lower(), str(each["value"])) for each in response["headers"]]
        found[url] = _content(fields, int(response["status"]), body, compression=compression)
    if not found:
        if not without:
            raise PageProblemError(f"{har}: log.entries: no HTTP response")
        raise PageProblemError(
            f"{har}: log.entries: {without} responses have no content",
            next_step="save it with contents, or use `airpath page record`",
        )
    return found


def _body(har: Path, response: Mapping[str, Any], number: int) -> bytes | None:
    content, at = response["content"], f"{har}: log.entries.{number}.response.content"
    if isinstance(file := content.get("_file"), str):
        path = har.parent / file
        if not path.resolve().is_relative_to(har.parent.resolve()):
            raise PageProblemError(f"{at}._file: {file}: it is outside of the folder of the recording")
        if not path.is_file():
            raise PageProblemError(f"{at}._file: {file}: there is no such file", next_step="record the page again")
        return path.read_bytes()
    text = content.get("text")
    if isinstance(text, str):
        if content.get("encoding") != "base64":
            return text.encode()
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise PageProblemError(f"{at}.text: no base64: {error}", next_step="save the HAR file again") from None
    empty = response["status"] in (204, 304) or 300 <= response["status"] < 400 or not content.get("size")
    return b"" if empty else None


def _content(fields: Sequence[tuple[str, str]], status: int, body: bytes, *, compression: bool) -> Content:
    encoded = any(name == "content-encoding" for name, _ in fields)
    kept = [
        # Chromium joins the values of repeated fields by line breaks.
        (name, line)
        for name, value in fields
        if name not in _OF_CONNECTION and name not in _OF_TIME and not name.startswith(":")
        for line in value.split("\n")
    ]
    if encoded and compression and body:
        kept.append(("content-encoding", "gzip"))
        body = gzip.compress(body, 6, mtime=0)
    return Content(tuple(kept), body, status=status)


def attach(entry: dict[str, Any], body: bytes, folder: Path, number: int) -> None:
    """Write the content of an entry to a file beside the HAR file, and name it in the entry."""
    path = folder / CONTENTS / f"{number:05}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    entry["response"]["content"] |= {"size": len(body), "_file": path.relative_to(folder).as_posix()}
