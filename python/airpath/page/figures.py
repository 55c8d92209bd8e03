"""The figures of a view, from what the browser reported."""

from collections.abc import Mapping
from typing import Any

from airpath.page.filmstrip import speed_index

_TLS = {"TLS 1.2": "TLSv1.2", "TLS 1.3": "TLSv1.3", "QUIC": "TLSv1.3"}


def figures(raw: Mapping[str, Any], page: str, objects: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the row of `page.json` for a view.

    Args:
        raw: The view, from `airpath.page.view`, with its `run` and `view`.
        page: The name of the page.
        objects: Names of the page's objects by URL; `None` if they are not known.
    """
    requests, times = raw["requests"], raw["figures"]
    document = min(requests, key=lambda each: each["start"])
    own = [each for each in requests if objects is None or each["url"] in objects]
    ended = [each["end"] for each in own if each["failed"] is None and each["end"] is not None]
    # The last one with its identifier: redirections keep it.
    response = [each for each in requests if each["id"] == document["id"]][-1]["response"] or {}

    def seconds(name: str) -> float | None:
        # Zero is an event that did not happen.
        return times[name] / 1e3 if times[name] else None

    return {
        "run": raw["run"],
        "view": raw["view"],
        "page": page,
        "url": raw["url"],
        "protocol": (response.get("protocol") or "").lower(),
        "tls": _TLS.get(response.get("tls") or "", "none"),
        "started_s": document["wall"],
        "page_time_s": max(ended) - document["start"] if ended else None,
        "first_byte_s": seconds("response"),
        "content_loaded_s": seconds("content"),
        "load_event_s": seconds("load"),
        "first_contentful_paint_s": seconds("fcp"),
        "largest_contentful_paint_s": seconds("lcp"),
        "cumulative_layout_shift": times["cls"],
        "speed_index_s": speed_index(raw["frames"]),
        "requests": sum(is_from_network(each) for each in own),
        "connections": len({_connection(each["response"]) for each in own if is_from_network(each)}),
        "missing": sorted(set((objects or {}).values()) - {(objects or {}).get(each["url"]) for each in own}),
        "failed": {each["url"]: reason for each in own if (reason := _failure(each)) is not None},
        "filmstrip": raw["frames"],
    }


def is_from_network(request: Mapping[str, Any]) -> bool:
    """Return whether a request was sent and answered."""
    response = request["response"]
    return response is not None and not response["fromDiskCache"] and not request.get("memory")


def _connection(response: Mapping[str, Any]) -> tuple[Any, ...]:
    return response["connectionId"], response["remoteIPAddress"]


def _failure(request: Mapping[str, Any]) -> str | None:
    return "incomplete" if request["end"] is None else request["failed"]
