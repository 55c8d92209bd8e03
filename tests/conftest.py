"""Fixtures: the command, a small scenario, links and a browser."""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import DOWNLOAD, Command, proxy
from support.link import ENDS, LinkCommand, SmallHost
from support.needs import program, require
from support.skips import Skips

REAL_TIME = (
    "tests/command/test_doctor.py",
    "tests/command/test_startup.py",
    "tests/link/",
    "tests/measure/",
    "tests/pages/test_browser",
    "tests/pages/test_pages.py",
    "tests/pages/test_record.py",
    "tests/pages/test_throttle.py",
    "tests/proxy/",
    "tests/study/test_two_clocks.py",
    "tests/trace/test_causes.py::test_causes_of_real_connections",
    "tests/trace/test_link.py",
)
"""Tests that measure real time or send real packets: they wait more than they compute."""

LONG = ("tests/study/test_agreement.py", "tests/repository/")
"""Files with few tests that take minutes: they start first, beside all others."""

# Under nohup, and in the background of a shell, processes of the tests would ignore these signals;
# a shell cannot trap a signal that was ignored at its start.
for ignored in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(ignored, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plug-in that lists what was skipped."""
    config.pluginmanager.register(Skips(), "airpath-skips")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that depend on real time, and begin with the long ones."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    for item in items:
        if item.nodeid.startswith(REAL_TIME):
            item.add_marker("real_time")


@pytest.fixture
def airpath_command(tmp_path: Path) -> Command:
    """The command, in a folder of the test's own."""
    return Command(tmp_path)


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    """Write the small download with parts of it replaced, and return its path."""

    def write(*replacements: tuple[str, str], text: str = DOWNLOAD, name: str = "small.toml") -> Path:
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def need() -> Callable[..., str]:
    """Return the path of a program; skips the test where it is not installed."""
    return program


@pytest.fixture
def link(tmp_path: Path) -> LinkCommand:
    """`airpath link` in the test's own folder; skips the test where links are not possible."""
    require("network-namespace")
    return LinkCommand(tmp_path)


@pytest.fixture
def host(link: LinkCommand, need: Callable[..., str]) -> SmallHost:
    """A separate host, with an outside that links may use."""
    require("own-host")
    need("ip", "iproute2")
    return SmallHost(link.folder, need("unshare", "util-linux"))


@pytest.fixture
def network(tmp_path: Path, need: Callable[..., str]) -> Iterator[proxy.Network]:
    """A mobile, a router and a server, each in its own namespace."""
    require("network-namespace")
    require("tun")
    need("ip", "iproute2")
    with proxy.network(tmp_path, in_user_namespace=os.geteuid() != 0) as made:
        yield made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB."""
    require("root")
    require("mount-namespace")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def web(link: LinkCommand, need: Callable[..., str]) -> str:
    """An nginx, as a server for the shell, that serves the files of the folder `files`."""
    nginx = need("nginx", "nginx-light")
    (link.folder / "files").mkdir()
    # As root, nginx would run its worker as a user who may not read the folder.
    user = ["-g", "user root;"] if os.geteuid() == 0 else []
    return shlex.join([nginx, "-p", str(link.folder), "-e", "stderr", "-c", str(ENDS / "nginx.conf"), *user])


@pytest.fixture
def browse(tmp_path: Path, need: Callable[[str], str]) -> Callable[..., str]:
    """Open a page in a browser; return the document after its scripts ran."""
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command = [need("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", *quiet]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=30000", "--dump-dom"]

    def document(page: Path, query: str = "") -> str:
        url = page.as_uri() + query
        return subprocess.run([*command, url], capture_output=True, text=True, timeout=120, check=True).stdout

    return document
