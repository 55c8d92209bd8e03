"""The HAR entries of requests that Chromium reports by the DevTools protocol."""

from collections.abc import Mapping
from typing import Any

from airpath.page import har_log


def entry(request: Mapping[str, Any], page: str) -> dict[str, Any]:
    """Return the entry of a request of `airpath.page.view`.

    Args:
        request: The request.
        page: Identifier of its page in the HAR file.
    """
    response = request["response"] or {}
    cached = "memory" if request.get("memory") else "disk" if response.get("fromDiskCache") else None
    # From the memory, timing and connection are those of the request that filled it.
    timings = _timings(request, {} if cached == "memory" else response.get("timing") or {})
    headers = [{"name": name, "value": value} for name, value in (response.get("headers") or {}).items()]
    location = [each["value"] for each in headers if each["name"].lower() == "location"]
    initiator = request["initiator"]
    described = har_log.request(request["url"], response.get("protocol") or "")
    whole = {
        "pageref": page,
        "startedDateTime": har_log.date(request["wall"]),
        "time": sum(value for name, value in timings.items() if value > 0 and name != "ssl"),
        "request": {**described, "method": request["method"]},
        "response": {
            "status": response.get("status") or 0,
            "statusText": request["failed"] or response.get("statusText") or "",
            "httpVersion": response.get("protocol") or "",
            "cookies": [],
            "headers": headers,
            "content": {"size": request["decoded"], "mimeType": response.get("mimeType") or ""},
            "redirectURL": location[0] if location else "",
            "headersSize": -1,
            "bodySize": -1,
            "_transferSize": request["encoded"],
        },
        "cache": {},
        "timings": timings,
        "serverIPAddress": response.get("remoteIPAddress") or "",
        "connection": "" if cached else str(response.get("connectionId") or ""),
        "_priority": request["priority"] or "",
        "_initiator": {key: initiator[key] for key in ("type", "url", "stack") if key in initiator},
    }
    return whole | {"_fromCache": cached} if cached else whole


def _timings(request: Mapping[str, Any], timing: Mapping[str, Any]) -> dict[str, float]:
    """Return the phases of a request in milliseconds; -1 for those that it did not have."""
    end = request["end"] if request["end"] is not None else request["start"]
    phases: dict[str, float] = {"blocked": 0, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": 0}
    phases["receive"] = (end - request["start"]) * 1e3
    if timing:
        # Times of the protocol are milliseconds after `requestTime`, and -1 if they do not apply.
        queued = (timing["requestTime"] - request["start"]) * 1e3
        for name in ("dns", "connect", "ssl"):
            if timing[f"{name}Start"] >= 0:
                phases[name] = timing[f"{name}End"] - timing[f"{name}Start"]
        used = max(0.0, phases["dns"]) + max(0.0, phases["connect"])
        phases["blocked"] = max(0.0, queued + timing["sendStart"] - used)
        phases["send"] = timing["sendEnd"] - timing["sendStart"]
        phases["wait"] = timing["receiveHeadersEnd"] - timing["sendEnd"]
        phases["receive"] = max(0.0, (end - timing["requestTime"]) * 1e3 - timing["receiveHeadersEnd"])
    return phases
