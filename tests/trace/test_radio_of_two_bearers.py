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


def test_steered_flows_have_no_radio_log(tmp_path: Path) -> None:
    steering = '[steering]\nmode = "active-standby"'
    _radio(tmp_path / "steered", more=steering)
    assert airpath.trace(tmp_path / "steered").radio_states.height == 0


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
    bytes = "20 MB"
    [[change]]
    at = "0.2 s"
    outage = "20 s"
    mobile = "a"
    """
    airpath.run(text, out=tmp_path / "run")
    first, second = airpath.trace(tmp_path / "run").connections.sort("client")["radio_s"]
    assert first > 15
    assert second < 1
