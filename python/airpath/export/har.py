"""The pages of a repetition as a HAR file (HTTP Archive 1.2), for viewers of waterfalls."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airpath.page import har_log
from airpath.page.files import MEDIA_TYPES
from airpath.page.simulated import is_secure
from airpath.page.site import url_of
from airpath.result import Result

_STATUS = {"network": 200, "revalidated": 304}
_VERSIONS = {"http/1.0": "HTTP/1.0", "http/1.1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}


class NoPagesError(Exception):
    """The result has no pages."""


def har(result: Result, path: Path, *, repetition: int = 0) -> Path:
    """Write the views of one repetition as pages of a HAR file, and their requests as entries.

    Times start on 1 January 1970, as the simulation has no date. `blocked` is the time from the
    discovery of an object to its request: it contains the look-up of the name and the set-up of the
    connection. Values that a simulation does not have are -1 or empty, as the format specifies;
    names with `_` are extensions.

    Args:
        result: The result.
        path: The file.
        repetition: The repetition, from 0.

    Returns:
        The file.

    Raises:
        NoPagesError: The result has no pages in this repetition.
        OSError: The file cannot be written.
    """
    pages = [page for page in result.summary.get("pages", []) if page["repetition"] == repetition]
    if not pages:
        if (loaded := result.path / "page.har").is_file():
            raise NoPagesError(f"{result.path}: a browser loaded its pages; {loaded} has them")
        raise NoPagesError(
            f"{result.path}: repetition {repetition} has no pages; run a scenario with a flow of kind page"
        )
    flows = {flow["flow"]: flow for flow in result.summary["flows"]}
    views = {(page["flow"], page["view"]): page for page in pages}
    entries = [
        (views[each["flow"], each["view"]], each)
        for each in result.summary.get("objects", [])
        if each["repetition"] == repetition and each["requested_s"] is not None
    ]
    entries.sort(key=lambda entry: entry[0]["start_s"] + entry[1]["found_s"])
    described = [_entry(page, each, flows[page["flow"]]) for page, each in entries]
    har_log.write(path, [_page(page) for page in pages], described)
    return path


def _page(page: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "startedDateTime": har_log.date(page["start_s"]),
        "id": _identifier(page),
        "title": page["page"],
        "pageTimings": {"onContentLoad": -1, "onLoad": _milliseconds(page["page_time_s"])},
        "_connections": page["connections"],
        "_pipeliningEfficiency": page["pipelining_efficiency"],
        "_idleDownlink": _milliseconds(page["idle_downlink_s"]),
    }


def _entry(page: Mapping[str, Any], each: Mapping[str, Any], flow: Mapping[str, Any]) -> dict[str, Any]:
    version, scheme = _VERSIONS.get(flow.get("protocol") or "", ""), "https" if is_secure(flow) else "http"
    found, requested = each["found_s"], each["requested_s"]
    # What did not arrive before the end has no time.
    first = each["first_byte_s"] if each["first_byte_s"] is not None else requested
    finished = each["finished_s"] if each["finished_s"] is not None else first
    blocked, wait, receive = (_milliseconds(span) for span in (requested - found, first - requested, finished - first))
    complete = each["finished_s"] is not None
    # Results of older versions do not have the size without compression.
    content = each.get("content_bytes", -1) if complete and each["source"] == "network" else each["bytes"]
    return {
        "pageref": _identifier(page),
        "startedDateTime": har_log.date(page["start_s"] + found),
        "time": blocked + wait + receive,
        "request": har_log.request(url_of(each, scheme), version),
        "response": {
            "status": _STATUS[each["source"]] if complete else 0,
            "statusText": "",
            "httpVersion": version,
            "cookies": [],
            "headers": [],
            "content": {"size": content, "mimeType": MEDIA_TYPES[each["type"]]},
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": each["bytes"],
        },
        "cache": {},
        "timings": {
            "blocked": blocked,
            "dns": -1,
            "connect": -1,
            "ssl": -1,
            "send": 0,
            "wait": wait,
            "receive": receive,
        },
        # Connections are numbered in their flow.
        "connection": f"{page['flow']}-{each['connection']}",
        "comment": "" if complete else "the response was not complete at the end of the run",
    }


def _identifier(page: Mapping[str, Any]) -> str:
    return f"flow_{page['flow']}_view_{page['view']}"


def _milliseconds(seconds: float | None) -> float:
    return -1 if seconds is None else round(seconds * 1e3, 3)
