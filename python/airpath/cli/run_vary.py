"""`airpath run --vary K=A,B`: all combinations of some values, as a sweep without a plan file."""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import typer

from airpath.cli.key_value import parse_pairs
from airpath.cli.messages import ExitCode, Problem, cleanly_ended, is_quiet, note
from airpath.cli.scenario_notes import note_without_effect_in_sweep
from airpath.cli.sweep_output import interrupted, print_end, print_means, print_rows, warn_about_failures
from airpath.cli.tasks import explained_tasks
from airpath.run import MAX_SEED

Value = bool | int | float | str
Values = Mapping[str, Sequence[Value]]
_EXAMPLE = "--vary bearer.downlink.bler=0.01,0.1"
_INTERVAL = re.compile(r"[-+]?[\d.]+(:[-+]?[\d.]+){1,2}")
"""An interval as other programs write it: `0.1:0.5`, `0:100:10`."""


def values_of(options: Sequence[str]) -> Values:
    """Parse the values of `--vary`: numbers and truth values as in TOML, other values as text.

    Raises:
        Problem: A value is empty, or a key is repeated.
    """
    values: dict[str, list[Value]] = {}
    for option in options:
        [(key, text)] = parse_pairs("--vary", [option], example=_EXAMPLE.removeprefix("--vary ")).items()
        if key in values:
            raise Problem(f"--vary {key}: given twice", next_step=f"give all its values at once, as in {_EXAMPLE}")
        pieces = [each.strip() for each in split_values(text)]
        if intervals := [each for each in pieces if _INTERVAL.fullmatch(each)]:
            low, high = intervals[0].split(":")[:2]
            raise Problem(
                f"--vary {key}: {intervals[0]} is not a value",
                next_step=f"write the values with commas, as in {_EXAMPLE}; for an interval write a plan for "
                f"`airpath sweep` with {key} = {{ from = {low}, to = {high}, number = 5 }}",
            )
        values[key] = [_value(each) for each in pieces]
    return values


def check_set_once(values: Values, overrides: Mapping[str, str]) -> None:
    """Check that no key of `--vary` has an override, too.

    Raises:
        Problem: One has.
    """
    if twice := [key for key in values if key in overrides]:
        raise Problem(f"--set {twice[0]}: --vary sets it, too", next_step="remove one of them")


def split_values(text: str) -> list[str]:
    """Split at commas that are not inside quotes or brackets.

    Quotes and brackets count at the start of a value only, and inside brackets.

    Raises:
        Problem: A quote or a bracket is not closed.
    """
    pieces, quote, depth, escaped = [""], "", 0, False
    for character in text:
        starts = depth > 0 or not pieces[-1].strip()
        if character == "," and not quote and not depth:
            pieces.append("")
            continue
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\" and quote == '"'
            quote = "" if character == quote else quote
        elif character in "\"'" and starts:
            quote = character
        elif character in "[{" and starts:
            depth += 1
        elif character in "]}" and depth:
            depth -= 1
        pieces[-1] += character
    if quote or depth:
        raise Problem(f"--vary: {quote or 'a bracket'} is not closed in {text}", next_step="close it")
    return pieces


def run_vary(
    scenario: str | Path | Mapping[str, Any],
    vary: Values,
    *,
    overrides: Mapping[str, str],
    seed: int | None,
    repeat: int,
    out: Path | None,
    threads: int | None,
    format: str,
) -> ExitCode:
    """Run all combinations, and print the means of the cases or the rows of all flows."""
    from airpath.simulate import run_plan
    from airpath.sweep import make_plan
    from airpath.sweep.progress import sweep_progress
    from airpath.sweep.shortcomings import shortcomings

    with explained_tasks(out), cleanly_ended():
        plan = make_plan(scenario, vary, set=overrides, seed=seed, repeat=repeat)
        title = Path(plan.file).name
        with nullcontext() if is_quiet() else sweep_progress(title) as progress:
            try:
                rows = print_rows if format == "jsonl" else None
                result = run_plan(plan, out=out, threads=threads, progress=progress or False, on_rows=rows)
            except KeyboardInterrupt:
                raise interrupted(out) from None
    match format:
        case "csv":
            typer.echo(result.flows.write_csv(), nl=False)
        case "jsonl":
            print_end(result)
        case _:
            print_means(result, None, format)
    if out is not None:
        note(f"the rows are in {out}; `airpath report {out} -o report.html` draws them")
    for text in shortcomings(result):
        note(text)
    note_without_effect_in_sweep(plan, result.ends)
    return warn_about_failures(result)


def _value(text: str) -> Value:
    """Parse a value as TOML; others than numbers, truth values and strings stay text."""
    if not text:
        raise Problem("--vary: a value is empty", next_step=f"write it as in {_EXAMPLE}")
    try:
        parsed = tomllib.loads(f"v = {text}")
    except (ValueError, RecursionError):
        return text
    match parsed.pop("v") if len(parsed) == 1 else None:
        case bool() as value:
            return value
        case int() as value if abs(value) <= MAX_SEED:
            return value
        case float() as value if math.isfinite(value):
            return value
        # An override is parsed as TOML: a string that looks like a number keeps its quotes.
        case str() as value if value.strip() == value != "" and _value(value) == value:
            return value
        case _:
            return text
