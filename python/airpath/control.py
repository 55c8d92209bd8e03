"""Speaking to running links: ask how they are, tell them to change.

A link listens at a socket in the abstract name space of Linux, so there is no file. Only its own user and root are
heard.
"""

import json
import re
import socket
from pathlib import Path
from typing import Any

_PREFIX = "airpath-link-"
_PATIENCE_S = 5.0


class NoLinkError(LookupError):
    """No such link is running, or more than one is and none was named."""


def running() -> list[int]:
    """Return the process numbers of the links that run on this host, in this network namespace."""
    listed = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
    return sorted({int(each) for each in re.findall(rf"@{_PREFIX}(\d+)$", listed, re.MULTILINE)})


def find(link: str | Path | None = None) -> int:
    """Return the process number of a link that runs.

    Args:
        link: Its process number, or its result folder; `None` for the only one that runs.

    Raises:
        NoLinkError: There is none, or more than one.
    """
    known = running()
    if link is None:
        if len(known) == 1:
            return known[0]
        raise NoLinkError(f"{len(known)} links run: {_listed(known)}; name one" if known else "no link is running")
    if str(link).isdecimal():
        number = int(str(link))
    else:
        try:
            summary = json.loads((Path(link) / "summary.json").read_text(encoding="utf-8"))
            number = int(summary["emulation"]["process"])
        except (OSError, ValueError, KeyError, TypeError):
            raise NoLinkError(f"{link} is neither a process number nor the result folder of a link") from None
    if number not in known:
        raise NoLinkError(f"no link runs as process {number}; there are: {_listed(known)}")
    return number


def ask(process: int, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request to a link and return its answer.

    Raises:
        NoLinkError: It has just ended.
        ValueError: It does not do what was asked; the message says why.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(_PATIENCE_S)
            link.connect(f"\0{_PREFIX}{process}")
            link.sendall(json.dumps(request).encode() + b"\n")
            with link.makefile("rb") as answers:
                line = answers.readline()
    except OSError as error:
        raise NoLinkError(f"the link of process {process} does not answer: {error.strerror or error}") from None
    if not line:
        raise NoLinkError(f"the link of process {process} does not listen to this user, or has just ended")
    answer = json.loads(line)
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer


def _listed(known: list[int]) -> str:
    return ", ".join(map(str, known)) or "none"
