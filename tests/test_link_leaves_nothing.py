"""A link harms nothing: whatever happens to it, the host is afterwards as it was before.

The host is one of our own: PID, network and mount namespaces around the whole test, so that everything there can be
compared, and nothing that others do on this machine is in the way.
"""

import json
import random
import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from link_support import LinkCommand, can_make_namespaces, python
from support import plain_environment

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
"""What gives the small host an outside that links may use: a neighbour, who knows of no address but its own."""

Host = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def host(link: LinkCommand, need: Callable[..., str]) -> Host:
    """A host of our own, on which commands are run one after another."""
    unshare = [need("unshare", "util-linux"), "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
    need("ip", "iproute2")
    if (
        subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0
        or not can_make_namespaces()
    ):
        pytest.skip("NOT TESTED: a host of our own needs root")

    def run(*runs: dict[str, Any], prepare: list[str] | None = None) -> list[dict[str, Any]]:
        plan = json.dumps({"runs": runs, "prepare": prepare if prepare is not None else OUTSIDE})
        done = subprocess.run(
            [*unshare, *python("small_host.py", plan)],
            cwd=link.folder,
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

    return run


def test_routes_parameters_and_firewall_of_the_host_stay_as_they_are(link: LinkCommand, host: Host) -> None:
    looks = "cat /proc/sys/net/ipv4/tcp_sack; ip -br address; echo end"
    [closed, outside] = host(
        {"words": link.line("sh", "-c", looks, options="--sysctl net.ipv4.tcp_sack=0")},
        {"words": link.line("sh", "-c", looks, serve=None, options="--sysctl net.ipv4.tcp_sack=0")},
    )
    for ran in (closed, outside):
        assert ran["code"] == 0, ran["out"]
        assert ran["out"].splitlines()[0] == "0"
        assert "air0" in ran["out"]
        assert "outside" not in ran["out"]


@pytest.mark.parametrize("outside", [False, True])
def test_sigkill_at_any_moment_leaves_nothing_behind(link: LinkCommand, host: Host, outside: bool) -> None:
    # A link that has nothing to do shows how long its start takes on this host.
    how = {"serve": None if outside else "", "options": "--out kept --capture"}
    chance = random.Random(7)
    busy = ["sh", "-c", "ping -c 40 -i 0.002 100.64.0.1 & setsid sleep 300 & exec sleep 300"]
    words = link.line(*busy, **how)
    kills = [{"words": words, "kill_at": chance.uniform(0.2, 2.2)} for _ in range(25)]
    [first, *killed] = host({"words": link.line("true", **how)}, *kills)
    assert first["code"] == 0, first["out"]
    assert sum(ran["had"] for ran in killed) >= 5  # or too few of the moments were any


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("setsid sleep 300 & (sleep 300 &) & exit 3", 3, id="daemons"),
        pytest.param("sh -c \"trap '' TERM INT HUP; while :; do sleep 1; done\" & sleep 0.1; exit 3", 3, id="stubborn"),
        pytest.param("for i in $(seq 150); do sh -c 'sleep 300 & sleep 300' & done; exit 3", 3, id="many"),
        pytest.param("nohup setsid ping -f 100.64.0.1 > /dev/null 2>&1 & sleep 0.5; exit 3", 3, id="flood"),
        pytest.param("sh -c 'kill -STOP $$' & sleep 300 & sleep 0.1; kill -KILL $$", -9, id="stopped"),
    ],
)
def test_what_a_command_starts_ends_with_the_link(link: LinkCommand, host: Host, script: str, code: int) -> None:
    [ran] = host({"words": link.line("sh", "-c", script)})
    assert ran["code"] == code, ran["out"]


def test_a_flood_of_datagrams_is_contained(link: LinkCommand, host: Host) -> None:
    slow = link.wire(rate="1 Mbit/s", queue="{ packets = 20 }")
    flood = python("flood.py", "100.64.0.1", 1.5)
    [ran] = host({"words": link.line(*flood, link=slow, options="--out kept --no-log")})
    assert ran["code"] == 0, ran["out"]
    assert int(ran["out"].split()[0]) > 1000


def test_a_server_that_will_not_end_ends_with_the_link(link: LinkCommand, host: Host) -> None:
    serve = "trap '' TERM; " + shlex.join(python("listen.py")) + " & while :; do sleep 1; done"
    [ran] = host({"words": link.line("true", serve=serve)})
    assert ran["code"] == 0, ran["out"]


def test_sixteen_links_at_once_do_not_meet(link: LinkCommand, host: Host) -> None:
    one = shlex.join(link.line("sh", "-c", "ping -c 3 -i 0.2 server > /dev/null && echo answered"))
    [ran] = host({"words": ["sh", "-c", f"for i in $(seq 16); do {one} & done; wait"], "patience_s": 100})
    assert ran["out"].split().count("answered") == 16, ran["out"]


@pytest.mark.parametrize("neighbour", ["192.0.2.254", "2001:db8::254"])
def test_links_nest(link: LinkCommand, host: Host, neighbour: str) -> None:
    far, near = link.wire(delay="20 ms", name="far.toml"), link.wire(delay="30 ms", name="near.toml")
    ping = ["ping", "-c", "3", "-i", "0.2", neighbour]
    [outer, both] = host(
        {"words": link.line(*ping, link=far, serve=None)},
        {"words": link.line(*link.line(*ping, link=near, serve=None), link=far, serve=None)},
    )
    for ran, least_ms in ((outer, 40), (both, 100)):
        assert ran["code"] == 0, ran["out"]
        times = [float(each) for each in re.findall(r"time=([\d.]+) ms", ran["out"])]
        assert len(times) == 3
        assert min(times) >= least_ms
