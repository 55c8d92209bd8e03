"""Features of the machine that tests need, and skips where one is missing.

A test names a feature with `@needs("pseudo-terminal")`, a fixture calls [`require`], and a test
that needs a program takes the fixture `need`. Where the feature is missing, the test is skipped
with the reason. With `CI=true` a skip is a failure unless docs/testing.md lists its feature as
optional.
"""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from support import ROOT

UNPRIVILEGED = 65534
"""User and group without any rights."""

TUN = Path("/dev/net/tun")

SHARED = Path(os.environ.get("AIRPATH_SHARED", ROOT.parent / "shared"))
"""Material outside the repository: third-party captures and recorded links."""

_PAGE = ROOT / "docs" / "testing.md"
_REASON = re.compile(r"needs ([a-z-]+): ")


def needs(*features: str) -> pytest.MarkDecorator:
    """Mark a test, or a set of parameters, that needs these features."""
    return pytest.mark.needs(*features)


def require(feature: str) -> None:
    """Skip the test where this machine lacks a feature of [`FEATURES`]."""
    problem = _problem(feature)
    if problem is not None:
        missing(feature, problem)


def missing(feature: str, problem: str) -> NoReturn:
    """Skip the test because of `feature`, which docs/testing.md lists."""
    assert feature in listed(), f"{_PAGE.name} does not list {feature!r}"
    pytest.skip(f"needs {feature}: {problem}")


def program(name: str, package: str | None = None) -> str:
    """Return the path of a program; skip the test where it is not installed."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        missing("program", f"{name} is not installed (as root: apt-get install {package or name})")
    return found


def shared_links() -> Path:
    """Return the folder of the recorded links of mahimahi; skip the test where it is missing."""
    require("shared-links")
    return SHARED / "data" / "links" / "mahimahi"


def shared_capture(name: str, folder: str = "captures") -> Path:
    """Return the path of a shared capture; skip the test where it is missing."""
    require("shared-captures")
    path = SHARED / "data" / folder / name
    if not path.parent.is_dir():
        missing("shared-captures", f"there is no {path.parent}")
    return path


def is_optional(reason: str) -> bool:
    """Return whether a test may be skipped with `CI=true`, by the reason of its skip."""
    match = _REASON.search(reason)
    return match is not None and listed().get(match[1], False)


@cache
def listed() -> dict[str, bool]:
    """Return the features of docs/testing.md, and whether each is optional with `CI=true`."""
    rows = re.findall(
        r"^\| `([a-z-]+)` \|.*\| (optional|required) \|$", _PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {feature: state == "optional" for feature, state in rows}


@cache
def _problem(feature: str) -> str | None:
    """Return what is wrong with a feature on this machine; `None` if it is there."""
    return FEATURES[feature]()


def _checked_by_doctor(check: str) -> Callable[[], str | None]:
    """Return a test of a feature by a check of `airpath doctor`."""

    def problem() -> str | None:
        found = _doctor()[check]
        return None if found["status"] == "ok" else f"{check}: {found['finding']}; next: {found['next_step']}"

    return problem


@cache
def _doctor() -> dict[str, dict[str, Any]]:
    """Return the checks of `airpath doctor` by name."""
    command = [sys.executable, "-m", "airpath", "doctor", "--format", "json"]
    output = subprocess.run(command, capture_output=True, check=False).stdout
    return {check["name"]: check for check in json.loads(output)["checks"]}


def _succeeds(command: list[str], meaning: str) -> str | None:
    """Return why `command` failed, with its meaning; `None` if it succeeded."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    return None if done.returncode == 0 else f"{meaning}: {done.stderr.strip()}"


def without_privilege() -> list[str]:
    """Return the command under which this user runs another without the rights of root."""
    return [] if os.geteuid() != 0 else ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]


def as_ordinary_user() -> list[str]:
    """Return the command under which an ordinary user runs another; nothing if this user is one."""
    if os.geteuid() != 0:
        return []
    rights = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    return ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", *rights]


def _user_namespace() -> str | None:
    command = [*as_ordinary_user(), "unshare", "--user", "--map-root-user", "--net", "true"]
    return _succeeds(command, "an ordinary user may make no user namespace")


def _tun_for_all() -> str | None:
    opens = [*as_ordinary_user(), "sh", "-c", f"exec 3<> {TUN}"]
    return _succeeds(opens, f"an ordinary user may not open {TUN}")


def _pseudo_terminal() -> str | None:
    try:
        for descriptor in pty.openpty():
            os.close(descriptor)
    except OSError as error:
        return f"no pseudo-terminal can be opened (is devpts mounted on /dev/pts?): {error}"
    return None


def _mptcp() -> str | None:
    enabled = Path("/proc/sys/net/mptcp/enabled")
    if shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        return "ip is not installed (as root: apt-get install iproute2)"
    is_enabled = enabled.exists() and enabled.read_text().strip() == "1"
    return None if is_enabled else "net.mptcp.enabled is not 1"


def _root() -> str | None:
    return None if os.geteuid() == 0 else "this user is not root"


def _mounts() -> str | None:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return _succeeds(["unshare", *user, "--mount", "true"], "no mount namespace can be made")


def _own_host() -> str | None:
    flags = ["--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
    return _root() or _succeeds(["unshare", *flags, "true"], "no PID namespace with its own /proc can be made")


def _full_device() -> str | None:
    return None if Path("/dev/full").is_char_device() else "there is no /dev/full"


def _shared(name: str) -> Callable[[], str | None]:
    """Return a test of a folder of the shared material."""

    def problem() -> str | None:
        folder = SHARED / name
        return None if folder.is_dir() else f"there is no {folder}; AIRPATH_SHARED names the folder that has {name}"

    return problem


FEATURES: dict[str, Callable[[], str | None]] = {
    "network-namespace": _checked_by_doctor("network namespaces"),
    "user-namespace": _user_namespace,
    "mount-namespace": _mounts,
    "own-host": _own_host,
    "tun": _checked_by_doctor("TUN interfaces"),
    "tun-for-all": _tun_for_all,
    "mptcp": _mptcp,
    "pseudo-terminal": _pseudo_terminal,
    "full-device": _full_device,
    "root": _root,
    "shared-captures": _shared("data/captures"),
    "shared-links": _shared("data/links/mahimahi"),
}
"""The features, each with a function that returns what is wrong, or `None`."""
