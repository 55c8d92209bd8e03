"""The call from Python: captures in, frames of their connections out."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.trace.radio_log import addresses
from airpath.trace.sources import Source, Sources, sources_of

if TYPE_CHECKING:
    import polars as pl


def trace(
    path: Source | Sequence[Source],
    *,
    peer: Source | None = None,
    radio: Source | None = None,
    radio_columns: Mapping[str, str] | None = None,
    flow: str | int | None = None,
    repetition: int | None = None,
) -> "Trace":
    """Read captures and say what each TCP connection in them did.

    Args:
        path: A capture (pcap, pcapng or snoop, also compressed by gzip or zstd), several in the order of their times,
            `-` for standard input, or a result folder: then its captures or, if it has none, its event log is read,
            from both ends, and `radio` is the log in it.
        peer: A capture of the same traffic at the other end.
        radio: A radio log: a result folder, or a CSV file.
        radio_columns: Which columns of a CSV file hold what (`docs/trace.md`); by default those of airpath's own logs.
        flow: Which connections: a number, an address, a port (`:443`), or both (`192.0.2.1:443`), of a simulated run's
            folder the name of a mobile; by default all.
        repetition: Of a result folder, which repetition, from 0; by default the median one, as reports draw it.

    Raises:
        TraceError: A file is not there or no capture, holds no TCP, `peer` does not match, or there is no such
            connection.
        UnreadableResultError: A result folder has neither captures nor a log of its packets.
        OSError: The radio log cannot be read.
    """
    sources = sources_of(path, peer, radio, radio_columns or {}, repetition)
    selector = None if flow is None else str(flow)
    if sources.run is not None and selector is not None:
        selector = addresses(sources.run).get(selector, selector)
    return Trace(sources, flow=selector)


class Trace:
    """The connections of captures. Its frames are made when they are first asked for.

    Times are nanoseconds since 1 January 1970, UTC, spans that end in `_s` seconds, sizes bytes.
    """

    def __init__(self, sources: Sources, *, flow: str | None = None) -> None:
        self.sources = sources
        self.flow = flow
        self._analysed = _analysed(self._request())
        self._observed: dict[str | None, Trace._Observed] = {}

    _Observed = tuple["pl.DataFrame", "pl.DataFrame"]

    def _request(self) -> dict[str, Any]:
        sources = self.sources
        ends = {"peer": sources.peer, "one_clock": sources.one_clock, "log_ends": True, "radio": list(sources.radio)}
        wanted = {"causes": True, "exchanges": True, "observations": self._once}
        return {"files": sources.files, "log": sources.log, "flow": self.flow} | wanted | ends

    @property
    def _once(self) -> bool:
        """Whether the files can be read only once, so that all segments are kept at once."""
        return Path("-") in self.sources.files

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
    def _said(self) -> "tuple[dict[str, pl.DataFrame], dict[str, Any]]":
        """What was said, as the clients had it where there is a capture at their end."""
        from airpath.trace.client_end import said

        clients = self.sources.clients
        ways = self.ways if clients is not None else self.ways.clear()
        return said(
            self._analysed,
            self.flow,
            ways,
            lambda flow: _analysed({"files": [clients], "flow": flow, "exchanges": True}),
        )

    @cached_property
    def exchanges(self) -> "pl.DataFrame":
        """One row a request of HTTP and its response: what was asked for, when each passed, and its bytes."""
        return self._ordered(self._said[0]["exchanges"])

    @cached_property
    def timelines(self) -> "pl.DataFrame":
        """One row a connection with HTTP or TLS, or nothing on it: its handshakes, and how far it was pipelined."""
        return self._ordered(self._said[0]["timelines"])

    @cached_property
    def pages(self) -> "pl.DataFrame":
        """One row a client of HTTP: what it fetched over all its connections, and how well these were used."""
        return self._said[0]["pages"]

    @cached_property
    def quic(self) -> "pl.DataFrame":
        """One row a flow of QUIC."""
        return self._frame("quic")

    @cached_property
    def ways(self) -> "pl.DataFrame":
        """One row a connection and sender that both captures have: packets lost and spurious, one-way delays."""
        return self._frame("ways")

    @cached_property
    def silences(self) -> "pl.DataFrame":
        """One row a time without arrivals at the other end: a gap, with packets lost, or a delay period without."""
        return self._frame("silences")

    @cached_property
    def passages(self) -> "pl.DataFrame":
        """One row a packet that both captures could have: when it was sent, whether it arrived, and when."""
        return self._frame("passages")

    @property
    def archive(self) -> dict[str, Any]:
        """The exchanges of HTTP as an HTTP Archive (HAR 1.2), which browsers' developer tools read."""
        return self._said[1]

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

    def report(self, out: str | Path, *, in_full: int = 3, command: str | None = None) -> Path:
        """Write the report as one HTML file that works offline.

        Args:
            out: The file.
            in_full: How many connections are drawn in full, the longest first; all are listed.
            command: The command that makes it again; by default `airpath trace` with these files.

        Raises:
            OSError: The file cannot be written.
        """
        from airpath.trace.report import write

        return write(self, Path(out), in_full=in_full, command=command)

    def har(self, out: str | Path) -> Path:
        """Write the exchanges of HTTP as an HTTP Archive.

        Args:
            out: The file, JSON.

        Raises:
            OSError: The file cannot be written.
        """
        Path(out).write_text(json.dumps(self.archive, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return Path(out)

    def _observe(self, flow: str | int | None) -> "Trace._Observed":
        selector = self.flow if flow is None else str(flow)
        if self._once:
            return self._observed_before(selector)
        if selector not in self._observed:
            from airpath.trace.columns import table

            sources = {"files": self.sources.files, "log": self.sources.log}
            request = sources | {"flow": selector, "observations": True}
            tables = _analysed(request)["tables"]
            self._observed[selector] = (table("observations", tables), table("selective", tables))
        return self._observed[selector]

    def _observed_before(self, selector: str | None) -> "Trace._Observed":
        """Return the segments of all connections, or of the one of that number."""
        observations, blocks = self._frame("observations"), self._frame("selective")
        if selector == self.flow:
            return observations, blocks
        if selector is None or not selector.isdecimal():
            raise ValueError("standard input is read only once: select a connection by its number")
        number = int(selector)
        return observations.filter(connection=number), blocks.filter(connection=number)

    def _frame(self, name: str) -> "pl.DataFrame":
        from airpath.trace.columns import table

        return self._ordered(table(name, self._analysed["tables"]))

    @staticmethod
    def _ordered(rows: "pl.DataFrame") -> "pl.DataFrame":
        """Return the rows of a table by the numbers of their connections."""
        return rows.sort("connection", maintain_order=True) if "connection" in rows.columns else rows

    def __repr__(self) -> str:
        named = ", ".join(file["name"] for file in self.reading["files"])
        return f"<airpath.Trace of {named}: {self.connections.height:,} connections>"


def stream(
    path: Source | Sequence[Source],
    line: Callable[[str], object],
    *,
    flow: str | int | None = None,
    causes: bool = False,
    repetition: int | None = None,
) -> dict[str, Any]:
    """Analyse captures of any length, and tell of each connection when it ends; memory grows with the open ones only.

    Args:
        path: As of `trace`.
        line: Called with an object of JSON, as text without a line's end, for each connection.
        flow: As of `trace`.
        causes: Whether to tell where the time went, too.
        repetition: As of `trace`.

    Returns:
        How the files were read, as of `Trace.reading`.

    Raises:
        TraceError: As of `trace`.
        UnreadableResultError: As of `trace`.
    """
    selector = None if flow is None else str(flow)
    sources = sources_of(path, None, None, {}, repetition)
    request = {"files": sources.files, "log": sources.log, "flow": selector, "causes": causes}
    return _analysed(request, line)["reading"]


def _analysed(request: dict[str, Any], line: Callable[[str], object] | None = None) -> dict[str, Any]:
    """Have the core analyse captures."""
    from airpath import _native

    usual = {"log": None, "log_ends": False, "peer": None, "one_clock": False, "radio": []}
    usual |= {"causes": False, "exchanges": False, "observations": False}
    wanted = usual | request
    reading, tables, archive = _native.trace(list(wanted.pop("files")), **wanted, line=line)
    return {"reading": json.loads(reading), "tables": tables, "archive": archive}
