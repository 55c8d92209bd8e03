"""The quality of a video over HTTP: what is drawn is what the table has."""

from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import plot, report
from support import ROOT


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """The example."""
    return airpath.run(ROOT / "examples" / "adaptive.toml", out=tmp_path_factory.mktemp("adaptive") / "run")


def test_each_segment_is_drawn_with_its_quality_and_its_throughput(result: airpath.Result) -> None:
    figure: Any = plot.quality(result)
    quality, throughput = figure.data
    segments = result.segments
    assert list(quality.y) == pytest.approx((segments["rate_bps"] / 1e3).to_list())
    assert list(quality.x) == pytest.approx(segments["requested_s"].to_list(), rel=1e-3, abs=1e-3)
    loading = segments["finished_s"] - segments["requested_s"]
    assert list(throughput.y) == pytest.approx((segments["bytes"] * 8 / loading / 1e3).to_list(), rel=1e-3)


def test_several_runs_are_overlaid(result: airpath.Result) -> None:
    both: Any = plot.quality([result, result])
    assert len(both.data) == 2
    buffers: Any = plot.playback([result, result])
    assert len(buffers.data) == 2


def test_a_run_without_such_a_video_has_nothing_to_draw() -> None:
    ping = {"format": 1, "bearer": {"preset": "wired"}, "flow": [{"kind": "ping", "requests": 1}]}
    with pytest.raises(plot.NothingToDrawError):
        plot.quality(airpath.run(ping))


def test_a_report_has_buffer_and_quality_over_time(result: airpath.Result, tmp_path: Path) -> None:
    html = report.write([result], tmp_path / "report.html").read_text(encoding="utf-8")
    assert html.index("Playout buffer") < html.index("Video quality") < html.index("Radio log")
    assert "Videos over HTTP" in html
    assert "the video over HTTP had" in html
