"""The tables of a trace, as frames: what reports, figures and exports read."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.trace.run_flows import RunFlows
from airpath.trace.selection import Selection, connection_number, selectors
from airpath.trace.sources import Sources

if TYPE_CHECKING:
    import polars as pl


class TraceData:
    """The tables of a trace. Each frame is made when it is first used.

    Times are nanoseconds since 1 January 1970, UTC, spans that end in `_s` seconds, sizes bytes.
    """

    def __init__(self, sources: Sources, *, flow: tuple[str, ...] = ()) -> None:
        self.sources = sources
        self.flow = flow
        self._analysed = analyse(self._request())
        self._observed: dict[tuple[str, ...], TraceData._Observed] = {}

    _Observed = tuple["pl.DataFrame", "pl.DataFrame"]

    def _request(self) -> dict[str, Any]:
        sources = self.sources
        ends = {"peer": sources.peer, "one_clock": sources.one_clock, "log_ends": True, "radio": list(sources.radio)}
        wanted = {"causes": True, "exchanges": True, "observations": self._once}
        return {"files": sources.files, "log": sources.log, "flow": self.flow} | wanted | ends

    @property
    def _once(self) -> bool:
        """Whether the files can be read only once, so that all segments stay in memory."""
        return Path("-") in self.sources.files

    @property
    def reading(self) -> dict[str, Any]:
        """How the files were read: frames, skipped records by cause, shortcomings."""
        note = {} if self.sources.note is None else {"note": self.sources.note}
        return self._analysed["reading"] | note

    @cached_property
    def run_flows(self) -> RunFlows:
        """The flows of the run of a result folder; none of other captures."""
        return RunFlows(self.sources.run, self.sources.repetition)

    @cached_property
    def connections(self) -> "pl.DataFrame":
        """One row per connection.

        Columns: its ends, start, duration, ending, and the seconds of each cause.
        """
        return self._frame("connections")

    @cached_property
    def directions(self) -> "pl.DataFrame":
        """Two rows per connection, `from` the client and `from` the server.

        It has all figures of a direction.
        """
        return self._frame("directions")

    @cached_property
    def causes(self) -> "pl.DataFrame":
        """One row per interval of time with one cause, of a connection or of a QUIC flow.

        Columns: the number of the `connection` or of the flow (`quic`), start, end, first and last
        frame.
        """
        return self._frame("causes")

    @cached_property
    def stalls(self) -> "pl.DataFrame":
        """One row per stall, the longest of each connection.

        Columns: when, the fate of the data, and a description.
        """
        return self._frame("stalls")

    @cached_property
    def radio_states(self) -> "pl.DataFrame":
        """One row per state of the radio log in the time of a connection.

        It has the times with the cause `radio`, or `set-up`, in which a state carried nothing or
        delayed packets.
        """
        return self._frame("radio_states")

    @cached_property
    def _web(self) -> "tuple[dict[str, pl.DataFrame], dict[str, Any]]":
        """The tables of HTTP and TLS, and the HTTP Archive.

        They are read from the capture at the clients' end, if there is one.
        """
        from airpath.trace.client_end import web_tables

        clients = self.sources.clients
        one_way = self.one_way if clients is not None else self.one_way.clear()
        return web_tables(
            self._analysed,
            self.flow,
            one_way,
            lambda flow: analyse({"files": [clients], "flow": flow, "exchanges": True}),
        )

    @cached_property
    def exchanges(self) -> "pl.DataFrame":
        """One row per HTTP request with its response: method, URL, times, bytes."""
        return self._ordered(self._web[0]["exchanges"])

    @cached_property
    def timelines(self) -> "pl.DataFrame":
        """One row per connection with HTTP, TLS or no data: its handshakes and its pipelining."""
        return self._ordered(self._web[0]["timelines"])

    @cached_property
    def pages(self) -> "pl.DataFrame":
        """One row per HTTP client.

        Columns: its requests over all its connections, and how well these were used.
        """
        return self._web[0]["pages"]

    @cached_property
    def quic(self) -> "pl.DataFrame":
        """One row per QUIC flow, with the seconds of each cause."""
        return self._frame("quic")

    @cached_property
    def one_way(self) -> "pl.DataFrame":
        """One row per connection and sender in both captures.

        Columns: lost and spurious packets, one-way delays.
        """
        return self._frame("one_way")

    @cached_property
    def arrival_gaps(self) -> "pl.DataFrame":
        """One row per interval without arrivals at the other end.

        It is a gap if packets were lost, else a delay period.
        """
        return self._frame("arrival_gaps")

    @cached_property
    def transits(self) -> "pl.DataFrame":
        """One row per packet between the captures.

        Columns: when it was sent, whether it arrived, and when.
        """
        return self._frame("transits")

    @property
    def archive(self) -> dict[str, Any]:
        """The HTTP exchanges as an HTTP Archive (HAR 1.2), which browsers' developer tools read."""
        return self._web[1]

    def observations(self, flow: Selection | None = None) -> "pl.DataFrame":
        """Return one row per segment of all connections, or of those that `flow` selects.

        The files are read again.
        """
        return self._observe(flow)[0]

    def selective(self, flow: Selection | None = None) -> "pl.DataFrame":
        """Return one row per SACK block of the same connections."""
        return self._observe(flow)[1]

    def _observe(self, flow: Selection | None) -> "TraceData._Observed":
        selected = self.flow if flow is None else selectors(flow)
        if self._once:
            return self._observed_in_memory(selected)
        if selected not in self._observed:
            from airpath.trace.columns import table

            sources = {"files": self.sources.files, "log": self.sources.log}
            request = sources | {"flow": selected, "observations": True}
            tables = analyse(request)["tables"]
            self._observed[selected] = (table("observations", tables), table("selective", tables))
        return self._observed[selected]

    def _observed_in_memory(self, selected: tuple[str, ...]) -> "TraceData._Observed":
        """Return the segments from memory: of all connections, or of those with these numbers."""
        import polars as pl

        observations, blocks = self._frame("observations"), self._frame("selective")
        if selected == self.flow:
            return observations, blocks
        numbers = [connection_number(each) for each in selected]
        if not numbers or None in numbers:
            raise ValueError("standard input is read only once: select a connection by its number")
        of_numbers = pl.col("connection").is_in(numbers)
        return observations.filter(of_numbers), blocks.filter(of_numbers)

    def _frame(self, name: str) -> "pl.DataFrame":
        from airpath.trace.columns import table

        return self._ordered(table(name, self._analysed["tables"]))

    @staticmethod
    def _ordered(rows: "pl.DataFrame") -> "pl.DataFrame":
        """Return the rows of a table by the numbers of their connections."""
        return rows.sort("connection", maintain_order=True, nulls_last=True) if "connection" in rows.columns else rows


def analyse(request: dict[str, Any], line: Callable[[str], object] | None = None) -> dict[str, Any]:
    """Analyse captures in the Rust core.

    Args:
        request: Arguments of `_native.trace`; what is missing has its default.
        line: Called with a line of JSON for each connection when it ends; there are no tables then.

    Returns:
        `reading`, `tables` and `archive`, as `_native.trace` returns them.
    """
    from airpath import _native
    from airpath.trace.standard_input import ended_by_interrupt

    defaults = {"log": None, "log_ends": False, "peer": None, "one_clock": False, "radio": [], "flow": ()}
    defaults |= {"causes": False, "exchanges": False, "observations": False}
    arguments = defaults | request
    files, flow = (list(arguments.pop(name)) for name in ("files", "flow"))
    with ended_by_interrupt() if Path("-") in files else nullcontext(lambda: False) as interrupted:
        described, tables, archive = _native.trace(files, **arguments, flow=flow, line=line)
    reading = json.loads(described)
    if interrupted():
        reading["interrupted"] = True
        # That it ends within a record is expected then.
        for file in reading["files"]:
            file["ending"] = None if file["name"] == "-" else file["ending"]
    return {"reading": reading, "tables": tables, "archive": archive}
