"""Figures of the text that show one run, such as a sequence plot or the packets of a stall.

`[[run_figure]]` of `study.toml` defines them. Rows do not have the times of packets, so the report
simulates the runs of such a figure: the first repetition of each case, or, with an event, the first
one that has the event. A figure shows what is published as dashed lines, and as bars below ours.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from airpath import theme
from airpath.plot.changes import mark_changes
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import caption_of, captioned
from airpath.quantities import base_of, parse_quantity, parse_seconds, parse_time, seconds
from airpath.result import Result
from airpath.run import execute, resolve
from airpath.study.run_events import EVENTS, Interval
from airpath.study.run_plots import KINDS, View, Window
from airpath.suggest import did_you_mean
from airpath.toml_table import Table

_AROUND = ("15 s", "15 s")
"""Time shown before and after an event by default."""
_BAR, _LABEL = 28, 16
"""Pixels of a row of bars, and of the names of changes above the lines."""
_ABOVE = {"receiver's window"}
"""Traces that a figure of a part of the run may cut off."""
_TITLE_UNIT = re.compile(r"\(([^()]+)\)$")


@dataclass(frozen=True, slots=True)
class RunCase:
    """A case of an experiment, as a figure of a run simulates it."""

    scenario: Path
    set: Mapping[str, Any]
    repeat: int


Cases = Mapping[str, Mapping[tuple[str, ...], RunCase]]
"""Of each experiment its cases by the values of their axes."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that a figure shows."""

    name: str
    """Its name in the legend."""
    experiment: str
    case: tuple[str, ...]
    scenario: Path
    set: Mapping[str, Any]
    """All overrides of the scenario."""
    changed: Mapping[str, Any]
    """Those that the case does not have."""
    repeat: int

    @property
    def label(self) -> str:
        """The experiment, the values of its axes, and what differs from the case."""
        words = [*self.case, *(f"{key} = {value}" for key, value in self.changed.items())]
        return f"{self.experiment} ({', '.join(words)})" if words else self.experiment


@dataclass(frozen=True, slots=True)
class PublishedQuantity:
    """A value that the text prints, as a figure shows it."""

    name: str
    text: str
    value: float
    """In base units: seconds, bytes or bit/s."""
    is_interval: bool
    """Whether it is the length of an interval of the event; otherwise a value of the axis."""


@dataclass(frozen=True, slots=True)
class RunFigure:
    """A figure of the text that shows runs, and the runs that it shows."""

    label: str
    """Its number in the text."""
    text: str
    kind: str
    """One of `KINDS`."""
    runs: tuple[Run, ...]
    note: str | None = None
    event: str | None = None
    """One of `EVENTS`; `None`: a fixed part of the run."""
    around: tuple[float, float] = (0.0, 0.0)
    """Seconds shown before and after the event."""
    time: Window = None
    """Seconds that are shown without an event; `None`: the whole run."""
    step: float | None = None
    """Seconds of each mean of a rate; `None`: by the length of the run."""
    published: tuple[PublishedQuantity, ...] = ()

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose cases it shows."""
        return tuple(run.experiment for run in self.runs)

    @property
    def time_axis(self) -> tuple[object, ...] | None:
        """What figures with the same horizontal axis have in common; `None`: no time of a run."""
        if not KINDS[self.kind].is_on_run_time:
            return None
        runs = tuple(run.label for run in self.runs)
        return runs, self.event, self.around, self.time


def read_run_figure(table: Table, cases: Cases) -> RunFigure:
    """Read a `[[run_figure]]`.

    Raises:
        StudyError: It is invalid.
    """
    label = table.take("label", str)
    table.label = f"run_figure '{label}'"
    text, note = table.take("text", str), table.take("note", str, None)
    kind = _choice(table, "kind", table.take("kind", str), KINDS)
    runs = tuple(_run(each, f"{table.label}: runs", cases) for each in table.tables("runs"))
    if not runs:
        raise table.error("give at least one run in 'runs'")
    if len(runs) > 1 and not KINDS[kind].overlays:
        several = ", ".join(name for name, each in KINDS.items() if each.overlays)
        raise table.error(
            f"a figure of the kind '{kind}' shows one run, not {len(runs)}", "runs", next_step=f"{several} show several"
        )
    if len({run.name for run in runs}) < len(runs):
        raise table.error("several runs need different values of 'name'", "runs")
    event = table.take("event", str, None)
    around, time = table.take("around", list, None), table.take("time", list, None)
    for key, value in (("event", event), ("time", time)):
        if value is not None and not KINDS[kind].is_on_run_time:
            raise table.error(f"a figure of the kind '{kind}' has no time of the run: remove '{key}'", key)
    if event is None:
        if around is not None:
            raise table.error("'around' is the time around an event: give 'event', or 'time' in place of it", "around")
    else:
        _choice(table, "event", event, EVENTS)
        if len(runs) > 1:
            raise table.error("an event needs a single run in 'runs'", "event")
        if time is not None:
            raise table.error("'time' is a fixed part of the run: give 'around' in place of it, or no 'event'", "time")
    window = None if time is None else _times(table, "time", time)
    if window is not None and window[0] >= window[1]:
        raise table.error("'time' does not end after its start", "time")
    step = table.take("step", str, None)
    if step is not None and not KINDS[kind].has_step:
        raise table.error(f"a figure of the kind '{kind}' has no means of intervals: remove 'step'", "step")
    published = table.take("published", dict, {})
    names = EVENTS[event].intervals if event else ()
    figure = RunFigure(
        label=label,
        text=text,
        kind=kind,
        runs=runs,
        note=note,
        event=event,
        around=_times(table, "around", _AROUND if around is None else around),
        time=window,
        step=None if step is None else _step(table, step),
        published=tuple(_published(table, name, value, kind, names) for name, value in published.items()),
    )
    table.finish()
    return figure


def _choice(table: Table, key: str, value: str, known: Mapping[str, object]) -> str:
    if value not in known:
        raise table.error(f"'{key}' must be one of {', '.join(known)}, not '{value}'{did_you_mean(value, known)}", key)
    return value


def _run(table: Table, label: str, cases: Cases) -> Run:
    table.label = label
    experiment, case = table.take("experiment", str), tuple(map(str, table.take("case", list, [])))
    name, overrides = table.take("name", str, None), table.take("set", dict, {})
    table.finish()
    if experiment not in cases:
        raise table.error(f"no experiment '{experiment}'{did_you_mean(experiment, cases)}", "experiment")
    known = cases[experiment]
    if case not in known:
        choices = "; ".join(", ".join(each) for each in known)
        key = "case" if "case" in table.known and case else None
        raise table.error(f"'{experiment}' has no case '{', '.join(case)}', but {choices}", key)
    of_case = known[case]
    if overrides:
        _check_overrides(table, of_case.scenario, {**of_case.set, **overrides})
    return Run(
        name=name or ", ".join(case),
        experiment=experiment,
        case=case,
        scenario=of_case.scenario,
        set={**of_case.set, **overrides},
        changed=overrides,
        repeat=of_case.repeat,
    )


def _check_overrides(table: Table, scenario: Path, overrides: Mapping[str, Any]) -> None:
    """Check that a run can be simulated, before a report has simulated all others.

    Raises:
        StudyError: It cannot.
    """
    from airpath import ScenarioError

    try:
        resolve(scenario, set=overrides)
    except (ScenarioError, FileNotFoundError) as error:
        raise table.error(f"'set' makes {scenario.name} invalid: {error}", "set") from None


def _times(table: Table, key: str, values: Sequence[Any]) -> tuple[float, float]:
    if len(values) != 2:
        raise table.error(f'\'{key}\' must have two times, such as ["0 s", "10 s"]', key)
    try:
        start, end = (parse_time(str(value)) for value in values)
    except ValueError as error:
        raise table.error(f"'{key}': {error}", key) from None
    return start, end


def _step(table: Table, text: str) -> float:
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise table.error(f"'step': {error}", "step") from None


def _published(table: Table, name: str, text: Any, kind: str, intervals: Sequence[str]) -> PublishedQuantity:
    """Read a published value: the length of an interval of the event, or a value of the axis."""
    quantity = parse_quantity(text) if isinstance(text, str) else None
    if quantity is None:
        raise table.error(f"'{name}' must be a value with a unit, such as \"8 s\", not {text!r}", "published")
    if name in intervals:
        if quantity.suffix != "s":
            raise table.error(f"'{name}' is an interval of the event: give a time, not '{text}'", "published")
        return PublishedQuantity(name, text, quantity.base, is_interval=True)
    if quantity.suffix != KINDS[kind].unit:
        known = f", whose intervals are {', '.join(intervals)}" if intervals else ""
        raise table.error(
            f"'{name}' is neither an interval of an event{known} nor, with '{text}', a value of the vertical axis of "
            f"the kind '{kind}'",
            "published",
        )
    return PublishedQuantity(name, text, quantity.base, is_interval=False)


def draw(figure: RunFigure, seed: int) -> go.Figure:
    """Simulate the runs of a figure and draw it.

    Raises:
        NothingToDrawError: No repetition has the event, or the runs have nothing to draw.
    """
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        results, repetition, intervals = _simulated(figure, seed, Path(folder))
        return _drawn(figure, results, _provenance(figure, seed, repetition), intervals)


def _simulated(figure: RunFigure, seed: int, folder: Path) -> tuple[list[Result], int, list[Interval]]:
    """Return the results of the runs, the repetition, and the intervals of the event."""
    if figure.event is None:
        return [_execute(run, seed, 0, folder / str(index)) for index, run in enumerate(figure.runs)], 0, []
    (run,) = figure.runs
    for repetition in range(run.repeat):
        result = _execute(run, seed, repetition, folder / str(repetition))
        if intervals := EVENTS[figure.event].find(result):
            return [result], repetition, intervals
    raise NothingToDrawError(f"{figure.label}: no repetition of {run.label} has the event '{figure.event}'")


def _execute(run: Run, seed: int, repetition: int, folder: Path) -> Result:
    execute(run.scenario, set=dict(run.set), seed=seed, first=repetition, repeat=1, out=folder, capture=False, log=True)
    result = Result(folder)
    result.label = run.name
    return result


def _provenance(figure: RunFigure, seed: int, repetition: int) -> str:
    """Return which runs a figure shows, as a note."""
    runs = "; ".join(dict.fromkeys(run.label for run in figure.runs))
    if figure.event is None:
        return f"Simulated: repetition 0 of {runs}, seed {seed}."
    rule = EVENTS[figure.event].rule
    return f"Simulated: {runs}, seed {seed}, repetition {repetition}: the first that has {rule}."


def _drawn(figure: RunFigure, results: Sequence[Result], provenance: str, intervals: Sequence[Interval]) -> go.Figure:
    window = figure.time
    if intervals:
        before, after = figure.around
        window = max(intervals[0].start - before, 0.0), intervals[0].end + after
    drawn = KINDS[figure.kind].draw(results, View(window, figure.step))
    if not KINDS[figure.kind].is_on_run_time:
        pass
    elif drawn.layout["yaxis"]["domain"] is None:
        rows = 0 if not intervals else 1 + any(each.is_interval for each in figure.published)
        window = window or tuple(drawn.layout["xaxis"]["range"])
        mark_changes(drawn, results)
        _zoom(drawn, figure, window, _BAR * rows + (_LABEL if drawn.layout["shapes"] else 0))
        _add_bars(drawn, figure, intervals, window)
        _add_values(drawn, figure, window)
    else:
        # Rows of the states of a radio, each with an axis of its own.
        _add_edges(drawn, intervals)
    caption = caption_of(drawn)
    caption.title = f"{figure.label}: {figure.text}"
    lengths = [f"{each.name} {seconds(each.length)}" for each in intervals]
    lengths += [f"published {each.name} {each.text}" for each in figure.published]
    caption.alt = f"{figure.text}. {caption.alt} {'; '.join(lengths)}".strip()
    caption.notes = [*([figure.note] if figure.note else []), provenance, *caption.notes]
    return captioned(drawn, caption)


def _axis_values(drawn: go.Figure, figure: RunFigure) -> list[float]:
    """Return the published values of the vertical axis, in its unit."""
    values = [each.value for each in figure.published if not each.is_interval]
    found = _TITLE_UNIT.search(drawn.layout["yaxis"]["title"]["text"] or "")
    return [value / base_of(found[1]) for value in values] if found else []


def _zoom(drawn: go.Figure, figure: RunFigure, window: tuple[float, float], above: float) -> None:
    """Show a part of the run, with room above it, in pixels.

    Raises:
        NothingToDrawError: There is nothing in this part.
    """
    traces = [each for each in drawn.to_plotly_json()["data"] if each.get("name") not in _ABOVE]
    seen = [value for trace in traces for value in _visible(trace, window)]
    if not seen:
        raise NothingToDrawError(f"{figure.label}: nothing happens from {window[0]:g} to {window[1]:g} s")
    high = max([*seen, *_axis_values(drawn, figure)])
    low = min(seen) if figure.kind == "time-sequence" else 0.0
    margin = 0.03 * (high - low)
    bottom = low - margin if figure.kind == "time-sequence" else 0.0
    drawn.update_xaxes(range=list(window))
    drawn.update_yaxes(range=[bottom, bottom + (high + 2 * margin - bottom) / (1 - above / _height(drawn))])


def _height(drawn: go.Figure) -> float:
    """Return the height of the axes, in pixels."""
    layout = drawn.layout.to_plotly_json()
    return layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]


def _visible(trace: Mapping[str, Any], window: tuple[float, float]) -> Iterator[float]:
    """Yield the vertical values of a trace in a part of the run, with the one before of a line."""
    start, end = window
    before = None
    for x, y in zip(trace["x"], trace["y"], strict=True):
        if x is None or y is None:
            continue
        if x < start:
            before = y
        elif x <= end:
            yield y
    if before is not None and "lines" in trace.get("mode", ""):
        yield before


def _add_bars(drawn: go.Figure, figure: RunFigure, intervals: Sequence[Interval], window: tuple[float, float]) -> None:
    """Add a bar for each interval of the event, and below it one of the published length."""
    published = {each.name: each for each in figure.published if each.is_interval}
    ours = {"color": theme.INK.light, "width": 3}
    theirs = {"color": theme.MUTED.light, "width": 3, "dash": "4px,3px"}
    for each in (each for each in intervals if each.start < window[1] and window[0] < each.end):
        _bar(drawn, each.start, each.end, 0, f"{each.name} {seconds(each.length)}", ours, window)
        if each.name in published:
            text = f"published {published[each.name].text}"
            _bar(drawn, each.start, each.start + published[each.name].value, 1, text, theirs, window)


def _bar(
    drawn: go.Figure,
    start: float,
    end: float,
    row: int,
    text: str,
    line: Mapping[str, Any],
    window: tuple[float, float],
) -> None:
    place = 1 - _BAR / _height(drawn) * (row + 0.8)
    drawn.add_shape(type="line", x0=start, x1=end, y0=place, y1=place, yref="paper", line=dict(line))
    edge = 0.1 * (window[1] - window[0])
    middle = min(max((start + end) / 2, window[0] + edge), window[1] - edge)
    font = {"size": 11, "color": line["color"]}
    drawn.add_annotation(x=middle, y=place, yref="paper", yanchor="bottom", text=text, showarrow=False, font=font)


def _add_edges(drawn: go.Figure, intervals: Sequence[Interval]) -> None:
    """Mark the start and end of each interval of the event in all rows of a figure."""
    line = {"color": theme.INK.light, "width": 1, "dash": "dot"}
    for time in sorted({time for each in intervals for time in (each.start, each.end)}):
        drawn.add_shape(type="line", x0=time, x1=time, y0=0, y1=1, xref="x", yref="paper", line=line)


def _add_values(drawn: go.Figure, figure: RunFigure, window: tuple[float, float]) -> None:
    """Add a line for each published value of the vertical axis."""
    shown = [each for each in figure.published if not each.is_interval]
    for each, value in zip(shown, _axis_values(drawn, figure), strict=True):
        name = f"published: {each.name}, {each.text}"
        style = {"color": theme.MUTED.light, "width": 1.5, "dash": "dash"}
        line = go.Scatter(x=list(window), y=[value] * 2, mode="lines", name=name, line=style, hoverinfo="name")
        drawn.add_trace(line).update_layout(showlegend=True)
