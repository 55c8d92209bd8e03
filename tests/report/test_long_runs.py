"""Figures of runs of hours and days: units, steps, and states that are brief against the run."""

import json
from typing import Any

import plotly.graph_objects as go
import pytest

import airpath
from airpath import plot, theme
from airpath.plot.rates import nice_step
from airpath.plot.template import Caption, blank, captioned

METER = """
format = 1
name = "meter"
duration = "720 h"
bearer.preset = "nb-iot-psm"
[[flow]]
kind = "datagrams"
direction = "up"
size = 100
spacing = { from = "23.5 h", to = "24.5 h" }
duration = "720 h"
timeout = "60 s"
"""
DAY = 86_400.0


@pytest.fixture(scope="module")
def month() -> airpath.Result:
    """A month of a meter that sends once a day."""
    return airpath.run(METER)


def test_steps_of_long_runs_are_minutes_hours_or_days() -> None:
    assert [nice_step(step) for step in (0.03, 7, 31, 61, 1000, 7000, 40_000, 86_000, 90_000)] == [
        *(0.05, 10, 60, 120, 1200),
        *(2 * 3600, 12 * 3600, DAY, 2 * DAY),
    ]


def test_a_month_has_an_axis_and_steps_of_days(month: airpath.Result) -> None:
    figure = plot.throughput(month)
    layout, traces = parts(figure)
    assert layout["xaxis"]["title"]["text"] == "time (d)"
    assert layout["xaxis"]["range"] == pytest.approx([0, 30])
    assert "the mean of each 1 d." in plot.caption_of(figure).read
    [up] = traces
    assert up["x"] == pytest.approx(range(31))
    sent = month.packets.filter(step="received")
    bits = sum(rate * DAY for rate in up["y"][:-1])
    assert bits == pytest.approx(8 * sum(sent["size"].to_list()), rel=1e-4)
    assert up["hovertemplate"] == "%{x:.7~g} d: %{y}"


def test_brief_states_of_a_month_are_lines(month: airpath.Result) -> None:
    _, traces = parts(plot.tracks(month))
    mode = next(trace for trace in traces if trace["name"] == "mode")
    lines = [index for index, width in enumerate(mode["marker"]["line"]["width"]) if width]
    sent = month.states.filter(aspect="mode", name="connected")["time"] / 1e9 / DAY
    # The last connection is open until the end of the log.
    assert sorted(mode["base"][index] for index in lines) == pytest.approx(sent.to_list()[:-1], abs=1e-4)
    assert {mode["marker"]["line"]["color"][index] for index in lines} == {theme.BRIEF_STATES[0].light}
    # On top of the state at rest.
    assert min(lines) > max(index for index, (name, _) in enumerate(mode["customdata"]) if name == "idle")


@pytest.mark.parametrize(("span", "unit", "length"), [(7200, "s", 1), (10_800, "h", 3600), (3 * DAY, "d", DAY)])
def test_all_parts_of_a_long_figure_have_its_unit(span: float, unit: str, length: float) -> None:
    figure = blank(100, span=span)
    figure.add_trace(go.Scatter(x=[0, None, span], y=[1, 2, 3], hovertemplate="%{x:.3f} s: %{y} s"))
    figure.add_trace(go.Heatmap(z=[[1, 2]], x0=span / 4, dx=span / 2))
    figure.add_trace(go.Bar(orientation="h", base=[span / 2], x=[span / 2], y=[0]))
    figure.add_vline(span / 2)
    figure.add_annotation(x=0.5, xref="paper", text="")
    layout, (line, heat, bar) = parts(captioned(figure, Caption("", "", "")))
    end = span / length
    assert layout["xaxis"]["title"]["text"] == f"time ({unit})"
    assert line["x"] == [0, None, end]
    assert line["hovertemplate"] == ("%{x:.3f} s: %{y} s" if unit == "s" else f"%{{x:.7~g}} {unit}: %{{y}} s")
    assert (heat["x0"], heat["dx"], bar["base"], bar["x"]) == (end / 4, end / 2, [end / 2], [end / 2])
    assert layout["shapes"][0]["x0"] == end / 2
    assert layout["annotations"][0]["x"] == 0.5


def test_changes_of_long_runs_are_marked_at_their_time() -> None:
    changed = METER + '[[change]]\nat = "240 h"\noutage = "24 h"\n'
    result = airpath.run(changed)
    layout, _ = parts(plot.mark_changes(plot.throughput(result), result))
    [band] = layout["shapes"]
    assert (band["x0"], band["x1"]) == pytest.approx((10, 11))


def parts(figure: go.Figure) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return layout and traces as plain data."""
    text = figure.to_json()
    assert text is not None
    data = json.loads(text)
    return data["layout"], data["data"]
