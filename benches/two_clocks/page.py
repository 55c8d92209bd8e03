"""The tables of a page that a program writes, between marks."""

from pathlib import Path


def replace_table(page: Path, name: str, lines: list[str]) -> None:
    """Replace what stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises:
        ValueError: The page has no such marks.
    """
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{page}: no place for the table '{name}'")
    page.write_text(before + begin + "\n".join(lines).rstrip() + "\n" + end + after, encoding="utf-8")
