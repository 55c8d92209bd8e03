"""`airpath run --vary K=A,B`: all combinations of some values, as a sweep without a plan file."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import typer

from airpath.cli.key_value import parse_pairs
from airpath.cli.messages import ExitCode, Problem, cleanly_ended, is_quiet, note
from airpath.cli.sweep_output import interrupted, print_means, warn_about_failures
from airpath.cli.tasks import explained_tasks

Values = Mapping[str, Sequence[bool | int | float | str]]


def values_of(options: Sequence[str]) -> Values:
    """Parse the values of `--vary`: numbers and truth values as in TOML, other values as text."""
    parsed = parse_pairs("--vary", options, example="bearer.downlink.bler=0.01,0.1")
    return {key: [_value(each.strip()) for each in text.split(",")] for key, text in parsed.items()}


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

    with explained_tasks(out), cleanly_ended():
        plan = make_plan(scenario, vary, set=overrides, seed=seed, repeat=repeat)
        title = Path(plan.file).name
        with nullcontext() if is_quiet() else sweep_progress(title) as progress:
            try:
                result = run_plan(plan, out=out, threads=threads, progress=progress or False)
            except KeyboardInterrupt:
                raise interrupted(out) from None
    match format:
        case "csv":
            typer.echo(result.flows.write_csv(), nl=False)
        case "jsonl":
            for row in result.flows.iter_rows(named=True):
                typer.echo(json.dumps({"type": "flow"} | row, ensure_ascii=False))
        case _:
            print_means(result, None, format)
    if out is not None:
        note(f"the rows are in {out}; `airpath report {out} -o report.html` draws them")
    return warn_about_failures(result)


def _value(text: str) -> bool | int | float | str:
    if not text:
        raise Problem("--vary: a value is empty", next_step="write it as in --vary bearer.downlink.bler=0.01,0.1")
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text
