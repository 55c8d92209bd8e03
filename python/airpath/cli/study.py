"""`airpath study`: repeats published studies and prints their figures beside ours."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from airpath.cli.messages import (
    ExitCode,
    Problem,
    check_outputs,
    check_report_file,
    cleanly_ended,
    explained,
    help_without_command,
    interrupted_by_signals,
    note,
    writing,
)
from airpath.cli.options import Quiet
from airpath.run import MAX_SEED

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from airpath.study.result import StudyResult
    from airpath.study.rows import Row

app = typer.Typer(help="List and run published studies.", rich_markup_mode=None, invoke_without_command=True)
app.callback()(help_without_command)


def _complete(incomplete: str) -> list[str]:
    from airpath import study

    return [each.id for each in study.studies() if each.id.startswith(incomplete)]


@app.command("list")
def list_studies(
    format: Annotated[Literal["text", "json"], typer.Option(help="On standard output: a table, or JSON.")] = "text",
) -> None:
    """List the studies and their experiments.

    \b
    Examples:
      airpath study list
      airpath study list --format json
    """
    from airpath import study
    from airpath.cli.output import print_table

    found = study.studies()
    if format == "json":
        typer.echo(
            json.dumps(
                [{"id": each.id, "title": each.title, "experiments": list(each.experiment_names)} for each in found],
                indent=2,
            )
        )
    else:
        rows = [(each.id, each.title, ", ".join(each.experiment_names)) for each in found]
        print_table(("study", "what it is", "experiments"), rows)


@app.command("run")
def run_study(
    id: Annotated[str, typer.Argument(metavar="ID", help="The study.", autocompletion=_complete)],
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPERIMENT", help="Run only this experiment; several with commas or by repeating the option."
        ),
    ] = None,
    clock: Annotated[
        Literal["virtual", "real"],
        typer.Option(help="With `real`, also over emulated links with the kernel's TCP, in real time."),
    ] = "virtual",
    links: Annotated[
        int | None,
        typer.Option(min=1, max=64, metavar="N", help="With --clock real, the number of parallel links; by default 6."),
    ] = None,
    format: Annotated[
        Literal["text", "json", "jsonl", "markdown"],
        typer.Option(
            help="On standard output: tables; rows and findings as JSON, with jsonl when their experiment is complete; "
            "the tables of the study's README."
        ),
    ] = "text",
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, metavar="N", help="Random seed, in place of the study's.")
    ] = None,
    repeat: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Repetitions per row, in place of the study's numbers.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Keep the runs; a study that ended early continues."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER", help="Simulate on Dask: an address, `local`, `slurm` or `kubernetes`."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, metavar="N", help="With --dask, the number of workers.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report, too: one HTML file.")] = None,
    quiet: Quiet = False,
) -> None:
    """Run a study and print the published figures beside ours, with the 95 % interval of the mean.

    \b
    Examples:
      airpath study run hsdpa-sim
      airpath study run hsdpa-sim --only rtt
      airpath study run hsdpa-sim --out runs/hsdpa-sim --dask tcp://scheduler:8786
      airpath study run hsdpa-sim --clock real --only utilisation-20kB,utilisation-50kB
      airpath study run hsdpa-sim --format json > rows.json

    \b
    Exit codes:
      0    done, and every finding holds
      1    a finding does not hold, or a run of the study failed; or the cluster ended
      2    bad usage
      3    the runs or the report could not be written
      130  interrupted by Ctrl-C, or under the real clock by SIGTERM; the complete experiments are
           printed
    """
    from airpath import study
    from airpath.cli.output import console

    if clock == "real" and report is not None:
        raise Problem(
            "--report draws only simulated figures", next_step="remove --clock real, or use --format markdown"
        )
    if workers is not None and dask is None:
        raise Problem("--workers is for a cluster; here a study has all cores", next_step="add --dask, or remove it")
    if links is not None and clock != "real":
        raise Problem("--links is for emulated links", next_step="add --clock real, or remove it")
    check_report_file(report, "`--format json > FILE` writes the rows")
    check_outputs(report)
    names = None if only is None else [name for each in only for name in each.split(",")]
    with _running(id, clock=clock, out=out, dask=dask, workers=workers) as (executor, slots, progress):
        result = study.run(
            id,
            only=names,
            seed=seed,
            repeat=repeat,
            clock=clock,
            links=links or 6,
            out=out,
            executor=executor,
            workers=slots or 1,
            progress=progress,
            on_rows=_print_rows if format == "jsonl" else None,
        )
    match format:
        case "json":
            typer.echo(json.dumps(result.to_dict(), indent=2, ensure_ascii=False))
        case "jsonl":
            _print_end(result)
        case "markdown":
            typer.echo(result.render_markdown(), nl=False)
        case _:
            result.render_text(console())
    if report is not None:
        with writing(report):
            result.report(report)
        note(f"the report is in {report}")
    if not result.complete:
        note("interrupted: only the experiments that were complete are printed")
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(result.exit_code)


@app.command("report")
def report_study(
    id: Annotated[str, typer.Argument(metavar="ID", help="The study.", autocompletion=_complete)],
    output: Annotated[
        Path | None,
        typer.Option("--out", "--output", "-o", metavar="FILE", help="The report, one HTML file; by default ID.html."),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The runs that `study run --out` has kept; without it, all are simulated."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write the report of a study: each figure of its paper, ours over the published points.

    Findings that do not hold are in the report; they are no error here.

    \b
    Examples:
      airpath study report hsdpa-sim
      airpath study report hsdpa-sim --runs runs/hsdpa-sim --out hsdpa-sim.html

    \b
    Exit codes:
      0    the report is complete
      1    a run of the study failed
      2    bad usage
      3    the runs or the report could not be written
      130  interrupted by Ctrl-C
    """
    from airpath import study

    file = output or Path(f"{id}.html")
    check_report_file(file, "`airpath study run ID --format json > FILE` writes the rows")
    check_outputs(file)
    with _running(id, out=runs) as (_, _, progress):
        result = study.run(id, out=runs, progress=progress)
    if not result.complete:
        raise Problem("interrupted: there is no report", exit_code=ExitCode.INTERRUPTED)
    with writing(file):
        result.report(file)
    note(f"the report is in {file}")


@contextmanager
def _running(
    id: str,
    *,
    clock: str = "virtual",
    out: Path | None = None,
    dask: str | None = None,
    workers: int | None = None,
) -> "Iterator[tuple[Executor | None, int | None, Callable[[int, int], None] | None]]":
    """Yield an executor, its workers and a progress bar; explain the errors of a study."""
    from airpath import study
    from airpath.cli.progress import progress_bar
    from airpath.cli.tasks import explained_tasks
    from airpath.sweep.clusters import executor_of

    try:
        with (
            explained(),
            explained_tasks(out),
            cleanly_ended() if clock == "virtual" else interrupted_by_signals(),
            executor_of(dask, workers) as (executor, slots),
            progress_bar(id) as progress,
        ):
            yield executor, slots, progress
    except study.UnknownNameError as error:
        raise Problem(str(error), next_step="`airpath study list` shows the studies and their experiments") from None
    except study.StudyError as error:
        raise Problem(str(error), exit_code=ExitCode.FAILED) from None
    except KeyboardInterrupt:
        raise Problem("interrupted before an experiment was complete", exit_code=ExitCode.INTERRUPTED) from None


def _print_rows(rows: "Sequence[Row]") -> None:
    from airpath.cli.output import print_line
    from airpath.study.result import record_of

    for row in rows:
        print_line("row", record_of(row))


def _print_end(result: "StudyResult") -> None:
    from airpath.cli.output import print_line

    record = result.to_dict()
    for finding in record["findings"]:
        print_line("finding", finding)
    print_line("end", {key: record[key] for key in ("study", "seed", "version", "complete")})
