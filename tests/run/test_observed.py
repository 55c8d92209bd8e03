"""Flows of real programs, observed by their packets alone: the report draws what these show.

It lists what they do not show. A simulated run is changed to look like such a result: the events of
its senders are the ground truth.
"""

import json
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest

import airpath
from airpath import plot, report
from airpath.plot.acknowledgements import received_acknowledgements, round_trips
from airpath.report import metrics
from airpath.tables import direction_of
from support import DOWNLOAD

SCENARIO = DOWNLOAD.replace("loss = 0.01", "loss = 0.03") + '\n[[flow]]\nkind = "upload"\nbytes = "60 kB"\n'


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """A download and an upload that lose packets."""
    return airpath.run(SCENARIO, out=tmp_path_factory.mktemp("simulated") / "run")


@pytest.fixture(scope="module")
def observed(simulated: airpath.Result, tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """The same without the events that only senders have, plus a refused connection."""
    folder = tmp_path_factory.mktemp("observed") / "run"
    shutil.copytree(simulated.path, folder)
    summary = json.loads((folder / "summary.json").read_text())
    refused = _as_observed(dict(summary["flows"][0]), 2)
    nothing = dict.fromkeys(("duration_s", "first_byte_s", "acknowledged_s", "throughput_bps", "connect_s"))
    refused |= nothing | {"outcome": "aborted", "cause": "refused by the server", "bytes": 0, "delivered_bytes": 0}
    summary["flows"] = [_as_observed(flow, number) for number, flow in enumerate(summary["flows"])] + [refused]
    (folder / "summary.json").write_text(json.dumps(summary))
    for part in (folder / "events" / "tcp").iterdir():
        part.unlink()
    return airpath.load(folder)


def _as_observed(flow: dict[str, Any], number: int) -> dict[str, Any]:
    traffic = {"offered_packets": 9, "offered_bytes": 900, "delivered_packets": 9, "delivered_bytes": 900}
    return flow | {
        "flow": number,
        "kind": "tcp",
        "name": f"10.0.0.2:{5000 + number} → 192.0.2.1:80",
        "local": f"10.0.0.2:{5000 + number}",
        "remote": "192.0.2.1:80",
        "direction": direction_of(flow),
        "tcp": {"profile": "as seen"},
        "down": traffic,
        "up": traffic,
        **dict.fromkeys(("timeouts", "fast_retransmits", "undone")),
    }


def packets(result: airpath.Result) -> pl.LazyFrame:
    """Return the events of packets, with `t` in seconds."""
    return result.scan("packets").with_columns(t=pl.col("time") / 1e9)


def test_the_frame_has_ends_and_directions(observed: airpath.Result) -> None:
    flows = observed.flows
    assert flows["direction"].to_list() == ["down", "up", "down"]
    assert flows["remote"].unique().to_list() == ["192.0.2.1:80"]
    assert flows["down_delivered_packets"].to_list() == [9, 9, 9]
    assert flows["timeouts"].null_count() == 3


def test_received_acknowledgements_are_inferred(simulated: airpath.Result, observed: airpath.Result) -> None:
    for flow in observed.summary["flows"][:2]:
        reported = simulated.tcp.filter(flow=flow["flow"], direction=flow["direction"]).filter(
            pl.col("trigger") != "established"
        )
        inferred = (
            received_acknowledgements(packets(observed), [flow])
            .collect()
            .with_columns(time=(pl.col("t") * 1e9).round())
        )
        at = reported.join(
            inferred.with_columns(pl.col("time").cast(pl.Int64)).unique("time", keep="last"), on="time", how="inner"
        )
        assert at.height > 20
        # The end of the data is acknowledged once more with the FIN.
        assert (at["acknowledged"] - at["acknowledged_right"]).abs().max() in (0, 1)


def test_round_trips_are_those_that_senders_measured(simulated: airpath.Result, observed: airpath.Result) -> None:
    for flow, truth in zip(observed.summary["flows"][:2], simulated.summary["flows"], strict=True):
        inferred = round_trips(packets(observed), [flow]).collect()["round_trip"].to_list()
        # The summary has one more sample, that of the SYN.
        assert len(inferred) == pytest.approx(truth["rtt_samples"] - 1, abs=2)
        assert fmean(inferred) == pytest.approx(truth["rtt_mean_s"], rel=0.05)
        assert max(inferred) == pytest.approx(truth["rtt_max_s"], rel=1e-6)


def test_the_figures_of_the_runs_agree(simulated: airpath.Result, observed: airpath.Result) -> None:
    for metric in (metrics.GOODPUT_IN_ALL, metrics.COMPLETION, metrics.LOST):
        assert metric.values(observed) == metric.values(simulated)
    assert metrics.TIMEOUTS.values(observed) == []
    assert metrics.ROUND_TRIP_MEDIAN.values(observed) == pytest.approx(
        metrics.ROUND_TRIP_MEDIAN.values(simulated), rel=0.2
    )


def test_the_time_sequence_shows_the_same_segments(simulated: airpath.Result, observed: airpath.Result) -> None:
    def points(figure: go.Figure, name: str) -> list[float]:
        traces = figure.to_plotly_json()["data"]
        return next(list(trace["x"]) for trace in traces if trace["name"] == name)

    ours, theirs = (plot.time_sequence(result, flow=0) for result in (observed, simulated))
    assert points(ours, "sent") == points(theirs, "sent")
    assert max(points(ours, "acknowledged")) == pytest.approx(max(points(theirs, "acknowledged")), rel=0.01)


def test_the_report_draws_what_is_known(observed: airpath.Result, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    report.write([observed], page)
    text = page.read_text(encoding="utf-8")
    assert "a real program does not report them" in text
    assert "10.0.0.2:5001 → 192.0.2.1:80" in text
    assert " time-outs" not in text


def test_a_refused_connection_is_not_drawn(observed: airpath.Result) -> None:
    with pytest.raises(plot.NothingToDrawError, match="flow 2 is no transfer"):
        plot.time_sequence(observed, flow=2)
    with pytest.raises(plot.NothingToDrawError, match="real program"):
        plot.window(observed)
