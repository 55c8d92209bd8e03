"""`airpath doctor`: what this host allows, and what to do about what it does not."""

import json
from typing import Annotated, Literal

import typer

from airpath.cli.words import ExitCode


def doctor(
    format: Annotated[Literal["text", "json"], typer.Option(help="How to print what was found.")] = "text",
) -> None:
    """Look at what this host allows links to do, and say what to do about what it does not.

    \b
    Examples:
      airpath doctor
      airpath doctor --format json

    \b
    Exit codes:
      0    links with both ends inside (--serve) work
      1    they do not
    """
    from airpath import _native

    findings = json.loads(_native.doctor())
    if format == "json":
        typer.echo(json.dumps(findings))
    else:
        for check in findings["checks"]:
            typer.echo(f"{check['status']:<8} {check['name']}: {check['finding']}")
            if check["next_step"]:
                typer.echo(f"         next: {check['next_step']}")
        typer.echo("")
        typer.echo(f"links with --serve, both ends inside: {_works(findings['laboratory'])}")
        typer.echo(f"links to the outside: {_works(findings['outside'])}")
    raise typer.Exit(ExitCode.OK if findings["laboratory"] else ExitCode.FAILED)


def _works(works: bool) -> str:
    return "work" if works else "do not work here"
