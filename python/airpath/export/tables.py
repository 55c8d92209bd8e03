"""The tables of a result as CSV files."""

from pathlib import Path

import polars as pl

from airpath.files import replacing
from airpath.result import SUMMARY_FRAMES, NotLoggedError, Result
from airpath.tables import EVENT_TABLES, OPTIONAL_TABLES


def csv(result: Result, folder: Path) -> list[Path]:
    """Write each table of a result as a CSV file.

    Events as `TABLE.csv`, the summary's tables beside them, and in `columns.csv` type, unit and
    meaning of each column. What is null is an empty field.

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
    columns = []
    for table in EVENT_TABLES:
        try:
            frame = result.scan(table).sort("repetition", "time", maintain_order=True)
        except NotLoggedError:
            continue
        path = folder / f"{table}.csv"
        with replacing(path) as draft:
            frame.collect().write_csv(draft)
        written.append(path)
        columns.append(_columns(result, table, table))
    for table in SUMMARY_FRAMES:
        name = table.replace("_", "-")
        path = folder / f"{name}.csv"
        if name in OPTIONAL_TABLES and name not in result.summary:
            continue
        with replacing(path) as draft:
            getattr(result, table).write_csv(draft)
        written.append(path)
        columns.append(_columns(result, table, name))
    path = folder / "columns.csv"
    with replacing(path) as draft:
        pl.concat(columns).write_csv(draft)
    return sorted([*written, path])


def _columns(result: Result, table: str, file: str) -> pl.DataFrame:
    return result.columns(table).select(pl.lit(file).alias("table"), pl.all())
