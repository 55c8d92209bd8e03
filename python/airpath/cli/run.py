"""`airpath run`: runs a scenario file and prints its figures."""

import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from airpath.cli.command_for import command_for
from airpath.cli.completion import complete_override, complete_scenario
from airpath.cli.key_value import parse_pairs
from airpath.cli.messages import (
    Problem,
    check_outputs,
    check_report_file,
    check_report_name,
    cleanly_ended,
    explained,
    interrupted_by_signals,
    note,
    replacing_result,
    writing,
)
from airpath.cli.options import Capture, NoLog, Out, Overrides, Quiet, Seed
from airpath.cli.proxy_option import Proxy, proxy_override
from airpath.input_kind import is_capture, kind_of_folder
from airpath.result import Result

Format = Literal["text", "json", "jsonl", "csv"]


def run(
    context: typer.Context,
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO.toml|PRESET|FOLDER",
            help="The scenario file; a preset of a bearer: a download of 100 kB on it; or a result to repeat.",
            autocompletion=complete_scenario,
        ),
    ],
    set: Overrides = None,
    seed: Seed = None,
    proxy: Proxy = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Repetitions, in parallel on the cores; by default 1, or as many as the result has.",
        ),
    ] = None,
    out: Out = None,
    capture: Capture = False,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K=A,B,...",
            help="Run all combinations of these values, and print their means; repeatable.",
            autocompletion=complete_override,
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report of the result, too: one HTML file.")
    ] = None,
    format: Annotated[
        Format,
        typer.Option(
            help="On standard output: a table, the summary as JSON, JSON lines of flows and links, or the flows as CSV."
        ),
    ] = "text",
    no_log: NoLog = False,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Parallel repetitions; by default the number of cores. It does not change results."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run a scenario in virtual time and print its figures.

    \b
    Examples:
      airpath run gprs
      airpath run examples/hs-dsch.toml
      airpath run examples/hs-dsch.toml --set bearer.downlink.bler=0.1 --repeat 30
      airpath run examples/hs-dsch.toml --out runs/one --capture
      airpath run examples/hs-dsch.toml --vary bearer.bler=0.01,0.1 --repeat 20
      airpath run gprs --report report.html
      airpath run examples/short-transfers.toml --proxy
      airpath run examples/shared-cell.toml --format csv > flows.csv

    \b
    Exit codes:
      0    done; aborted or unfinished flows are a result, not a failure
      1    the run stopped on an error
      2    bad usage or scenario; nothing was run
      3    the result could not be written in full; the written part is kept
      130  interrupted by Ctrl-C or SIGTERM; the result so far is printed and kept, marked as
           partial
    """
    from airpath.cli.output import print_start, print_summary
    from airpath.cli.progress import progress_bar
    from airpath.cli.run_vary import check_set_once, run_vary, values_of
    from airpath.cli.scenario_notes import note_without_effect
    from airpath.cli.warnings import warn_about
    from airpath.result_folder import written_to
    from airpath.run import execute_to_json, resolve
    from airpath.scenario import repetitions_of

    if capture and out is None:
        raise Problem("--capture needs a result folder", next_step="add --out DIR")
    if vary and (capture or report):
        raise Problem("--vary keeps rows only", next_step="run one case with --capture or --report")
    _check_report(report, out)
    overrides = proxy_override(proxy) | parse_pairs("--set", set or [], example="bearer.downlink.bler=0.1")
    with explained(overrides):
        if "://" in scenario:
            raise Problem(f"{scenario} is a URL, not a file", next_step=_next_step_of_url(scenario))
        source = _scenario(Path(scenario))
        repeat = repeat or repetitions_of(scenario)
        if vary:
            values = values_of(vary)
            check_set_once(values, overrides)
            raise typer.Exit(
                run_vary(
                    source,
                    values,
                    overrides=overrides,
                    seed=seed,
                    repeat=repeat,
                    out=out,
                    threads=threads,
                    format=format,
                )
            )
        if format == "jsonl":
            print_start(resolve(source, set=overrides), seed, repeat)
    with ExitStack() as stack:
        folder, temporary = out, None
        if report is not None and out is None:
            stack.enter_context(cleanly_ended())
            temporary = tempfile.TemporaryDirectory(prefix="airpath-")
            folder = Path(stack.enter_context(temporary))
        with (
            explained(overrides),
            interrupted_by_signals(),
            replacing_result(out),
            progress_bar(Path(scenario).name) as progress,
        ):
            summary, outcomes = execute_to_json(
                source,
                set=overrides,
                seed=seed,
                repeat=repeat,
                out=folder,
                capture=capture,
                log=not no_log,
                threads=threads,
                progress=progress,
            )
        # Before the report: an error of it must not lose the figures.
        if format == "json":
            # As it is: to print a large summary in pieces takes longer than the run, and copies of
            # it take time too.
            typer.echo(summary, nl=False)
            typer.echo()
        else:
            print_summary(json.loads(summary), format)
        if report is not None:
            assert folder is not None
            sys.stdout.flush()
            with explained():
                write_report(Result(written_to(folder), _temporary=temporary), report, context.obj or ())
    found = json.loads(outcomes)
    note_without_effect(source, overrides, found["ends_s"] if found["complete"] else [])
    raise typer.Exit(warn_about(found, out and written_to(out)))


def write_report(result: Result, report: Path, words: Sequence[str]) -> None:
    """Write the report of a result; of a temporary one with this command line as its command."""
    from airpath.report import write

    command = shlex.join(["airpath", *words]) if result.is_temporary else None
    with writing(report):
        write([result], report, command=command)
    note(f"the report is in {report}")


def _check_report(report: Path | None, out: Path | None) -> None:
    """Check that the report can be written, also into a result folder that the run creates."""
    if report is None:
        return
    check_report_name(report, out)
    check_report_file(report, "`--format csv > FILE` writes the flows as a table")
    if out is not None and not out.exists() and report.resolve().parent == out.resolve():
        check_outputs(folders=[out])
    else:
        check_outputs(report)


def _next_step_of_url(url: str) -> str:
    """Return what to do with a URL: save the scenario, or load the page."""
    quoted = shlex.quote(url)
    if url.endswith(".toml"):
        return f"`curl -O {quoted}` saves it"
    return f"`airpath page load {quoted} --link 3g --out DIR` loads a page; save a scenario as a file first"


def _scenario(scenario: Path) -> Path | dict[str, Any]:
    """Return the path of the scenario, or a scenario with the preset of this name."""
    from airpath import ScenarioError
    from airpath.scenario import bearer_preset, download_over, is_plan, next_step_without, scenario_of_result

    if scenario.is_file():
        if scenario.name == "summary.json":
            folder = shlex.quote(str(scenario.parent))
            raise Problem(f"{scenario} is the summary of a result", next_step=f"`airpath run {folder}` repeats its run")
        if is_plan(scenario):
            raise Problem(f"{scenario} is a plan of a sweep", next_step=f"`{command_for(str(scenario))}`")
        if is_capture(scenario):
            raise Problem(f"{scenario} is a capture, not a scenario", next_step=f"`{command_for(str(scenario))}`")
        return scenario
    if (repeated := scenario_of_result(scenario)) is not None:
        return repeated
    try:
        preset = bearer_preset(scenario)
    except ScenarioError as error:
        raise Problem(str(error), next_step="`airpath presets list` shows them") from None
    if preset:
        return download_over(preset)
    if scenario.is_dir():
        if (kind := kind_of_folder(scenario)) is not None:
            raise Problem(f"{scenario} is {kind[0]}, not a scenario", next_step=kind[1])
        raise Problem(f"{scenario} is a folder, not a scenario", next_step="select a TOML file in it")
    if scenario.exists():
        raise Problem(f"{scenario} is no file but a pipe or a device", next_step="save the scenario as a file")
    raise Problem(f"no scenario file '{scenario}'", next_step=next_step_without(scenario))
