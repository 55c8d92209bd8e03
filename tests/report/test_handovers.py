"""Handovers and the causes of drops, in the report and on the terminal."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import plot, report, theme
from airpath.quantities import seconds
from support import Command
from support.report_page import Page

TRAIN = """
format = 1
name = "train"
[bearer]
preset = "lte-20mhz"
conditions.environment = "train"
[[flow]]
kind = "ping"
interval = "50 ms"
requests = 800
"""
LOSSY = """
format = 1
name = "lossy"
[fixed]
delay = "5 ms"
loss = 0.1
[bearer]
preset = "hs-dsch-384"
[[flow]]
kind = "ping"
interval = "100 ms"
requests = 100
"""


@pytest.fixture(scope="module")
def train() -> airpath.Result:
    """Pings in a train, from cell to cell."""
    return airpath.run(TRAIN)


def test_handovers_are_counted_and_marked(train: airpath.Result, tmp_path: Path) -> None:
    modes = train.states.filter(aspect="mode")
    handovers = modes.with_columns(length=pl.col("time").shift(-1) - pl.col("time")).filter(name="handover")
    assert handovers.height > 1
    page = Page(report.write([train], tmp_path / "report.html"))
    total = seconds(float(handovers["length"].sum()) / 1e9)
    assert f"Handovers {handovers.height} {total} in all" in page.words
    assert f"Dotted lines: {handovers.height} handovers of mobile." in page.words
    lines = [shape["x0"] for shape in page.figures["Throughput"]["layout"]["shapes"]]
    assert lines == pytest.approx((handovers["time"] / 1e9).to_list())


def test_handovers_are_counted_without_a_log(train: airpath.Result, tmp_path: Path) -> None:
    result = airpath.run(TRAIN, log=False)
    handovers = train.states.filter(aspect="mode", name="handover").height
    assert f"Handovers {handovers} " in Page(report.write([result], tmp_path / "report.html")).words
    still = airpath.run(TRAIN, set={"bearer.conditions.environment": "indoor"}, log=False)
    assert "Handovers" not in Page(report.write([still], tmp_path / "still.html")).words


def test_brief_handovers_are_lines_in_the_radio_log(train: airpath.Result) -> None:
    mode: Any = next(plot.tracks(train).select_traces({"name": "mode"}))
    brief = {name for (name, _), width in zip(mode.customdata, mode.marker.line.width, strict=True) if width}
    assert brief == {"handover"}
    assert theme.BRIEF_STATES[4].light in mode.marker.line.color


def test_drops_are_counted_by_cause(tmp_path: Path, airpath_command: Command) -> None:
    (tmp_path / "lossy.toml").write_text(LOSSY)
    done = airpath_command("run", "lossy.toml", "--repeat", "2", "--out", "lossy")
    result = airpath.load(tmp_path / "lossy")
    down, up = (
        int(result.links.filter(component="fixed", direction=way)["dropped_loss_packets"].sum())
        for way in ("down", "up")
    )
    assert down and up
    assert f"Dropped packets: fixed down {down} loss; fixed up {up} loss." in " ".join(done.out.split())
    page = Page(report.write([result], tmp_path / "report.html"))
    assert f"packets lost: {down + up} loss" in page.words


def test_without_drops_none_are_named(airpath_command: Command) -> None:
    assert "Dropped" not in airpath_command("run", "gprs", "--set", "flow.0.bytes=5 kB").out
