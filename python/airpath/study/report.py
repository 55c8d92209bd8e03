"""The report of a study.

Published values beside ours, row by row, and whether its findings hold.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import Any

from airpath.files import write_text
from airpath.plot import ENOUGH
from airpath.report.figures import Figure, Missing, figure
from airpath.report.page import render
from airpath.report.tables import Cell, Table
from airpath.study.choices import choices
from airpath.study.figures import case_words, draw, with_unit
from airpath.study.published_figures import PublishedFigure
from airpath.study.published_figures import draw as draw_published
from airpath.study.run_figure import RunFigure
from airpath.study.run_figure import draw as draw_run
from airpath.study.tolerance import yes_or_no


@dataclass(frozen=True)
class Experiment:
    """An experiment as the page shows it."""

    name: str
    text: str
    figures: list[Figure]
    table: Table


@dataclass(frozen=True)
class Details:
    """What a study has besides the rows of its JSON form."""

    title: str
    texts: Mapping[str, str]
    """The text of each experiment, by its name."""
    agrees: Sequence[bool | None]
    """Of each row, whether it agrees; `None` where nothing was published or the tolerance is
    unknown."""
    figures: Sequence[PublishedFigure] = ()
    """The figures of the study's text."""
    run_figures: Sequence[RunFigure] = ()
    """Those of its figures that show one run, which is simulated."""


def write(data: Mapping[str, Any], out: Path, *, details: Details | None = None, command: str | None = None) -> Path:
    """Write the report of a study.

    Args:
        data: The study's result in its JSON form, as `StudyResult.to_dict` returns it.
        out: The HTML file.
        details: What the JSON form lacks; without it the report has no texts and judges by our
            intervals.
        command: The command that makes the report again; by default `airpath study run` with the
            same seed.

    Returns:
        `out`.

    Raises:
        OSError: The file cannot be written.
    """
    write_text(out, page(data, out, details=details, command=command))
    return out


def page(data: Mapping[str, Any], out: Path, *, details: Details | None = None, command: str | None = None) -> str:
    """Return the report as HTML; the arguments are those of `write`."""
    details = details or Details(data["study"], {}, [None] * len(data["rows"]))
    names = list(dict.fromkeys(row["experiment"] for row in data["rows"]))
    held = [finding["holds"] for finding in data["findings"]]
    words = ["airpath", "study", "run", data["study"], "--seed", str(data["seed"]), "--report", str(out)]
    text_figures = _published_figures(data, details)
    return render(
        "study.html.j2",
        title=details.title,
        study=data,
        verdict=_verdict(data, details.agrees),
        proviso=_proviso(data["rows"]),
        held=f"{sum(held)} of {len(held)} findings hold" if held else "",
        figures=[each for each in text_figures if isinstance(each, Figure)],
        missing=[each for each in text_figures if isinstance(each, Missing)],
        experiments=[_experiment(name, data, details) for name in names],
        choices=choices(data["study"]),
        commands=[command or shlex.join(words)],
    )


def _verdict(data: Mapping[str, Any], agrees: Sequence[bool | None]) -> str:
    published = [row for row in data["rows"] if row["published"] is not None]
    if not published:
        return f"{len(data['rows'])} figures; the study published none of them."
    judged = [each for each in agrees if each is not None]
    if judged:
        return f"{sum(judged)} of {len(judged)} published figures agree within the study's tolerances."
    within = sum(row["low"] <= row["published"] <= row["high"] for row in published)
    return f"{within} of {len(published)} published figures lie within the 95 % interval of ours."


def _proviso(rows: Sequence[Mapping[str, Any]]) -> str:
    # Rows without any scatter are the same with more repetitions.
    fewest = min((row["n"] for row in rows if row["low"] < row["high"]), default=ENOUGH)
    return f"n = {fewest} is too small for firm intervals." if fewest < ENOUGH else ""


def _published_figures(data: Mapping[str, Any], details: Details) -> list[Figure | Missing]:
    """Return the figures of the text by number, without those of experiments that were not run."""
    names = {row["experiment"] for row in data["rows"]}
    of_rows = [each for each in details.figures if names.issuperset(each.experiments)]
    of_runs = [each for each in details.run_figures if names.issuperset(each.experiments)]
    drawn = [
        (each.label, figure(lambda each=each: draw_published(each, each.rows(data["rows"])), each.label))
        for each in of_rows
    ]
    # Figures of the same part of the same run share their axis of time.
    axes: dict[object, str] = {}
    for each in of_runs:
        axis = each.time_axis
        group = "" if axis is None else axes.setdefault(axis, each.label.lower().replace(" ", "-"))
        make = lambda each=each: draw_run(each, data["seed"])  # noqa: E731
        drawn.append((each.label, figure(make, each.label, time=axis is not None, group=group)))
    return [each for _, each in sorted(drawn, key=lambda labelled: _place(labelled[0]))]


def _place(label: str) -> tuple[int, str]:
    """Return the number in the label of a figure, such as 10 in `Figure 10 a`, and the label."""
    return int(next(iter(re.findall(r"\d+", label)), 0)), label


def _experiment(name: str, data: Mapping[str, Any], details: Details) -> Experiment:
    rows = [(row, agree) for row, agree in zip(data["rows"], details.agrees, strict=True) if row["experiment"] == name]
    metrics = dict.fromkeys(row["metric"] for row, _ in rows)
    drawn = [figure(lambda metric=metric: draw(data, name, metric), metric) for metric in metrics]
    return Experiment(
        name, details.texts.get(name, ""), [each for each in drawn if isinstance(each, Figure)], _table(rows)
    )


def _table(rows: Sequence[tuple[Mapping[str, Any], bool | None]]) -> Table:
    judged = any(agree is not None for _, agree in rows)
    head = ["case", "figure", "published", "ours", "95 % interval", "difference", "n", *(["agrees"] if judged else [])]
    cells = []
    for row, agree in rows:
        published = row["published"]
        verdict = {None: Cell("–"), True: Cell("✓ yes", tone="good"), False: Cell("✗ no", tone="bad")}[agree]
        cells.append(
            [
                Cell(case_words(row), number=False),
                Cell(with_unit(row["metric"], row["unit"]), number=False),
                Cell(_published(row)),
                Cell(_ours(row)),
                Cell(f"{_figure(row['low'], row)} to {_figure(row['high'], row)}"),
                Cell("–") if published is None else _difference(row, published),
                Cell(f"{row['n']:,}"),
                *([verdict] if judged else []),
            ]
        )
    caption = "The interval is that of the mean of n repetitions; the difference is ours minus published."
    return Table("Row by row", caption, head, cells)


def _published(row: Mapping[str, Any]) -> str:
    """Return the published figure as text: a number, a range, a mean with its spread, an answer."""
    if "threshold" in row:
        answer = {None: "–", True: "yes", False: "no"}[row["published_property"]]
        return f"{answer} (yes: {row['threshold']})"
    if "published_range" in row:
        low, high = row["published_range"]
        return f"{low:g} to {high:g}"
    if "published_deviation" in row:
        return f"{row['published']:g} ± {row['published_deviation']:g}"
    return "–" if row["published"] is None else f"{row['published']:g}"


def _ours(row: Mapping[str, Any]) -> str:
    figure = _figure(row["ours"], row)
    return f"{yes_or_no(row['property'])}, {figure}" if "threshold" in row else figure


def _difference(row: Mapping[str, Any], published: float) -> Cell:
    apart = row["ours"] - published
    sign = "+" if apart > 0 else "−" if apart < 0 else "±"
    relative = f"{sign}{abs(apart / published) * 100:.1f} %" if published else ""
    return Cell(f"{sign}{_figure(abs(apart), row)}", relative)


def _figure(value: float, row: Mapping[str, Any]) -> str:
    """Return a value with the decimals that give our figure of this row four significant digits."""
    decimals = 3 - floor(log10(abs(row["ours"]))) if row["ours"] else 3
    return f"{value:,.{max(decimals, 0)}f}".replace("-", "−")
