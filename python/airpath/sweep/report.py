"""The report of a sweep: heat maps, small multiples, effects of axes, and commands of the cases."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from airpath.files import write_text
from airpath.quantities import number_of
from airpath.report.figures import Figure, figure
from airpath.report.page import render
from airpath.report.tables import Cell, Table
from airpath.sweep import figures
from airpath.sweep.axis_names import words_of
from airpath.sweep.kinds import LinkCommand, PageLoad
from airpath.sweep.result import SweepResult
from airpath.sweep.shortcomings import shortcomings
from airpath.sweep.work import Work
from airpath.tables import MAIN_FIGURES, MAIN_PAGE_FIGURES

MOST_ROWS = 200
_MOST_FIGURES = 3
_MOST_FLOWS = 4
"""Flows of more names than these are drawn as their mean."""


def write(result: SweepResult, out: Path, *, names: Sequence[str] | None = None) -> Path:
    """Write the report of a sweep.

    Args:
        result: The sweep.
        out: The HTML file.
        names: The figures, columns of the tables; by default the first three main ones that the
            rows have.

    Raises:
        KeyError: The rows have no such figure.
        OSError: The file cannot be written.
    """
    present = result.present()
    options = [word for name in names or () for word in ("--figure", name)]
    if names is None:
        names = main_figures(result)[:_MOST_FIGURES]
    for name in names:
        if name not in present:
            raise KeyError(name)
    again = commands(result)
    shown = {label: (name, flow) for name in names for label, flow in _flows(result, name)}
    means = {label: result.means(name, flow=flow) for label, (name, flow) in shown.items()}
    drawn = {label: _figures(result, name, means[label], again) for label, (name, _) in shown.items()}
    failed = sum(each["count"] for each in result.failures)
    lacking = [*([f"{number_of(failed, 'run')} failed"] if failed else []), *shortcomings(result)]
    rows = result.scan(next(iter(result.work.tables()))).select(pl.len()).collect().item()
    counted = f"{result.workload}; {number_of(len(result.plan['cases']), 'case')}, {number_of(rows, 'row')}"
    write_text(
        out,
        render(
            "sweep.html.j2",
            title=str(result.path),
            counted=counted + ("" if result.complete else "; the sweep is not complete"),
            failed=" ".join(f"{text[:1].upper()}{text[1:]}." for text in lacking),
            figures=drawn,
            titles={
                label: figures.title_of(name) + (f" of {flow}" if flow else "") for label, (name, flow) in shown.items()
            },
            table_of_cases=_table(result, means),
            commands=[shlex.join(["airpath", "report", str(result.path), "-o", str(out), *options])],
        ),
    )
    return out


_OF_TRANSACTIONS = ("delay_p50_s", "delay_p95_s", "lost", "transactions_per_s")
"""The main figures of transactions. Their duration is set, or has the pauses between requests."""


def main_figures(result: SweepResult) -> list[str]:
    """Return the figures that are shown by default: those of pages first, of a study all."""
    present = result.present()
    known = _OF_TRANSACTIONS if _has_transactions_alone(result) else (*MAIN_PAGE_FIGURES, *MAIN_FIGURES)
    return [name for name in known if name in present] or present


def _has_transactions_alone(result: SweepResult) -> bool:
    """Return whether all flows are transactions."""
    if "flows" not in result.work.tables():
        return False
    kinds = result.scan("flows").select(pl.col("kind").unique()).collect()["kind"].to_list()
    return kinds == ["transactions"]


def _flows(result: SweepResult, name: str) -> list[tuple[str, str | None]]:
    """Return the flows with drawings of their own, each with its label; `None` is all flows."""
    flows = result.flow_names(name)
    if not 1 < len(flows) <= _MOST_FLOWS:
        return [(name, None)]
    return [(f"{flow}: {name}", flow) for flow in flows]


def _figures(result: SweepResult, name: str, means: pl.DataFrame, again: dict[int, str]) -> list[Figure]:
    means, axes = figures.join_confounded(means, _varying(result))
    made = [
        figure(lambda: figures.draw_map(means, axes, name, again), name),
        figure(lambda: figures.draw_lines(means, axes, name, again), name),
        figure(lambda: figures.draw_effects(means, axes, name), name),
    ]
    return [each for each in made if isinstance(each, Figure)]


def _varying(result: SweepResult) -> list[str]:
    return [axis for axis in result.axes if result.cases[axis].n_unique() > 1]


def commands(result: SweepResult) -> dict[int, str]:
    """Return the command that runs a case again with log and captures, by its number."""
    plan, work, found = result.plan, result.work, {}
    for number, case in enumerate(plan["cases"]):
        words = _command(work, result.scenario)
        varied = zip(plan["columns"], case, strict=True)
        keys = {key: value for key, value in varied if value is not None and key not in plan["labels"]}
        given = plan["given"][number] if plan["given"] else {}
        for key, value in {**given, **plan["set"], **keys}.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"{key}={text}"]
        words += ["--seed", str(plan["seed"]), "--out", str(result.path.with_name(f"{result.path.name}-{number}"))]
        if not isinstance(work, PageLoad):  # which always has captures
            words.append("--capture")
        if isinstance(work, LinkCommand):
            words += [*(["--serve", work.serve] if work.serve else []), "--", *work.command]
        found[number] = shlex.join(words)
    return found


def _command(work: Work, scenario: str) -> list[str]:
    """Return the command of a run without its settings."""
    match work:
        case LinkCommand():
            return ["airpath", "link", scenario]
        case PageLoad():
            options = ["--link", scenario, "--protocol", work.protocol]
            options += [] if work.compression else ["--no-compression"]
            options += ["--repeat-view"] if work.repeat_view else []
            return ["airpath", "page", "load", work.page, *options]
        case _:
            return ["airpath", "run", scenario]


def _table(result: SweepResult, means: Mapping[str, pl.DataFrame]) -> Table:
    cases = result.cases.drop(result.number_axes).head(MOST_ROWS)
    intervals = {
        name: {row[0]: row[1:] for row in each.select("case", "mean", "low", "high").iter_rows()}
        for name, each in means.items()
    }
    rows = []
    for number, *values in cases.iter_rows():
        cells = [Cell(str(number)), *(Cell("–" if value is None else str(value), number=False) for value in values)]
        for name in means:
            mean, low, high = intervals[name].get(number, (None, None, None))
            cells.append(
                Cell("–" if mean is None else f"{mean:.5g}", "" if low is None else f"{low:.5g} to {high:.5g}")
            )
        rows.append(cells)
    notes = [f"The first {MOST_ROWS} of {result.cases.height:,} cases."] if result.cases.height > MOST_ROWS else []
    return Table("Cases", "Means with their 95 % intervals.", ["case", *map(_titled, result.axes), *means], rows, notes)


def _titled(axis: str) -> str:
    """Return the name of an axis in words, with its key in the scenario."""
    words = words_of(axis)
    return axis if words == axis else f"{words} ({axis})"
