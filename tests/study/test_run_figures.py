"""Figures of a study's text that show single runs: each is drawn, and wrong ones are refused."""

from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest

from airpath.plot import NothingToDrawError, caption_of
from airpath.study import run_figure
from airpath.study.definition import load_study
from airpath.study.errors import StudyError
from airpath.study.report import Details, page
from airpath.study.run_events import EVENTS, Interval, gap_and_delay
from airpath.study.run_figure import RunFigure
from airpath.study.run_plots import KINDS
from support.small_study import read_small_study

STUDIES = ["gprs-la", "gprs-proxy", "umts-live"]
FIGURES = [(name, figure) for name in STUDIES for figure in load_study(name).run_figures]


def _figure(study: str, label: str) -> RunFigure:
    return next(each for each in load_study(study).run_figures if each.label == label)


def _points(drawn: go.Figure) -> int:
    """Return the points of a figure in the part of the axis that it shows."""
    start, end = drawn.layout["xaxis"]["range"]
    traces = drawn.to_plotly_json()["data"]
    places = [(trace.get("base", trace["x"]), trace) for trace in traces if not str(trace["name"]).startswith("publ")]
    return sum(x is not None and start <= x <= end for xs, _ in places for x in xs)


@pytest.mark.parametrize(("study", "figure"), FIGURES, ids=[f"{name}, {each.label}" for name, each in FIGURES])
def test_each_figure_of_a_run_is_drawn_with_data(study: str, figure: RunFigure) -> None:
    drawn = run_figure.draw(figure, load_study(study).seed)
    caption = caption_of(drawn)
    assert _points(drawn) >= 5
    assert caption.title == f"{figure.label}: {figure.text}"
    assert any(note.startswith("Simulated: ") and "seed 1" in note for note in caption.notes)
    for each in figure.published:
        assert each.text in caption.alt
    texts = [annotation["text"] for annotation in drawn.to_plotly_json()["layout"].get("annotations", ())]
    lines = [str(trace["name"]) for trace in drawn.to_plotly_json()["data"]]
    for each in figure.published:
        assert f"published {each.text}" in texts or f"published: {each.name}, {each.text}" in lines


def test_the_figures_of_the_texts_have_different_labels() -> None:
    for name in STUDIES:
        study = load_study(name)
        labels = [each.label for each in (*study.figures, *study.run_figures)]
        assert len(set(labels)) == len(labels)


def test_figures_of_the_same_part_of_a_run_share_their_axis() -> None:
    axes = {label: _figure("gprs-la", f"Figure {label}").time_axis for label in ("4 a", "4 b", "4 c", "4 d", "5 a")}
    assert axes["4 a"] == axes["4 b"] == axes["4 c"]
    assert len({axes["4 a"], axes["4 d"], axes["5 a"]}) == 3
    assert _figure("gprs-proxy", "Figure 13 a").time_axis is None


def test_a_study_page_has_its_figures_of_runs_by_number(tmp_path: Path) -> None:
    study = load_study("umts-live")
    figures = [replace(each, runs=(_short(each),)) for each in study.run_figures]
    row = {"case": {}, "metric": "page-time", "unit": "s", "published": None, "ours": 1.0, "low": 1.0, "high": 1.0}
    rows = [row | {"experiment": "moving", "n": 2}]
    data = {"study": study.id, "seed": 1, "version": "1", "rows": rows, "findings": []}
    none = replace(figures[1], label="Figure 9", event="slow-start", around=(1, 1), published=())
    details = Details(study.title, {}, [None], run_figures=[none, *reversed(figures)])
    html = page(data, tmp_path / "page.html", details=details)
    assert 0 < html.index("Figure 3: Arrivals") < html.index("Figure 4: Time between arrivals")
    assert "Figure 9 is not drawn: Figure 9: no repetition of moving (walking) has the event" in html
    without = page(data | {"rows": [rows[0] | {"experiment": "video"}]}, tmp_path / "page.html", details=details)
    assert "Figure 3" not in without


def _short(figure: RunFigure) -> run_figure.Run:
    """Return the run of a figure, cut after ten minutes."""
    (run,) = figure.runs
    return replace(run, set={**run.set, "flow.0.duration": "600 s"}, repeat=1)


def test_bars_and_lines_show_what_is_published() -> None:
    drawn = run_figure.draw(_figure("gprs-proxy", "Figure 7 b"), 1).to_plotly_json()
    recovery, published = (each for each in drawn["layout"]["shapes"] if each["yref"] == "paper")
    assert published["x0"] == recovery["x0"]
    assert published["x1"] - published["x0"] == pytest.approx(30)
    assert published["y0"] < recovery["y0"]
    (line,) = (trace for trace in drawn["data"] if trace["name"] == "published: outstanding, 40 kB")
    assert list(line["y"]) == [40, 40]
    high = drawn["layout"]["yaxis"]["range"][1]
    assert published["y0"] * high > 40


def test_an_event_is_that_of_the_first_repetition_that_has_it() -> None:
    figure = _figure("gprs-la", "Figure 4 d")
    note = next(note for note in caption_of(run_figure.draw(figure, 1)).notes if note.startswith("Simulated"))
    repetition = int(note.partition("repetition ")[2].partition(":")[0])
    assert repetition > 0
    (run,) = figure.runs
    with pytest.raises(NothingToDrawError, match=r"no repetition of downloads \(M2, outdoor moving\) has the event"):
        run_figure.draw(replace(figure, runs=(replace(run, repeat=repetition),)), 1)


def test_the_longest_gap_has_losses_and_the_delay_near_it_has_none() -> None:
    times = [*(0.25 * number for number in range(120)), 33.0, 33.25, 37.25, 80.0, 90.0]
    numbers = [*range(120), 131, 132, 133, 134, 135]
    gap, delay = gap_and_delay(list(zip(times, numbers, strict=True)))
    assert gap == Interval("gap", 29.75, 33.0)
    assert delay == Interval("delay", 33.25, 37.25)
    assert gap_and_delay([(0.0, 0), (1.0, 1)]) == []


def test_a_part_in_which_nothing_happens_is_not_drawn() -> None:
    figure = replace(_figure("umts-live", "Figure 4"), time=(0.0, 0.05), published=())
    with pytest.raises(NothingToDrawError, match="datagrams arrive"):
        run_figure.draw(replace(figure, runs=(_short(figure),)), 1)
    figure = replace(_figure("gprs-proxy", "Figure 6 a"), time=(0.0, 1.0))
    with pytest.raises(NothingToDrawError, match="Figure 6 a: nothing happens from 0 to 1 s"):
        run_figure.draw(figure, 1)


def test_names_of_kinds_and_events_are_explained() -> None:
    text = (Path(__file__).parents[2] / "studies/README.md").read_text(encoding="utf-8")
    for name in (*KINDS, *EVENTS):
        assert f"`{name}`" in text


RUN = 'runs = [{ experiment = "ping", case = ["128"] }]\n'
TWO = RUN.replace("]\n", ', { name = "other", experiment = "ping", case = ["128"] }]\n')
ARRIVALS = 'kind = "arrivals"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ARRIVALS + 'runs = [{ experiment = "pong", case = ["128"] }]', "no experiment 'pong'; did you mean 'ping'"),
        (ARRIVALS + 'runs = [{ experiment = "ping", case = ["129"] }]', "'ping' has no case '129', but 128"),
        (ARRIVALS + 'runs = [{ experiment = "ping" }]', "'ping' has no case '', but 128"),
        (ARRIVALS + 'runs = [{ experiment = "ping", case = ["128"], sets = {} }]', "unknown key 'sets'; did you mean"),
        (
            ARRIVALS + RUN.replace(" }", ', set = { "flow.0.sise" = 3 } }'),
            "'set' makes ping.toml invalid: .*flow.0.sise: unknown key; did you mean `size`",
        ),
        (ARRIVALS + "runs = []", "give at least one run in 'runs'"),
        (ARRIVALS, "give at least one run in 'runs'"),
        ('kind = "arival"\n' + RUN, "'kind' must be one of arrivals, .*, not 'arival'; did you mean 'arrivals'"),
        (ARRIVALS + 'event = "gap"\n' + RUN, "'event' must be one of slow-start, .*, not 'gap'"),
        (ARRIVALS + 'around = ["1 s", "2 s"]\n' + RUN, "'around' is the time around an event: give 'event'"),
        (ARRIVALS + 'event = "gap-and-delay"\naround = ["1 s"]\n' + RUN, "'around' must have two times"),
        (ARRIVALS + 'event = "gap-and-delay"\ntime = ["1 s", "2 s"]\n' + RUN, "'time' is a fixed part of the run"),
        (ARRIVALS + 'time = ["1 kB", "2 s"]\n' + RUN, "'time': '1 kB' is no time with a unit"),
        (ARRIVALS + 'time = ["3 s", "2 s"]\n' + RUN, "'time' does not end after its start"),
        (ARRIVALS + 'step = "3 s"\n' + RUN, "the kind 'arrivals' has no means of intervals: remove 'step'"),
        ('kind = "throughput"\nstep = "3 kB"\n' + RUN, "'step': '3 kB' is no time with a unit"),
        ('kind = "throughput"\nstep = "0 s"\n' + RUN, "'step': '0 s' is no positive time"),
        (ARRIVALS + 'published = { gap = "1 s" }\n' + RUN, "'gap' is neither an interval of an event nor, with '1 s'"),
        (
            ARRIVALS + 'event = "gap-and-delay"\npublished = { gaps = "1 s" }\n' + RUN,
            "'gaps' is neither an interval of an event, whose intervals are gap, delay nor",
        ),
        (
            ARRIVALS + 'event = "gap-and-delay"\npublished = { gap = "1 kB" }\n' + RUN,
            "'gap' is an interval of the event: give a time, not '1 kB'",
        ),
        ('kind = "throughput"\npublished = { rate = 5 }\n' + RUN, "'rate' must be a value with a unit.* not 5"),
        ('kind = "throughput"\npublished = { rate = "5 s" }\n' + RUN, "of the vertical axis of the kind 'throughput'"),
        ('kind = "connections"\ntime = ["0 s", "2 s"]\n' + RUN, "has no time of the run: remove 'time'"),
        ('kind = "connections"\nevent = "recovery"\n' + RUN, "has no time of the run: remove 'event'"),
        (
            ARRIVALS + RUN.replace(" }]", ' }, { experiment = "ping", case = ["128"] }]'),
            "'arrivals' shows one run, not 2",
        ),
        (
            'kind = "throughput"\n' + RUN.replace(" }]", ' }, { experiment = "ping", case = ["128"] }]'),
            "several runs need different values of 'name'",
        ),
        (
            'kind = "throughput"\nevent = "recovery"\n'
            + RUN.replace(" }]", ' }, { name = "b", experiment = "ping", case = ["128"] }]'),
            "an event needs a single run in 'runs'",
        ),
        (ARRIVALS + RUN + 'along = "mtu"', "unknown key 'along'"),
    ],
)
def test_figures_of_runs_that_make_no_sense_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message) as refused:
        read_small_study(tmp_path, f'[[run_figure]]\nlabel = "Figure 1"\ntext = "Arrivals"\n{text}\n')
    assert "study.toml" in str(refused.value)
    assert "run_figure 'Figure 1'" in str(refused.value)
