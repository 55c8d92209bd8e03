"""Tables of text for terminals of any width: no name and no figure is cut.

A table that is too wide loses its empty columns and cuts descriptions, then its cells are wrapped
between words. If the longest words do not fit either, each row becomes a paragraph.
"""

import re
import textwrap
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    Cell = str | Text

_T = TypeVar("_T")

_GAPS = (3, 2)
"""Characters between two columns, and between those of a narrow table."""

_LEAST_BRIEF = 24
"""Fewest characters of a description that is cut."""

_QUANTITY = re.compile(r"(?<=[\d–]) (?=[^\d±]\S{0,6}(?:\s|$))|(?<=±) ")
"""The space between a number and its unit, and after a plus-minus sign: no line is broken there."""
_FIXED = "\N{NO-BREAK SPACE}"


def print_table(
    console: "Console",
    head: Sequence[str],
    rows: Sequence[Sequence["Cell"]],
    *,
    titles: Collection[str] = (),
    right: Collection[str] = (),
    optional: Sequence[str] = (),
    brief: str | None = None,
    whole: str | None = None,
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
        brief: A column of descriptions: a narrow table cuts each to its line, or omits them all.
        whole: The column that is wrapped last.
        even: Whether columns of a narrow table that do not fit have similar widths; by default as
            few columns as possible are wrapped.
    """
    from rich import box
    from rich.table import Table

    if brief is not None:
        head, rows = _briefly(head, rows, head.index(brief), console.width)
    texts = [[name, *(str(row[index]) for row in rows)] for index, name in enumerate(head)]
    kept = list(range(len(head)))
    if _width(texts) > console.width:
        kept = [index for index in kept if any(texts[index][1:])] or kept
    for name in optional:
        if _width([texts[index] for index in kept]) > console.width:
            kept = [index for index in kept if head[index] != name]
    columns = [texts[index] for index in kept]
    # Where cells are wrapped, narrow gaps leave more to the columns.
    gaps = _GAPS if _width(columns) <= console.width else _GAPS[1:]
    last = next((place for place, index in enumerate(kept) if head[index] == whole), None)
    gap = next((gap for gap in gaps if _widths(columns, console.width, gap, last=last, even=even)), 0)
    widths = _widths(columns, console.width, gap, last=last, even=even)
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


def _briefly(
    head: Sequence[str], rows: Sequence[Sequence["Cell"]], column: int, width: int
) -> tuple[Sequence[str], Sequence[Sequence["Cell"]]]:
    """Return head and rows with a column cut to the width that the others leave, or without it."""
    others = [[name, *(str(row[index]) for row in rows)] for index, name in enumerate(head) if index != column]
    left = width - _width([*others, [""]])
    if left < _LEAST_BRIEF and _width([[name, *(str(row[i]) for row in rows)] for i, name in enumerate(head)]) > width:
        return _without(head, column), [_without(row, column) for row in rows]

    def cut(text: "Cell") -> "Cell":
        return text if len(str(text)) <= left else textwrap.shorten(str(text), left, placeholder=" …")

    return head, [[cut(cell) if index == column else cell for index, cell in enumerate(row)] for row in rows]


def _without(cells: Sequence[_T], column: int) -> Sequence[_T]:
    return [*cells[:column], *cells[column + 1 :]]


def _print_paragraphs(
    console: "Console", head: Sequence[str], rows: Sequence[Sequence["Cell"]], titles: Collection[str]
) -> None:
    from rich.padding import Padding

    for row in rows:
        cells = [(name, str(cell)) for name, cell in zip(head, row, strict=True) if str(cell)]
        console.print(", ".join(cell for name, cell in cells if name in titles), style="bold")
        figures = ", ".join(f"{name} {cell}".strip() for name, cell in cells if name not in titles)
        if figures:
            console.print(Padding(_wrapped(figures, console.width - 2), (0, 0, 0, 2)))


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + _GAPS[0] * (len(columns) - 1)


def _widths(
    columns: Sequence[Sequence[str]], width: int, gap: int, *, last: int | None = None, even: bool = False
) -> list[int] | None:
    """Return the widths of the columns; `None` if the longest words do not fit.

    What is left after the longest words goes to the column that is wrapped last, then to the
    columns that need least, so that few are wrapped; with `even` to the narrowest ones.
    """
    full = [max(map(len, column)) for column in columns]
    widths = [max(len(word) for text in column for word in [*_words(text), ""]) for column in columns]
    left = width - gap * (len(columns) - 1) - sum(widths)
    if left < 0:
        return None
    while even and left and (narrow := [index for index, most in enumerate(full) if widths[index] < most]):
        widths[min(narrow, key=lambda index: widths[index])] += 1
        left -= 1
    for index in sorted(range(len(columns)), key=lambda index: (index != last, full[index] - widths[index])):
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
