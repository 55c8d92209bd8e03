"""A closed testbed needs no privilege: links of an ordinary user, in user namespaces."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import airpath
from support.link import ENDS, LinkCommand, descendants_of, python, summary, until, words_of
from support.needs import TUN, UNPRIVILEGED, as_ordinary_user, needs, require

Ordinary = Callable[..., list[str]]


@pytest.fixture
def ordinary(link: LinkCommand, need: Callable[..., str]) -> Ordinary:
    """Prefix that runs a command as an ordinary user; empty if one runs these tests."""
    require("user-namespace")
    if os.geteuid() != 0:

        def as_current_user(*, without_tun: bool = False, user: int = UNPRIVILEGED) -> list[str]:
            if without_tun or user != UNPRIVILEGED:
                require("root")  # only root can hide the device, or become another user
            return []

        return as_current_user

    unshare = [need("unshare", "util-linux"), "--mount", "sh", "-ec"]
    os.chown(link.folder, UNPRIVILEGED, UNPRIVILEGED)
    needed = [Path(sys.base_prefix), Path(sys.prefix), Path(airpath.__file__).parent, ENDS, link.folder]

    def as_unprivileged(*, without_tun: bool = False, user: int = UNPRIVILEGED) -> list[str]:
        drop = [word.replace(str(UNPRIVILEGED), str(user)) for word in as_ordinary_user()]
        hide = ["mount --bind /dev/null /dev/net/tun"] if without_tun and TUN.exists() else []
        return [*unshare, "\n".join([*opened(needed), *hide, "exec " + shlex.join(drop) + ' "$@"']), "sh"]

    return as_unprivileged


def opened(needed: Sequence[Path]) -> list[str]:
    """Return shell lines for a mount namespace that give every user access to these folders.

    A readable tmpfs with only the needed folders covers each parent that is closed to others.
    """
    closed = {parent for path in needed for parent in path.parents if not parent.stat().st_mode & 0o001}
    outermost = [parent for parent in closed if not closed & set(parent.parents)]
    lines = []
    for parent in sorted(outermost):
        inside = [path for path in needed if parent in path.parents]
        # Open descriptors keep the folders reachable while their parent is covered.
        lines += [f"exec {number}< {shlex.quote(str(path))}" for number, path in enumerate(inside, start=3)]
        lines += [f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(parent))}"]
        for number, path in enumerate(inside, start=3):
            place = shlex.quote(str(path))
            lines += [
                f"mkdir -p {place}",
                f"mount --no-canonicalize --bind /proc/self/fd/{number} {place}",
                f"exec {number}<&-",
            ]
    return lines


def who(link: LinkCommand, under: Sequence[str]) -> int:
    """Return the ID of the user who runs commands under `under`."""
    return int(subprocess.run([*under, "id", "-u"], cwd=link.folder, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("device", [pytest.param("tun", marks=needs("tun-for-all")), "veth"])
def test_an_ordinary_user_has_links(
    link: LinkCommand, ordinary: Ordinary, need: Callable[..., str], device: str
) -> None:
    under = ordinary()
    user = who(link, under)
    assert user != 0
    script = (
        f"id -u; {need('ping', 'iputils-ping')} -c 2 -i 0.2 server; {shlex.join(python('send.py', 'server6', 300_000))}"
    )
    done = link(
        *("sh", "-c", script),
        link=link.wire(rate="50 Mbit/s", delay="5 ms"),
        serve=shlex.join(python("sink.py")),
        options=f"--device {device} --out kept --capture",
        under=under,
    )
    lines = done.out.splitlines()
    assert lines[0] == str(user)
    assert "2 received" in done.out
    assert lines[-1] == "300000"
    assert summary(link.folder / "kept")["emulation"]["device"] == device
    assert (link.folder / "kept" / "summary.json").stat().st_uid == user


def test_an_ordinary_user_replaces_a_result(link: LinkCommand, ordinary: Ordinary) -> None:
    first, second = (link("true", options="--device veth --out kept", under=ordinary()) for _ in range(2))
    note = "the earlier result in kept was replaced"
    assert (note in first.err, note in second.err) == (False, True)
    assert summary(link.folder / "kept")["complete"]
    assert not (link.folder / "kept" / ".new").exists()


def test_an_ordinary_user_pings_by_icmp(link: LinkCommand, ordinary: Ordinary) -> None:
    ping = [
        Path(sys.executable).with_name("airpath"),
        "measure",
        "ping",
        "--icmp",
        "--count",
        "2",
        "--interval",
        "9 ms",
    ]
    for host in ("server", "server6"):
        done = link(*ping, host, "--format", "json", under=ordinary())
        assert done.json["flows"][0]["received"] == 2
        assert done.json["measurement"]["icmp"] == {"socket": "datagram"}


def test_ping_is_permitted_to_all_groups_that_can_be(link: LinkCommand, ordinary: Ordinary) -> None:
    show = ("cat", "/proc/sys/net/ipv4/ping_group_range")
    under = ordinary()
    group = subprocess.run([*under, "id", "-g"], cwd=link.folder, capture_output=True, check=True, text=True).stdout
    assert link(*show, under=under).out.split() == [group.strip()] * 2
    if os.geteuid() == 0:
        assert link(*show).out.split() == ["0", "2147483647"]


@pytest.mark.parametrize(
    ("owner", "refusal", "others"),
    [
        (1000, "the link belongs to another user", (0, 1001, UNPRIVILEGED)),
        # In its user namespace all other users have this number, too.
        (UNPRIVILEGED, "the link cannot distinguish its user", (0, 1000, UNPRIVILEGED)),
    ],
)
@needs("root")
def test_only_its_user_controls_a_link(
    link: LinkCommand, ordinary: Ordinary, owner: int, refusal: str, others: tuple[int, ...]
) -> None:
    def control(process: int, user: int) -> "subprocess.CompletedProcess[str]":
        command = [Path(sys.executable).with_name("airpath"), "ctl", "--link", str(process)]
        under = [] if user == 0 else ordinary(user=user)
        return subprocess.run([*under, *command], cwd=link.folder, capture_output=True, text=True, check=False)

    link.folder.chmod(0o755)
    with link.started("sh", "-c", "echo ready; exec sleep 100", under=ordinary(user=owner)) as process:
        words_of(process.stdout, "ready")
        for user in others:
            done = control(process.pid, user)
            assert (done.returncode, done.stdout) == (1, ""), user
            assert refusal in done.stderr, user
        if owner not in others:
            done = control(process.pid, owner)
            assert done.returncode == 0, done.stderr
            assert "packets delivered" in done.stdout


def test_without_tun_packets_go_over_virtual_ethernet(link: LinkCommand, ordinary: Ordinary) -> None:
    link("true", options="--out kept --no-log", under=ordinary(without_tun=True))
    assert summary(link.folder / "kept")["emulation"]["device"] == "veth"
    done = link("true", options="--device tun", under=ordinary(without_tun=True), code=125)
    assert "TUN" in done.err


def test_the_outside_needs_privilege(link: LinkCommand, ordinary: Ordinary) -> None:
    done = link("true", serve=None, under=ordinary(), code=125)
    assert "needs root" in done.err
    assert "--serve" in done.err


def test_the_exit_code_and_the_end_are_as_for_root(link: LinkCommand, ordinary: Ordinary) -> None:
    link("sh", "-c", "setsid sleep 300 & exit 7", under=ordinary(), code=7)
    with link.started("sh", "-c", "setsid sleep 300 & echo ready; exec sleep 300", under=ordinary()) as process:
        words_of(process.stdout, "ready")
        everyone = descendants_of(process.pid)
        assert len(everyone) >= 3
        process.kill()
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in everyone), "all its processes are gone")
