"""Interrupted repetitions count in no mean: those of frames, figures, reports and comparisons."""

import json
import shutil
from pathlib import Path

import pytest

import airpath
from airpath import report
from airpath.plot.distribution import compare as draw
from airpath.plot.selection import drawn
from airpath.plot.template import caption_of
from airpath.report import metrics
from support import Command
from support.report_page import Page

WHOLE = Path(__file__).parents[1] / "results" / "schema-2"
"""A result with one repetition."""


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A result with three repetitions; the second was interrupted."""
    folder = tmp_path / "cut"
    shutil.copytree(WHOLE, folder)
    summary = json.loads((folder / "summary.json").read_text())
    for table in ("flows", "links", "repetitions"):
        summary[table] = [row | {"repetition": number} for number in range(3) for row in summary[table]]
    for flow in summary["flows"]:
        if flow["repetition"] == 1 and flow["name"] == "download":
            flow |= {"duration_s": 1e6, "throughput_bps": 1e-3}
    summary["repetitions"][1] |= {"ended": "interrupted", "simulated_s": 0.0}
    summary |= {"complete": False, "stopped": "interrupted"}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def test_means_are_those_of_the_complete_repetitions(cut: Path, tmp_path: Path) -> None:
    result = airpath.load(cut)
    assert result.flows["repetition"].n_unique() == 3
    assert result.complete_part.flows["repetition"].unique().to_list() == [0, 2]
    assert result.means("duration_s").select("mean", "n").rows() == [(1.91, 2)]
    (run,) = drawn(cut)
    assert run.repetition != 1
    assert metrics.COMPLETION.values(run.result) == [1.91, 1.91]
    caption = caption_of(draw(cut))
    assert "mean 1910 ms of 2, 95 % interval" in caption.alt
    assert f"{run.label}: without 1 interrupted repetition." in caption.notes
    page = Page(report.write([cut], tmp_path / "report.html"))
    assert "The run did not finish (interrupted); the report shows its data until then, without 1" in page.words
    assert "1.91 s on the mean" in page.words
    assert "--repeat 3" in page.words


def test_an_interrupted_repetition_can_still_be_drawn(cut: Path) -> None:
    (run,) = drawn(cut, 1)
    assert (run.repetition, len(run.flows)) == (1, 2)


def test_all_repetitions_count_if_none_is_complete(cut: Path) -> None:
    summary = json.loads((cut / "summary.json").read_text())
    for each in summary["repetitions"]:
        each["ended"] = "interrupted"
    (cut / "summary.json").write_text(json.dumps(summary))
    assert airpath.load(cut).complete_part.flows["repetition"].n_unique() == 3


def test_a_comparison_names_incomplete_results(cut: Path, airpath_command: Command) -> None:
    pytest.importorskip("scipy")
    compared = airpath.compare(WHOLE, cut, figures=["duration_s"])
    assert compared.incomplete == [f"{cut} is not complete (interrupted); 1 interrupted repetition is left out"]
    assert {row.new_mean for row in compared.rows} == {1.91}
    done = airpath_command("compare", WHOLE, cut)
    assert "1 interrupted repetition is left out" in " ".join(done.out.split())
    assert airpath_command("compare", WHOLE, cut, "--format", "json").json["incomplete"] == compared.incomplete
