"""A page in Chromium over an emulated link, served inside it."""

import json
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airpath.link import Linked, link
from airpath.page import files, har_log
from airpath.page.devtools import executable
from airpath.page.site import url_of

PROTOCOLS = {"http/1.0": "HTTP/1.0", "http/1.1": "HTTP/1.1"}
"""The protocols of the server of Python's library."""


class LoadError(Exception):
    """The page could not be loaded; `log` has the messages of browser, server and link."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True)
class Loaded:
    """Views of a page in a browser."""

    views: list[dict[str, Any]]
    """Figures of each view: `run`, `view` (1 is the repeated one), times in seconds."""
    linked: Linked
    """The link: packets, radio, flows."""
    error: str | None
    """Why later views are missing."""


def load(
    page: str | Path,
    scenario: str | Path | Mapping[str, Any],
    out: Path,
    *,
    protocol: str = "http/1.1",
    compression: bool = True,
    runs: int = 1,
    repeat_view: bool = False,
    overrides: Mapping[str, Any] | None = None,
    seed: int | None = None,
    timeout: float = 600,
) -> Loaded:
    """Load a page in Chromium at the mobile of a link, from a server at its other end.

    The result folder of the link gets `page.har` and `page.json` in addition.

    Args:
        page: Name of a page of airpath, or the path of a page file.
        scenario: The link, as for `airpath.link`.
        out: The result folder.
        protocol: `http/1.0` or `http/1.1`.
        compression: Whether the server compresses.
        runs: Number of loads, each in a new browser; all on one link.
        repeat_view: Whether each browser loads the page again, with its cache.
        overrides: Values of the scenario by dotted path.
        seed: The seed, in place of the scenario's.
        timeout: Limit of one browser in seconds.

    Raises:
        BrowserError: There is no Chromium.
        ScenarioError: The page cannot be used.
        LoadError: No view was completed.
    """
    executable()
    described = files.load(page)
    with tempfile.TemporaryDirectory(prefix="airpath-page-") as folder:
        file, views_file = Path(folder, "page.json"), Path(folder, "views.json")
        file.write_text(json.dumps(described), encoding="utf-8")
        serve = [sys.executable, "-m", "airpath.page.serve", str(file), "--protocol", PROTOCOLS[protocol]]
        serve += [] if compression else ["--no-compression"]
        browse = [sys.executable, "-m", "airpath.page.browse", str(file), str(views_file)]
        browse += ["--runs", str(runs), "--timeout", str(timeout), *(["--repeat-view"] if repeat_view else [])]
        linked = link(
            scenario,
            browse,
            serve=shlex.join(serve),
            set=overrides,
            seed=seed,
            out=out,
            capture=True,
            capture_output=True,
        )
        raw = json.loads(views_file.read_text(encoding="utf-8")) if views_file.is_file() else []
    log = (linked.stderr or b"").decode(errors="replace").strip()
    reason = (log.splitlines() or ["no message"])[-1] if linked.returncode else None
    if not raw:
        raise LoadError(f"the page was not loaded: {reason}", log)
    views = [_view(each, described) for each in raw]
    (out / "page.json").write_text(json.dumps(views, indent=1), encoding="utf-8")
    _write_har(out / "page.har", described, raw, views)
    return Loaded(views, linked, reason)


def _view(raw: Mapping[str, Any], page: Mapping[str, Any]) -> dict[str, Any]:
    requests, figures = raw["requests"], raw["figures"]
    start = min(each["start"] for each in requests)
    urls = {url_of(each): each["name"] for each in page["object"]}
    own = [each for each in requests if each["url"] in urls]
    ended = [each["end"] for each in own if each["failed"] is None]
    milliseconds = {
        name: None if figures[name] is None else figures[name] / 1e3 for name in ("response", "load", "fcp", "lcp")
    }
    return {
        "run": raw["run"],
        "view": raw["view"],
        "page": page["name"],
        "page_time_s": max(ended) - start if ended else None,
        "first_byte_s": milliseconds["response"],
        "load_event_s": milliseconds["load"],
        "first_contentful_paint_s": milliseconds["fcp"],
        "largest_contentful_paint_s": milliseconds["lcp"],
        "cumulative_layout_shift": figures["cls"],
        "requests": sum(_is_from_network(each) for each in own),
        "connections": len({each["response"]["connectionId"] for each in own if _is_from_network(each)}),
        "missing": sorted(set(urls.values()) - {urls[each["url"]] for each in own}),
        "failed": {each["url"]: each["failed"] for each in own if each["failed"] is not None},
    }


def _is_from_network(request: Mapping[str, Any]) -> bool:
    response = request["response"]
    return response is not None and not response["fromDiskCache"] and not request.get("memory")


def _write_har(
    path: Path, page: Mapping[str, Any], raw: Sequence[Mapping[str, Any]], views: Sequence[Mapping[str, Any]]
) -> None:
    pages, entries = [], []
    for each, view in zip(raw, views, strict=True):
        identifier = f"run_{each['run']}_view_{each['view']}"
        first = min(each["requests"], key=lambda request: request["start"])
        pages.append(
            {
                "startedDateTime": har_log.date(first["wall"]),
                "id": identifier,
                "title": page["name"],
                "pageTimings": {"onContentLoad": -1, "onLoad": view["load_event_s"] * 1e3},
                "_firstContentfulPaint": view["first_contentful_paint_s"],
                "_largestContentfulPaint": view["largest_contentful_paint_s"],
            }
        )
        entries += [_entry(request, identifier) for request in each["requests"]]
    har_log.write(path, pages, entries)


def _entry(request: Mapping[str, Any], identifier: str) -> dict[str, Any]:
    response = request["response"] or {}
    timing = response.get("timing") or {}
    end = request["end"] if request["end"] is not None else request["start"]
    timings: dict[str, float] = {"dns": -1, "connect": -1, "ssl": -1, "blocked": 0, "send": 0, "wait": 0}
    timings["receive"] = (end - request["start"]) * 1e3
    if timing:
        # Times of the protocol are milliseconds after `requestTime`, and -1 if they do not apply.
        queued = (timing["requestTime"] - request["start"]) * 1e3
        for name in ("dns", "connect", "ssl"):
            if timing[f"{name}Start"] >= 0:
                timings[name] = timing[f"{name}End"] - timing[f"{name}Start"]
        steps = [timing[name] for name in ("dnsStart", "connectStart", "sendStart") if timing[name] >= 0]
        used = max(0.0, timings["dns"]) + max(0.0, timings["connect"])
        timings["blocked"] = max(0.0, queued + min(steps) + (timing["sendStart"] - min(steps) - used))
        timings["send"] = timing["sendEnd"] - timing["sendStart"]
        timings["wait"] = timing["receiveHeadersEnd"] - timing["sendEnd"]
        timings["receive"] = max(0.0, (end - timing["requestTime"]) * 1e3 - timing["receiveHeadersEnd"])
    headers = [{"name": name, "value": value} for name, value in (response.get("headers") or {}).items()]
    initiator = request["initiator"]
    return {
        "pageref": identifier,
        "startedDateTime": har_log.date(request["wall"]),
        "time": sum(value for name, value in timings.items() if value > 0 and name != "ssl"),
        "request": har_log.request(request["url"], response.get("protocol") or ""),
        "response": {
            "status": response.get("status") or 0,
            "statusText": request["failed"] or "",
            "httpVersion": response.get("protocol") or "",
            "cookies": [],
            "headers": headers,
            "content": {"size": request["encoded"], "mimeType": response.get("mimeType") or ""},
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": -1,
            "_transferSize": request["encoded"],
        },
        "cache": {},
        "timings": timings,
        "serverIPAddress": response.get("remoteIPAddress") or "",
        "connection": str(response.get("connectionId") or ""),
        "_initiator": {key: initiator[key] for key in ("type", "url", "stack") if key in initiator},
    }
