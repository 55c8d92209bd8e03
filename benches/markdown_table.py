"""Replaces the generated tables of a page, which stand between markers."""

from pathlib import Path


def replace_table(page: Path, name: str, lines: list[str]) -> None:
    """Replace the text between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises:
        ValueError: The page has no such markers.
    """
    before, _, after = _parts(page, name)
    page.write_text(before + "\n".join(lines).rstrip() + "\n" + after, encoding="utf-8")


def rows_of(page: Path, name: str) -> list[str]:
    """Return the lines of a table below its head.

    Raises:
        ValueError: The page has no such markers.
    """
    return _parts(page, name)[1].splitlines()[2:]


def _parts(page: Path, name: str) -> tuple[str, str, str]:
    """Return the text to the begin of a table, the table, and the text from its end."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    table, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{page}: the markers of the table '{name}' are missing")
    return before + begin, table, end + after
