"""`airpath trace`: what the TCP connections of a capture did, and where their time went."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from airpath.cli.words import ExitCode, Problem, explained, note

if TYPE_CHECKING:
    from airpath.trace import Trace

Format = Literal["text", "json", "jsonl", "csv", "parquet"]


def trace(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Captures in the order of their times (pcap or pcapng), - for standard input, or a result folder.",
        ),
    ],
    peer: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A capture of the same traffic at the other end.")
    ] = None,
    radio: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A radio log on the same clock: a CSV file, or a result folder."),
    ] = None,
    radio_columns: Annotated[
        str | None,
        typer.Option(
            metavar="K=V,...",
            help="Which columns of a CSV radio log hold what, as in 'begin=Time,name=State,silent=Idle|Reselection'.",
        ),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="SELECTOR",
            help="Which connections: a number (3), an address, a port (:443), or both (192.0.2.1:443).",
        ),
    ] = None,
    repetition: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="The repetition of a result folder, from 0; the median one if not given."
        ),
    ] = None,
    why: Annotated[
        bool,
        typer.Option("--why", help="List what each stretch of time is put down to; with jsonl, tell of the causes."),
    ] = False,
    format: Annotated[
        Format,
        typer.Option(
            help="On standard output: words, everything as JSON, a JSON line a connection as soon as it ends, or the "
            "connections as CSV or Parquet."
        ),
    ] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a report: one HTML file.")
    ] = None,
    in_full: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many connections the report draws in full, the longest first; 3 if not given."
        ),
    ] = None,
    xplot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write time–sequence plots for xplot, as tcptrace -S does.")
    ] = None,
    perfetto: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a trace for ui.perfetto.dev, JSON.")
    ] = None,
    har: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the exchanges of HTTP as an HTTP Archive (HAR).")
    ] = None,
) -> None:
    """Say where the time of each TCP connection of a capture went.

    One connection is told of on a page, several in a table: those first that lost most time, which is the time for
    which neither the path at its rate nor the applications account.

    \b
    Examples:
      airpath trace capture.pcapng
      airpath trace capture.pcapng --flow 3 --why
      airpath trace capture.pcapng -o report.html --in-full 5
      airpath trace sender.pcap --peer receiver.pcap --radio radio.csv
      airpath trace runs/one
      airpath trace compare before.pcap after.pcap
      tcpdump -w - tcp | airpath trace - --format jsonl

    \b
    Exit codes:
      0    done
      2    bad usage, or a file that is not there, no capture, or without TCP; or there is no such connection
      3    the output could not be written in full
      130  interrupted by Ctrl-C; what was read until then is told of
    """
    with explained():
        if format == "jsonl":
            if any(each is not None for each in (peer, radio, out, xplot, perfetto, har)):
                raise Problem(
                    "--format jsonl tells of connections as they end, without --peer, --radio and files of its own",
                    next_step="remove these, or take --format json",
                )
            raise typer.Exit(_stream(files, flow, repetition, why))
        if in_full is not None and out is None:
            raise Problem("--in-full is for a report", next_step="add -o report.html, or remove it")
        if repetition is not None and not any(each.is_dir() for each in (*files, radio or Path("-"))):
            raise Problem("--repetition is of a result folder", next_step="name a folder, or remove it")
        from airpath.trace import trace as analyse

        columns = _columns(radio_columns)
        traced = analyse(files, peer=peer, radio=radio, radio_columns=columns, flow=flow, repetition=repetition)
        _print(traced, format, why)
        files_of = {
            "report": (out, partial(traced.report, in_full=in_full or 3)),
            "xplot": (xplot, traced.xplot),
            "perfetto": (perfetto, traced.perfetto),
            "har": (har, traced.har),
        }
        for what, (path, write) in files_of.items():
            if path is not None:
                written(what, path, partial(write, path))
    raise typer.Exit(_remark(traced.reading))


def _columns(text: str | None) -> dict[str, str]:
    """Return the column map of a radio log."""
    pairs = [part.partition("=") for part in (text or "").split(",") if part]
    wrong = next((key for key, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise Problem(f"--radio-columns: '{wrong}' has no value", next_step="write it as in 'begin=Time,name=State'")
    return {key.strip(): value for key, _, value in pairs}


def _stream(files: list[Path], flow: str | None, repetition: int | None, why: bool) -> ExitCode:
    """Print each connection when it ends."""
    import sys

    from airpath.trace.analysis import stream

    live = Path("-") in files

    def line(text: str) -> None:
        sys.stdout.write(text + "\n")
        if live:
            sys.stdout.flush()

    return _remark(stream(files, line, flow=flow, causes=why, repetition=repetition))


def _print(traced: "Trace", format: Format, why: bool) -> None:
    match format:
        case "text":
            from airpath.cli.output import console
            from airpath.trace.text import render

            render(traced, console(), why=why)
        case _:
            from airpath.trace.output import write

            write(traced, format)


def written(what: str, out: Path, write: Callable[[], object]) -> None:
    """Write a file, and say where it is.

    Args:
        what: What it is: a key of `_WRITTEN`.
        out: Where it goes.
        write: Writes it.
    """
    try:
        write()
    except OSError as error:
        raise Problem(
            f"{out} cannot be written: {error.strerror or error}",
            next_step="free some space or name another place",
            exit_code=ExitCode.NOT_WRITTEN,
        ) from None
    note(f"{_WRITTEN[what]} in {out}")


_WRITTEN = {
    "report": "the report is",
    "xplot": "the plots for xplot are",
    "perfetto": "the trace for ui.perfetto.dev is",
    "har": "the HTTP Archive is",
}


def _remark(reading: dict[str, Any]) -> ExitCode:
    """Say what was passed over, and return the exit code."""
    from airpath.trace.words import remarks

    for remark in remarks(reading):
        note(remark)
    return ExitCode.INTERRUPTED if reading["interrupted"] else ExitCode.OK
