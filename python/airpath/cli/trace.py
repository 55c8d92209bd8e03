"""`airpath trace`: analyses the TCP connections of captures."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from airpath.cli.messages import ExitCode, Problem, explained, note, writing
from airpath.cli.options import Quiet
from airpath.cli.trace_files import check_files
from airpath.quantities import number_of

if TYPE_CHECKING:
    from airpath.trace import Trace

Format = Literal["text", "json", "jsonl", "csv", "parquet"]


def trace(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Captures in the order of time (pcap, pcapng or snoop), - for standard input, or a result folder.",
        ),
    ],
    peer: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A capture of the same traffic at the other end.")
    ] = None,
    radio: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A radio log on the same clock: a CSV file, or a result folder."),
    ] = None,
    radio_columns: Annotated[
        str | None,
        typer.Option(
            metavar="K=V,...",
            help="The columns of a CSV radio log, as in 'begin=Time,name=State,silent=Idle|Reselection'.",
        ),
    ] = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SELECTOR",
            help="Select connections and QUIC flows: a number (3, or tcp:3 or quic:3), an address, a port (:443), or "
            "both (192.0.2.1:443); again for others, too.",
        ),
    ] = None,
    repetition: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The repetition of a result folder, from 0; by default the median one."),
    ] = None,
    why: Annotated[
        bool,
        typer.Option("--why", help="List the cause of each interval of time; with jsonl, add the causes."),
    ] = False,
    format: Annotated[
        Format,
        typer.Option(
            help="On standard output: text, all tables as JSON, a JSON line for each connection when it ends, or the "
            "connections as CSV or Parquet."
        ),
    ] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a report: one HTML file.")
    ] = None,
    in_full: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="The number of connections that the report draws in full, the most avoidable time first; default 3.",
        ),
    ] = None,
    xplot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write time–sequence plots for xplot, like tcptrace -S.")
    ] = None,
    perfetto: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a trace for ui.perfetto.dev, JSON.")
    ] = None,
    har: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the HTTP exchanges as an HTTP Archive (HAR).")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Show the causes of each TCP connection's elapsed time.

    It prints one connection in detail, several as a table with the most avoidable time first.
    Avoidable time is explained neither by a fully used link nor by the applications.
    `airpath trace compare A B` compares captures.

    \b
    Examples:
      airpath trace capture.pcapng
      airpath trace capture.pcapng --flow 3 --why
      airpath trace capture.pcapng --flow 1 --flow 3
      airpath trace capture.pcapng -o report.html --in-full 5
      airpath trace sender.pcap --peer receiver.pcap --radio radio.csv
      airpath trace runs/one
      airpath trace compare before.pcap after.pcap
      tcpdump -w - tcp | airpath trace - --format jsonl

    \b
    Exit codes:
      0    done
      2    bad usage; a file is missing, is no capture or has no TCP; the flow does not exist
      3    the output could not be written in full
      130  interrupted by Ctrl-C; the frames read until then are analysed
    """
    with explained():
        if peer is not None and len(peer) > 1:
            raise Problem("--peer: given twice", next_step="name one capture; mergecap joins several of one end")
        other_end = peer[0] if peer else None
        if format == "jsonl" and any(each is not None for each in (other_end, radio, out, xplot, perfetto, har)):
            raise Problem(
                "--format jsonl prints connections as they end; it excludes --peer, --radio and output files",
                next_step="remove these, or use --format json",
            )
        if why and format in ("csv", "parquet"):
            raise Problem(
                f"--format {format} has the connections alone, and --why lists intervals",
                next_step="remove --why, or use --format json, which has all tables",
            )
        if in_full is not None and out is None:
            raise Problem("--in-full needs a report", next_step="add -o report.html, or remove it")
        if repetition is not None and not any(each.is_dir() for each in (*files, radio or Path("-"))):
            raise Problem("--repetition needs a result folder", next_step="name a folder, or remove it")
        outputs = {"--out": out, "--perfetto": perfetto, "--har": har}
        check_files(files, others={"--peer": other_end, "--radio": radio}, outputs=outputs, report=out, folder=xplot)
        columns = _columns(radio_columns, radio)
        if format == "jsonl":
            raise typer.Exit(_stream(files, flow, repetition, why))
        from airpath.trace import trace as analyse

        with _without_columns(radio):
            traced = analyse(
                files, peer=other_end, radio=radio, radio_columns=columns, flow=flow, repetition=repetition
            )
        exit_code = _warn(traced)
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
        if xplot is not None and (flows := traced.quic.height):
            note(f"{number_of(flows, 'QUIC flow')} without a plot: QUIC encrypts its offsets")
    raise typer.Exit(exit_code)


@contextmanager
def _without_columns(radio: Path | None) -> Iterator[None]:
    """Name the option that maps the columns of a radio log if one is missing."""
    from airpath import TraceError

    try:
        yield
    except TraceError as error:
        if "the radio log has no column" not in str(error):
            raise
        example = "--radio-columns 'begin=Time,name=State'"
        next_step = f"name its columns, as in {example}; the log of a run is its result folder, `--radio DIR`"
        raise Problem(f"{radio}: {error}", next_step=next_step) from None


def _columns(text: str | None, log: Path | None) -> dict[str, str]:
    """Parse the column map of a radio log; the core checks its entries."""
    if text is None:
        return {}
    if log is None or log.is_dir():
        raise Problem("--radio-columns needs a CSV file", next_step="name it by --radio FILE, or remove the columns")
    columns: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key.strip() in columns:
            raise Problem(f"--radio-columns: '{key.strip()}' is given twice", next_step="give it once")
        columns[key.strip()] = value
    return columns


def _stream(files: list[Path], flow: list[str] | None, repetition: int | None, why: bool) -> ExitCode:
    """Print each connection when it ends."""
    import sys

    from airpath.trace.analysis import stream
    from airpath.trace.warnings import file_warnings

    live = Path("-") in files

    def line(text: str) -> None:
        sys.stdout.write(text + "\n")
        if live:
            sys.stdout.flush()

    reading = stream(files, line, flow=flow, causes=why, repetition=repetition)
    for warning in file_warnings(reading):
        note(warning)
    return _exit_code(reading)


def _print(traced: "Trace", format: Format, why: bool) -> None:
    match format:
        case "text":
            from airpath.cli.output import console
            from airpath.trace.text import render

            render(traced, console(), why=why)
        case _:
            from airpath.trace.output import write

            write(traced, format)
            if format != "json" and (flows := traced.quic.height):
                note(f"--format {format} leaves out {number_of(flows, 'QUIC flow')}; --format json has all flows")


def written(what: str, out: Path, write: Callable[[], object]) -> None:
    """Write a file, and print its path.

    Args:
        what: The type of file: a key of `_WRITTEN`.
        out: The path.
        write: Writes it.
    """
    with writing(out):
        write()
    note(f"{_WRITTEN[what]} in {out}")


_WRITTEN = {
    "report": "the report is",
    "xplot": "the plots for xplot are",
    "perfetto": "the trace for ui.perfetto.dev is",
    "har": "the HTTP Archive is",
}


def _warn(traced: "Trace") -> ExitCode:
    """Print the warnings about the captures, and return the exit code."""
    from airpath.trace.warnings import warnings_of

    for warning in warnings_of(traced):
        note(warning)
    return _exit_code(traced.reading)


def _exit_code(reading: dict[str, Any]) -> ExitCode:
    return ExitCode.INTERRUPTED if reading["interrupted"] else ExitCode.OK
