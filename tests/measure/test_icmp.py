"""`airpath measure ping --icmp`: echo requests like those of ping(8), over links and locally."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import airpath
from support import Command
from support.link import LinkCommand
from support.needs import needs

NO_GROUP = "net.ipv4.ping_group_range=1 0"
"""Takes from all groups the right to sockets for echo requests."""

PING = """\
format = 1
[bearer]
preset = "wired"
[[flow]]
kind = "ping"
requests = 2
"""


def ping(host: str, *options: str) -> list[str]:
    """Return the command that sends ICMP echo requests to a host."""
    command = [str(Path(sys.executable).with_name("airpath")), "measure", "ping", "--icmp", host]
    return [*command, "--count", "3", "--interval", "10 ms", "--format", "json", *options]


@pytest.mark.parametrize("host", ["server", "server6"])
def test_it_measures_what_a_simulated_ping_does(link: LinkCommand, host: str) -> None:
    done = link(*ping(host, "--out", "kept"), link=link.wire(delay="20 ms")).json
    [flow] = done["flows"]
    assert flow.keys() == airpath.run(PING).summary["flows"][0].keys()
    assert (flow["kind"], flow["sent"], flow["received"], flow["outcome"]) == ("ping", 3, 3, "finished")
    assert 2 * 0.02 <= flow["delay_min_s"] <= flow["delay_max_s"] < 5
    # Every user in a link may send echo requests: no privilege is used.
    assert done["measurement"]["icmp"] == {"socket": "datagram"}
    assert done["measurement"]["address"] == {"server": "100.64.0.1", "server6": "fd61:6972:7061::1"}[host]
    assert airpath.load(link.folder / "kept").app["step"].to_list().count("arrived") == 3


@needs("root")
@pytest.mark.parametrize("host", ["server", "server6"])
def test_a_privileged_user_needs_no_leave(link: LinkCommand, host: str) -> None:
    done = link(*ping(host), sysctl=NO_GROUP)
    assert done.json["measurement"]["icmp"] == {"socket": "raw"}
    assert done.json["flows"][0]["received"] == 3


@needs("root")
def test_without_permission_it_reports_the_next_step(link: LinkCommand, need: Callable[..., str]) -> None:
    # Only root can take the right away: a link allows it to its own user.
    without = [need("setpriv", "util-linux"), "--inh-caps=-all", "--bounding-set=-all"]
    done = link(*without, *ping("server"), sysctl=NO_GROUP, code=1)
    assert "echo requests are not allowed to this user" in done.err
    assert "net.ipv4.ping_group_range" in done.err
    assert "airpath measure serve" in done.err


def test_what_icmp_does_not_have_is_refused(airpath_command: Command) -> None:
    done = airpath_command("measure", "ping", "--icmp", "127.0.0.1:7474")
    assert (done.code, "ICMP has no ports: leave out `:7474`" in done.err) == (2, True)
    done = airpath_command("measure", "ping", "--icmp", "127.0.0.1", "--size", "5")
    assert (done.code, "size: 5 is too little; at least 32" in done.err) == (2, True)


def test_who_does_not_answer_is_a_result(link: LinkCommand) -> None:
    # An address of the link's network that no host has.
    done: dict[str, Any] = link(*ping("fd61:6972:7061::9", "--timeout", "100 ms")).json
    [flow] = done["flows"]
    assert (flow["sent"], flow["received"], flow["lost"], flow["outcome"]) == (3, 0, 3, "finished")
