"""Shared by the tests of `airpath link`: commands on a link, and a separate host."""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from support import ROOT, Finished, plain_environment
from support.needs import needs

ENDS = ROOT / "tests" / "ends"
"""Small programs for the ends of a link."""

BROWSER = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps"),
    *("--disable-features=OptimizationHints,MediaRouter", "--no-proxy-server", "--virtual-time-budget=60000"),
]
"""Options of Chromium: no window, no traffic of its own."""

DEVICES = pytest.mark.parametrize("device", [pytest.param("tun", marks=needs("tun")), "veth"])
"""For a test that runs over either kind of interface."""


def python(program: str | Path, *arguments: object) -> list[str]:
    """Return the command line of a small program of [`ENDS`], or of one line of Python."""
    head = [sys.executable, "-I", "-S"]
    words = [str(ENDS / program)] if (ENDS / program).exists() else ["-c", str(program)]
    return [*head, *words, *map(str, arguments)]


def listener() -> str:
    """Return a shell command of a server that only listens; the link then starts at once."""
    return shlex.join(python("listen.py"))


@dataclass(frozen=True)
class LinkCommand:
    """`airpath link`, run as a user runs it, in a working folder."""

    folder: Path

    def line(
        self,
        *words: object,
        link: str | Path = "wired",
        serve: str | None = "",
        options: str = "",
        sysctl: str | None = None,
        under: Sequence[str] = (),
    ) -> list[str]:
        """Return the command line that runs `words` on a link; the default server only listens.

        Args:
            words: The command at the mobile.
            link: Preset or scenario.
            serve: The server; `None` for the outside.
            options: More options, with spaces between.
            sysctl: A kernel parameter of both ends, as `name=value`.
            under: The words of a command that starts `airpath`.
        """
        serve = listener() if serve == "" else serve
        server = [] if serve is None else ["--serve", serve]
        parameters = [] if sysctl is None else ["--sysctl", sysctl]
        installed = Path(sys.executable).with_name("airpath")
        return [
            *under,
            str(installed),
            "link",
            str(link),
            *server,
            *parameters,
            *options.split(),
            "--",
            *map(str, words),
        ]

    def __call__(
        self,
        *words: object,
        stdin: str = "",
        timeout: float = 60,
        code: int | None = 0,
        **how: Any,
    ) -> Finished:
        """Run a command on a link to its end; its exit code must be `code`, if that is given."""
        done = subprocess.run(
            self.line(*words, **how),
            cwd=self.folder,
            env=plain_environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "panicked" not in done.stderr, done.stderr
        assert code in (None, done.returncode), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Finished(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(
        self, *words: object, popen: dict[str, Any] | None = None, **how: Any
    ) -> "Iterator[subprocess.Popen[str]]":
        """Start a command on a link; at the end of the block it is killed if it still runs."""
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            self.line(*words, **how),
            cwd=self.folder,
            env=plain_environment(),
            text=True,
            **streams | (popen or {}),
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=30)

    def wire(
        self,
        *more: str,
        rate: str = "100 Mbit/s",
        delay: str = "100 us",
        queue: str = "{ packets = 1000 }",
        name: str = "wire.toml",
    ) -> Path:
        """Write a scenario: a symmetric cable, with `more` lines for both ways. Return its path."""
        lines = [f'rate = "{rate}"', f'delay = "{delay}"', f"queue = {queue}", *more]
        text = 'format = 1\nname = "wire"\n[bearer]\nmodel = "wired"\n[[flow]]\nkind = "ping"\n'
        for direction in ("downlink", "uplink"):
            text += "\n".join([f"[bearer.{direction}]", *lines, ""])
        path = self.folder / name
        path.write_text(text)
        return path


OUTSIDE = [
    "sysctl -qw net.ipv6.conf.default.accept_dad=0",
    "ip link set lo up",
    "ip link add outside type veth peer name neighbour",
    "ip address add 192.0.2.1/24 dev outside",
    "ip link set outside up",
    "ip address add 2001:db8::1/64 dev outside",
    "unshare --net sleep 1000 & echo $! > neighbour;"
    " until [ $(readlink /proc/$!/ns/net) != $(readlink /proc/self/ns/net) ]; do sleep 0.02; done",
    "ip link set neighbour netns $(cat neighbour)",
    "nsenter --net --target $(cat neighbour) ip address add 192.0.2.254/24 dev neighbour",
    "nsenter --net --target $(cat neighbour) ip address add 2001:db8::254/64 dev neighbour",
    "nsenter --net --target $(cat neighbour) ip link set neighbour up",
    "ip route add default via 192.0.2.254",
    "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
]
"""Commands that give the small host an outside for links: a neighbour with its own address only."""


@dataclass(frozen=True)
class SmallHost:
    """A separate host, on which commands run one after another; they must leave it unchanged."""

    folder: Path
    unshare: str

    def flags(self) -> list[str]:
        """Return the command that makes such a host."""
        return [self.unshare, "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]

    def run_leaving_nothing(self, *runs: dict[str, Any], prepare: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Run these, assert that nothing is left of each, and return their reports.

        `ends/small_host.py` has the fields of a run and of its report.
        """
        plan = json.dumps({"runs": runs, "prepare": [*OUTSIDE, *prepare]})
        done = subprocess.run(
            [*self.flags(), *python("small_host.py", plan)],
            cwd=self.folder,
            env=plain_environment(),
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        for ran in report:
            assert ran["left"] == {}, ran
        return report


def words_of(stream: IO[str] | None, word: str) -> str:
    """Read a process's output up to the line that is `word`, and return what came before."""
    assert stream is not None
    before = ""
    for line in stream:
        if line.strip() == word:
            return before
        before += line
    raise AssertionError(f"it ended without a line {word!r}: {before}")


def summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a result folder."""
    return json.loads((folder / "summary.json").read_text())


def until(holds: Callable[[], bool], what: str, patience_s: float = 10) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"in vain waited until {what}"
        time.sleep(0.02)


def descendants_of(process: int) -> set[int]:
    """Return the IDs of all descendants of a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # it has just ended
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}
