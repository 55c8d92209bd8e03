"""Control sockets of running links: query their state, change their conditions.

The control socket is in the abstract namespace of Linux, without a file. It accepts only the link's
user and root. A link in a user namespace of its own does not recognise root.
"""

import json
import os
import re
import shlex
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airpath.quantities import seconds

_PREFIX = "airpath-link-"
_TIMEOUT_S = 5.0
_TRIES = 5
"""A link waits for a request for 20 ms only, which is short on a busy host."""
_START = "start one with `airpath link`"
_SELECT = "select one with --link PROCESS"
_MOST_LETTERS = 100
"""A longer command line is cut in messages."""
_IDEMPOTENT = frozenset({"status", "reload"})
"""Requests that may be sent again even if the link has received them."""


class NoLinkError(LookupError):
    """The link is not running, or several run and none was selected."""

    def __init__(self, message: str, next_step: str | None = None) -> None:
        super().__init__(message)
        self.next_step = next_step


class NotReadyError(NoLinkError):
    """The link is not yet ready for requests."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "try again when the server listens; its output shows what it does")


class _NotSentError(Exception):
    """The link closed the connection before the request was sent."""


def running() -> list[int]:
    """Return the process numbers of the links that run on this host, in this network namespace."""
    listed = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
    return sorted({int(each) for each in re.findall(rf"@{_PREFIX}(\d+)$", listed, re.MULTILINE)})


@dataclass(frozen=True)
class RunningLink:
    """A running link."""

    process: int
    age_s: float
    command: str
    """Its command line, with preset or scenario and the command on it; empty if it is hidden."""

    def __str__(self) -> str:
        command = self.command if len(self.command) <= _MOST_LETTERS else f"{self.command[: _MOST_LETTERS - 1]}…"
        return f"{self.process}  for {seconds(round(self.age_s))}  {command}".rstrip()


def described(process: int) -> RunningLink | None:
    """Return a running link by its process number; `None` if it has ended."""
    place = Path("/proc") / str(process)
    try:
        words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        # After the name of the program, which may have spaces: field 22 is the start (proc(5)).
        fields = (place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None
    names = [number for number, word in enumerate(words) if Path(word).name == "airpath"]
    own = ["airpath", *words[names[0] + 1 :]] if names else words
    return RunningLink(process, max(uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK"), 0.0), shlex.join(own))


def find(link: str | Path | None = None) -> int:
    """Return the process number of a running link.

    Args:
        link: Its process number, or its result folder, also one with an earlier result; `None` for
            the only running link.

    Raises:
        NoLinkError: None matches, or several run.
    """
    known = running()
    if link is None:
        if len(known) == 1:
            return known[0]
        if known:
            raise NoLinkError(f"{len(known)} links run:{_listed(known)}", _SELECT)
        raise NoLinkError("no link is running", _START)
    numbers = [int(str(link))] if str(link).isdecimal() else _processes_of(Path(link))
    if not numbers:
        raise NoLinkError(
            f"{link} is neither a process number nor the result folder of a link; there are:{_listed(known)}",
            _SELECT if known else _START,
        )
    for number in numbers:
        if number in known:
            return number
    raise NoLinkError(f"no link runs as process {numbers[0]}; there are:{_listed(known)}", _SELECT if known else _START)


def _processes_of(folder: Path) -> list[int]:
    """Return the processes of the links that wrote to a result folder, the latest first."""
    from airpath.result_folder import written_to

    numbers = []
    for place in (written_to, Path):
        with suppress(OSError, ValueError, KeyError, TypeError):
            summary = json.loads((place(folder) / "summary.json").read_text(encoding="utf-8"))
            numbers.append(int(summary["emulation"]["process"]))
    return numbers


def send(process: int, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request to a link and return its response.

    Raises:
        NotReadyError: It waits for its server.
        NoLinkError: It belongs to another user, or has just ended, perhaps in the middle of its
            response.
        ValueError: It rejects the request; the message has the reason.
    """
    retried = (_NotSentError, ConnectionResetError) if _IDEMPOTENT.issuperset(request) else _NotSentError
    line = b""
    try:
        for attempt in range(_TRIES):
            try:
                line = _exchange(process, json.dumps(request).encode() + b"\n")
                break
            except retried:
                if attempt + 1 == _TRIES:
                    raise
    except _NotSentError:
        raise NoLinkError(f"the link of process {process} is too busy for requests; try again") from None
    except ConnectionResetError:
        raise NoLinkError(_ended(process)) from None
    except TimeoutError:
        raise NotReadyError(f"the link of process {process} is not ready yet: it waits for its server") from None
    except OSError as error:
        raise NoLinkError(f"the link of process {process} does not answer: {error.strerror or error}") from None
    if not line:
        raise NoLinkError(f"the link of process {process} has just ended")
    if not line.endswith(b"\n"):
        raise NoLinkError(_ended(process))
    answer = json.loads(line)
    if answer.get("refused"):
        raise NoLinkError(f"process {process}: {answer['error']}")
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer


def _exchange(process: int, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(_TIMEOUT_S)
        link.connect(f"\0{_PREFIX}{process}")
        try:
            link.sendall(request)
        except (BrokenPipeError, ConnectionResetError) as error:
            # A link answers another user without waiting for the request.
            link.setblocking(False)
            with suppress(OSError):
                if line := link.recv(4096):
                    return line
            raise _NotSentError from error
        with link.makefile("rb") as answers:
            return answers.readline()


def _ended(process: int) -> str:
    """Return the message about a link that ended before its answer did."""
    return (
        f"the link of process {process} has closed the connection without a whole answer; "
        "its result has the table `changes`, if the change took effect"
    )


def _listed(known: list[int]) -> str:
    """Return a line for each link, or `none`."""
    return "".join(f"\n  {described(process) or process}" for process in known) or " none"
