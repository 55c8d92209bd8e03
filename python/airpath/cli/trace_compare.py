"""`airpath trace compare`: two captures beside each other."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from airpath.cli.words import explained


def compare(
    one: Annotated[Path, typer.Argument(metavar="A", help="A capture, or a result folder with captures.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="The other.")],
    flow: Annotated[
        str | None,
        typer.Option(metavar="SELECTOR", help="Which connections of both: a number, an address, a port, or both."),
    ] = None,
    format: Annotated[
        Literal["text", "json", "csv"], typer.Option(help="On standard output: a table, JSON, or CSV.")
    ] = "text",
) -> None:
    """Put two captures beside each other: where the time of their connections went, in sum.

    \b
    Examples:
      airpath trace compare before.pcap after.pcap
      airpath trace compare runs/reno runs/cubic --flow 1

    \b
    Exit codes: as of `airpath trace`.
    """
    from airpath.trace import trace
    from airpath.trace.compare import compare as compared

    with explained():
        table = compared([trace(path, flow=flow) for path in (one, other)])
    match format:
        case "csv":
            typer.echo(table.write_csv(), nl=False)
        case "json":
            import json

            typer.echo(json.dumps(table.to_dicts(), indent=2))
        case _:
            _print(table.rows(), (str(one), str(other)))


def _print(rows: Sequence[tuple[str, float, float]], names: tuple[str, str]) -> None:
    from airpath.cli.output import print_table
    from airpath.quantities import count, seconds, size
    from airpath.trace.causes import CAUSES

    causes = {each.name: each.words for each in CAUSES}
    said: list[tuple[str, ...]] = []
    for name, first, second in rows:
        if not first and not second:
            continue
        words: Callable[[float], str] = count
        if name in causes or name == "seconds":
            words = seconds
        elif name.startswith("bytes"):
            words = size
        change = second - first
        sign = "+" if change > 0 else "−" if change < 0 else ""
        said.append((causes.get(name, name), words(first), words(second), f"{sign}{words(abs(change))}"))
    print_table(("", *names, "difference"), said)


class WithCompare(TyperCommand):
    """The command `trace`, which hands over to `trace compare` where the first argument says so."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of `compare` for its arguments, and of this command for all others."""
        if args[:1] != ["compare"]:
            return super().make_context(info_name, args, parent=parent, **extra)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command("compare", context_settings=dict(self.context_settings))(compare)
        return typer.main.get_command(app).make_context(f"{info_name} compare", args[1:], parent=parent, **extra)
