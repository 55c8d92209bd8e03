"""The table of connections in a report: each has a bar with the causes of its time."""

from collections.abc import Sequence

from airpath import theme
from airpath.quantities import count, number_of, seconds
from airpath.report.tables import MOST_ROWS, Cell, Part, Table
from airpath.trace.avoidable import AVOIDABLE, SUM_OF_CONNECTIONS, avoidable, order
from airpath.trace.causes import CAUSES, Cause, cause_shares, of_name, seconds_of
from airpath.trace.format import Row, percent
from airpath.trace.messages import ended, has_radio, main_cause

_HATCHINGS = {"": "", "/": " hatched", "x": " crossed"}
"""CSS classes for Plotly's hatchings."""


HEAD = ("connection", "ends", "time", "where it went", "avoidable", "segments", "ended")
"""Titles of the columns of `cells`."""

CAPTION = f"Each bar is the time of its connection, scaled to the same length. {AVOIDABLE}"
"""Explains the bars and the column `avoidable`."""


def connections_table(flows: Sequence[Row], drawn: Sequence[int] = ()) -> Table:
    """Return a table with one row per connection.

    Args:
        flows: Rows of `Trace.connections`, in their order in the table.
        drawn: The numbers of the connections that the page draws in full.
    """
    rows = [cells(flow) for flow in flows[:MOST_ROWS]]
    caption = CAPTION
    if len(flows) > 1:
        caption += f" {SUM_OF_CONNECTIONS} {order(flows)}"
    notes = []
    if 0 < len(drawn) < len(flows):
        if list(drawn) == [flow["connection"] for flow in flows[: len(drawn)]]:
            which = "The first is" if len(drawn) == 1 else f"The first {len(drawn)} are"
        else:
            named = ", ".join(map(str, drawn))
            which = f"Connection {named} is" if len(drawn) == 1 else f"Connections {named} are"
        notes.append(f"{which} drawn in full below; --flow selects others, --in-full draws more.")
    if len(flows) > MOST_ROWS:
        notes.append(f"{MOST_ROWS} of {len(flows):,} connections; all of them are in `Trace.connections`.")
    return Table("Connections", caption, list(HEAD), rows, notes, keys(flows[:MOST_ROWS]))


def cells(flow: Row) -> list[Cell]:
    """Return the cells of the row of a connection or a QUIC flow."""
    name, is_quic = flow.get("flow_name"), "quic" in flow
    return [
        Cell(f"QUIC {flow['quic']}" if is_quic else str(flow["connection"]), number=False),
        Cell(
            name or flow["client"],
            f"{flow['client']} → {flow['server']}" if name else f"→ {flow['server']}",
            number=False,
        ),
        Cell(seconds(flow["duration_s"])),
        where_it_went(flow),
        Cell("–" if flow.get("captured_end") else seconds(avoidable(flow))),
        Cell(number_of(datagrams(flow), "datagram") if is_quic else count(flow["segments"])),
        Cell("–" if is_quic else ended(flow), number=False),
    ]


def datagrams(flow: Row) -> int:
    """Return the number of datagrams of a QUIC flow, in both directions."""
    return flow["client_datagrams"] + flow["server_datagrams"]


def where_it_went(flow: Row) -> Cell:
    """Return the bar of a connection's time, with its main cause below."""
    if flow.get("captured_end"):
        return Cell("", main_cause(flow), number=False)
    totals = seconds_of(flow)
    whole = sum(totals.values())
    share, radio = cause_shares(totals), has_radio([flow])
    parts = [
        Part(
            _kind(of_name(name)),
            round(100 * total / whole, 3),
            f"{of_name(name, radio=radio).words} {seconds(total)}, {percent(share[name])}",
        )
        for name, total in totals.items()
    ]
    return Cell("", main_cause(flow), number=False, parts=parts)


def keys(flows: Sequence[Row]) -> list[Part]:
    """Return the legend of the bars: the causes that occur."""
    present = {name for flow in flows for name in seconds_of(flow)}
    causes = [of_name(cause.name, radio=has_radio(flows)) for cause in CAUSES if cause.name in present]
    return [Part(_kind(cause), 0, cause.words) for cause in causes]


def _kind(cause: Cause) -> str:
    return f"cause-{theme.CAUSES.index(cause.colour)}{_HATCHINGS[cause.pattern]}"
