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
        self._observed: dict[str | None, Trace._Observed] = {}

    _Observed = tuple["pl.DataFrame", "pl.DataFrame"]

    def _request(self, **more: Any) -> dict[str, Any]:
        wanted = {"causes": True, "exchanges": True, "observations": False}
        return {"files": self.files, "flow": self.flow} | wanted | more

    @property
    def reading(self) -> dict[str, Any]:
        """How the files were read: frames, what was passed over and why, and remarks."""
        return self._analysed["reading"]

    @cached_property
    def connections(self) -> "pl.DataFrame":
        """One row a connection: its ends, when, how long, how it ended, and the seconds of each cause."""
        return self._frame("connections")

    @cached_property
    def directions(self) -> "pl.DataFrame":
        """Two rows a connection, `from` the client and `from` the server: all that was counted and measured of each."""
        return self._frame("directions")

    @cached_property
    def causes(self) -> "pl.DataFrame":
        """One row a stretch of a connection's time with one cause, from when to when, between which frames."""
        return self._frame("causes")

    @cached_property
    def stalls(self) -> "pl.DataFrame":
        """One row a stall, of each connection the longest: when, what became of the data, and its story."""
        return self._frame("stalls")

    @cached_property
    def exchanges(self) -> "pl.DataFrame":
        """One row a request of HTTP and its response: what was asked for, when each passed, and its bytes."""
        return self._frame("exchanges")

    @cached_property
    def timelines(self) -> "pl.DataFrame":
        """One row a connection with HTTP or TLS, or nothing on it: its handshakes, and how far it was pipelined."""
        return self._frame("timelines")

    @cached_property
    def pages(self) -> "pl.DataFrame":
        """One row a client of HTTP: what it fetched over all its connections, and how well these were used."""
        return self._frame("pages")

    @cached_property
    def quic(self) -> "pl.DataFrame":
        """One row a flow of QUIC."""
        return self._frame("quic")

    @property
    def archive(self) -> dict[str, Any]:
        """The exchanges of HTTP as an HTTP Archive (HAR 1.2), which browsers' developer tools read."""
        return json.loads(self._analysed["archive"])

    def observations(self, flow: str | int | None = None) -> "pl.DataFrame":
        """Return one row a segment, of all connections or of those that `flow` selects; the files are read again."""
        return self._observe(flow)[0]

    def selective(self, flow: str | int | None = None) -> "pl.DataFrame":
        """Return one row a block of a selective acknowledgement, of the same connections."""
        return self._observe(flow)[1]

    def xplot(self, folder: str | Path) -> list[Path]:
        """Write time–sequence plots for xplot, as `tcptrace -S` does, and return the files.

        Args:
            folder: Where they go.

        Raises:
            OSError: A file cannot be written.
        """
        from airpath.trace.xplot import xplot

        return xplot(self, Path(folder))

    def perfetto(self, out: str | Path) -> Path:
        """Write a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.

        Args:
            out: The file, JSON.

        Raises:
            OSError: The file cannot be written.
        """
        from airpath.trace.perfetto import perfetto

        return perfetto(self, Path(out))

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

    def _observe(self, flow: str | int | None) -> "Trace._Observed":
        selector = self.flow if flow is None else str(flow)
        if selector not in self._observed:
            from airpath.trace.columns import table

            request = self._request(flow=selector, causes=False, exchanges=False, observations=True)
            tables = _analysed(request)["tables"]
            self._observed[selector] = (table("observations", tables), table("selective", tables))
        return self._observed[selector]

    def _frame(self, name: str) -> "pl.DataFrame":
        from airpath.trace.columns import table

        rows = table(name, self._analysed["tables"])
        return rows.sort("connection", maintain_order=True) if "connection" in rows.columns else rows

    def __repr__(self) -> str:
        named = ", ".join(str(file) for file in self.files)
        return f"<airpath.Trace of {named}: {self.connections.height:,} connections>"


def stream(
    path: Source | Sequence[Source],
    line: Callable[[str], object],
    *,
    flow: str | int | None = None,
    causes: bool = False,
) -> dict[str, Any]:
    """Analyse captures of any length, and tell of each connection when it ends; memory grows with the open ones only.

    Args:
        path: As of `trace`.
        line: Called with an object of JSON, as text without a line's end, for each connection.
        flow: As of `trace`.
        causes: Whether to tell where the time went, too.

    Returns:
        How the files were read, as of `Trace.reading`.

    Raises:
        TraceError: As of `trace`.
        UnreadableResultError: A result folder has no captures.
    """
    selector = None if flow is None else str(flow)
    request = {"files": _files(path), "flow": selector, "causes": causes, "exchanges": False, "observations": False}
    return _analysed(request, line)["reading"]


def _analysed(request: dict[str, Any], line: Callable[[str], object] | None = None) -> dict[str, Any]:
    """Have the core analyse captures."""
    from airpath import _native

    files = [Path(file) for file in request.pop("files")]
    reading, tables, archive = _native.trace(files, **request, line=line)
    return {"reading": json.loads(reading), "tables": tables, "archive": archive}


def _files(path: Source | Sequence[Source]) -> list[Path]:
    """Return the captures; of a result folder the server's, which is where most of the data is sent."""
    files = [Path(each) for each in ([path] if isinstance(path, str | Path) else path)]
    if len(files) == 1 and files[0].is_dir():
        return [captured(files[0]).server]
    return files
