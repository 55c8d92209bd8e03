"""Standard output: summaries of `airpath run` and `airpath measure` in each format, and tables."""

import csv
import json
import sys
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airpath.tables import flat_rows

if TYPE_CHECKING:
    from rich.console import Console


def print_summary(summary: dict[str, Any], format: str) -> None:
    """Print a summary in a format."""
    match format:
        case "json":
            # In one piece: `json.dump` writes a few bytes at a time.
            sys.stdout.write(json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
        case "jsonl":
            _print_lines(summary)
        case "csv":
            _print_csv(summary)
        case _:
            from airpath.cli.text import render

            render(summary, console())


def print_start(resolved: str, seed: int | None, repeat: int) -> None:
    """Print the line before a run: scenario, seed and repetitions."""
    scenario = tomllib.loads(resolved)
    seed = scenario["seed"] if seed is None else seed
    print_line("start", {"scenario": scenario["name"], "seed": seed, "repeat": repeat})


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    titles: Sequence[str] = (),
    *,
    right: Sequence[str] = (),
    brief: str | None = None,
) -> None:
    """Print a table of text.

    Args:
        head: The names of the columns.
        rows: The cells of each row.
        titles: The columns that identify a row.
        right: The columns that are aligned on the right.
        brief: A column of descriptions, which may be cut.
    """
    from airpath import terminal_table

    terminal_table.print_table(console(), head, rows, titles=titles, right=right, brief=brief)


def print_text(text: str) -> None:
    """Print a note below a table."""
    console().print(text, style="dim")


def console() -> "Console":
    """Return a rich console for standard output.

    Colours on a terminal only, NO_COLOR respected. In a file or a pipe it has the columns of the
    variable COLUMNS, or 80.
    """
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _print_lines(summary: dict[str, Any]) -> None:
    for name, table in (
        ("flow", "flows"),
        ("link", "links"),
        ("radio", "radio"),
        ("mobile", "mobiles"),
        ("page", "pages"),
        ("object", "objects"),
        ("repetition", "repetitions"),
    ):
        for record in summary.get(table, []):
            print_line(name, record)
    end = {name: summary[name] for name in ("schema", "airpath", "scenario", "seed", "complete", "stopped")}
    print_line("end", end)


def print_line(kind: str, record: dict[str, Any]) -> None:
    """Print a record as one line of JSON with its type."""
    sys.stdout.write(json.dumps({"type": kind} | record, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _print_csv(summary: dict[str, Any]) -> None:
    rows = flat_rows("flows", summary["flows"])
    if rows:
        writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
