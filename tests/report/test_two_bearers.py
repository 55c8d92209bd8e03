"""Reports of a mobile with two bearers name flow, bearer and interface."""

from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import plot, report
from airpath.plot.selection import median_repetition
from airpath.report import metrics
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


STEERED = """
format = 1
name = "steered"
[bearer]
preset = "wifi-n"
[second_bearer]
preset = "lte-20mhz"
[steering]
mode = "active-standby"
[[flow]]
kind = "download"
bytes = "2 MB"
[[flow]]
kind = "download"
transport = "quic-quinn"
bytes = "20 MB"
[[change]]
at = "1 s"
outage = "3 s"
"""
PING = """
[[flow]]
kind = "ping"
requests = 5
"""


def test_the_probes_of_steering_are_no_pings_of_the_scenario(tmp_path: Path) -> None:
    result = airpath.run(STEERED)
    assert {"steering-mobile-first", "steering-mobile-second"} < set(result.flows["name"])
    page = Page(report.write([result], tmp_path / "report.html"))
    assert "measured by acknowledgements" in page.words
    assert "pings came back" not in page.words
    assert "Each dot is the round trip of a ping" not in page.words
    assert metrics.pings(result) == metrics.PROBES_LOST.values(result) == []
    assert median_repetition(result) == 0
    pinged = airpath.run(STEERED + PING)
    page = Page(report.write([pinged], tmp_path / "report.html"))
    assert "of 5 pings came back" in page.words
    assert "the first is drawn" not in page.words
    traces: list[Any] = list(plot.round_trip(pinged).select_traces())
    [samples] = [trace for trace in traces if trace.mode == "markers"]
    assert len(samples.x) == pinged.flows.filter(name="ping")["received"].item()


def test_conditions_name_tcp_and_quic_apart(tmp_path: Path) -> None:
    page = Page(report.write([airpath.run(STEERED)], tmp_path / "report.html"))
    assert "TCP linux-6 (cubic), QUIC quic-quinn (cubic), repetitions" in page.words
    assert "QUIC of download: all settings" in page.words
    only = STEERED.replace('transport = "quic-quinn"\n', "").replace(
        '"download"\n', '"download"\ntransport = "quic-quinn"\n'
    )
    page = Page(report.write([airpath.run(only)], tmp_path / "report.html"))
    assert ", QUIC quic-quinn (cubic), repetitions" in page.words
    assert "TCP –" not in page.words


def test_a_queue_keeps_its_backlog_during_an_outage() -> None:
    result = airpath.run(STEERED)
    lines: list[Any] = list(plot.queue(result).select_traces())
    assert lines and {line.line.shape for line in lines} == {"hv"}
