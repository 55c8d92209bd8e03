"""The views of web pages in a result, simulated or of a browser."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
from polars.exceptions import PolarsError

from airpath.page.files import type_of
from airpath.page.simulated import simulated
from airpath.page.timings import Connection, Phase, Request, View
from airpath.result import NotLoggedError, Result, UnreadableResultError

_PARTS = ("dns", "connect", "tls", "send", "wait", "receive")
_LEAST_REQUEST = 100
"""Bytes of an IP packet that can carry a request; an acknowledgement with all options has 92."""
_CLOSE = 0.02
"""Seconds between a request of the browser and its packet, on a busy machine."""


def views(result: Result) -> list[View]:
    """Return the views of all runs or repetitions; none if the result has no pages.

    Raises:
        UnreadableResultError: A file of the browser is damaged.
    """
    return _of_browser(result) if (result.path / "page.json").is_file() else simulated(result)


def _of_browser(result: Result) -> list[View]:
    views_file, har_file = result.path / "page.json", result.path / "page.har"
    try:
        described = json.loads(views_file.read_text(encoding="utf-8"))
        log = json.loads(har_file.read_text(encoding="utf-8"))["log"]
        return [_view(result, each, log) for each in described]
    except (KeyError, TypeError, ValueError, StopIteration, OSError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UnreadableResultError(
            f"{views_file}, {har_file.name}: damaged ({what})", next_step="load the page again, or remove both files"
        ) from None


def _view(result: Result, described: Mapping[str, Any], log: Mapping[str, Any]) -> View:
    identity = f"run_{described['run']}_view_{described['view']}"
    page = next(page for page in log["pages"] if page["id"] == identity)
    start = _time(page["startedDateTime"])
    entries = [entry for entry in log["entries"] if entry["pageref"] == identity]
    requests = sorted((_request(entry, start) for entry in entries), key=lambda each: each.start)
    since = start - result.summary["emulation"]["started_s"]
    return View(
        described["page"],
        described["run"],
        described["view"],
        None,
        since,
        {key: value for key, value in described.items() if isinstance(value, int | float)},
        requests,
        _connections(result, since, requests),
        _frames(result.path, described),
    )


def _frames(folder: Path, described: Mapping[str, Any]) -> list[tuple[float, Path]]:
    """Return the frames of a view that are still in its folder."""
    frames = [(frame["time_s"], folder / frame["file"]) for frame in described.get("filmstrip", [])]
    inside = (folder / "filmstrip").resolve()
    return [(time, file) for time, file in frames if file.is_file() and file.resolve().is_relative_to(inside)]


def _request(entry: Mapping[str, Any], start: float) -> Request:
    """Return an entry of a HAR file. Its `connect` contains `ssl` (HAR 1.2, `timings`)."""
    url, response, timings = urlsplit(entry["request"]["url"]), entry["response"], entry["timings"]
    lengths = {"queued": timings.get("blocked"), "dns": timings.get("dns"), "tls": timings.get("ssl")}
    lengths |= {name: timings[name] for name in ("send", "wait", "receive")}
    lengths["connect"] = max(timings.get("connect", -1), 0) - max(timings.get("ssl", -1), 0)
    at, phases = _time(entry["startedDateTime"]) - start, []
    cached = entry.get("_fromCache")
    for name in ("queued", *_PARTS):
        length = max(lengths[name] or 0, 0) / 1e3
        if length > 0 or name in ("wait", "receive"):
            phases.append(Phase(name, at, at + length))
        at += length
    return Request(
        (url.path or "/") + (f"?{url.query}" if url.query else ""),
        url.netloc,
        type_of(response["content"].get("mimeType") or ""),
        "cache" if cached else "revalidated" if response["status"] == 304 else "network",
        entry.get("connection") or None,
        max(response.get("_transferSize", response["content"]["size"]), 0),
        f"from the cache ({cached})" if cached else _status(response),
        response.get("httpVersion", ""),
        tuple(phases),
    )


def _status(response: Mapping[str, Any]) -> str:
    """Return the status of a response, and the reason where it is incomplete."""
    text = response.get("statusText") or ""
    return " ".join(part for part in (str(response["status"] or ""), text if text != "OK" else "") if part)


def _connections(result: Result, since: float, requests: Sequence[Request]) -> list[Connection]:
    """Return the connections of requests, with their times in the link as far as they are known."""
    by_key: dict[str, list[Request]] = {}
    for request in requests:
        if request.connection is not None:
            by_key.setdefault(request.connection, []).append(request)
    flows = _flows(result, since, by_key)
    found = []
    for key, own in by_key.items():
        setup = tuple(each for each in own[0].phases if each.name in ("connect", "tls"))
        opened, closed = (setup[0].start if setup else own[0].start), None
        if flow := flows.get(key):
            opened, closed = flow["start_s"] - since, flow["end_s"] - since
            # Connections that the browser opened ahead have no set-up in a HAR file.
            if not setup and flow["connect_s"] is not None:
                setup = (Phase("connect", opened, opened + flow["connect_s"]),)
        found.append(Connection(key, own[0].host, opened, setup, closed))
    return sorted(found, key=lambda each: each.opened)


def _flows(result: Result, since: float, by_key: Mapping[str, Sequence[Request]]) -> dict[str, Mapping[str, Any]]:
    """Return the flow of each connection: the one with packets at the times of its requests."""
    try:
        steps = result.scan("packets").filter((pl.col("step") == "sent") & (pl.col("direction") == "up"))
        sent = steps.filter(pl.col("size") > _LEAST_REQUEST).select("flow", t=pl.col("time") / 1e9 - since).collect()
    except (NotLoggedError, UnreadableResultError, PolarsError):
        return {}
    times = {flow: group["t"].to_list() for (flow,), group in sent.group_by("flow")}
    scores = []
    for key, own in by_key.items():
        starts = [each.time_of("send") or each.time_of("wait") or each.start for each in own]
        for flow, packets in times.items():
            distances = [min(abs(start - t) for t in packets) for start in starts]
            near = sum(distance < _CLOSE for distance in distances)
            if 2 * near > len(starts):
                scores.append((-near, sum(distances), key, flow))
    rows = {flow["flow"]: flow for flow in result.summary["flows"]}
    found: dict[str, Mapping[str, Any]] = {}
    taken: set[int] = set()
    for *_, key, flow in sorted(scores):
        if key not in found and flow not in taken:
            found[key] = rows[flow]
            taken.add(flow)
    return found


def _time(date: str) -> float:
    """Return a date of a HAR file as seconds after 1970."""
    return datetime.fromisoformat(date).timestamp()
