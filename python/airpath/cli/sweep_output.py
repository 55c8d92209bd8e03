"""Output of sweeps: `airpath sweep`, and `airpath run --vary`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from airpath.cli.messages import ExitCode, Problem, note
from airpath.quantities import number_of

if TYPE_CHECKING:
    import polars as pl

    from airpath.sweep import SweepResult

_MOST_ROWS = 100
_MOST_FLOWS = 10
"""Flows of more names than these have one mean."""


def print_means(result: "SweepResult", wanted: str | None, format: str) -> None:
    """Print the means of the cases.

    Args:
        result: The sweep.
        wanted: The figure; by default the first of the main ones that is present.
        format: `text`, `json` or `csv`.
    """
    from airpath.cli.output import print_table, print_text
    from airpath.sweep.report import main_figures

    found = main_figures(result)
    if wanted is None and not found:
        note("no run has a figure")
        return
    figure = wanted or found[0]
    flows = result.flow_names(figure)
    is_by_flow = 1 < len(flows) <= _MOST_FLOWS
    means = result.means_by_flow(figure) if is_by_flow else result.means(figure)
    match format:
        case "json":
            typer.echo(json.dumps(_named(means, figure).to_dicts(), indent=2))
        case "csv":
            typer.echo(_named(means, figure).write_csv(), nl=False)
        case _:
            shown = means.drop(result.number_axes).head(_MOST_ROWS)
            rows = [_mean_row([_cell(value) for value in row]) for row in shown.iter_rows()]
            head = ["case", *_short(result.axes), *(["flow"] if is_by_flow else []), figure, "95 % interval", "n"]
            print_table(head, rows, right=head[-3:])
            print_text(f"Means of {result.workload}.")
            if len(means) > _MOST_ROWS:
                note(f"the first {_MOST_ROWS} of {len(means)} rows; --format json prints all")
            if len(flows) > _MOST_FLOWS:
                note(f"means over {len(flows)} flows; --format csv of `airpath run --vary` has a row for each")


def print_rows(table: str, rows: list[dict[str, Any]]) -> None:
    """Print the rows of a table as lines of JSON."""
    from airpath.cli.output import print_line

    for row in rows:
        print_line(table.removesuffix("s"), row)


def print_end(result: "SweepResult") -> None:
    """Print the failures of a sweep and its end as lines of JSON."""
    from airpath.cli.output import print_line

    for each in result.failures:
        print_line("failure", each)
    print_line("end", {"complete": result.complete, "failed": sum(each["count"] for each in result.failures)})


def _named(means: "pl.DataFrame", figure: str) -> "pl.DataFrame":
    """Return the means with the name of their figure, which has the unit."""
    import polars as pl

    return means.insert_column(means.width - 4, pl.Series("figure", [figure] * means.height, dtype=pl.String))


def _short(axes: Sequence[str]) -> list[str]:
    """Return the last two parts of the paths of axes, if they differ: long heads widen a table.

    The number of a flow or mobile is no name, so three parts remain of `flow.0.bytes`.
    """
    parts = [axis.split(".") for axis in axes]
    names = [".".join(each[-3:] if each[-2:][0].isdigit() else each[-2:]) for each in parts]
    return names if len(set(names)) == len(names) else list(axes)


def _mean_row(cells: list[str]) -> list[str]:
    """Return a row with the interval of its mean as one cell."""
    *first, low, high, number = cells
    return [*first, f"{low} to {high}" if low else "", number]


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def interrupted(out: Path | None) -> Problem:
    """Return the problem of a sweep that Ctrl-C ended."""
    if out is None:
        return Problem(
            "interrupted; nothing is kept",
            next_step="add --out DIR, so that the same command continues",
            exit_code=ExitCode.INTERRUPTED,
        )
    return Problem(
        f"interrupted; finished tasks are kept in {out}",
        next_step="the same command continues",
        exit_code=ExitCode.INTERRUPTED,
    )


def warn_about_failures(result: "SweepResult") -> ExitCode:
    """Print a note about runs that failed; return the exit code."""
    if not result.failures:
        return ExitCode.OK
    failed = sum(each["count"] for each in result.failures)
    first = result.failures[0]
    runs = number_of(failed, "run")
    note(f"{runs} failed, the first one in case {first['case']}: {first['error']}; see {result.path / 'failed'}")
    return ExitCode.FAILED
