"""A trace on standard output, in formats for programs."""

import io
import json
import sys
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

_TABLES = (
    "connections",
    "directions",
    "causes",
    "stalls",
    "radio_states",
    "exchanges",
    "timelines",
    "pages",
    "quic",
    "one_way",
    "arrival_gaps",
)


def write(trace: "TraceData", form: str) -> None:
    """Write the connections and figures as `csv` or `parquet`, or all tables as `json`."""
    match form:
        case "csv":
            sys.stdout.write(wide(trace).write_csv())
        case "parquet":
            # Polars reports a closed pipe as an error of its own.
            file = io.BytesIO()
            wide(trace).write_parquet(file)
            sys.stdout.buffer.write(file.getvalue())
        case _:
            tables = {name: getattr(trace, name).to_dicts() for name in _TABLES}
            sys.stdout.write(json.dumps({"reading": trace.reading} | tables, indent=2, ensure_ascii=False))
            sys.stdout.write("\n")


def wide(trace: "TraceData") -> pl.DataFrame:
    """Return one row per connection, with columns `client_…` and `server_…` for the directions."""
    table = trace.connections
    for sender in ("client", "server"):
        own = trace.directions.filter(pl.col("from") == sender).drop("from")
        table = table.join(
            own.rename(lambda name, of=sender: name if name == "connection" else f"{of}_{name}"), on="connection"
        )
    return table
