"""`airpath trace compare`: compares captures."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from airpath.cli.messages import Problem, explained, note
from airpath.cli.repeated_option import WithSingleOptions
from airpath.cli.trace_files import check_files


def compare(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="A B...", help="Captures or result folders; the others are compared with the first."),
    ],
    flow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SELECTOR",
            help="Select connections of each: a number, an address, a port, or both; again for others, too.",
        ),
    ] = None,
    format: Annotated[
        Literal["text", "json", "csv"], typer.Option(help="On standard output: a table, JSON, or CSV.")
    ] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a report: one HTML file.")
    ] = None,
) -> None:
    """Compare captures: the causes of their connections' elapsed time.

    It prints sums over all connections of each capture. The report draws the longest connection of
    each on one axis of the time since its start, and lists all.

    \b
    Examples:
      airpath trace compare before.pcap after.pcap
      airpath trace compare before.pcap after.pcap -o report.html
      airpath trace compare runs/reno runs/cubic runs/bbr --flow 1

    \b
    Exit codes: those of `airpath trace`.
    """
    from airpath.trace import trace
    from airpath.trace.compare import compare as compared
    from airpath.trace.compare import labels, note_on_quic
    from airpath.trace.warnings import warnings_of_all

    with explained():
        if len(files) < 2:
            raise Problem("a comparison needs two captures", next_step="name another, or use `airpath trace`")
        check_files(files, others={}, outputs={"--out": out}, report=out)
        traces = [trace(path, flow=flow) for path in files]
        for warning in warnings_of_all(traces):
            note(warning)
        if words := note_on_quic(traces):
            note(words)
        table = compared(traces)
        match format:
            case "csv":
                typer.echo(table.write_csv(), nl=False)
            case "json":
                import json

                typer.echo(json.dumps(table.to_dicts(), indent=2))
            case _:
                _print(table.rows(), labels(traces))
        if out is not None:
            from airpath.cli.trace import written
            from airpath.trace.compare.report import write

            written("report", out, lambda: write(traces, out))


def _print(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> None:
    """Print one row per figure, with the differences from the first trace."""
    from airpath.cli.output import print_table
    from airpath.quantities import count, seconds, size
    from airpath.trace.causes import CAUSES

    causes = {each.name: each.words for each in CAUSES}
    lines: list[tuple[str, ...]] = []
    for name, *values in rows:
        if not any(values):
            continue
        words: Callable[[float], str] = count
        if name in causes or name == "seconds":
            words = seconds
        elif name.startswith("bytes"):
            words = size
        changes = [_change(value, values[0], words) for value in values[1:]]
        cells = ["–" if value is None else words(value) for value in values]
        if len(values) == 2:
            cells += changes
        else:
            pairs = zip(cells[1:], changes, strict=True)
            cells[1:] = [cell if cell == "–" else f"{cell} ({change})" for cell, change in pairs]
        lines.append((causes.get(name, name), *cells))
    print_table(("", *names, "difference") if len(names) == 2 else ("", *names), lines)


def _change(value: float | None, base: float | None, words: Callable[[float], str]) -> str:
    if value is None or base is None:
        return "–"
    change = value - base
    sign = "+" if change > 0 else "−" if change < 0 else ""
    return f"{sign}{words(abs(change))}"


_OTHER_TOOLS = {
    "-r": "tcpdump and tshark; name the capture without an option: airpath trace FILE",
    "-l": "tcptrace; airpath trace FILE prints all connections, and --flow N one in detail",
    "-Y": "tshark; --flow selects flows: a number (3), an address, a port (:443), or both",
    "-w": "tcpdump; -o report.html writes a report",
}
"""Options of other programs, with what to use instead."""


class WithCompare(WithSingleOptions):
    """The command `trace`; with the first argument `compare` it is the command `trace compare`."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of `compare` if that is the first argument, else of this command."""
        for each in args:
            if each in _OTHER_TOOLS:
                tool, _, instead = _OTHER_TOOLS[each].partition("; ")
                raise Problem(f"{each} is an option of {tool}, not of `airpath trace`", next_step=instead)
        if args[:1] != ["compare"]:
            return super().make_context(info_name, args, parent=parent, **extra)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command("compare", cls=WithSingleOptions, context_settings=dict(self.context_settings))(compare)
        return typer.main.get_command(app).make_context(f"{info_name} compare", args[1:], parent=parent, **extra)
