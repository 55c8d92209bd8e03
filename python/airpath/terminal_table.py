"""Tables of text for terminals of any width: no name and no figure is cut.

A table that is too wide loses its empty columns, then its cells are wrapped between words. If the
longest words do not fit either, each row becomes a paragraph.
"""

import re
import textwrap
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    Cell = str | Text

_GAPS = (3, 2)
"""Characters between two columns, and between those of a narrow table."""

_QUANTITY = re.compile(r"(?<=[\d–]) (?=\D\S{0,6}(?:\s|$))")
"""The space between a number and its unit, where no line is broken."""
_FIXED = "\N{NO-BREAK SPACE}"


def print_table(
    console: "Console",
    head: Sequence[str],
    rows: Sequence[Sequence["Cell"]],
    *,
    titles: Collection[str] = (),
    right: Collection[str] = (),
    optional: Sequence[str] = (),
    even: bool = False,
) -> None:
    """Print a table that fits the console.

    Args:
        console: The console, which has the width.
        head: The names of the columns.
        rows: The cells of each row.
        titles: The columns that identify a row, for the paragraphs of a narrow console; by default
            the first.
        right: The columns that are aligned on the right.
        optional: Columns that a narrow table omits, the first one first.
        even: Whether columns of a narrow table that do not fit have similar widths; by default as
            few columns as possible are wrapped.
    """
    from rich import box
    from rich.table import Table

    texts = [[name, *(str(row[index]) for row in rows)] for index, name in enumerate(head)]
    kept = list(range(len(head)))
    if _width(texts) > console.width:
        kept = [index for index in kept if any(texts[index][1:])] or kept
    for name in optional:
        if _width([texts[index] for index in kept]) > console.width:
            kept = [index for index in kept if head[index] != name]
    columns = [texts[index] for index in kept]
    gap = next((gap for gap in _GAPS if _widths(columns, console.width, gap, even=even)), 0)
    widths = _widths(columns, console.width, gap, even=even)
    if not gap or widths is None:
        _print_paragraphs(console, head, rows, titles or head[:1])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, gap - 2))
    for index, width in zip(kept, widths, strict=True):
        table.add_column(
            _wrapped(head[index], width), justify="right" if head[index] in right else "left", no_wrap=True
        )
    for row in rows:
        table.add_row(*(_wrapped(row[index], width) for index, width in zip(kept, widths, strict=True)))
    console.print(table)


def _print_paragraphs(
    console: "Console", head: Sequence[str], rows: Sequence[Sequence["Cell"]], titles: Collection[str]
) -> None:
    from rich.padding import Padding

    for row in rows:
        cells = [(name, str(cell)) for name, cell in zip(head, row, strict=True) if str(cell)]
        console.print(", ".join(cell for name, cell in cells if name in titles), style="bold")
        figures = ", ".join(f"{name} {cell}".strip() for name, cell in cells if name not in titles)
        if figures:
            console.print(Padding(figures, (0, 0, 0, 2)))


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + _GAPS[0] * (len(columns) - 1)


def _widths(columns: Sequence[Sequence[str]], width: int, gap: int, *, even: bool = False) -> list[int] | None:
    """Return the widths of the columns; `None` if the longest words do not fit.

    What is left after the longest words goes to the columns that need least, so that few are
    wrapped; with `even` to the narrowest ones.
    """
    full = [max(map(len, column)) for column in columns]
    widths = [max(len(word) for text in column for word in [*_words(text), ""]) for column in columns]
    left = width - gap * (len(columns) - 1) - sum(widths)
    if left < 0:
        return None
    while even and left and (narrow := [index for index, most in enumerate(full) if widths[index] < most]):
        widths[min(narrow, key=lambda index: widths[index])] += 1
        left -= 1
    for index in sorted(range(len(columns)), key=lambda index: full[index] - widths[index]):
        more = min(left, full[index] - widths[index])
        widths[index] += more
        left -= more
    return widths


def _words(text: str) -> list[str]:
    return _QUANTITY.sub(_FIXED, text).split(" ")


def _wrapped(cell: "Cell", width: int) -> "Cell":
    """Return a cell with line breaks between its words."""
    text = str(cell)
    if len(text) <= width:
        return cell
    lines = textwrap.wrap(_QUANTITY.sub(_FIXED, text), max(width, 1), break_long_words=False, break_on_hyphens=False)
    wrapped = "\n".join(lines).replace(_FIXED, " ")
    if isinstance(cell, str):
        return wrapped
    copy = cell.copy()
    copy.plain = wrapped
    return copy
