"""Records a site through Chromium, so that it can be loaded again without the Internet."""

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airpath.page import har_browser, har_log, recording
from airpath.page.devtools import BrowserError, Chromium
from airpath.page.files import PageFile, name_of
from airpath.page.har import caching, initiator_of
from airpath.page.origins import origin_of
from airpath.page.resources import Resource, add_objects
from airpath.page.view import Tab
from airpath.result_folder import FolderInUseError

_WRITTEN = {recording.HAR, recording.PAGE, recording.CONTENTS}
"""All that the folder of a recording contains."""


@dataclass(frozen=True)
class Recorded:
    """What was recorded."""

    responses: int
    bytes: int
    without: list[str]
    """URLs of responses without content."""


def record(url: str, out: Path, *, timeout: float = 120) -> Recorded:
    """Load a page in Chromium on the host's network, and save it.

    Args:
        url: The URL of its document.
        out: The folder: `site.har`, its `contents/`, and `site.page`. An earlier recording there is
            replaced.
        timeout: Limit in seconds.

    Raises:
        ValueError: It is no URL.
        BrowserError: There is no Chromium, or the page was not loaded.
        FileExistsError: The folder has other files.
        OSError: The folder cannot be written.
    """
    origin_of(url)
    out = out.resolve()
    if out.exists() and (not out.is_dir() or {each.name for each in out.iterdir()} - _WRITTEN):
        raise FolderInUseError(f"{out}: it has other files", next_step="name a new folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + timeout
    with Chromium(["--disable-quic"], until + min(10.0, timeout)) as browser:
        view = Tab(browser, until, may_be_incomplete=True, keep_bodies=True).load(url)
    # Made beside it, so that the folder has all or nothing.
    with tempfile.TemporaryDirectory(prefix=".airpath-", dir=out.parent) as name:
        draft = Path(name, "site")
        draft.mkdir()
        recorded = _write(draft, url, view)
        if out.exists():
            out.rename(Path(name, "earlier"))
        draft.rename(out)
    return recorded


def _write(folder: Path, url: str, view: Mapping[str, Any]) -> Recorded:
    requests = sorted(view["requests"], key=lambda each: each["start"])
    entries, sizes, without = [], [], []
    for number, request in enumerate(requests):
        entry = har_browser.entry(request, "page_1")
        entries.append(entry)
        if _has_content(request):
            recording.attach(entry, request["body"], folder, number)
            sizes.append(len(request["body"]))
        elif entry["response"]["status"] == 0 or entry["response"]["content"]["size"]:
            without.append(request["url"])
    started = har_log.date(requests[0]["wall"])
    pages = [{"startedDateTime": started, "id": "page_1", "title": url, "pageTimings": {}}]
    har_log.write(folder / recording.HAR, pages, entries)
    page_of(requests, url).write(folder / recording.PAGE)
    return Recorded(len(sizes), sum(sizes), without)


def _has_content(request: Mapping[str, Any]) -> bool:
    response = request["response"]
    return request["body"] is not None and response is not None and not 300 <= response["status"] < 400


def page_of(requests: list[dict[str, Any]], url: str) -> PageFile:
    """Return the page of recorded requests.

    Times of servers are the waits for the first byte above the least of the same host.
    """
    kept = {each["url"]: each for each in reversed(requests) if _has_content(each) and each["response"]["status"] < 300}
    if not kept:
        raise BrowserError(f"{url}: no response had content")
    ordered = sorted(kept.values(), key=lambda each: each["start"])
    waits = {each["url"]: _wait(each) for each in ordered}
    least: dict[str, float] = {}
    for each, wait in waits.items():
        host = urlsplit(each).netloc
        least[host] = min(wait, least.get(host, wait))
    taken: set[str] = set()
    resources = []
    for each in ordered:
        response, parts = each["response"], urlsplit(each["url"])
        fields = {name.lower(): value for name, value in (response["headers"] or {}).items()}
        resources.append(
            Resource(
                each["url"],
                name_of(parts, taken),
                response["mimeType"] or "",
                each["body"],
                origin=parts.netloc,
                cache=caching(fields),
                wait=waits[each["url"]] - least[parts.netloc],
                initiator=initiator_of(each["initiator"]),
            )
        )
    page = PageFile(urlsplit(url).netloc, url, f"recorded from {url}; compressed sizes are those of gzip")
    add_objects(page, resources)
    return page


def _wait(request: Mapping[str, Any]) -> float:
    """Return the seconds from the end of the request to the first byte of the response."""
    timing = request["response"]["timing"] or {}
    return max(0.0, timing.get("receiveHeadersEnd", 0) - timing.get("sendEnd", 0)) / 1e3
