"""Captures: what each TCP connection did, and why it took as long as it did.

    import airpath

    trace = airpath.trace("capture.pcap")
    trace.connections                       # a Polars frame, one row a connection
    trace.observations(3)                   # every segment of connection 3, and what it meant
    trace.report("report.html")

| module | what |
| --- | --- |
| `analysis` | `trace`, `stream` and `Trace` |
| `tables`, `columns` | the tables' columns, and the core's columns as frames |
| `sources` | what a trace is made from |
| `folder`, `event_log` | the captures of a result folder, or else the packets of its log |
| `words`, `text`, `output` | what is said of connections, and how it is printed |
| `figures` | what is drawn of a connection |
| `report`, `connections` | the HTML file, and its table of connections |
| `client_end` | what was said on connections, as their clients had it |
| `compare` | the figures of several traces in sum |
| `comparison`, `differences` | the HTML file of several traces, and how they differ |
"""

from typing import TYPE_CHECKING, Any

from airpath.trace.analysis import Trace, stream, trace

if TYPE_CHECKING:
    from airpath._native import TraceError

__all__ = ["Trace", "TraceError", "stream", "trace"]


def __getattr__(name: str) -> Any:
    """Load the error's class, which lives in the Rust core, when it is first asked for."""
    if name != "TraceError":
        raise AttributeError(f"module 'airpath.trace' has no attribute '{name}'")
    from airpath import _native

    return _native.TraceError
