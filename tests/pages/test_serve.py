"""The servers of a page report to its browser."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airpath.page import files
from airpath.page.browse import await_server
from airpath.page.devtools import BrowserError, Chromium
from airpath.page.load import SERVER


@contextlib.contextmanager
def serving(folder: Path, port: int) -> Iterator[Path]:
    """Run a server of a page at a local port; yield the file by which it reports."""
    folder.mkdir()
    plan: dict[str, Any] = {"page": files.load("umts-live-yahoo"), "recording": None, "compression": False}
    plan |= {"url": "http://a.test/", "hosts": ["a.test"], "origins": [["http", "a.test", port]], "tls": "none"}
    plan |= {"protocol": "http/1.1", "dns": False, "certificates": str(folder), "ready": str(folder / "ready")}
    (folder / "plan.json").write_text(json.dumps(plan))
    environment = os.environ | {"AIRPATH_HOSTS": "a.test=127.0.0.1"}
    command = [sys.executable, "-c", SERVER, str(folder / "plan.json")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:
        yield folder / "ready"
        server.kill()


def test_a_browser_waits_until_the_servers_listen(tmp_path: Path) -> None:
    """A server that cannot listen gives the reason."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    until = time.monotonic() + 60
    with serving(tmp_path / "first", port) as ready:
        await_server(str(ready), until)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/")
        with (
            serving(tmp_path / "second", port) as second,
            pytest.raises(BrowserError, match=r"the server did not start: OSError.*in use"),
        ):
            await_server(str(second), until)


def test_a_browser_does_not_wait_for_ever(tmp_path: Path) -> None:
    await_server(None, 0)
    with pytest.raises(BrowserError, match="did not start in time"):
        await_server(str(tmp_path / "ready"), 0)


def test_a_browser_that_cannot_be_started_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, profiles = tmp_path / "programs", tmp_path / "profiles"
    programs.mkdir()
    profiles.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    opened = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(BrowserError, match="install Debian's package"):
        Chromium([], 0, profiles)
    (programs / "chromium").touch(mode=0o755)
    (programs / "chromium").write_bytes(b"\x7fELF")
    with pytest.raises(OSError, match="Exec format error"):
        Chromium([], 0, profiles)
    assert list(profiles.iterdir()) == []
    assert set(Path("/proc/self/fd").iterdir()) == opened
