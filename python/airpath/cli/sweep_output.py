"""Output of sweeps: `airpath sweep`, and `airpath run --vary`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from airpath.cli.messages import ExitCode, Problem, note

if TYPE_CHECKING:
    from airpath.sweep import SweepResult

_MOST_ROWS = 100


def print_means(result: "SweepResult", wanted: str | None, format: str) -> None:
    """Print the means of the cases.

    Args:
        result: The sweep.
        wanted: The figure; by default the first of the main ones that is present.
        format: `text`, `json` or `csv`.
    """
    from airpath.cli.output import print_table
    from airpath.sweep.report import main_figures

    found = main_figures(result.present())
    if wanted is None and not found:
        note("no run has a figure")
        return
    figure = wanted or found[0]
    means = result.means(figure)
    match format:
        case "json":
            typer.echo(json.dumps(means.to_dicts(), indent=2))
        case "csv":
            typer.echo(means.write_csv(), nl=False)
        case _:
            rows = [[_cell(value) for value in row] for row in means.head(_MOST_ROWS).iter_rows()]
            head = ["case", *result.axes, figure, "95 % from", "to", "n"]
            print_table(head, rows)
            if len(means) > _MOST_ROWS:
                note(f"the first {_MOST_ROWS} of {len(means)} cases; --format csv prints all")


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
    note(f"{failed} runs failed, the first one in case {first['case']}: {first['error']}; see {result.path / 'failed'}")
    return ExitCode.FAILED
