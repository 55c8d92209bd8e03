"""`--label` of commands that draw several results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.messages import Problem

if TYPE_CHECKING:
    from airpath.result import Result

Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="TEXT", help="The name of a result in the figures; once for each, in their order."),
]


def check_labels(labels: Sequence[str] | None, results: Sequence[Path]) -> None:
    """Check that there is a label for each result.

    Raises:
        Problem: Their numbers differ.
    """
    if labels and len(labels) != len(results):
        given = f"{len(labels)} label{'s' * (len(labels) > 1)}"
        needed = f"{len(results)} result{'s' * (len(results) > 1)}"
        raise Problem(f"{given} for {needed}", next_step="give --label once for each")


def labelled(results: Sequence[Path], labels: Sequence[str] | None) -> "list[Result]":
    """Load results, each with its label if there are some.

    Raises:
        UnreadableResultError: A folder is no result.
    """
    from airpath import load

    loaded = [load(folder) for folder in results]
    for result, text in zip(loaded, labels or [], strict=False):
        result.label = text
    return loaded
