"""Many connections in groups: by server, application and main cause."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airpath.quantities import count, seconds
from airpath.report.tables import Cell, Table
from airpath.trace.avoidable import avoidable
from airpath.trace.causes import of_name, seconds_of
from airpath.trace.format import Row
from airpath.trace.messages import has_radio

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

GROUPED_ABOVE = 40
"""Connections are grouped if there are more than this number."""
_MOST_GROUPS = 40
HEAD = ("server", "application", "main cause", "connections", "time", "avoidable")
"""Titles of the columns of `cells`."""


@dataclass
class Group:
    """Connections with the same server, application and main cause."""

    server: str
    """The name of the server, from TLS; else its address."""
    application: str
    """The application; the server's port where it is not known."""
    cause: str
    """The cause with most time, in words."""
    flows: list[Row] = field(default_factory=list)

    @property
    def avoidable(self) -> float:
        """The sum of the connections' avoidable time, in seconds."""
        return sum(map(avoidable, self.flows))


def groups(trace: "TraceData", flows: Sequence[Row]) -> list[Group]:
    """Return the groups of connections, the most avoidable time first.

    Args:
        trace: The trace.
        flows: Rows of `Trace.connections`.
    """
    timelines = {row["connection"]: row for row in trace.timelines.iter_rows(named=True)}
    found: dict[tuple[str, str, str], Group] = {}
    for flow in flows:
        timeline = timelines.get(flow["connection"], {})
        totals = seconds_of(flow)
        longest = max(totals, key=lambda name: totals[name], default=None)
        cause = of_name(longest, radio=has_radio([flow])).words if longest else "–"
        if flow.get("captured_end"):
            cause = "unknown"
        server = timeline.get("server_name") or flow["server_address"]
        application = timeline.get("application") or f"port {flow['server_port']}"
        key = (server, application, cause)
        found.setdefault(key, Group(*key)).flows.append(flow)
    return sorted(found.values(), key=lambda group: (-group.avoidable, -len(group.flows), group.server))


def cells(group: Group) -> tuple[str, ...]:
    """Return the texts of a group's row."""
    time = sum(flow["duration_s"] for flow in group.flows)
    texts = (group.server, group.application, group.cause, count(len(group.flows)))
    return (*texts, seconds(time), seconds(group.avoidable))


def groups_table(trace: "TraceData", flows: Sequence[Row]) -> Table | None:
    """Return the table of groups for a report; `None` for few connections."""
    if len(flows) <= GROUPED_ABOVE:
        return None
    every = groups(trace, flows)
    rows = [[Cell(text, number=index > 2) for index, text in enumerate(cells(group))] for group in every[:_MOST_GROUPS]]
    caption = "Connections with the same server, application and main cause. The most avoidable time comes first."
    notes = [f"{_MOST_GROUPS} of {len(every):,} groups."] if len(every) > _MOST_GROUPS else []
    return Table("Groups", caption, list(HEAD), rows, notes)
