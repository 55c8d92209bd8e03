"""`airpath export`: writes a result in the formats of other programs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from airpath.cli.messages import Problem, check_outputs, explained, writing


def export(
    result: Annotated[Path, typer.Argument(metavar="DIR", help="A result folder, as `run --out` writes it.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="PATH", help="The folder for the CSV files, or the file of the other formats."
        ),
    ],
    format: Annotated[
        Literal["csv", "perfetto", "har", "qlog"],
        typer.Option(
            help="A CSV file for each table, or one repetition as a trace for Perfetto, its pages as HAR or its "
            "connections as qlog."
        ),
    ] = "csv",
    repetition: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="The repetition, from 0; by default the median one, of HAR the first.",
        ),
    ] = None,
) -> None:
    """Write a result as CSV tables, as a trace, its web pages as HAR, or its connections as qlog.

    A trace is for ui.perfetto.dev and chrome://tracing, qlog for qvis.

    In the trace, each mobile has its radio log as tracks (mode, cell, scheme, links) and counters
    (C/I, slots), each hop counters of the queued bytes and its losses, each flow its windows.

    The paths of the files go to standard output.

    \b
    Examples:
      airpath export runs/one --format csv -o tables
      airpath export runs/one --format perfetto -o trace.json
      airpath export runs/one --format har -o pages.har
      airpath export runs/one --format qlog -o run.qlog
    """
    from airpath import export as exports
    from airpath import load

    if repetition is not None and format == "csv":
        raise Problem(
            "--repetition needs --format perfetto, har or qlog: CSV files have all repetitions",
            next_step="remove it, or add --format perfetto",
        )
    if (result / "sweep.json").is_file():
        raise Problem(f"{result} is a sweep", next_step=f"its rows are Parquet files: {result}/flows/*.parquet")
    with explained():
        check_outputs(*([out] if format != "csv" else []), folders=[out] if format == "csv" else [])
        loaded = load(result)
        if repetition is not None and repetition >= loaded.repetitions.height:
            raise Problem(
                f"{result} has no repetition {repetition}; it has {loaded.repetitions.height}",
                next_step="repetitions count from 0",
            )
        with writing(out):
            match format:
                case "csv":
                    files = exports.csv(loaded, out)
                case "perfetto":
                    files = [exports.perfetto(loaded, out, repetition=repetition)]
                case "har":
                    try:
                        files = [exports.har(loaded, out, repetition=repetition or 0)]
                    except exports.NoPagesError as error:
                        raise Problem(str(error)) from None
                case "qlog":
                    try:
                        files = [exports.qlog(loaded, out, repetition=repetition)]
                    except exports.NoConnectionsError as error:
                        raise Problem(str(error)) from None
    for file in files:
        typer.echo(file)
