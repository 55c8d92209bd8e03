"""Analysis of captures: the TCP connections, and the causes of their elapsed time.

    import airpath

    trace = airpath.trace("capture.pcap")
    trace.connections                       # a Polars frame, one row per connection
    trace.observations(3)                   # every segment of connection 3, with its events
    trace.report("report.html")

| module | contents |
| --- | --- |
| `analysis` | `trace`, `stream` and `Trace` |
| `data` | the tables of a trace as frames |
| `tables`, `columns` | the tables' columns, and their conversion from the core |
| `sources` | the files that a trace is made from |
| `folder`, `event_log`, `radio_log` | captures, packets and radio states of a result folder |
| `client_end` | HTTP and TLS from the capture at the clients' end |
| `causes` | the causes of elapsed time |
| `avoidable` | avoidable time, and connections in the order of it |
| `connection_rows` | rows of connections with what sentences need in addition |
| `messages`, `format`, `text`, `output` | sentences, figures as text, output on the terminal and for programs |
| `warnings` | all warnings about captures |
| `figures` | plots of a connection |
| `report`, `connections` | the HTML file, and its table of connections |
| `compare` | several traces compared |
| `perfetto`, `xplot` | exports |
"""

from typing import TYPE_CHECKING, Any

from airpath.trace.analysis import Trace, stream, trace

if TYPE_CHECKING:
    from airpath._native import TraceError

__all__ = ["Trace", "TraceError", "stream", "trace"]


def __getattr__(name: str) -> Any:
    """Load the error's class from the Rust core when it is first used."""
    if name != "TraceError":
        raise AttributeError(f"module 'airpath.trace' has no attribute '{name}'")
    from airpath import _native

    return _native.TraceError
