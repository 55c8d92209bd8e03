"""`airpath replay`: sends the packets of a result through its network again."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from airpath.cli.key_value import parse_pairs
from airpath.cli.messages import ExitCode, Problem, explained, interrupted_by_signals, note, replacing_result
from airpath.cli.options import NoLog, Out, Overrides, Quiet
from airpath.tables import flat_rows


def replay(
    result: Annotated[Path, typer.Argument(metavar="DIR", help="A result folder with its event log.")],
    set: Overrides = None,
    out: Out = None,
    format: Annotated[
        Literal["text", "json", "jsonl"],
        typer.Option(help="On standard output: a table, the summary as JSON, or a JSON line a link."),
    ] = "text",
    no_log: NoLog = False,
    quiet: Quiet = False,
) -> None:
    """Send the packets of a result through its network again, in virtual time.

    Without changes each packet leaves at the same nanosecond or is lost in the same place, for
    results of `run` and of `link`. With --set it shows the fate of the same packets on a changed
    network; their senders do not react.

    \b
    Examples:
      airpath replay runs/one
      airpath replay runs/one --set fixed.queue.packets=20 --out runs/short-queue
      airpath replay runs/one --set change.0.at="12 s" --out runs/later

    \b
    Exit codes:
      0    done
      1    the replay stopped on an error
      2    a result or setting that cannot be used; nothing was run
      3    the result could not be written in full; the written part is kept
      130  interrupted by Ctrl-C or SIGTERM; the result so far is kept, marked as partial
    """
    from airpath import NotLoggedError, load
    from airpath.cli.output import print_summary
    from airpath.replay import execute
    from airpath.result_folder import written_to

    overrides = parse_pairs("--set", set or [], example="fixed.delay='80 ms'")
    with explained(), interrupted_by_signals(), replacing_result(out):
        original = load(result)
        try:
            summary = execute(original, set=overrides, out=out, log=not no_log)
        except NotLoggedError as error:
            raise Problem(str(error)) from None
    if format == "text":
        _print_links(original.summary["links"], summary["links"])
    else:
        print_summary(summary, format)
    if out is not None:
        out = written_to(out)
        note(f"the result is in {out}; `airpath report {result} {out} -o report.html` draws both")
    if not summary["complete"]:
        note(f"{summary['stopped']}: the figures are those of a partial replay")
        raise typer.Exit(ExitCode.INTERRUPTED if summary["stopped"] == "interrupted" else ExitCode.FAILED)


def _print_links(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> None:
    """Print the packets at each hop: offered, delivered, lost, and the same in the original."""
    from airpath.cli.output import print_table

    totals, earlier = _totals(now), _totals(before)
    rows = []
    for key, (offered, delivered, lost) in totals.items():
        was = earlier.get(key)
        original = "" if was is None else " / ".join(f"{number:,}" for number in was)
        rows.append((*key, f"{offered:,}", f"{delivered:,}", f"{lost:,}", original))
    print_table(("component", "direction", "offered", "delivered", "lost", "in the original"), rows)


def _totals(links: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Return the packets offered, delivered and lost by hop and direction in all repetitions."""
    totals: dict[tuple[str, str], tuple[int, int, int]] = {}
    for link in flat_rows("links", links):
        key = (link["component"], link["direction"])
        offered, delivered, lost = totals.get(key, (0, 0, 0))
        dropped = sum(link[name] for name in link if name.startswith("dropped_") and name.endswith("_packets"))
        totals[key] = (offered + link["offered_packets"], delivered + link["delivered_packets"], lost + dropped)
    return totals
