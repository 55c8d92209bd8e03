"""The radio log: its figure shows the values of the frame `states`."""

import re
from typing import Any

import pytest

import airpath
from airpath import plot
from airpath.plot.template import blank
from airpath.plot.track import Stack
from airpath.tables import EVENT_TABLES
from support import DOWNLOAD, ROOT

DRIVE = """
format = 1
name = "drive"
duration = "90 s"
bearer.preset = "gprs-3+1"
bearer.conditions.environment = "driving"
bearer.conditions.movement.start = "300 m"
bearer.conditions.shadowing.deviation = "0 dB"
[[mobile]]
name = "car"
[[mobile]]
name = "home"
environment = "indoor"
[[flow]]
kind = "download"
bytes = "100 MB"
"""


@pytest.fixture(scope="module")
def drive() -> airpath.Result:
    """A car that moves from a cell to the next, and a mobile that stays."""
    return airpath.run(DRIVE)


def test_states_show_a_change_of_cell(drive: airpath.Result) -> None:
    states = drive.states
    assert states.columns == list(EVENT_TABLES["states"])
    assert states.filter((states["name"].is_null()) == (states["number"].is_null())).height == 0
    cells = states.filter(aspect="cell")
    assert cells.filter(user=0)["number"].to_list() == [0.0, 1.0]
    assert cells.filter(user=1)["number"].to_list() == [0.0]
    assert "reselection" in states.filter(aspect="mode", user=0)["name"].to_list()
    assert "reselection" not in states.filter(aspect="mode", user=1)["name"].to_list()


def test_tracks_show_the_states(drive: airpath.Result) -> None:
    figure = plot.tracks(drive)
    shown: list[Any] = list(figure.data)
    traces: list[Any] = [each for each in shown if each.type == "bar"]
    cell = next(each for each in traces if each.name == "cell")
    assert [name for name, _ in cell.customdata] == ["0", "1"]
    changed = drive.states.filter(aspect="cell", user=0)["time"] / 1e9
    assert list(cell.base) == pytest.approx(changed.to_list(), abs=1e-3)
    for trace in traces:
        # Brief states are drawn last.
        bands = sorted(zip(trace.base, trace.x, strict=True))
        ends = [base + length for base, length in bands]
        assert ends[-1] == pytest.approx(90, abs=1e-3)
        assert ends[:-1] == pytest.approx([base for base, _ in bands[1:]], abs=1e-3), "one band follows the other"
    ratios = drive.states.filter(aspect="carrier-to-interference", user=0)["number"].to_list()
    line = next(each for each in shown if each.name == "C/I (dB)")
    assert (min(line.y), max(line.y)) == pytest.approx((min(ratios), max(ratios)), abs=0.01)
    caption = plot.caption_of(figure)
    assert "car: mode transfer" in caption.alt
    assert list(figure.to_plotly_json()["layout"]["xaxis"]["range"]) == [0, 90]


def test_tracks_show_a_part_of_the_run_and_some_aspects(drive: airpath.Result) -> None:
    figure = plot.tracks(drive, aspects=["mode", "cell"], window=(30.0, 40.0))
    shown: list[Any] = list(figure.data)
    bands = [each for each in shown if each.type == "bar"]
    assert {each.name for each in bands} == {"mode", "cell"}
    for each in bands:
        assert each.base[0] == 30
        assert each.base[-1] + each.x[-1] == pytest.approx(40, abs=1e-3)
    assert list(figure.to_plotly_json()["layout"]["xaxis"]["range"]) == [30, 40]


def test_several_runs_have_tracks_under_each_other(drive: airpath.Result) -> None:
    layout: Any = plot.tracks([drive, drive]).layout
    titles = [each.text for each in layout.annotations]
    assert sum(title.endswith("car</b>") for title in titles) == 2


def test_without_states_there_is_nothing_to_draw() -> None:
    with pytest.raises(plot.NothingToDrawError, match="no bearer reported a state"):
        plot.tracks(airpath.run(DOWNLOAD))


def test_what_a_proxy_keeps_has_tracks() -> None:
    result = airpath.run(DOWNLOAD, set={"proxy.budget": "20 kB"})
    figure: Any = plot.proxy_tracks(result)
    lines = {line.name: line for line in figure.data}
    assert list(lines) == ["budget down", "used down", "queue down"]
    assert set(lines["budget down"].y) == {20}
    assert max(lines["used down"].y) <= 20
    # Everything was delivered.
    assert (lines["used down"].y[-1], lines["queue down"].y[-1]) == (0, 0)
    with pytest.raises(plot.NothingToDrawError, match="no proxy"):
        plot.proxy_tracks(airpath.run(DOWNLOAD))


def test_many_short_waits_are_drawn_as_a_share_of_time() -> None:
    scenario = """
    format = 1
    bearer.preset = "lte-20mhz"
    [[flow]]
    kind = "ping"
    requests = 300
    interval = "100 ms"
    """
    # Another mobile goes on for as long: then there is no wait.
    longer = """
    [[mobile]]
    name = "first"
    [[mobile]]
    name = "second"
    [[flow]]
    kind = "ping"
    mobile = "second"
    requests = 4
    interval = "20 s"
    """
    for text in (scenario, scenario.replace('"ping"', '"ping"\n    mobile = "first"') + longer):
        result = airpath.run(text)
        waits = result.states.filter(aspect="wait", direction="up", user=0)
        assert waits.height > 400
        figure: Any = plot.tracks(result)
        line = next(each for each in figure.data if each.name == "wait % up")
        ends = waits["time"].shift(-1)
        waited = sum((ends - waits["time"]).filter(waits["name"] != "none").drop_nulls().to_list()) / 1e9
        drawn = sum(y * (end - begin) for y, begin, end in zip(line.y, line.x, line.x[1:], strict=False))
        assert drawn == pytest.approx(100 * waited, rel=0.05)
        assert line.x[-1] == pytest.approx(result.repetitions["simulated_s"][0], abs=1e-3)


def test_a_state_has_the_same_colour_in_all_figures() -> None:
    """Whatever state a figure shows first; states of a track differ."""
    text = (ROOT / "crates" / "core" / "src" / "state.rs").read_text()
    aspects = [re.findall(r'= "([a-z-]+)"', part) for part in text.split("State: ")[1:]]
    assert len(aspects) == 9
    for states in aspects:
        one, other = Stack(blank(100), 100), Stack(blank(100), 100)
        colours = {state: one.colour("DRX", state) for state in states}
        assert colours == {state: other.colour("DRX", state) for state in reversed(states)}
    drx = Stack(blank(100), 100)
    assert len({drx.colour("DRX", state) for state in ("active", "short", "long")}) == 3


def test_a_caption_of_the_radio_has_the_terms_of_its_technology() -> None:
    lte = airpath.run("lte-10mhz", set={"flow.0.bytes": "300 kB"})
    figure: Any = plot.tracks(lte)
    caption = plot.caption_of(figure)
    assert "RBs: resource blocks" in caption.read
    assert "TBF" not in caption.read
    names = [line.name for line in figure.data]
    assert {"RBs down", "RBs up", "RRC"} <= set(names)
    # A state that no band has room to name is in the legend, in the colour of its bands.
    entry = next(line for line in figure.data if line.name == "wait: grant")
    band = next(line for line in figure.data if line.name == "wait up")
    colours = {name: colour for (name, _), colour in zip(band.customdata, band.marker.color, strict=True)}
    assert entry.marker.color == colours["grant"]
    assert figure.layout.showlegend
    radio: Any = plot.radio(lte)
    assert "MCS index" in {line.name for line in radio.data}
    assert "MCS index: the mean" in plot.caption_of(radio).read
    gprs: Any = plot.radio([lte, airpath.run("gprs-4+1", set={"flow.0.bytes": "10 kB"})])
    assert "MCS index (LTE), coding scheme (GPRS)" in {line.name for line in gprs.data}
