"""The radio log counts for the connections that the radio carries."""

from pathlib import Path

import airpath

TWO = """
format = 1
duration = "60 s"
[bearer]
preset = "lte-20mhz"
[second_bearer]
preset = "wifi-n"
{more}
[[flow]]
kind = "download"
bytes = "5 MB"
{flow}
[[change]]
at = "0.5 s"
outage = "20 s"
{change}
"""


def _radio(out: Path, *, more: str = "", flow: str = "", change: str = "") -> float:
    """Return the share of a connection's time in which its radio carried nothing."""
    airpath.run(TWO.format(more=more, flow=flow, change=change), out=out)
    [row] = airpath.trace(out).connections.rows(named=True)
    return row["radio_s"] / row["duration_s"]


def test_an_outage_of_the_other_bearer_has_no_effect(tmp_path: Path) -> None:
    assert _radio(tmp_path / "first") > 0.9
    assert _radio(tmp_path / "second", flow='bearer = "second"') == 0


def test_an_outage_of_the_fixed_network_is_not_one_of_the_radio(tmp_path: Path) -> None:
    assert _radio(tmp_path / "fixed", change='to = "fixed"') < 0.1


def test_steered_flows_have_no_radio_log(tmp_path: Path) -> None:
    steering = '[steering]\nmode = "active-standby"'
    assert _radio(tmp_path / "steered", more=steering) < 0.5


def test_an_outage_of_another_mobile_has_no_effect(tmp_path: Path) -> None:
    text = """
    format = 1
    duration = "60 s"
    [bearer]
    preset = "wired"
    [[mobile]]
    name = "a"
    [[mobile]]
    name = "b"
    [[flow]]
    kind = "download"
    bytes = "2 MB"
    [[change]]
    at = "0.2 s"
    outage = "20 s"
    mobile = "a"
    """
    airpath.run(text, out=tmp_path / "run")
    rows = {row["client_ip"]: row for row in airpath.trace(tmp_path / "run").connections.rows(named=True)}
    assert rows["10.0.0.3"]["radio_s"] == 0
