"""Results for other programs: tables as CSV, and a trace for Perfetto.

    from airpath import export, load

    export.csv(load("runs/one"), Path("tables"))
    export.perfetto(load("runs/one"), Path("trace.json"))

| module | contents |
| --- | --- |
| `tables` | each table of a result as a CSV file |
| `perfetto` | one repetition as a trace that ui.perfetto.dev and chrome://tracing open |
"""

from airpath.export.perfetto import perfetto
from airpath.export.tables import csv

__all__ = ["csv", "perfetto"]
