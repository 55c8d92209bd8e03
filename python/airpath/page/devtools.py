"""Chromium by the DevTools protocol, over the pipe that `--remote-debugging-pipe` opens.

https://chromedevtools.github.io/devtools-protocol/
"""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from airpath.files import temporary_folder
from airpath.next_step import WithNextStep

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OPTIONS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--disable-extensions", "--window-size=1280,800"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps"),
    *(
        "--disable-features=OptimizationHints,MediaRouter,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable"
        # Frames of other sites are part of the page's target.
        ",IsolateOrigins,site-per-process",
        "--disable-site-isolation-trials",
        "--no-proxy-server",
        "--remote-debugging-pipe",
    ),
)
"""No window, no traffic of its own."""


_SOCKET_LENGTH = len("/.org.chromium.Chromium.") + 6 + len("/SingletonSocket")
"""Bytes of the socket's path below Chromium's temporary folder; mkdtemp(3) adds six."""
_LONGEST_SOCKET = 107
"""Bytes of a socket's path (unix(7), `sun_path`)."""


class BrowserError(WithNextStep):
    """The browser is missing, or ended, or does not answer."""


def executable() -> str:
    """Return the path of Chromium.

    Raises:
        BrowserError: There is none.
    """
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    raise BrowserError(
        f"no Chromium: none of {', '.join(_NAMES)} is in PATH", next_step="install Debian's package `chromium`"
    )


class Chromium:
    """A running Chromium with a profile of its own, ended and removed with the context."""

    def __init__(self, options: Sequence[str], deadline: float, folder: Path | None = None) -> None:
        """Start the browser.

        Args:
            options: Further options of its command line.
            deadline: The time of `time.monotonic` at which calls fail.
            folder: The folder for its profile; that for temporary files by default.

        Raises:
            BrowserError: There is none.
        """
        self._deadline = deadline
        program = executable()
        with ExitStack() as resources, ExitStack() as child_ends:
            profile = resources.enter_context(temporary_folder("browser-", folder))
            command_read, self._commands = os.pipe()
            child_ends.callback(os.close, command_read)
            resources.callback(os.close, self._commands)
            self._replies, reply_write = os.pipe()
            child_ends.callback(os.close, reply_write)
            resources.callback(os.close, self._replies)
            # Its descriptors 3 and 4 are the pipe.
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (command_read, reply_write)]
            for end in ends:
                child_ends.callback(os.close, end)

            def connect() -> None:
                os.dup2(ends[0], 3)
                os.dup2(ends[1], 4)

            sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
            self._log = profile / "log"
            log = child_ends.enter_context(self._log.open("wb"))
            self._process = subprocess.Popen(
                [program, *_OPTIONS, *sandbox, f"--user-data-dir={profile}", *options, "about:blank"],
                # What it leaves there when it is killed is removed with the profile.
                env=os.environ | {"TMPDIR": str(profile)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=connect,  # noqa: PLW1509 - no threads run here
                pass_fds=(3, 4),
                start_new_session=True,
            )
            self._resources = resources.pop_all()
        self._buffer = b""
        self._number = 0
        self.events: deque[dict[str, Any]] = deque()
        """Events that no call has taken."""

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._resources.close()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result.

        Raises:
            BrowserError: The browser refuses, ends, or does not answer in time.
        """
        number = self.send(method, session, **parameters)
        while True:
            reply = self._receive(self._deadline)
            if reply is None:
                raise BrowserError(f"the browser did not answer {method} in time")
            if reply.get("id") != number:
                self.events.append(reply)
            elif "error" in reply:
                raise BrowserError(f"the browser refused {method}: {reply['error'].get('message')}")
            else:
                return reply["result"]

    def send(self, method: str, session: str | None = None, **parameters: Any) -> int:
        """Call a method without waiting for its result, and return the number of the call.

        The result is an event with the number as `id`.

        Raises:
            BrowserError: The browser has ended.
        """
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        left = memoryview(json.dumps(message).encode() + b"\0")
        try:
            while left:
                left = left[os.write(self._commands, left) :]
        except BrokenPipeError:
            raise self._ended() from None
        return self._number

    def next_event(self, until: float) -> dict[str, Any] | None:
        """Return the next event; `None` if none comes until a time of `time.monotonic`."""
        if self.events:
            return self.events.popleft()
        return self._receive(min(until, self._deadline))

    def _receive(self, until: float) -> dict[str, Any] | None:
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._replies], [], [], left)[0]:
                return None
            part = os.read(self._replies, 1 << 20)
            if not part:
                raise self._ended()
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _ended(self) -> BrowserError:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        next_step = None
        if len(os.fsencode(self._log.parent)) + _SOCKET_LENGTH > _LONGEST_SOCKET:
            next_step = "its temporary folder has a long path: set TMPDIR to a shorter one, as /tmp"
        return BrowserError(f"the browser ended early{f': {lines[-1]}' if lines else ''}", next_step=next_step)
