"""Options that more than one command has."""

from typing import Annotated

import typer

Overrides = Annotated[
    list[str] | None,
    typer.Option(metavar="K=V", help="Override a value by its dotted path; may be given many times."),
]
"""`--set`: values laid over those of the scenario."""

Seed = Annotated[int | None, typer.Option(min=0, metavar="N", help="Seed of all chance, in place of the scenario's.")]
"""`--seed`."""

Capture = Annotated[bool, typer.Option("--capture", help="Write pcapng captures of both ends; needs --out.")]
"""`--capture`."""
