"""Browsers and loads that are ended: what was measured is kept, and nothing else is left."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import Command, plain_environment
from support.link import until
from support.needs import needs

pytestmark = needs("tun")

Need = Callable[..., str]


def processes_with(text: str) -> list[str]:
    """Return the command lines of processes that contain a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [words] if text in words else []
    return found


def left(folder: Path) -> list[str]:
    """Return temporary files and processes that use them."""
    return [*map(str, folder.iterdir()), *processes_with(str(folder))]


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder with a short path: Chromium has a socket there."""
    with tempfile.TemporaryDirectory(prefix="ends-") as folder:
        yield Path(folder)


def test_views_before_a_browser_ended_are_kept(
    airpath_command: Command, tmp_path: Path, temporary: Path, need: Need
) -> None:
    """The second browser is killed while it loads the page."""
    chromium = need("chromium")
    programs = tmp_path / "bin"
    programs.mkdir()
    wrapper = programs / "chromium"
    wrapper.write_text(
        f'#!/bin/sh\n[ -e {tmp_path}/second ] || {{ touch {tmp_path}/second; exec {chromium} "$@"; }}\n'
        f'{chromium} "$@" &\nbrowser=$!\nsleep 4\nkill -9 $browser\n'
    )
    wrapper.chmod(0o755)
    out = tmp_path / "out"
    options = ("--link", "gprs-3+1", "--runs", "2", "-o", str(out))
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(temporary)}
    done = airpath_command("page", "load", "umts-live-yahoo", *options, timeout=300, **environment)
    assert (done.code, "run 2: the browser ended early" in done.err) == (1, True), done.err
    [view] = json.loads((out / "page.json").read_text())
    assert (view["run"], view["missing"]) == (0, [])
    assert len(json.loads((out / "page.har").read_text())["log"]["pages"]) == 1
    assert all((out / each["file"]).is_file() for each in view["filmstrip"])
    assert left(temporary) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_nothing_is_left_of_a_load_that_was_ended(
    airpath_command: Command, tmp_path: Path, temporary: Path, need: Need, number: int, code: int
) -> None:
    need("chromium")
    line = airpath_command.line("page", "load", "static-site", "--link", "gprs-3+1", "-o", str(tmp_path / "out"))
    environment = plain_environment() | {"TMPDIR": str(temporary)}
    with subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: bool(list(temporary.glob("airpath-page-*/browser-*/log"))), "browser", 60)
        process.send_signal(number)
        assert process.wait(60) == code, process.communicate()
    until(lambda: left(temporary) == [], "end of all processes", 30)
