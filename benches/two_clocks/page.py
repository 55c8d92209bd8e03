"""Replaces the generated tables of a page, which stand between markers."""

from pathlib import Path


def replace_table(page: Path, name: str, lines: list[str]) -> None:
    """Replace the text between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises:
        ValueError: The page has no such markers.
    """
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{page}: the markers of the table '{name}' are missing")
    page.write_text(before + begin + "\n".join(lines).rstrip() + "\n" + end + after, encoding="utf-8")
