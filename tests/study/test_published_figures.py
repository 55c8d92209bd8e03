"""The figures of a study's text, with our rows."""

from math import prod
from pathlib import Path
from typing import Any

import pytest

from airpath.plot import NothingToDrawError, caption_of
from airpath.study.definition import Study, load_study
from airpath.study.errors import StudyError
from airpath.study.published_figures import PublishedFigure, draw
from support.small_study import read_small_study

STUDIES = ["gsm-csd", "gprs-la", "gprs-proxy", "umts-live", "hsdpa-sim"]


def _rows(study: Study) -> list[dict[str, Any]]:
    """Rows of a study in its JSON form, as if each measured 1."""
    rows = []
    for experiment in study.experiments:
        for case in experiment.cases:
            rows += [_row(experiment.name, case.axis_values, metric.name) for metric in case.metrics]
        for aggregate in experiment.aggregates:
            axes = [axis for axis in experiment.axes if axis != aggregate.over]
            for values in aggregate.published:
                case = dict.fromkeys(experiment.axes, "all") | dict(zip(axes, values, strict=True))
                rows.append(_row(experiment.name, case, aggregate.name))
    return rows


def _points(study: Study, figure: PublishedFigure) -> int:
    """Return places × series × metrics of a figure, by the axes of its experiments."""
    axes = [each.axes for each in study.experiments if each.name in figure.experiments]
    free = [[len(values) for axis, values in each.items() if axis not in figure.where] for each in axes]
    return sum(len(figure.metrics) * prod(each) for each in free)


def _row(experiment: str, case: dict[str, str], metric: str, **others: Any) -> dict[str, Any]:
    row = {"experiment": experiment, "case": case, "metric": metric, "unit": "s", "published": None}
    return row | {"ours": 1.0, "low": 0.5, "high": 1.5} | others


@pytest.mark.parametrize("name", STUDIES)
def test_each_place_of_each_series_shows_one_row(name: str) -> None:
    study = load_study(name)
    rows = _rows(study)
    assert study.figures
    for figure in study.figures:
        chosen = figure.rows(rows)
        drawn = draw(figure, chosen).to_plotly_json()
        assert sum(len(set(trace["x"])) for trace in drawn["data"]) == len(chosen), figure.label
        assert len(chosen) == _points(study, figure) > 1, figure.label
    assert len({figure.label for figure in study.figures}) == len(study.figures)


def test_lines_by_numbers_have_a_numeric_axis_with_its_unit() -> None:
    figure = PublishedFigure("Figure 1", "Times", "lines", ("a",), ("page-time",), "size", None)
    rows = [_row("a", {"size": size}, "page-time") for size in ("5 kB", "30 kB")]
    drawn = draw(figure, rows).to_plotly_json()
    assert drawn["layout"]["xaxis"]["type"] == "linear"
    assert drawn["layout"]["xaxis"]["title"]["text"] == "size (kB)"
    assert drawn["layout"]["yaxis"]["title"]["text"] == "page time (s)"
    assert list(drawn["data"][0]["x"]) == [5.0, 30.0]
    rows[1]["case"]["size"] = "none"
    assert draw(figure, rows).to_plotly_json()["layout"]["xaxis"]["type"] == "category"
    with pytest.raises(NothingToDrawError, match="no rows of Figure 1"):
        draw(figure, [])


def test_published_values_stand_over_the_bars_of_their_series() -> None:
    figure = PublishedFigure(
        "Figure 1", "Shares", "bars", ("a",), ("share-of-one", "share-of-two"), "metric", "kind", y_title="share"
    )
    rows = [
        _row("a", {"kind": kind}, metric, published=published)
        for kind, published in (("x", None), ("y", 2.0))
        for metric in figure.metrics
    ]
    rows[3] |= {"published": 3.0, "published_range": [2.0, 4.0]}
    drawn = draw(figure, figure.rows(rows))
    x, y, published = drawn.to_plotly_json()["data"]
    assert (x["name"], y["name"], published["name"]) == ("x", "y", "published")
    assert list(published["x"]) == ["one", "two"]
    assert published["offsetgroup"] == y["offsetgroup"] != x["offsetgroup"]
    assert list(published["error_y"]["array"]) == [0.0, 1.0]
    assert caption_of(drawn).alt.startswith("Shares in s: one, x: 1; two, x: 1; one, y: 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('along = "mut"', "no axis 'mut'; did you mean 'mtu'"),
        ('along = "mtu"\nkind = "pie"', "must be one of bars, lines, not 'pie'"),
        ('along = "metric"', "has the axis 'mtu', too"),
        ('along = "metric"\nwhere = { mtu = "7" }', "has no '7' of the axis 'mtu'"),
        ('along = "mtu"\nmetrics = ["ping-loss", "ping-round-trip"]', "need `along` or `series` to be 'metric'"),
        ('along = "mtu"\nwhere = { metric = "ping-loss" }', "give 'metrics' in place of 'metric'"),
        ('along = "mtu"\nmetrics = ["ping-los"]', "no metric 'ping-los'; did you mean 'ping-loss'"),
        ('along = "mtu"\nseries = "metric"\nmetrics = ["ping-loss", "ping-deviation"]', "the same unit, not %, ms"),
        ('along = "mtu"\nseries = "metric"\nmetrics = ["ping-loss", "relative-ping-deviation"]', "need 'y_title'"),
        ('along = "metric"\nwhere = { mtu = "128" }', "give 'x_title'"),
        ('along = "mtu"\nexperiments = ["pong"]', "no experiment 'pong'"),
    ],
)
def test_figures_that_make_no_sense_are_refused(tmp_path: Path, text: str, message: str) -> None:
    lines = {"metrics": '["ping-loss"]', "experiments": '["ping"]'}
    figure = "\n".join(f"{key} = {value}" for key, value in lines.items() if key not in text)
    with pytest.raises(StudyError, match=message):
        read_small_study(tmp_path, f'[[figure]]\nlabel = "Figure 1"\ntext = "Loss"\n{figure}\n{text}\n')
