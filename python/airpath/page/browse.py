"""Loads a page in Chromium, at the mobile of a link.

`python -m airpath.page.browse PAGE.json OUT.json` is the command of the link.

The result is written after each run, so that earlier runs stay if a later one fails.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from airpath.page.devtools import BrowserError, Chromium
from airpath.page.serve import PORT
from airpath.page.site import url_of

_OBSERVER = """
window.__airpath = { lcp: null, cls: 0 };
new PerformanceObserver((list) => { for (const each of list.getEntries()) __airpath.lcp = each.startTime; })
  .observe({ type: 'largest-contentful-paint', buffered: true });
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) __airpath.cls += each.value;
}).observe({ type: 'layout-shift', buffered: true });
"""
_FIGURES = """JSON.stringify({
  load: performance.getEntriesByType('navigation')[0].loadEventStart,
  response: performance.getEntriesByType('navigation')[0].responseStart,
  fcp: (performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime ?? null,
  lcp: __airpath.lcp, cls: __airpath.cls })"""
_QUIET = 0.2
"""Seconds after the last response in which a further request would come."""


def main() -> int:
    """Load the page; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--repeat-view", action="store_true")
    parser.add_argument("--timeout", type=float, required=True)
    arguments = parser.parse_args()
    page = json.loads(arguments.page.read_text(encoding="utf-8"))
    # The browser's own services are not on the link.
    hosts = [
        f"MAP {host} {os.environ['AIRPATH_SERVER']}:{PORT}" for host in {each["origin"] for each in page["object"]}
    ]
    rules = ",".join([*hosts, "MAP * ~NOTFOUND"])
    views: list[dict[str, Any]] = []
    try:
        for run in range(arguments.runs):
            deadline = time.monotonic() + arguments.timeout
            with Chromium([f"--host-resolver-rules={rules}"], deadline) as browser:
                target = browser.call("Target.createTarget", url="about:blank")["targetId"]
                session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
                for domain in ("Network", "Page"):
                    browser.call(f"{domain}.enable", session)
                browser.call("Page.addScriptToEvaluateOnNewDocument", session, source=_OBSERVER)
                for view in range(2 if arguments.repeat_view else 1):
                    views.append({"run": run, "view": view, **_load(browser, session, page, deadline)})
                    arguments.out.write_text(json.dumps(views), encoding="utf-8")
                    browser.call("Page.navigate", session, url="about:blank")
    except BrowserError as error:
        sys.stderr.write(f"run {len(views)}: {error}\n")
        return 1
    return 0


def _load(browser: Chromium, session: str, page: dict[str, Any], deadline: float) -> dict[str, Any]:
    """Load the page and return its requests and times."""
    browser.events.clear()
    url = url_of(page["object"][0])
    browser.call("Page.navigate", session, url=url)
    requests: dict[str, dict[str, Any]] = {}
    loaded, quiet = False, None
    while True:
        pending = [each for each in requests.values() if each["end"] is None]
        quiet = None if pending or not loaded else quiet or time.monotonic() + _QUIET
        event = browser.next_event(quiet or deadline)
        if event is None:
            if quiet is None:
                raise BrowserError(f"the page was not loaded in time; {len(pending)} responses were incomplete")
            break
        quiet = None
        loaded |= _note(event, requests)
    evaluated = browser.call("Runtime.evaluate", session, expression=_FIGURES, returnByValue=True)
    figures = json.loads(evaluated["result"]["value"])
    return {"figures": figures, "requests": list(requests.values())}


def _note(event: dict[str, Any], requests: dict[str, dict[str, Any]]) -> bool:
    """Record an event of the browser. Returns whether it is that of the loaded page."""
    parameters = event.get("params", {})
    request = requests.get(parameters.get("requestId", ""))
    match event.get("method"):
        case "Network.requestWillBeSent" if parameters["request"]["url"].startswith("http"):
            requests[parameters["requestId"]] = {
                "url": parameters["request"]["url"],
                "start": parameters["timestamp"],
                "wall": parameters["wallTime"],
                "initiator": parameters.get("initiator", {}),
                "response": None,
                "end": None,
                "failed": None,
                "encoded": 0,
            }
        case "Network.responseReceived" if request is not None:
            kept = (
                "status",
                "mimeType",
                "protocol",
                "connectionId",
                "fromDiskCache",
                "timing",
                "headers",
                "remoteIPAddress",
            )
            request["response"] = {key: parameters["response"].get(key) for key in kept}
        case "Network.loadingFinished" if request is not None:
            request["end"] = parameters["timestamp"]
            request["encoded"] = parameters["encodedDataLength"]
        case "Network.requestServedFromCache" if request is not None:
            request["memory"] = True
        case "Network.loadingFailed" if request is not None:
            request["end"], request["failed"] = parameters["timestamp"], parameters["errorText"]
        case "Page.loadEventFired":
            return True
        case "Inspector.targetCrashed" | "Target.targetCrashed":
            raise BrowserError("the page crashed")
        case _:
            pass
    return False


if __name__ == "__main__":
    sys.exit(main())
