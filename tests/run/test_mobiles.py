"""Handovers, connection set-ups and radio link failures of mobiles, against the radio log."""

import itertools
from typing import Any

import pytest

import airpath
from airpath.tables import SUMMARY_TABLES
from support import ROOT, Command

PING = {"kind": "ping", "requests": 3, "interval": "45 s", "phase": "0 s"}
DOWNLOAD = {"kind": "download", "bytes": "1 GB"}


def scenario(preset: str, duration: str = "120 s", **bearer: Any) -> dict[str, Any]:
    return {"format": 1, "duration": duration, "bearer": {"preset": preset, **bearer}, "flow": [DOWNLOAD]}


def run(scenario: Any, **options: Any) -> airpath.Result:
    """Run a scenario with and without a log: the counts are the same."""
    result = airpath.run(scenario, log=True, **options)
    assert airpath.run(scenario, log=False, **options).mobiles.equals(result.mobiles)
    assert result.mobiles.columns == list(SUMMARY_TABLES["mobiles"])
    return result


def entries(result: airpath.Result, aspect: str) -> list[str]:
    """Return the states of an aspect that the only mobile has had, in their order."""
    return result.states.filter(aspect=aspect).sort("time", maintain_order=True)["name"].to_list()


@pytest.mark.parametrize("preset", ["lte-20mhz", "nr-n78-100mhz-sa", "lte-cat-m1", "nb-iot", "umts-r99-states"])
def test_set_ups_are_those_of_the_log(preset: str):
    result = run(scenario(preset) | {"flow": [PING]})
    [mobile] = result.mobiles.to_dicts()
    states = ["idle", *entries(result, "rrc")]
    ups = sum(before == "idle" != now for before, now in itertools.pairwise(states))
    if "connected" in states:
        ups = states.count("connected")
    assert mobile["connection_setups"] == ups > 1
    assert (mobile["mobile"], mobile["handovers"], mobile["link_failures"]) == ("mobile", 0, 0)


MOVING = [
    ("lte-20mhz", "handover"),
    ("nr-n28-fdd-20mhz", "handover"),
    ("umts-r99-384", "handover"),
    ("hsdpa-cat6", "handover"),
    ("gprs-4+1", "reselection"),
    ("gsm-csd-9600", "handover"),
]


@pytest.mark.parametrize(("preset", "state"), MOVING)
def test_handovers_are_those_of_the_log(preset: str, state: str):
    result = run(scenario(preset, "400 s", conditions={"environment": "driving"}))
    [mobile] = result.mobiles.to_dicts()
    assert mobile["handovers"] == entries(result, "mode").count(state) > 0


@pytest.mark.parametrize("preset", ["lte-20mhz", "hsdpa-cat6", "gprs-4+1", "umts-r99-384", "wifi-n"])
def test_planned_handovers_are_counted(preset: str):
    changes = [{"at": f"{at} s", "handover": "200 ms"} for at in (5, 10)]
    result = run(scenario(preset, "20 s") | {"change": changes})
    assert result.mobiles["handovers"].to_list() == [2]


@pytest.mark.parametrize("preset", ["lte-20mhz", "nr-n78-100mhz-sa", "lte-cat-m1", "umts-r99-states"])
def test_no_planned_handover_of_an_idle_mobile_is_counted(preset: str):
    changes = [{"at": f"{at} s", "handover": "200 ms"} for at in (4, 43)]
    result = run(scenario(preset) | {"flow": [PING], "change": changes})
    assert result.mobiles["handovers"].to_list() == [entries(result, "mode").count("handover")] == [1]


QUIET = ["lte-20mhz", "nr-n78-100mhz-sa", "nsa", "lte-cat-m1", "hspa-plus-21", "umts-r99-384", "wifi-n"]


@pytest.mark.parametrize("preset", QUIET)
def test_handovers_without_traffic_end_in_the_log(preset: str):
    changes = [{"at": f"{at} s", "handover": "40 ms"} for at in (5, 8, 37)]
    # The connection is kept, and nothing follows the last handover.
    result = run(scenario(preset, "40 s") | {"flow": [PING | {"requests": 9, "interval": "9 s"}], "change": changes})
    modes = result.states.filter(aspect="mode").sort("time", maintain_order=True)
    found = zip(modes["name"].to_list(), (modes["time"] / 1e9).to_list(), strict=True)
    spans = [(start, end) for (name, start), (_, end) in itertools.pairwise(found) if name == "handover"]
    assert [pytest.approx(span, abs=1e-6) for span in spans] == [(5, 5.04), (8, 8.04), (37, 37.04)]


def test_an_idle_mobile_is_not_handed_over():
    idle = {"kind": "ping", "interval": "100 s", "requests": 9}
    result = run(scenario("lte-20mhz", "900 s", conditions={"environment": "driving"}) | {"flow": [idle]})
    states = result.states.sort("time", maintain_order=True)
    idle_from = states.filter(aspect="rrc", name="idle")["time"].to_list()
    paged = states.filter(aspect="rrc", name="connected")["time"].to_list()
    handovers = states.filter(aspect="mode", name="handover")["time"].to_list()
    connections = list(zip(paged, [*idle_from, 900_000_000_000], strict=False))
    assert all(any(start <= at <= end for start, end in connections) for at in handovers)
    assert result.mobiles["handovers"].to_list() == [len(handovers)]
    # It changes its cell all the same.
    assert states.filter(aspect="cell").height > 1 + len(handovers)


BAD = [{"at": "5 s", "bler": 1.0}, {"at": "80 s", "bler": 0.0}]
FADED = [{"at": "5 s", "ci": "-30 dB"}, {"at": "150 s", "ci": "10 dB"}]


@pytest.mark.parametrize(
    ("preset", "changes", "aspect", "state"),
    [
        ("lte-20mhz", BAD, "mode", "re-establishment"),
        ("nb-iot", FADED, "mode", "re-establishment"),
        ("umts-r99-384", BAD, "link", "disconnected"),
        ("hsdpa-cat6", BAD, "link", "disconnected"),
    ],
)
def test_link_failures_are_those_of_the_log(preset: str, changes: list[Any], aspect: str, state: str):
    result = run(scenario(preset, "200 s") | {"flow": [DOWNLOAD | {"kind": "upload"}], "change": changes})
    [mobile] = result.mobiles.to_dicts()
    assert mobile["link_failures"] == entries(result, aspect).count(state) > 0


def test_a_lost_call_is_a_link_failure():
    lost = scenario("gsm-csd-9600", "200 s", call={"dial": "first-packet"})
    result = run(lost | {"change": [{"at": "30 s", "outage": "60 s"}]})
    [mobile] = result.mobiles.to_dicts()
    states = entries(result, "link")
    assert mobile["link_failures"] == states.count("disconnected") > 0
    assert mobile["connection_setups"] == states.count("set-up") > 1


def test_interfaces_without_a_radio_connection_have_no_row(airpath_command: Command):
    assert airpath.run(ROOT / "examples" / "dch.toml", log=False).mobiles.height == 0
    both = airpath.run(ROOT / "examples" / "two-bearers.toml", log=False).mobiles
    assert both["mobile"].to_list() == ["mobile", "mobile-second"]
    assert "Radio connections" not in airpath_command("run", "lte-20mhz").out
    out = airpath_command("run", ROOT / "examples" / "lte-drive.toml", "--repeat", "2").out
    drives = airpath.run(ROOT / "examples" / "lte-drive.toml", repeat=2, log=False).mobiles
    assert f"Radio connections: cell {drives['handovers'].sum():,} handovers." in out
    idle = ("umts-r99-states", "--set", "flow.kind=ping", "--set", "flow.requests=2", "--set", "flow.interval=60 s")
    assert "Radio connections: cell 2 connection set-ups." in airpath_command("run", *idle).out
    handover = "change=[{ at = '5 ms', handover = '1 ms' }]"
    assert "Radio connections: cell 1 handover." in airpath_command("run", "wifi-n", "--set", handover).out
