"""Results for other programs: tables as CSV, a trace for Perfetto, pages as HAR, qlog.

    from airpath import export, load

    export.csv(load("runs/one"), Path("tables"))
    export.perfetto(load("runs/one"), Path("trace.json"))
    export.har(load("runs/one"), Path("pages.har"))
    export.qlog(load("runs/one"), Path("run.qlog"))

| module | contents |
| --- | --- |
| `tables` | each table of a result as a CSV file |
| `perfetto` | one repetition as a trace that ui.perfetto.dev and chrome://tracing open |
| `har` | the pages of one repetition as a HAR file |
| `qlog` | the connections of one repetition as a qlog file, TCP and QUIC |
"""

from airpath.export.har import NoPagesError, har
from airpath.export.perfetto import perfetto
from airpath.export.qlog import NoConnectionsError, qlog
from airpath.export.tables import csv

__all__ = ["NoConnectionsError", "NoPagesError", "csv", "har", "perfetto", "qlog"]
