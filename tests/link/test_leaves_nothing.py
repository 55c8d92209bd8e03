"""A link leaves nothing behind: after any end of it, the host is in the state before.

The host is one of our own: PID, network and mount namespaces around the whole test. Everything in
it can be compared, and no other process of the machine changes it. `host.run_leaving_nothing`
compares it before and after each run.
"""

import random
import shlex

import pytest

from support.link import LinkCommand, SmallHost, python


def test_routes_parameters_and_firewall_of_the_host_stay_as_they_are(link: LinkCommand, host: SmallHost) -> None:
    looks = "cat /proc/sys/net/ipv4/tcp_sack; ip -br address; echo end"
    [closed, outside] = host.run_leaving_nothing(
        {"words": link.line("sh", "-c", looks, options="--sysctl net.ipv4.tcp_sack=0")},
        {"words": link.line("sh", "-c", looks, serve=None, options="--sysctl net.ipv4.tcp_sack=0")},
    )
    for ran in (closed, outside):
        assert ran["code"] == 0, ran["out"]
        assert ran["out"].splitlines()[0] == "0"
        assert "air0" in ran["out"]
        assert "outside" not in ran["out"]


@pytest.mark.parametrize("outside", [False, True])
def test_sigkill_at_any_moment_leaves_nothing_behind(link: LinkCommand, host: SmallHost, outside: bool) -> None:
    # An idle link shows how long the start takes on this host.
    serve = None if outside else ""
    chance = random.Random(7)
    busy = ["sh", "-c", "ping -c 40 -i 0.002 100.64.0.1 & setsid sleep 300 & exec sleep 300"]
    idle, words = (
        link.line(*command, serve=serve, options=f"--out {out} --capture")
        for command, out in ((["true"], "idle"), (busy, "busy"))
    )
    kills = [{"words": words, "kill_at": chance.uniform(0.2, 2.2)} for _ in range(25)]
    [first, *killed] = host.run_leaving_nothing({"words": idle}, *kills)
    assert first["code"] == 0, first["out"]
    # A busy machine may kill links before they have namespaces; without any, nothing was tested.
    assert any(ran["had"] for ran in killed), killed


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
def test_what_a_command_starts_ends_with_the_link(link: LinkCommand, host: SmallHost, script: str, code: int) -> None:
    [ran] = host.run_leaving_nothing({"words": link.line("sh", "-c", script)})
    assert ran["code"] == code, ran["out"]


def test_a_flood_of_datagrams_is_contained(link: LinkCommand, host: SmallHost) -> None:
    slow = link.wire(rate="1 Mbit/s", queue="{ packets = 20 }")
    flood = python("flood.py", "100.64.0.1", 1.5)
    [ran] = host.run_leaving_nothing({"words": link.line(*flood, link=slow, options="--quiet --out kept --no-log")})
    assert ran["code"] == 0, ran["out"]
    assert int(ran["out"].split()[0]) > 1000


def test_a_server_that_will_not_end_ends_with_the_link(link: LinkCommand, host: SmallHost) -> None:
    serve = "trap '' TERM; " + shlex.join(python("listen.py")) + " & while :; do sleep 1; done"
    [ran] = host.run_leaving_nothing({"words": link.line("true", serve=serve)})
    assert ran["code"] == 0, ran["out"]


def test_sixteen_links_at_once_do_not_meet(link: LinkCommand, host: SmallHost) -> None:
    one = shlex.join(link.line("sh", "-c", "ping -c 3 -i 0.2 server > /dev/null && echo answered"))
    [ran] = host.run_leaving_nothing(
        {"words": ["sh", "-c", f"for i in $(seq 16); do {one} & done; wait"], "patience_s": 100}
    )
    assert ran["out"].split().count("answered") == 16, ran["out"]
