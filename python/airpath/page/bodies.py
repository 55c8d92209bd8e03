"""Contents of responses as the browser gets them, byte for byte, without content encoding."""

import base64
from typing import Any

from airpath.page.devtools import Chromium


class Bodies:
    """Pauses each response until its content is here.

    `Network.getResponseBody` would convert texts to UTF-8.
    """

    def __init__(self, browser: Chromium) -> None:
        self._browser = browser
        self._calls: dict[int, tuple[str, str]] = {}
        self.by_request: dict[str, bytes] = {}
        """Contents by the identifier of the request."""

    def observe(self, session: str) -> None:
        """Begin with the responses of a page or worker."""
        self._browser.send("Fetch.enable", session, patterns=[{"urlPattern": "*", "requestStage": "Response"}])

    def take(self, event: dict[str, Any]) -> bool:
        """Handle an event; return whether it was one of these."""
        session = event.get("sessionId")
        if event.get("method") == "Fetch.requestPaused":
            parameters = event["params"]
            paused, status = parameters["requestId"], parameters.get("responseStatusCode", 0)
            if not 200 <= status < 300 and status < 400:
                # A failure or a redirection has no content.
                self._browser.send("Fetch.continueRequest", session, requestId=paused)
            else:
                number = self._browser.send("Fetch.getResponseBody", session, requestId=paused)
                self._calls[number] = (paused, parameters.get("networkId", ""))
            return True
        if event.get("id") not in self._calls:
            return False
        paused, request = self._calls.pop(event["id"])
        if (result := event.get("result")) is not None:
            body = result["body"]
            self.by_request[request] = base64.b64decode(body) if result["base64Encoded"] else body.encode()
        self._browser.send("Fetch.continueRequest", session, requestId=paused)
        return True
