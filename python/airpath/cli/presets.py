"""`airpath presets`: the presets, and the sources of their parameters."""

import csv
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from airpath.cli.completion import complete_preset
from airpath.cli.messages import explained, help_without_command

if TYPE_CHECKING:
    from airpath.preset import Figures

app = typer.Typer(
    help="List and show presets of bearers, environments and proxies.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
app.callback()(help_without_command)


@app.command("list")
def list_presets(
    format: Annotated[Literal["text", "json"], typer.Option(help="On standard output: a table, or JSON.")] = "text",
) -> None:
    """List the presets that a scenario can name.

    The figures of a bearer are simulated, for one mobile alone: the mean round trip of echo
    requests about a second apart, that of the first one of an idle mobile, and the throughput of a
    download and of an upload in 30 s.

    \b
    Examples:
      airpath presets list
      airpath presets list --format json
    """
    from airpath.cli.output import print_table, print_text
    from airpath.preset import all_figures, common_names, presets
    from airpath.quantities import rate, seconds

    found = presets()
    bearers = all_figures(each for each in found if each.kind == "bearer")
    if format == "json":
        typer.echo(json.dumps([each.to_dict() | _record(bearers.get(each.name)) for each in found], indent=2))
        return
    rows = []
    for each in found:
        if each.kind == "bearer":
            known = bearers[each.name]
            shown = ("–",) * 4
            if known is not None:
                trips = (known.round_trip, known.idle_round_trip)
                shown = (*map(seconds, trips), rate(known.down), rate(known.up))
            rows.append((each.name, *shown, each.title))
    print_table(("bearer", "round trip", "from idle", "down", "up", "what it is"), rows, brief="what it is")
    print_text(
        "Round trip: echo requests about a second apart, without a fixed network. From idle: the first one, with the "
        "set-up of the mobile's connection."
    )
    common = ", ".join(f"{name} = {selected}" for name, selected in common_names().items())
    print_text(f"Common names: {common}.")
    typer.echo()
    others = [(each.name, each.kind, each.title) for each in found if each.kind != "bearer"]
    print_table(("preset", "kind", "what it is"), others, brief="what it is")
    print_text("`airpath presets show NAME` shows a preset, with the source of each value.")


_UNITS = ("s", "s", "bps", "bps")
"""The units of `Figures`."""


def _record(figures: "Figures | None") -> dict[str, Any]:
    if figures is None:
        return {}
    units = zip(asdict(figures).items(), _UNITS, strict=True)
    return {"figures": {f"{name}_{unit}": value for (name, value), unit in units}}


@app.command("show")
def show_preset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A preset, or a file.", autocompletion=complete_preset)],
    format: Annotated[
        Literal["text", "json", "toml", "csv", "markdown"],
        typer.Option(
            help="On standard output: a table with sources, JSON, the TOML to copy and change, or a table as CSV or "
            "Markdown."
        ),
    ] = "text",
) -> None:
    """Show a preset's parameters, each with its source.

    \b
    Examples:
      airpath presets show hs-dsch-384
      airpath presets show hs-dsch-384 --format toml > my-bearer.toml
      airpath presets show my-bearer.toml
    """
    from airpath.cli.output import print_table
    from airpath.preset import preset

    with explained():
        found = preset(name)
    if format == "json":
        typer.echo(json.dumps(found.to_dict(), indent=2))
    elif format == "toml":
        typer.echo(found.text.rstrip("\n"))
    elif format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows(
            [("parameter", "value", "source"), *((e.key, e.value, e.source or "") for e in found.parameters)]
        )
    elif format == "markdown":
        typer.echo("| parameter | value | source |\n| --- | --- | --- |")
        for each in found.parameters:
            cells = (text.replace("|", "\\|") for text in (each.key, each.value, each.source or ""))
            typer.echo(f"| {' | '.join(cells)} |")
    else:
        typer.echo(f"{found.name}: {found.title}\n")
        rows = [(each.key, each.value, each.source or "") for each in found.parameters]
        print_table(("parameter", "value", "source"), rows)
