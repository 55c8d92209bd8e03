"""Reports: one HTML file that works offline, of one run, or of several compared.

    from airpath import report

    report.write([result], Path("report.html"))

| module | contents |
| --- | --- |
| `runs` | the page of one run or several |
| `metrics` | the figures of a report, one value per repetition |
| `verdict`, `tiles`, `tables`, `conditions` | the texts and tables of the page |
| `figures` | its plots, and the reason where one cannot be drawn |
| `commands` | the commands that reproduce it |
| `page` | templates, style and script in one file |
"""

from collections.abc import Sequence
from pathlib import Path

from airpath.files import write_text
from airpath.result import Result, load


def write(results: Sequence[Path | Result], out: Path, *, command: str | None = None) -> Path:
    """Write the report of one run, or of several on shared axes.

    Args:
        results: Results or their folders, in the order in which they are compared.
        out: The HTML file.
        command: The command that makes results and report again; by default those of the results,
            and `airpath report` with their folders.

    Returns:
        `out`.

    Raises:
        UnreadableResultError: A folder is no result, is damaged, or was written by a newer version.
        OSError: The file cannot be written.
        ValueError: There is no result.
    """
    from airpath.report.runs import page

    if not results:
        raise ValueError("a report needs at least one result")
    loaded = [each if isinstance(each, Result) else load(each) for each in results]
    write_text(out, page(loaded, out, command))
    return out
