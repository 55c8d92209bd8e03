"""The tables of a result as CSV files."""

from pathlib import Path

from airpath.files import replacing
from airpath.result import NotLoggedError, Result
from airpath.tables import EVENT_TABLES, OPTIONAL_TABLES

SUMMARIES = {
    "flows": "flows",
    "links": "links",
    "radio-totals": "radio_totals",
    "pages": "pages",
    "objects": "objects",
    "buffers": "buffers",
    "segments": "segments",
    "scripts": "scripts",
    "middleboxes": "middleboxes",
    "repetitions": "repetitions",
    "settings": "settings",
}
"""The names of the files that the summary's tables go to, and of the frames."""


def csv(result: Result, folder: Path) -> list[Path]:
    """Write each table of a result as a CSV file.

    Events as `TABLE.csv`, the summary's tables beside them.

    Columns and units are those of the frames (`docs/result-folder.md`): times of events are
    nanoseconds. What is null is an empty field.

    Args:
        result: The result.
        folder: Where the files go; it is made if it is not there.

    Returns:
        The files, in the order of their names. A table that the run did not keep has none.

    Raises:
        OSError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in EVENT_TABLES:
        try:
            frame = result.scan(table).sort("repetition", "time", maintain_order=True)
        except NotLoggedError:
            continue
        path = folder / f"{table}.csv"
        with replacing(path) as draft:
            frame.collect().write_csv(draft)
        written.append(path)
    for name, frame in SUMMARIES.items():
        path = folder / f"{name}.csv"
        if name in OPTIONAL_TABLES and name not in result.summary:
            continue
        with replacing(path) as draft:
            getattr(result, frame).write_csv(draft)
        written.append(path)
    return sorted(written)
