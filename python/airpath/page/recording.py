"""A recorded site: a HAR file with the contents of its responses, which a server can answer again.

The contents are `content.text` of HAR 1.2, as browsers save them, or files that `content._file`
names, relative to the HAR file, as `airpath page record` and Playwright write them.
"""

import base64
import binascii
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airpath.page.files import PageProblemError
from airpath.page.har import read_entries
from airpath.page.site import Content

HAR = "site.har"
PAGE = "site.page"
CONTENTS = "contents"
_OF_CONNECTION = frozenset(
    {"alt-svc", "connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding", "upgrade"}
)
"""Fields that the server writes itself, or that name other servers."""
_OF_TIME = frozenset({"age", "date", "expires"})
"""Fields that would make each response older than its recording."""


def har_of(source: Path) -> Path | None:
    """Return the HAR file of a recorded site; `None` if `source` is none."""
    if source.is_dir():
        return source / HAR
    return source if source.suffix == ".har" else None


def document_of(har: Path) -> str:
    """Return the URL of the first document.

    Raises:
        PageProblemError: The file is not HAR 1.2, or has no document.
        OSError: It cannot be read.
    """
    for entry in read_entries(har):
        if entry["response"]["status"] < 300 and "html" in str(entry["response"]["content"].get("mimeType")):
            return entry["request"]["url"]
    raise PageProblemError(f"{har}: log.entries: no HTML document; record the page again")


def contents(har: Path, *, compression: bool) -> dict[str, Content]:
    """Return the contents by URL; the first response of each URL is taken.

    Args:
        har: The HAR file.
        compression: Whether responses that were compressed are compressed, by gzip.

    Raises:
        PageProblemError: The file is not HAR 1.2, or lacks contents.
        OSError: A file cannot be read.
    """
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
        found[url] = _content(response, body, compression=compression)
    if not found:
        reason = f"{without} responses have no content; save it with contents, or use `airpath page record`"
        raise PageProblemError(f"{har}: log.entries: {reason}" if without else f"{har}: log.entries: no HTTP response")
    return found


def _body(har: Path, response: Mapping[str, Any], number: int) -> bytes | None:
    content, at = response["content"], f"{har}: log.entries.{number}.response.content"
    if isinstance(file := content.get("_file"), str):
        path = har.parent / file
        if not path.resolve().is_relative_to(har.parent.resolve()):
            raise PageProblemError(f"{at}._file: {file}: it is outside of the folder of the recording")
        if not path.is_file():
            raise PageProblemError(f"{at}._file: {file}: there is no such file; record the page again")
        return path.read_bytes()
    text = content.get("text")
    if isinstance(text, str):
        if content.get("encoding") != "base64":
            return text.encode()
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise PageProblemError(f"{at}.text: no base64: {error}; save the HAR file again") from None
    empty = response["status"] in (204, 304) or 300 <= response["status"] < 400 or not content.get("size")
    return b"" if empty else None


def _content(response: Mapping[str, Any], body: bytes, *, compression: bool) -> Content:
    fields = [(str(each["name"]).lower(), str(each["value"])) for each in response["headers"]]
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
    return Content(tuple(kept), body, status=int(response["status"]))


def attach(entry: dict[str, Any], body: bytes, folder: Path, number: int) -> None:
    """Write the content of an entry to a file beside the HAR file, and name it in the entry."""
    path = folder / CONTENTS / f"{number:05}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    entry["response"]["content"] |= {"size": len(body), "_file": path.relative_to(folder).as_posix()}
