"""Reports of a mobile with two bearers name flow, bearer and interface."""

from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import plot, report
from support import TWO_BEARERS
from support.report_page import Page


@pytest.fixture(scope="module")
def result() -> airpath.Result:
    """A download over each bearer."""
    return airpath.run(TWO_BEARERS)


@pytest.mark.parametrize(
    ("flow", "name", "bearer"), [(0, "over lte", "cell (LTE)"), (1, "over wifi", "second-cell (Wi-Fi)")]
)
def test_the_delays_by_hop_name_their_flow_and_bearer(result: airpath.Result, flow: int, name: str, bearer: str):
    figure = plot.hops(result, flow)
    assert plot.caption_of(figure).read.startswith(f"Drawn: {name}. ")
    traces: list[Any] = list(figure.select_traces())
    assert {trace.name for trace in traces} == {"fixed", bearer}
    median = plot.caption_of(plot.hops(result)).read
    assert ", the one of median throughput of 2 transfers. " in median


def test_the_report_names_both_bearers(result: airpath.Result, tmp_path: Path) -> None:
    page = Page(report.write([result], tmp_path / "report.html"))
    assert "bearer lte-cell and wifi" in page.words


def test_labels_of_radio_tracks_are_whole_words(result: airpath.Result) -> None:
    labels = next(plot.radio(result).select_yaxes()).ticktext
    assert list(labels) == ["mobile ↓", "mobile ↑", "…second ↓", "…second ↑"]
