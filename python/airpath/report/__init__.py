"""Reports: one HTML file that works offline, of one run, of several compared, or of a study.

    from airpath import report

    report.write([result], Path("report.html"))

| module | what |
| --- | --- |
| `runs` | the page of one run or several |
| `published` | the page of a study |
| `choices` | what a study's README says of its choices |
| `metrics` | the figures that are spoken of, a value a repetition |
| `verdict`, `tiles`, `tables`, `conditions` | what the page says in words and numbers |
| `figures` | what it draws, and what it says where it cannot |
| `commands` | how to make it again |
| `page` | templates, style and script into one file |
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from airpath.result import Result, load


class HasRows(Protocol):
    """What a study's run gave."""

    def to_dict(self) -> dict[str, Any]:
        """Return it in its JSON form."""
        ...


def write(results: Sequence[Path | Result], out: Path, *, command: str | None = None) -> Path:
    """Write the report of one run, or of several on shared axes.

    Args:
        results: Results or their folders, in the order in which they are compared.
        out: The HTML file.
        command: The command that makes the report again; by default `airpath report` with these folders.

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
    out.write_text(page(loaded, out, command), encoding="utf-8")
    return out


def write_study(study: HasRows | Mapping[str, Any], out: Path, *, command: str | None = None) -> Path:
    """Write the report of a study: published figures beside ours, row by row, and whether its findings hold.

    Args:
        study: What `airpath.study.run` returned, or its JSON form.
        out: The HTML file.
        command: The command that makes the report again; by default `airpath study run` with the same seed.

    Returns:
        `out`.

    Raises:
        OSError: The file cannot be written.
    """
    from airpath.report.published import page

    out.write_text(page(study, out, command), encoding="utf-8")
    return out
