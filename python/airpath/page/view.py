"""One view of a page in a tab of Chromium: its requests, times and frames."""

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airpath.page.bodies import Bodies
from airpath.page.devtools import BrowserError, Chromium
from airpath.page.filmstrip import Filmstrip

_OBSERVER = """
window.__airpath = { lcp: null, cls: 0 };
new PerformanceObserver((list) => { for (const each of list.getEntries()) __airpath.lcp = each.startTime; })
  .observe({ type: 'largest-contentful-paint', buffered: true });
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) __airpath.cls += each.value;
}).observe({ type: 'layout-shift', buffered: true });
"""
_FIGURES = """(async () => {
  const first = () => performance.getEntriesByName('first-contentful-paint')[0];
  const patience = performance.now() + 1000;
  // On a busy host, paints are reported later than they were.
  while (!first() && performance.now() < patience) await new Promise((resume) => setTimeout(resume, 20));
  const times = performance.getEntriesByType('navigation')[0];
  return JSON.stringify({
    load: times.loadEventStart, content: times.domContentLoadedEventStart, response: times.responseStart,
    fcp: (first() || {}).startTime ?? null, lcp: __airpath.lcp, cls: __airpath.cls });
})()"""
_KEPT = (
    *("status", "statusText", "mimeType", "protocol", "connectionId", "fromDiskCache", "timing", "headers"),
    "remoteIPAddress",
)
_QUIET = 0.2
"""Seconds after the last response in which a further request would come."""
_FIRST_FRAME = 1.0
"""Seconds in which the empty page is drawn."""


class Tab:
    """A tab, in which a page is loaded and loaded again."""

    def __init__(
        self, browser: Chromium, until: float, *, may_be_incomplete: bool = False, keep_bodies: bool = False
    ) -> None:
        """Open the tab.

        Args:
            browser: The browser.
            until: The time of `time.monotonic` at which a page must be loaded.
            may_be_incomplete: Whether responses may be incomplete then, after the load event.
            keep_bodies: Whether to keep the contents of responses, which delays them.
        """
        self._browser, self._until, self._may_be_incomplete = browser, until, may_be_incomplete
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self._bodies = Bodies(browser) if keep_bodies else None
        self._observe(self._session)
        self.call("Page.addScriptToEvaluateOnNewDocument", source=_OBSERVER)

    def _observe(self, session: str) -> None:
        """Report the requests of a page or worker, and those of its workers."""
        send = self._browser.send
        send("Target.setAutoAttach", session, autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        send("Network.enable", session)
        if self._bodies is not None:
            self._bodies.observe(session)
        # Workers wait until here.
        send("Runtime.runIfWaitingForDebugger", session)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the tab."""
        return self._browser.call(method, self._session, **parameters)

    def load(self, url: str, film: Path | None = None) -> dict[str, Any]:
        """Load a page and return its requests, times and frames.

        Args:
            url: The URL of its document.
            film: The folder for the frames; without it there are none.

        Raises:
            BrowserError: The page was not loaded, or its document is an error, or the browser does
                not answer.
        """
        frames = None if film is None else self._begin_film()
        self._browser.events.clear()
        opened = self._browser.send("Page.navigate", self._session, url=url)
        requests = self._follow(url, opened, frames)
        _check_document(url, requests)
        figures = json.loads(self.evaluate(_FIGURES))
        if self._bodies is not None:
            for request in requests:
                request["body"] = self._bodies.by_request.get(request["id"])
        view = {"url": url, "figures": figures, "requests": requests, "frames": []}
        if film is not None and frames is not None:
            self.call("Page.stopScreencast")
            self.empty()
            start = min((each["wall"] for each in requests), default=time.time())
            view["frames"] = frames.write(film, start, self.evaluate)
        else:
            self.empty()
        return view

    def empty(self) -> None:
        """Leave the page."""
        self.call("Page.navigate", url="about:blank")

    def evaluate(self, expression: str) -> Any:
        """Return the value of JavaScript; that of a promise when it is fulfilled.

        Raises:
            BrowserError: It threw an exception.
        """
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise BrowserError(f"the browser could not evaluate a script: {done['exceptionDetails'].get('text')}")
        return done["result"].get("value")

    def _begin_film(self) -> Filmstrip:
        """Start the screencast and wait for the frame of the empty page."""
        frames = Filmstrip()
        self._browser.events.clear()
        self.call("Page.startScreencast", format="jpeg", quality=70, maxWidth=640, maxHeight=640)
        until = time.monotonic() + _FIRST_FRAME
        while not frames and (event := self._browser.next_event(until)) is not None:
            self._note_frame(event, frames)
        return frames

    def _note_frame(self, event: dict[str, Any], frames: Filmstrip) -> None:
        if event.get("method") == "Page.screencastFrame":
            parameters = event["params"]
            frames.add(parameters["metadata"]["timestamp"], parameters["data"])
            self._browser.send("Page.screencastFrameAck", self._session, sessionId=parameters["sessionId"])

    def _follow(self, url: str, opened: int, frames: Filmstrip | None) -> list[dict[str, Any]]:
        """Return the requests until the page is loaded and nothing is pending.

        Args:
            url: The URL of the document.
            opened: The number of the call that opened it.
            frames: Takes the frames.
        """
        requests: dict[str, dict[str, Any]] = {}
        ended: list[dict[str, Any]] = []
        quiet: float | None = None
        loaded = False
        while True:
            pending = sum(each["end"] is None for each in requests.values())
            quiet = None if pending or not loaded else quiet or time.monotonic() + _QUIET
            event = self._browser.next_event(quiet or self._until)
            if event is None:
                if quiet is None and not (loaded and self._may_be_incomplete):
                    raise BrowserError(
                        "the page was not loaded in time", next_step=f"{pending} responses were incomplete"
                    )
                return [*ended, *requests.values()]
            if event.get("id") == opened and (reason := event.get("result", event).get("errorText")):
                raise _not_loaded(url, reason)
            if event.get("method") == "Page.screencastFrame" and frames is not None:
                self._note_frame(event, frames)
            elif event.get("method") == "Target.attachedToTarget":
                self._observe(event["params"]["sessionId"])
            elif self._bodies is None or not self._bodies.take(event):
                quiet = None
                loaded |= _note(event, requests, ended)


_CHECK_PROTOCOL = "check that it speaks {scheme} at this port"
_REASONS = {
    "net::ERR_CONNECTION_REFUSED": (
        "no server listens at {server}",
        "check that it runs, its port, and that it listens at 0.0.0.0 and not at 127.0.0.1 only",
    ),
    "net::ERR_CONNECTION_RESET": ("{server} closed the connection", _CHECK_PROTOCOL),
    "net::ERR_EMPTY_RESPONSE": ("{server} closed the connection without a response", _CHECK_PROTOCOL),
    "net::ERR_INVALID_HTTP_RESPONSE": ("{server} did not answer with HTTP", "check the port"),
    "net::ERR_SSL_PROTOCOL_ERROR": ("{server} does not speak TLS", "check the port, or write http://"),
    "net::ERR_NAME_NOT_RESOLVED": (
        "the name {host} is unknown on the link",
        "check it, and with --serve name `server`, or add --host {host}",
    ),
    "net::ERR_ADDRESS_UNREACHABLE": ("there is no route to {server}", "check the address, and `airpath doctor`"),
    "net::ERR_CONNECTION_TIMED_OUT": ("{server} did not answer", "check the address, and `airpath doctor`"),
    "net::ERR_CERT_AUTHORITY_INVALID": (
        "the browser does not trust the certificate of {server}",
        "check the certificate",
    ),
}
"""What errors of Chromium mean, and what to check."""


def _not_loaded(url: str, reason: str) -> BrowserError:
    """Return the error that a document was not loaded, with the browser's name of the reason."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    known = _REASONS.get(reason)
    if known is None:
        return BrowserError(f"{url} was not loaded: {reason}")
    values = {"server": f"{parts.hostname}:{port}", "host": parts.hostname, "scheme": parts.scheme.upper()}
    meaning, next_step = (part.format(**values) for part in known)
    return BrowserError(f"{url} was not loaded: {meaning} ({reason})", next_step=next_step)


def _check_document(url: str, requests: list[dict[str, Any]]) -> None:
    """Raise an error if the document, after its redirections, is an error of the server."""
    if not requests:
        return
    first = min(requests, key=lambda each: each["start"])
    response = [each["response"] for each in requests if each["id"] == first["id"]][-1]
    if response is not None and response["status"] >= 400:
        raise BrowserError(
            f"{url}: the server answered with status {response['status']}", next_step="check the path of the URL"
        )


def _note(event: dict[str, Any], requests: dict[str, dict[str, Any]], ended: list[dict[str, Any]]) -> bool:
    """Record an event of the browser. Returns whether it is that of the loaded page."""
    parameters = event.get("params", {})
    request = requests.get(parameters.get("requestId", ""))
    match event.get("method"):
        case "Network.requestWillBeSent" if parameters["request"]["url"].startswith("http"):
            if request is not None and "redirectResponse" in parameters:
                answer = parameters["redirectResponse"]
                request |= {"response": _kept(answer), "end": parameters["timestamp"]}
                request["encoded"] = answer.get("encodedDataLength", 0)
                ended.append(request)
            requests[parameters["requestId"]] = {
                "id": parameters["requestId"],
                "url": parameters["request"]["url"],
                "method": parameters["request"]["method"],
                "priority": parameters["request"].get("initialPriority"),
                "start": parameters["timestamp"],
                "wall": parameters["wallTime"],
                "initiator": parameters.get("initiator", {}),
                "response": None,
                "end": None,
                "failed": None,
                "encoded": 0,
                "decoded": 0,
            }
        case "Network.responseReceived" if request is not None:
            request["response"] = _kept(parameters["response"])
        case "Network.dataReceived" if request is not None:
            request["decoded"] += parameters["dataLength"]
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


def _kept(response: dict[str, Any]) -> dict[str, Any]:
    tls = response.get("securityDetails", {}).get("protocol")
    return {"tls": tls} | {key: response.get(key) for key in _KEPT}
