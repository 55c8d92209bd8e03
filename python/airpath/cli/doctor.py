"""`airpath doctor`: checks what emulated links need on this host."""

import json
import platform
from typing import Annotated, Any, Literal

import typer

from airpath.cli.messages import ExitCode


def doctor(
    format: Annotated[Literal["text", "json"], typer.Option(help="How to print the findings.")] = "text",
) -> None:
    """Check what emulated links need on this host, and print the next steps.

    It changes nothing: features are tried in processes that end at once.

    \b
    Examples:
      airpath doctor
      airpath doctor --format json

    \b
    Exit codes:
      0    links with both ends inside (--serve) work
      1    they do not work
    """
    from airpath import __version__, _native

    # Before any thread starts: namespaces can be tried only in a process with one thread.
    findings: dict[str, Any] = json.loads(_native.doctor())
    versions = {"airpath": __version__, "python": platform.python_version(), "kernel": platform.release()}
    if format == "json":
        typer.echo(json.dumps({"versions": versions} | findings))
    else:
        typer.echo("airpath {airpath}, Python {python}, Linux {kernel}\n".format_map(versions))
        for check in findings["checks"]:
            typer.echo(check_text(check))
        typer.echo(f"\nlinks with --serve or --host-port: {_works(findings['testbed'])}")
        typer.echo(f"links to the outside: {_works(findings['outside'])}")
    raise typer.Exit(ExitCode.OK if findings["testbed"] else ExitCode.FAILED)


def check_text(check: dict[str, Any]) -> str:
    """Return a check as text; with its meaning and the next step if it is not `ok`."""
    lines = [f"{check['status']:<8} {check['name']}: {check['finding']}"]
    if check["next_step"] is not None:
        lines += [f"{'':<9}so: {check['meaning']}", f"{'':<9}next: {check['next_step']}"]
    return "\n".join(lines)


def _works(works: bool) -> str:
    return "work" if works else "do not work here"
