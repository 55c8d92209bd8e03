"""The call from Python: captures in, frames of their connections out."""

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.trace.folder import captured

if TYPE_CHECKING:
    import polars as pl

Source = str | Path


def trace(path: Source | Sequence[Source], *, flow: str | int | None = None) -> "Trace":
    """Read captures and say what each TCP connection in them did.

    Args:
        path: A capture (pcap or pcapng), several in the order of their times, `-` for standard input, or a result
            folder with captures.
        flow: Which connections: a number, an address, a port (`:443`), or both (`192.0.2.1:443`); by default all.

    Raises:
        TraceError: A file is not there or no capture, holds no TCP, or there is no such connection.
        UnreadableResultError: A result folder has no captures.
    """
    return Trace(_files(path), flow=None if flow is None else str(flow))


class Trace:
    """The connections of captures. Its frames are made when they are first asked for.

    Times are nanoseconds since 1 January 1970, UTC, spans that end in `_s` seconds, sizes bytes.
    """

    def __init__(self, files: Sequence[Path], *, flow: str | None = None) -> None:
        self.files = tuple(files)
        self.flow = flow
        self._analysed = _analysed(self._request())
        self._observed: dict[str, Trace._Observed] = {}

    _Observed = tuple["pl.DataFrame", "pl.DataFrame"]

    def _request(self, **more: Any) -> dict[str, Any]:
        return {"files": self.files, "flow": self.flow, "observations": False} | more

    @property
    def reading(self) -> dict[str, Any]:
        """How the files were read: frames, what was passed over and why, and remarks."""
        return self._analysed["reading"]

    @cached_property
    def connections(self) -> "pl.DataFrame":
        """One row a connection: its ends, when, how long, how it ended."""
        return self._frame("connections")

    def observations(self, flow: str | int) -> "pl.DataFrame":
        """Return one row a segment of the connections that `flow` selects; the files are read again for it."""
        return self._observe(str(flow))[0]

    def selective(self, flow: str | int) -> "pl.DataFrame":
        """Return one row a block of a selective acknowledgement of the connections that `flow` selects."""
        return self._observe(str(flow))[1]

    def report(self, out: str | Path, *, command: str | None = None) -> Path:
        """Write the report as one HTML file that works offline.

        Args:
            out: The file.
            command: The command that makes it again; by default `airpath trace` with these files.

        Raises:
            OSError: The file cannot be written.
        """
        from airpath.trace.report import write

        return write(self, Path(out), command=command)

    def _observe(self, flow: str) -> "Trace._Observed":
        if flow not in self._observed:
            from airpath.trace.columns import table

            tables = _analysed(self._request(flow=flow, observations=True))["tables"]
            self._observed[flow] = (table("observations", tables), table("selective", tables))
        return self._observed[flow]

    def _frame(self, name: str) -> "pl.DataFrame":
        from airpath.trace.columns import table

        return table(name, self._analysed["tables"]).sort("connection", maintain_order=True)

    def __repr__(self) -> str:
        named = ", ".join(str(file) for file in self.files)
        return f"<airpath.Trace of {named}: {self.connections.height:,} connections>"


def stream(
    path: Source | Sequence[Source], line: Callable[[str], object], *, flow: str | int | None = None
) -> dict[str, Any]:
    """Analyse captures of any length, and tell of each connection when it ends; memory grows with the open ones only.

    Args:
        path: As of `trace`.
        line: Called with an object of JSON, as text without a line's end, for each connection.
        flow: As of `trace`.

    Returns:
        How the files were read, as of `Trace.reading`.

    Raises:
        TraceError: As of `trace`.
        UnreadableResultError: A result folder has no captures.
    """
    selector = None if flow is None else str(flow)
    return _analysed({"files": _files(path), "flow": selector, "observations": False}, line)["reading"]


def _analysed(request: dict[str, Any], line: Callable[[str], object] | None = None) -> dict[str, Any]:
    """Have the core analyse captures."""
    from airpath import _native

    files = [Path(file) for file in request.pop("files")]
    reading, tables = _native.trace(files, **request, line=line)
    return {"reading": json.loads(reading), "tables": tables}


def _files(path: Source | Sequence[Source]) -> list[Path]:
    """Return the captures; of a result folder the server's, which is where most of the data is sent."""
    files = [Path(each) for each in ([path] if isinstance(path, str | Path) else path)]
    if len(files) == 1 and files[0].is_dir():
        return [captured(files[0]).server]
    return files
