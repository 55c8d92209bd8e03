"""`airpath report`: one HTML file out of any number of results."""

from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.messages import check_outputs, explained, writing


def report(
    results: Annotated[list[Path], typer.Argument(metavar="DIR", help="Result folders, as `run --out` writes them.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file.")],
) -> None:
    """Draw results as one HTML file that works offline; several are compared on shared axes.

    The path of the file goes to standard output.

    \b
    Examples:
      airpath report runs/one -o report.html
      airpath report runs/hs-dsch runs/dch -o compared.html
    """
    from airpath import load
    from airpath.report import write

    with explained():
        check_outputs(out)
        for folder in results:
            load(folder)  # name every unusable folder's fault before the drawing starts
        with writing(out):
            write(results, out)
    typer.echo(out)
