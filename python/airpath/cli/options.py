"""Options of several commands."""

from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.completion import complete_override
from airpath.cli.messages import set_quiet
from airpath.run import MAX_SEED


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether a parameter was on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _quiet(wanted: bool) -> bool:
    set_quiet(wanted)
    return wanted


Overrides = Annotated[
    list[str] | None,
    typer.Option(
        metavar="K=V",
        help="Override a value by its dotted path; may be given many times.",
        autocompletion=complete_override,
    ),
]
"""`--set`: overrides of the scenario's values."""

Seed = Annotated[
    int | None, typer.Option(min=0, max=MAX_SEED, metavar="N", help="Random seed, in place of the scenario's.")
]
"""`--seed`."""

Capture = Annotated[bool, typer.Option("--capture", help="Write pcapng captures of both ends; needs --out.")]
"""`--capture`."""

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Write the result to this folder; it replaces only one of the same inputs."
    ),
]
"""`--out`: the result folder; without it no result is written."""

Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print the result and errors only: no notes, no progress.", callback=_quiet),
]
"""`--quiet`: handled before the command, whose parameter has no further use."""

NoLog = Annotated[bool, typer.Option("--no-log", help="Write the summary but no event tables: smaller and faster.")]
"""`--no-log`."""
