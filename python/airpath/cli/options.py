"""Options that more than one command has."""

from pathlib import Path
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

Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Keep the result in this folder, in place of an earlier one.")
]
"""`--out`: the result folder; without it nothing is kept."""

NoLog = Annotated[bool, typer.Option("--no-log", help="Keep the summary but no event tables: smaller and faster.")]
"""`--no-log`."""
