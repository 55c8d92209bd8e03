"""`airpath run`: runs a scenario file and prints its figures."""

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from airpath.cli.completion import complete_scenario
from airpath.cli.key_value import parse_pairs
from airpath.cli.messages import Problem, explained, replacing_result
from airpath.cli.options import Capture, NoLog, Out, Overrides, Seed
from airpath.cli.proxy_option import Proxy, proxy_override

Format = Literal["text", "json", "jsonl", "csv"]


def run(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO.toml|PRESET",
            help="The scenario file, or a preset of a bearer: a download of 100 kB on it.",
            autocompletion=complete_scenario,
        ),
    ],
    set: Overrides = None,
    seed: Seed = None,
    proxy: Proxy = None,
    repeat: Annotated[int, typer.Option(min=1, metavar="N", help="Repetitions, in parallel on the cores.")] = 1,
    out: Out = None,
    capture: Capture = False,
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
) -> None:
    """Run a scenario in virtual time and print its figures.

    \b
    Examples:
      airpath run gprs
      airpath run examples/hs-dsch.toml
      airpath run examples/hs-dsch.toml --set bearer.downlink.bler=0.1 --repeat 30
      airpath run examples/hs-dsch.toml --out runs/one --capture
      airpath run examples/short-transfers.toml --proxy
      airpath run examples/shared-cell.toml --format csv > flows.csv

    \b
    Exit codes:
      0    done; aborted or unfinished flows are a result, not a failure
      1    the run stopped on an error
      2    bad usage or scenario; nothing was run
      3    the result could not be written in full; the written part is kept
      130  interrupted by Ctrl-C; the result so far is printed and kept, marked as partial
    """
    from airpath.cli.output import print_start, print_summary
    from airpath.cli.progress import progress_bar
    from airpath.cli.warnings import warn_about
    from airpath.run import execute_to_text, resolve

    if capture and out is None:
        raise Problem("--capture needs a result folder", next_step="add --out DIR")
    overrides = proxy_override(proxy) | parse_pairs("--set", set or [], example="bearer.downlink.bler=0.1")
    with explained():
        source = _scenario(Path(scenario))
        if format == "jsonl":
            print_start(resolve(source, set=overrides), seed, repeat)
    with explained(), replacing_result(out), progress_bar(Path(scenario).name) as progress:
        text, outcomes = execute_to_text(
            source,
            set=overrides,
            seed=seed,
            repeat=repeat,
            out=out,
            capture=capture,
            log=not no_log,
            threads=threads,
            progress=progress,
        )
    if format == "json":
        typer.echo(text)  # as it is: printing a large summary in pieces takes longer than the run
    else:
        print_summary(json.loads(text), format)
    raise typer.Exit(warn_about(json.loads(outcomes), out))


def _scenario(scenario: Path) -> Path | dict[str, Any]:
    """Return the path of the scenario, or a scenario with the preset of this name."""
    if scenario.is_file():
        return scenario
    if scenario.is_dir():
        raise Problem(f"{scenario} is a folder, not a scenario", next_step="select a TOML file in it")
    from airpath.preset import download_over

    if preset := _preset_of(scenario):
        return download_over(preset)
    beside = {each.stem: each for each in scenario.parent.glob("*.toml")}
    match = get_close_matches(scenario.stem, beside, n=1)
    raise Problem(
        f"no scenario file '{scenario}'",
        next_step=f"did you mean '{beside[match[0]]}'?"
        if match
        else "check the path; examples/ has scenarios to start from",
    )


def _preset_of(scenario: Path) -> str | None:
    """Return the name of the bearer's preset that was given in place of a scenario file."""
    from airpath import ScenarioError
    from airpath.preset import preset

    if len(scenario.parts) != 1 or scenario.suffix:
        return None
    try:
        found = preset(scenario)
    except ScenarioError:
        return None
    if found.kind != "bearer":
        raise Problem(
            f"'{scenario}' is a preset of kind {found.kind}; a run needs one of a bearer",
            next_step="`airpath presets list` shows them",
        )
    return found.name
