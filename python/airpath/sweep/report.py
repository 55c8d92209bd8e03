"""The report of a sweep: heat maps, small multiples, effects of axes, and commands of the cases."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from airpath.files import write_text
from airpath.report.figures import Figure, figure
from airpath.report.page import render
from airpath.report.tables import Cell, Table
from airpath.sweep import figures
from airpath.sweep.result import SweepResult
from airpath.tables import MAIN_FIGURES

MOST_ROWS = 200
_MOST_FIGURES = 3


def write(result: SweepResult, out: Path, *, names: Sequence[str] | None = None) -> Path:
    """Write the report of a sweep.

    Args:
        result: The sweep.
        out: The HTML file.
        names: The figures, columns of flows; by default the first three of `MAIN_FIGURES` that
            the rows have.

    Raises:
        KeyError: The rows have no such figure.
        OSError: The file cannot be written.
    """
    columns = [name for name in result.flows.columns if result.flows[name].dtype.is_numeric()]
    present = [name for name in columns if result.flows[name].null_count() < result.flows.height]
    if names is None:
        names = [name for name in MAIN_FIGURES if name in present][:_MOST_FIGURES]
    for name in names:
        if name not in present:
            raise KeyError(name)
    again = commands(result)
    drawn = {name: _figures(result, name, again) for name in names}
    failed = sum(each["count"] for each in result.failures)
    counted = f"{len(result.plan['cases']):,} cases, {result.flows.height:,} rows"
    write_text(
        out,
        render(
            "sweep.html.j2",
            title=str(result.path),
            counted=counted + ("" if result.complete else "; the sweep is not complete"),
            failed=f"{failed:,} runs failed." if failed else "",
            figures=drawn,
            table_of_cases=_table(result, names),
            commands=[shlex.join(["airpath", "report", str(result.path), "-o", str(out)])],
        ),
    )
    return out


def _figures(result: SweepResult, name: str, again: dict[int, str]) -> list[Figure]:
    means, axes = result.means(name), _varying(result)
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
    plan, found = result.plan, {}
    link = plan["link"]
    for number, case in enumerate(plan["cases"]):
        words = ["airpath", "link" if link else "run", result.file]
        varied = zip(plan["columns"], case, strict=True)
        for key, value in [*plan["set"].items(), *((key, value) for key, value in varied if value is not None)]:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"{key}={text}"]
        words += ["--seed", str(plan["seed"]), "--out", str(result.path.with_name(f"{result.path.name}-{number}"))]
        words.append("--capture")
        if link:
            words += [*(["--serve", link["serve"]] if link["serve"] else []), "--", *link["command"]]
        found[number] = shlex.join(words)
    return found


def _table(result: SweepResult, names: Sequence[str]) -> Table:
    cases = result.cases.head(MOST_ROWS)
    means = {
        name: {row[0]: row[1:] for row in result.means(name).select("case", "mean", "low", "high").iter_rows()}
        for name in names
    }
    rows = []
    for number, *values in cases.iter_rows():
        cells = [Cell(str(number)), *(Cell("–" if value is None else str(value), number=False) for value in values)]
        for name in names:
            mean, low, high = means[name].get(number, (None, None, None))
            cells.append(
                Cell("–" if mean is None else f"{mean:.5g}", "" if low is None else f"{low:.5g} to {high:.5g}")
            )
        rows.append(cells)
    notes = [f"The first {MOST_ROWS} of {result.cases.height:,} cases."] if result.cases.height > MOST_ROWS else []
    return Table("Cases", "Means with their 95 % intervals.", ["case", *result.axes, *names], rows, notes)
