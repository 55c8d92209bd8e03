"""The playout buffer of a stream: what is drawn is what the table has."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import plot, report
from support import ROOT


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """The example, whose outage is longer than the buffer."""
    return airpath.run(ROOT / "examples" / "stream.toml", out=tmp_path_factory.mktemp("stream") / "run")


def test_the_playout_buffer_is_drawn_with_its_stalls(result: airpath.Result) -> None:
    figure: Any = plot.playback(result)
    flow = result.flows.row(0, named=True)
    [trace] = figure.data
    drawn = result.buffers.filter(pl.col("time_s") <= result.repetitions["simulated_s"][0])
    assert list(trace.y) == pytest.approx(drawn["buffer_s"].to_list(), rel=1e-3)
    # The start, and the stall of the outage.
    shaded = [(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.type == "rect"]
    assert len(shaded) == 1 + flow["stalls"]
    assert shaded[0][1] == pytest.approx(flow["startup_s"], abs=1)
    assert sum(end - start for start, end in shaded[1:]) == pytest.approx(flow["stall_s"], abs=1.5)


def test_several_runs_are_overlaid(result: airpath.Result) -> None:
    figure: Any = plot.playback([result, result])
    assert len(figure.data) == 2


def test_a_run_without_a_stream_has_nothing_to_draw() -> None:
    ping = {"format": 1, "bearer": {"preset": "wired"}, "flow": [{"kind": "ping", "requests": 1}]}
    with pytest.raises(plot.NothingToDrawError):
        plot.playback(airpath.run(ping))


def test_a_report_has_the_figure_over_time(result: airpath.Result, tmp_path: Path) -> None:
    html = report.write([result], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Playout buffer" in html
    assert html.index("Playout buffer") < html.index("Throughput")
