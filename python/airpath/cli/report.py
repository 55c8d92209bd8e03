"""`airpath report`: one HTML file out of any number of results."""

from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.command_for import command_for
from airpath.cli.label_option import Labels, check_labels, labelled
from airpath.cli.messages import Problem, check_outputs, check_report_file, check_report_name, explained, writing
from airpath.suggest import did_you_mean


def report(
    results: Annotated[list[Path], typer.Argument(metavar="DIR", help="Result folders, as `run --out` writes them.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The HTML file; by default report.html in the folder, of several in the working folder.",
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of a sweep: draw this column of flows; may be given many times."),
    ] = None,
    label: Labels = None,
    shared_library: Annotated[
        bool,
        typer.Option(
            "--shared-library", help="Put plotly.js in a file beside the report, for all reports of a folder."
        ),
    ] = False,
) -> None:
    """Draw results as one HTML file that works offline; several are compared on shared axes.

    The path of the file goes to standard output.

    \b
    Examples:
      airpath report runs/one
      airpath report runs/one -o report.html
      airpath report runs/hs-dsch runs/dch -o compared.html
      airpath report runs/cubic runs/reno --label CUBIC --label Reno -o compared.html
      airpath report runs/sweep -o sweep.html --figure duration_s
    """
    from airpath import load
    from airpath.report.page import move_library

    with explained():
        for each in results:
            if each.is_file():
                meant = command_for(str(each))
                next_step = "name the folder of a result" + (f", or `{meant}`" if meant else "")
                raise Problem(f"{each} is a file, not a result folder", next_step=next_step)
        named = results
        results = [folder for each in named for folder in repetitions_of(each)]
        if out is None and len(named) == 1 < len(results):
            out = named[0] / "report.html"
        if out is None:
            if not results[0].is_dir():
                load(results[0])  # the folder is missing, not its report
            out = (results[0] if len(results) == 1 else Path()) / "report.html"
        check_report_name(out)
        check_report_file(out, "`airpath export DIR --format csv -o TABLES` writes tables")
        check_outputs(out)
        if len(results) == 1 and (results[0] / "sweep.json").is_file():
            if label:
                raise Problem(f"{results[0]} is a sweep, and --label names runs", next_step="remove it")
            _report_sweep(results[0], out, figure)
        elif figure:
            raise Problem("--figure is for the folder of a sweep", next_step="remove it, or name one such folder")
        else:
            _report_runs(results, out, label)
        if shared_library:
            with writing(out):
                move_library(out)
    typer.echo(out)


def _report_runs(results: list[Path], out: Path, labels: list[str] | None) -> None:
    from airpath.report import write

    check_labels(labels, results)
    loaded = labelled(results, labels)  # names every unusable folder's fault before the drawing starts
    with writing(out):
        write(loaded, out)


def repetitions_of(folder: Path) -> list[Path]:
    """Return the results of `airpath link --repeat` in a folder; of another folder the folder."""
    from airpath.result import is_result

    if is_result(folder) or not folder.is_dir():
        return [folder]
    numbered = [each for each in folder.iterdir() if each.name.isdecimal() and is_result(each)]
    return sorted(numbered, key=lambda each: int(each.name)) or [folder]


def _report_sweep(folder: Path, out: Path, figures: list[str] | None) -> None:
    from airpath.sweep import SweepFolderError, SweepResult
    from airpath.sweep.report import write

    try:
        result = SweepResult(folder)
    except SweepFolderError as error:
        raise Problem(str(error)) from None
    with writing(out):
        try:
            write(result, out, names=figures)
        except KeyError as error:
            known = result.present()
            hint = did_you_mean(str(error.args[0]), known)
            raise Problem(f"the rows have no figure {error}{hint}", next_step=f"one of {', '.join(known)}") from None
