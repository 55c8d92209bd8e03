"""`airpath sweep`: runs a plan of many scenarios."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from airpath.cli.command_for import command_for
from airpath.cli.messages import Problem, cleanly_ended, explained, is_quiet, note
from airpath.cli.options import Quiet
from airpath.cli.scenario_notes import note_without_effect_in_sweep
from airpath.cli.sweep_output import (
    interrupted,
    print_end,
    print_means,
    print_rows,
    warn_about_failures,
)
from airpath.input_kind import is_capture
from airpath.suggest import did_you_mean

if TYPE_CHECKING:
    from airpath.sweep import Estimate, Plan


def sweep(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN.toml|DIR", help="The plan: scenario, axes, repetitions; or the folder of a sweep."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The folder of the rows; a sweep that ended early continues."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Run up to five cases, and estimate the time of all.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Parallel tasks; by default the number of cores, of links 1.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER", help="Run on Dask: an address, `local`, `slurm` or `kubernetes`."),
    ] = None,
    figure: Annotated[
        str | None, typer.Option(metavar="NAME", help="The figure of the printed means; by default the main one.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run tasks again in which something failed.")] = False,
    format: Annotated[
        Literal["text", "json", "jsonl", "csv"],
        typer.Option(help="On standard output: means of the cases; with jsonl each row when its task is finished."),
    ] = "text",
    quiet: Quiet = False,
) -> None:
    """Run a scenario with many settings, and keep one table of all flows.

    \b
    Examples:
      airpath sweep examples/plans/errors.toml --out runs/sweep
      airpath sweep examples/plans/errors.toml --dry-run
      airpath sweep runs/sweep --out runs/again
      airpath sweep plan.toml --out runs/sweep --dask tcp://scheduler:8786
      airpath sweep plan.toml --out runs/sweep --format jsonl | jq .throughput_bps
      duckdb -c "select * from 'runs/sweep/flows/*.parquet'"

    \b
    Exit codes:
      0    done
      1    done, but some runs failed; their errors are in DIR/failed; or the cluster ended, and the
           same command continues
      2    bad usage, plan or folder; nothing was run
      3    the rows could not be written; the same command continues
      130  interrupted by Ctrl-C; the same command continues
    """
    from airpath.cli.tasks import explained_tasks
    from airpath.sweep import estimate, read_plan
    from airpath.sweep import sweep as run_sweep
    from airpath.sweep.clusters import executor_of
    from airpath.sweep.folder import SweepFolder
    from airpath.sweep.progress import sweep_progress
    from airpath.sweep.shortcomings import shortcomings

    if out is None and not dry_run and SweepFolder(plan).holds_plan():
        out = plan
    if out is None and not dry_run:
        raise Problem("a sweep needs a folder for its rows", next_step="add --out DIR, or --dry-run")
    unused = {"--out": out is not None, "--retry": retry, "--figure": figure is not None, "--format": format != "text"}
    if dry_run and (option := next((name for name, is_given in unused.items() if is_given), None)):
        raise Problem(f"--dry-run keeps and prints no rows: {option} has no effect", next_step=f"remove {option}")
    if dry_run and dask is not None:
        raise Problem("--dry-run measures on this machine, not on a cluster", next_step="remove --dask or --dry-run")
    if plan.is_file() and is_capture(plan):
        raise Problem(f"{plan} is a capture, not a plan", next_step=f"`{command_for(str(plan))}`")
    with explained(), explained_tasks(out), cleanly_ended():
        read = read_plan(plan)
        _check_figure(figure, read)
        _note_page(read)
        if dry_run:
            typer.echo(_estimated(estimate(read, workers)))
            return
        assert out is not None
        shown = nullcontext() if is_quiet() else sweep_progress(plan.name)
        try:
            with executor_of(dask, workers) as (executor, slots), shown as progress:
                result = run_sweep(
                    read,
                    out=out,
                    executor=executor,
                    workers=slots,
                    retry=retry,
                    progress=progress,
                    on_rows=print_rows if format == "jsonl" else None,
                )
        except KeyboardInterrupt:
            raise interrupted(out) from None
    if format == "jsonl":
        print_end(result)
    else:
        print_means(result, figure, format)
    for text in shortcomings(result):
        note(text)
    note_without_effect_in_sweep(read, result.ends)
    raise typer.Exit(warn_about_failures(result))


def _check_figure(figure: str | None, plan: "Plan") -> None:
    from airpath.sweep.work import figures

    known = figures(plan.work)
    if figure is not None and figure not in known:
        hint = did_you_mean(figure, known) or "; docs/result-folder.md lists the columns of flows"
        raise Problem(f"--figure: no figure '{figure}'{hint}")


def _note_page(plan: "Plan") -> None:
    """Print a note if a plan loads the description of a recorded site and not its contents."""
    from airpath.sweep.kinds import PageLoad

    if isinstance(plan.work, PageLoad) and (folder := plan.work.unused_recording) is not None:
        note(
            f"{plan.work.page}: contents of the same sizes are loaded, which paint at other times than the recorded "
            f"ones; page.name = {json.dumps(str(folder))} loads the recorded site"
        )


def _estimated(found: "Estimate") -> str:
    """Return the text of an estimate."""
    from airpath.quantities import span

    runs, time = f"{found.runs:,} runs", span(found.seconds(found.runs))
    if found.fewest < found.runs:
        runs = f"{found.fewest:,} to {runs}"
        time = f"{span(found.seconds(found.fewest))} to {time}"
    measured = f"one of {found.measured} cases took" if found.measured > 1 else "one took"
    return (
        f"{found.cases:,} cases, {runs}; {measured} {found.seconds_per_run * 1e3:.3g} ms, "
        f"all about {time} with {found.workers} at the same time"
    )
