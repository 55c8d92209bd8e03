"""A trace on standard output, for programs."""

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airpath.trace.analysis import Trace


def write(trace: "Trace", form: str) -> None:
    """Write the connections as `csv` or `parquet`, or everything as `json`."""
    match form:
        case "csv":
            sys.stdout.write(trace.connections.write_csv())
        case "parquet":
            trace.connections.write_parquet(sys.stdout.buffer)
        case _:
            whole = {"reading": trace.reading, "connections": trace.connections.to_dicts()}
            json.dump(whole, sys.stdout, indent=2, ensure_ascii=False)
            sys.stdout.write("\n")
