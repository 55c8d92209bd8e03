"""`--second PRESET|FILE`: a second bearer of the mobile."""

from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.completion import complete_scenario

Second = Annotated[
    str | None,
    typer.Option(
        "--second",
        metavar="PRESET|FILE",
        help="Give the mobile a second interface on this bearer; --set second_bearer.KEY=VALUE changes it.",
        autocompletion=complete_scenario,
    ),
]
"""`--second`: the preset of the second bearer; `None` without the option."""


def second_override(second: str | None) -> dict[str, str]:
    """Return the override that gives the mobiles this second bearer."""
    if second is None:
        return {}
    # A path is relative to the working directory, not to the scenario.
    is_path = "/" in second or second.endswith(".toml")
    return {"second_bearer.preset": str(Path(second).absolute()) if is_path else second}
