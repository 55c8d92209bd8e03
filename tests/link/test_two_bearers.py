"""A mobile with two interfaces, each on a bearer of its own: routes by address, MPTCP."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import airpath
from support.link import DEVICES, LinkCommand, python, summary
from support.needs import needs

Need = Callable[..., str]

pytestmark = needs("network-namespace")

BYTES = 4_000_000


def two(link: LinkCommand, *more: str, delays: tuple[str, str] = ("20 ms", "20 ms")) -> Path:
    """Write a scenario with two cables of 8 Mbit/s."""
    text = 'format = 1\nname = "two"\n'
    for table, delay in zip(("bearer", "second_bearer"), delays, strict=True):
        way = f'{{ rate = "8 Mbit/s", delay = "{delay}", queue = {{ bytes = "60 kB" }} }}'
        text += f'[{table}]\nmodel = "wired"\ndownlink = {way}\nuplink = {way}\n'
    path = link.folder / "two.toml"
    path.write_text(text + "\n".join(more), encoding="utf-8")
    return path


def carried(folder: Path) -> dict[str, int]:
    """Return the delivered downlink packets of each bearer."""
    rows = summary(folder)["links"]
    return {row["component"]: row["delivered_packets"] for row in rows if row["direction"] == "down"}


@DEVICES
def test_packets_take_the_bearer_of_their_address(link: LinkCommand, need: Need, device: str) -> None:
    ping = f"{need('ping')} -q -c 3 -i 0.05"
    scenario = two(link, delays=("10 ms", "50 ms"))
    script = (
        f"{ping} server; {ping} -I $AIRPATH_SECOND server; {ping} -I air1 server; {ping} -I $AIRPATH_SECOND6 server6"
    )
    done = link("sh", "-ec", script, link=scenario, options=f"--out kept --device {device}")
    least = [float(line.split()[3].split("/")[0]) for line in done.out.splitlines() if line.startswith("rtt")]
    assert len(least) == 4
    assert 20 <= least[0] < 60
    assert all(100 <= each < 140 for each in least[1:])
    folder = link.folder / "kept"
    assert carried(folder) == {"fixed": 12, "bearer-mobile": 3, "second-bearer-mobile": 9}
    assert {flow["mobile"] for flow in summary(folder)["flows"]} == {"mobile", "mobile-second"}


def test_a_preset_is_the_second_bearer(link: LinkCommand, need: Need) -> None:
    script = f"{need('ping')} -q -c 2 -i 0.1 -I $AIRPATH_SECOND server"
    link("sh", "-ec", script, link="lte-20mhz", options="--second wifi-n --out kept")
    folder = link.folder / "kept"
    assert carried(folder) == {"fixed": 2, "cell": 0, "second-cell": 2}
    radio = {(row["component"], row["user"]) for row in summary(folder)["radio"]}
    assert radio == {("cell", 0), ("second-cell", 1)}


def transfer(link: LinkCommand, scenario: Path) -> list[float]:
    """Fetch over MPTCP; return seconds, bytes, the longest gap and the further subflows."""
    serve = shlex.join(python("mptcp.py", "serve", BYTES))
    done = link(
        *python("mptcp.py", "fetch", "server"),
        link=scenario,
        serve=serve,
        options="--mptcp --out kept --capture",
        timeout=100,
    )
    return [float(word) for word in done.out.split()]


@needs("mptcp")
def test_mptcp_uses_both_bearers(link: LinkCommand) -> None:
    seconds, received, _, subflows = transfer(link, two(link))
    assert (received, subflows) == (BYTES, 1)
    packets = carried(link.folder / "kept")
    assert min(packets["bearer-mobile"], packets["second-bearer-mobile"]) > 500
    # One bearer needs 4 s.
    assert seconds < 3
    # The captures have the packets of both ways, each a connection.
    connections = airpath.trace(link.folder / "kept").connections
    assert sorted(connections["client_address"]) == ["100.64.0.2", "100.65.0.2"]


@needs("mptcp")
def test_mptcp_goes_on_while_a_bearer_is_out_of_coverage(link: LinkCommand) -> None:
    outage = '[[change]]\nat = "1 s"\noutage = "20 s"\n'
    seconds, received, longest, _ = transfer(link, two(link, outage))
    assert received == BYTES
    assert seconds < 15
    assert longest < 5


@pytest.mark.parametrize(
    ("options", "serve", "message"),
    [
        ("--second wifi-m", "", "there is no preset `wifi-m`\n  at --set second_bearer.preset=wifi-m"),
        ("--second wifi-n", None, "a link with a second bearer has a server at the other end: add `--serve CMD`"),
        ("--mptcp", "", "--mptcp needs a second bearer: add `--second PRESET`"),
        (
            "--second wifi-n --set steering.mode=active-standby",
            "",
            "programs on a link choose their interface themselves\n  at steering",
        ),
        (
            "--second wifi-n --set second_bearer.mcs=3",
            "",
            "unknown key\n  at --set second_bearer.mcs=3: second_bearer.mcs",
        ),
        ("--second wifi-n --host second", "", "--host second: it has an address already"),
    ],
)
def test_wrong_options_are_explained(link: LinkCommand, options: str, serve: str | None, message: str) -> None:
    done = link("true", link="wired", serve=serve, options=options, code=125)
    assert message in done.err
