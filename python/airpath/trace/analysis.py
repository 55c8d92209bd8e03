"""The Python interface: `trace`, `Trace` and `stream`."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airpath.files import write_text
from airpath.trace.data import TraceData, analyse
from airpath.trace.outputs import check_output
from airpath.trace.radio_log import addresses
from airpath.trace.selection import Selection, selectors
from airpath.trace.sources import Source, Sources, sources_of


def trace(
    path: Source | Sequence[Source],
    *,
    peer: Source | None = None,
    radio: Source | None = None,
    radio_columns: Mapping[str, str] | None = None,
    flow: Selection | None = None,
    repetition: int | None = None,
) -> "Trace":
    """Read captures and analyse their TCP connections.

    Args:
        path: A capture (pcap, pcapng or snoop, also compressed by gzip or zstd), several in the
            order of their times, `-` for standard input, or a result folder. Of a folder its
            captures at both ends are read, or its event log if it has none, and its radio log.
        peer: A capture of the same traffic at the other end.
        radio: A radio log: a result folder, or a CSV file.
        radio_columns: The columns of a CSV file (`docs/trace.md`); by default those of airpath's
            own logs.
        flow: Selects connections and QUIC flows: by number (`tcp:3` or `quic:3` those of one kind),
            address, port (`:443`), or both (`192.0.2.1:443`); in a simulated run's folder also by
            the name of a mobile. A sequence selects those of each. By default all.
        repetition: The repetition of a result folder, from 0; by default the median one, as in
            reports.

    Raises:
        TraceError: A file is missing or no capture, has no TCP, `peer` does not match, or the
            flow does not exist.
        UnreadableResultError: A result folder has neither captures nor a packet log.
        OSError: The radio log cannot be read.
    """
    sources = sources_of(path, peer, radio, radio_columns or {}, repetition)
    return Trace(sources, flow=_selected(flow, sources))


class Trace(TraceData):
    """The connections of captures: their tables, and reports and exports of them."""

    def xplot(self, folder: str | Path) -> list[Path]:
        """Write time–sequence plots for xplot, as `tcptrace -S` does, and return the files.

        Args:
            folder: The folder for the files.

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
            TraceError: The file is an input or another capture.
        """
        from airpath.trace.perfetto import perfetto

        self._check(out)
        return perfetto(self, Path(out))

    def report(self, out: str | Path, *, in_full: int = 3, command: str | None = None) -> Path:
        """Write the report as one HTML file that works offline.

        Args:
            out: The file.
            in_full: The number of connections that are drawn in full, the most avoidable time
                first; all are listed.
            command: The command that makes it again; by default `airpath trace` with these files.

        Raises:
            OSError: The file cannot be written.
            TraceError: The file is an input or another capture.
        """
        from airpath.trace.report import write

        self._check(out)
        return write(self, Path(out), in_full=in_full, command=command)

    def har(self, out: str | Path) -> Path:
        """Write the exchanges of HTTP as an HTTP Archive.

        Args:
            out: The file, JSON.

        Raises:
            OSError: The file cannot be written.
            TraceError: The file is an input or another capture.
        """
        self._check(out)
        write_text(Path(out), json.dumps(self.archive, indent=1, ensure_ascii=False) + "\n")
        return Path(out)

    def _check(self, out: str | Path) -> None:
        """Check that an output replaces no capture, and no radio log."""
        check_output(Path(out), self.sources.inputs)

    def __repr__(self) -> str:
        names = [file["name"] for file in self.reading["files"]]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"<airpath.Trace of {names[0]}{more}: {self.connections.height:,} connections>"

    def _repr_html_(self) -> str:
        from airpath.notebook import table
        from airpath.quantities import seconds

        head = ("connection", "client", "server", "time", "ending")
        columns = ("connection", "client", "server", "duration_s", "ending")
        rows = [
            (str(number), client, server, seconds(duration), ending or "")
            for number, client, server, duration, ending in self.connections.select(columns).iter_rows()
        ]
        files = ", ".join(file["name"] for file in self.reading["files"])
        return table(files, f", {len(rows):,} connections", head, rows, rest="in .connections")


def stream(
    path: Source | Sequence[Source],
    line: Callable[[str], object],
    *,
    flow: Selection | None = None,
    causes: bool = False,
    repetition: int | None = None,
) -> dict[str, Any]:
    """Analyse captures of any length, and report each connection when it ends.

    Memory grows with open ones only.

    Args:
        path: See `trace`.
        line: Called with a JSON object, as text without a line feed, for each connection.
        flow: See `trace`.
        causes: Whether to report the causes of elapsed time, too.
        repetition: See `trace`.

    Returns:
        How the files were read, as `Trace.reading`.

    Raises:
        TraceError: See `trace`.
        UnreadableResultError: See `trace`.
    """
    sources = sources_of(path, None, None, {}, repetition)
    request = {"files": sources.files, "log": sources.log, "flow": _selected(flow, sources), "causes": causes}
    return analyse(request, line)["reading"]


def _selected(flow: Selection | None, sources: Sources) -> tuple[str, ...]:
    """Return the selectors; the name of a mobile of the run becomes its address."""
    texts = selectors(flow)
    if sources.run is None or not texts:
        return texts
    named = addresses(sources.run)
    return tuple(named.get(each, each) for each in texts)
