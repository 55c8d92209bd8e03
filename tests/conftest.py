"""Fixtures: the command, a small scenario, and loud skips."""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from link_support import ENDS, LinkCommand, SmallHost, can_make_namespaces
from support import DOWNLOAD, Command

# Under nohup, what the tests start would ignore the signal, and a shell cannot trap what it ignored when it began.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
    """Return the path of a program, or skip the test and say which Debian package would let it run."""

    def path(program: str, package: str | None = None) -> str:
        found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
        if found is None:
            pytest.skip(f"NOT TESTED: {program} is not installed (as root: apt-get install {package or program})")
        return found

    return path


@pytest.fixture
def link(tmp_path: Path) -> LinkCommand:
    """`airpath link`, in a folder of the test's own; the test is skipped where there can be no link."""
    if not can_make_namespaces():
        pytest.skip("NOT TESTED: this host allows no network namespace (`airpath doctor` says more)")
    return LinkCommand(tmp_path)


@pytest.fixture
def host(link: LinkCommand, need: Callable[..., str]) -> SmallHost:
    """A host of our own, with an outside that links may use."""
    made = SmallHost(link.folder, need("unshare", "util-linux"))
    need("ip", "iproute2")
    if subprocess.run([*made.flags(), "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT TESTED: a host of our own needs root")
    return made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT TESTED: a full disk needs the right to mount a small file system (root)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def web(link: LinkCommand, need: Callable[..., str]) -> str:
    """An nginx, as a server for the shell, that serves the files of the folder `files`."""
    nginx = need("nginx", "nginx-light")
    (link.folder / "files").mkdir()
    # Root's worker would become `nobody`, who may not read the folder.
    user = ["-g", "user root;"] if os.geteuid() == 0 else []
    return shlex.join([nginx, "-p", str(link.folder), "-e", "stderr", "-c", str(ENDS / "nginx.conf"), *user])


@pytest.fixture
def browse(tmp_path: Path, need: Callable[[str], str]) -> Callable[..., str]:
    """Open a page in a browser, and return the document as it then is."""
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command = [need("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", *quiet]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=30000", "--dump-dom"]

    def document(page: Path, query: str = "") -> str:
        url = page.as_uri() + query
        return subprocess.run([*command, url], capture_output=True, text=True, timeout=120, check=True).stdout

    return document
