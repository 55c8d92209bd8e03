"""A page from a HAR file (HTTP Archive 1.2) of a browser.

A HAR file has what was transferred and when, not where the references are. So the byte of a
reference is inferred: it is the share of the referrer that had arrived when the object was
requested. Objects of scripts are found when their script is processed.
"""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airpath.page.files import PageFile, PageProblemError, name_of, type_of


def from_har(path: Path, page: str | None = None) -> PageFile:
    """Return the page of a HAR file.

    Args:
        path: The file.
        page: Identifier of one of its pages; the first by default.

    Raises:
        PageProblemError: The file is not HAR 1.2, or has no usable entries.
        OSError: The file cannot be read.
    """
    reader, log, entries = _open(path)
    pages = [reader.get(each, "id", str, f"log.pages.{at}") for at, each in enumerate(_objects(log.get("pages")))]
    if page is not None and page not in pages:
        raise PageProblemError(
            f"{path}: log.pages: there is no page `{page}`", next_step=f"known are {', '.join(pages) or 'none'}"
        )
    exchanges = [each for at, entry in enumerate(entries) if (each := reader.exchange(entry, at)) is not None]
    if not exchanges:
        raise PageProblemError(
            f"{path}: log.entries: no HTTP response with a status of 200 to 399", next_step="load the page again"
        )
    kept = exchanges
    # An application that does not group by pages leaves out `pageref` of its entries.
    if pages and any(each.page is not None for each in exchanges):
        chosen = page or pages[0]
        kept = [each for each in exchanges if each.page == chosen]
    elif page is not None and len(pages) > 1:
        raise PageProblemError(
            f"{path}: log.entries: no `pageref` names a page", next_step="leave out --page to import them all"
        )
    if not kept:
        others = (
            ", ".join(sorted({each.page for each in exchanges if each.page is not None and each.page in pages}))
            or "none"
        )
        raise PageProblemError(
            f"{path}: log.entries: no HTTP response of page `{page or pages[0]}`",
            next_step=f"pages with responses: {others}",
        )
    kept.sort(key=lambda each: each.start)
    return _page(path, kept)


def read_entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a HAR file, in which a server finds URL, status, fields and content.

    Raises:
        PageProblemError: The file is not HAR 1.2.
        OSError: The file cannot be read.
    """
    reader, _, entries = _open(path)
    for number, entry in enumerate(entries):
        at = f"log.entries.{number}"
        url = reader.get(reader.get(entry, "request", dict, at), "url", str, f"{at}.request")
        try:
            urlsplit(url).port  # noqa: B018 - it raises
        except ValueError as error:
            raise PageProblemError(f"{path}: {at}.request.url: {str(error).lower()}") from None
        response = reader.get(entry, "response", dict, at)
        reader.get(response, "status", float, f"{at}.response")
        reader.get(response, "content", dict, f"{at}.response")
        for index, field in enumerate(reader.get(response, "headers", list, f"{at}.response")):
            for key in ("name", "value"):
                reader.get(field, key, str, f"{at}.response.headers.{index}")
    return entries


def _open(path: Path) -> "tuple[_Reader, dict[str, Any], list[dict[str, Any]]]":
    """Return a reader of the file, its log, and the entries of the log."""
    try:
        document = json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        raise PageProblemError(
            f"{path}:{error.lineno}: this is not JSON: {error.msg.lower()}", next_step="save the HAR file again"
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise PageProblemError(f"{path}: this is not JSON", next_step="save the HAR file again") from None
    reader = _Reader(path)
    log = reader.get(document, "log", dict, "")
    entries = reader.get(log, "entries", list, "log")
    return reader, log, entries


class _Exchange:
    """An entry of the file, reduced to what a page has."""

    __slots__ = (
        "cache",
        "compressed",
        "end",
        "first_byte",
        "initiator",
        "page",
        "size",
        "start",
        "status",
        "type",
        "url",
        "wait",
    )

    page: str | None
    url: str
    type: str
    size: int
    compressed: int | None
    cache: str
    initiator: str | None
    status: float
    start: float
    first_byte: float
    end: float
    wait: float


class _Reader:
    """Reads values with errors that name the file and the field."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, table: Any, key: str, kind: type, at: str) -> Any:
        """Return the value at a key, which must be of a type."""
        field = f"{at}.{key}" if at else key
        if not isinstance(table, Mapping) or key not in table:
            raise PageProblemError(f"{self._path}: {field}: it is missing", next_step="is this a HAR 1.2 file?")
        value = table[key]
        kinds = (int, float) if kind is float else kind
        if not isinstance(value, kinds) or (kind is float and (isinstance(value, bool) or not math.isfinite(value))):
            raise PageProblemError(
                f"{self._path}: {field}: it is no {_WORDS[kind]}", next_step="is this a HAR 1.2 file?"
            )
        return value

    def exchange(self, entry: Any, number: int) -> _Exchange | None:
        """Return an entry; `None` if it is no complete response of HTTP."""
        at = f"log.entries.{number}"
        request = self.get(entry, "request", dict, at)
        response = self.get(entry, "response", dict, at)
        url = self.get(request, "url", str, f"{at}.request")
        status = self.get(response, "status", float, f"{at}.response")
        if not url.startswith(("http://", "https://")) or not 200 <= status < 400:
            return None
        try:
            urlsplit(url)
        except ValueError as error:
            raise PageProblemError(f"{self._path}: {at}.request.url: {str(error).lower()}") from None
        content = self.get(response, "content", dict, f"{at}.response")
        timings = self.get(entry, "timings", dict, at)
        started = self.get(entry, "startedDateTime", str, at)
        try:
            start = datetime.fromisoformat(started).timestamp() * 1e3
        except (ValueError, OverflowError):
            raise PageProblemError(f"{self._path}: {at}.startedDateTime: `{started}` is no date of ISO 8601") from None
        exchange = _Exchange()
        exchange.page = str(entry["pageref"]) if entry.get("pageref") is not None else None
        exchange.url = url
        exchange.status = status
        exchange.type = type_of(str(content.get("mimeType") or ""))
        exchange.size = max(0, int(self.get(content, "size", float, f"{at}.response.content")))
        if exchange.size > _MOST_BYTES:
            raise PageProblemError(
                f"{self._path}: {at}.response.content.size: it is above 1 GiB", next_step="correct it"
            )
        sent = int(self.get(response, "bodySize", float, f"{at}.response"))
        if sent <= 0 and "_transferSize" in response:
            # Chromium writes the size of the body with the head only.
            head = max(0.0, self.get(response, "headersSize", float, f"{at}.response"))
            sent = int(self.get(response, "_transferSize", float, f"{at}.response") - head)
        exchange.compressed = sent if 0 < sent < exchange.size else None
        exchange.cache = caching(_fields(response))
        initiator = entry.get("_initiator")
        exchange.initiator = initiator_of(initiator) if isinstance(initiator, Mapping) else None
        # Optional times are absent, null or -1 if they do not apply.
        given = [name for name in ("blocked", "dns", "connect", "send") if timings.get(name) is not None]
        before = sum(max(0.0, self.get(timings, name, float, f"{at}.timings")) for name in given)
        exchange.wait = max(0.0, float(self.get(timings, "wait", float, f"{at}.timings")))
        if exchange.wait > _LONGEST:
            raise PageProblemError(
                f"{self._path}: {at}.timings.wait: it is above a year", next_step="it is in milliseconds"
            )
        receive = max(0.0, float(self.get(timings, "receive", float, f"{at}.timings")))
        exchange.start = start
        exchange.first_byte = start + before + exchange.wait
        exchange.end = exchange.first_byte + receive
        return exchange


_MOST_BYTES, _LONGEST = 1 << 30, 365 * 86_400e3
"""Limits of page files: bytes of an object, and milliseconds."""
_WORDS: dict[type, str] = {dict: "object", list: "array", str: "text", float: "number"}


def _objects(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def initiator_of(initiator: Mapping[str, Any]) -> str | None:
    """Return the URL that Chromium names as the referrer; a script is the top of its stack."""
    if isinstance(url := initiator.get("url"), str):
        return url
    stack = initiator.get("stack")
    frames = stack.get("callFrames") if isinstance(stack, Mapping) else None
    if isinstance(frames, list) and frames and isinstance(frames[0], Mapping):
        url = frames[0].get("url")
        return url if isinstance(url, str) else None
    return None


def _fields(response: Mapping[str, Any]) -> dict[str, str]:
    """Return the header fields of a response, with names in lower case."""
    return {
        str(each.get("name")).lower(): str(each.get("value"))
        for each in _objects(response.get("headers"))
        if isinstance(each, Mapping)
    }


def caching(headers: Mapping[str, str]) -> str:
    """Return how a response is cached (RFC 9111 §4.2, §4.3), by its header fields in lower case."""
    control = headers.get("cache-control", "").lower()
    if "no-store" in control:
        return "never"
    ages = [part.partition("=")[2] for part in control.split(",") if part.strip().startswith("max-age=")]
    if ages and ages[0].strip().isdecimal() and int(ages[0]) > 0 and "no-cache" not in control:
        return "fresh"
    return "revalidate" if "etag" in headers or "last-modified" in headers else "never"


def _page(path: Path, exchanges: list[_Exchange]) -> PageFile:
    documents = [each for each in exchanges if each.type == "document"] or exchanges
    document = next((each for each in documents if each.status < 300), documents[0])
    # What the user opens may redirect, also several times.
    opened = [each for each in exchanges[: exchanges.index(document)] if each.status >= 300]
    first = [*opened, document]
    ordered = [*first, *(each for each in exchanges if each not in first)]
    least_wait: dict[str, float] = {}
    for each in ordered:
        host = urlsplit(each.url).netloc
        least_wait[host] = min(each.wait, least_wait.get(host, each.wait))
    taken: set[str] = set()
    by_url: dict[str, tuple[str, _Exchange]] = {}
    page = PageFile(path.stem, ordered[0].url, f"HAR file {path.name}; bytes of references inferred from times")
    for number, each in enumerate(ordered):
        if each.status == HTTPStatus.NOT_MODIFIED and each.url in by_url:
            continue
        parts = urlsplit(each.url)
        name = name_of(parts, taken)
        described: dict[str, Any] = {"name": name, "type": each.type, "origin": parts.netloc, "size": f"{each.size} B"}
        if each.compressed is not None:
            described["compressed"] = f"{each.compressed} B"
        if 0 < number < len(first):
            described["referrer"] = page.objects[-1]["name"]
        elif number:
            # Only an earlier object can have named it.
            referrer_name, referrer = by_url.get(each.initiator or "", by_url[document.url])
            described["referrer"] = referrer_name
            if referrer.type != "script" and each.start < referrer.end:
                arrived = (each.start - referrer.first_byte) / max(referrer.end - referrer.first_byte, 1e-9)
                described["at"] = f"{round(referrer.size * min(max(arrived, 0.0), 1.0))} B"
        # The least wait of a host is its round trip; more is time of the server.
        described["wait"] = f"{round(each.wait - least_wait[parts.netloc], 3)} ms"
        described["cache"] = each.cache
        page.objects.append(described)
        by_url.setdefault(each.url, (name, each))
    return page
