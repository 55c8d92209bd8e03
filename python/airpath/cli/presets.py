"""`airpath presets`: the presets, and the sources of their parameters."""

import json
from typing import Annotated, Literal

import typer

from airpath.cli.messages import explained, help_without_command

app = typer.Typer(
    help="List and show presets of bearers, environments and proxies.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
app.callback()(help_without_command)


def _complete(incomplete: str) -> list[str]:
    from airpath.preset import presets

    return [each.name for each in presets() if each.name.startswith(incomplete)]


@app.command("list")
def list_presets(
    format: Annotated[Literal["text", "json"], typer.Option(help="On standard output: a table, or JSON.")] = "text",
) -> None:
    """List the presets that a scenario can name.

    \b
    Examples:
      airpath presets list
      airpath presets list --format json
    """
    from airpath.cli.output import print_table
    from airpath.preset import presets

    found = presets()
    if format == "json":
        typer.echo(json.dumps([each.to_dict() for each in found], indent=2))
    else:
        print_table(("preset", "kind", "what it is"), [(each.name, each.kind, each.title) for each in found])


@app.command("show")
def show_preset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A preset, or a file.", autocompletion=_complete)],
    format: Annotated[
        Literal["text", "json", "toml"],
        typer.Option(help="On standard output: a table with sources, JSON, or the TOML to copy and change."),
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
    else:
        typer.echo(f"{found.name}: {found.title}\n")
        rows = [(each.key, each.value, each.source or "") for each in found.parameters]
        print_table(("parameter", "value", "source"), rows)
