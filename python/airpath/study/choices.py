"""The table of a study's README that lists our choices where the study does not specify."""

from importlib.resources import files

from airpath.report.tables import Cell, Table

_HEADING = "## Choices"


def choices(study: str) -> Table | None:
    """Return the table under the heading `Choices` of a study's README; `None` if there is none."""
    readme = files("airpath.study") / "data" / study / "README.md"
    if not readme.is_file():
        return None
    _, _, section = readme.read_text(encoding="utf-8").partition(f"\n{_HEADING}\n")
    section = section.partition("\n## ")[0]
    head, *rows = [_cells(line) for line in section.splitlines() if line.startswith("|")] or [[]]
    if not rows:
        return None
    caption = " ".join(section.partition("\n|")[0].split())
    return Table("Choices", caption, head, [[Cell(text, number=False) for text in row] for row in rows[1:]])


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
