"""The views of simulated pages, from `pages` and `objects` of the summary and the event log."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from airpath.page.timings import Connection, Phase, Request, View
from airpath.result import NotLoggedError, Result, UnreadableResultError

_SYN, _ACK = 2, 16
_SHORTEST = 1e-6
"""Seconds: a phase below the resolution of a HAR file is not shown."""

Row = Mapping[str, Any]


def simulated(result: Result) -> list[View]:
    """Return the views of all repetitions; none if there are no pages.

    Without a readable table `packets` the phases `connect` and `tls` are part of `queued`.
    """
    objects: dict[tuple[int, int, int], list[Row]] = {}
    for row in result.summary.get("objects", []):
        if row["requested_s"] is not None or row["finished_s"] is not None:
            objects.setdefault((row["repetition"], row["flow"], row["view"]), []).append(row)
    if not objects:
        return []
    flows = {flow["flow"]: flow for flow in result.summary["flows"]}
    log, first_requests = _Log(result), _first_requests(result)
    found = []
    for page in result.summary.get("pages", []):
        rows = objects.get((page["repetition"], page["flow"], page["view"]), [])
        connections = log.connections(page, rows, first_requests if is_secure(flows[page["flow"]]) else {})
        setup = _setup(rows, connections)
        protocol = flows[page["flow"]].get("protocol") or ""
        requests = [_request(row, setup.get(row["object"], ()), protocol) for row in rows]
        figures = {key: value for key, value in page.items() if isinstance(value, int | float)}
        place = (page["page"], page["repetition"], page["view"], page["flow"], page["start_s"])
        found.append(View(*place, figures, sorted(requests, key=lambda each: each.start), connections))
    return found


def is_secure(flow: Row) -> bool:
    """Return whether a flow of kind `page` uses TLS; results of older versions do not have it."""
    return flow.get("tls", "none") != "none"


def _first_requests(result: Result) -> dict[tuple[int, int, int], float]:
    """Return the time of the first request on each connection, in seconds from the start of a run.

    The key is repetition, flow and connection.
    """
    pages, objects = (result.summary.get(name, []) for name in ("pages", "objects"))
    starts = {(page["repetition"], page["flow"], page["view"]): page["start_s"] for page in pages}
    first: dict[tuple[int, int, int], float] = {}
    for row in objects:
        start = starts.get((row["repetition"], row["flow"], row["view"]))
        if start is not None and row["requested_s"] is not None:
            key = (row["repetition"], row["flow"], row["connection"])
            first[key] = min(first.get(key, math.inf), start + row["requested_s"])
    return first


class _Log:
    """The packets of pages at the mobiles."""

    def __init__(self, result: Result) -> None:
        self._flows = len({flow["flow"] for flow in result.summary["flows"]})
        pages = sorted({flow["flow"] for flow in result.summary["flows"] if flow["kind"] == "page"})
        # Connection k of flow f has the number f + k * flows.
        own = (pl.col("flow") % max(self._flows, 1)).is_in(pages)
        try:
            steps = result.scan("packets").filter(pl.col("step").is_in(["sent", "received"]) & own)
            self._steps = steps.select(
                "repetition", "flow", "step", "direction", "packet", "size", "flags", t=pl.col("time") / 1e9
            ).collect()
        except (NotLoggedError, UnreadableResultError, PolarsError):
            self._steps = None

    def connections(
        self, page: Row, rows: Sequence[Row], first_requests: Mapping[tuple[int, int, int], float]
    ) -> list[Connection]:
        """Return the connections with requests in a view, in the order of their opening.

        Args:
            page: The view.
            rows: Its objects.
            first_requests: Result of `_first_requests`; empty without TLS.
        """
        first: dict[int, Row] = {}
        for row in sorted((row for row in rows if row["requested_s"] is not None), key=lambda row: row["requested_s"]):
            first.setdefault(row["connection"], row)
        found = []
        for number, row in first.items():
            opened, setup, closed = row["requested_s"], [], None
            handshake = self._handshake(page, number)
            if handshake is not None:
                opened, established, closed = handshake
                setup.append(Phase("connect", opened, established))
                # TLS ends at the first request, which may be in an earlier view. Where a connection
                # of an earlier view had none there, the end is unknown.
                request = first_requests.get((page["repetition"], page["flow"], number), -math.inf) - page["start_s"]
                if request - established > _SHORTEST and (established >= 0) == (request >= 0):
                    setup.append(Phase("tls", established, request))
            found.append(Connection(str(number), row["origin"], opened, tuple(setup), closed))
        return sorted(found, key=lambda each: each.opened)

    def _handshake(self, page: Row, number: int) -> tuple[float, float, float] | None:
        """Return the times of the SYN, of its acknowledgement and of the last packet."""
        if self._steps is None:
            return None
        own = self._of_view(page, page["flow"] + number * self._flows)
        sent = own.filter((pl.col("step") == "sent") & (pl.col("direction") == "up"))
        syn = sent.filter((pl.col("flags") & _SYN) > 0)["t"].sort()
        acknowledged = sent.filter((pl.col("flags") & (_SYN | _ACK)) == _ACK)["t"].sort()
        if not (syn.len() and acknowledged.len()):
            return None
        return syn[0], acknowledged[0], own["t"].sort()[-1]

    def _of_view(self, page: Row, flow: int) -> pl.DataFrame:
        """Return the steps of a flow, with times from the start of a view."""
        assert self._steps is not None
        own = self._steps.filter((pl.col("repetition") == page["repetition"]) & (pl.col("flow") == flow))
        return own.with_columns(pl.col("t") - page["start_s"])


def _setup(rows: Sequence[Row], connections: Sequence[Connection]) -> dict[int, list[Phase]]:
    """Return the look-ups and set-ups by the object that waited for them first."""
    found: dict[int, list[Phase]] = {}
    waiting: dict[str, Row] = {}
    for row in sorted((row for row in rows if row["requested_s"] is not None), key=lambda row: row["found_s"]):
        waiting.setdefault(row["origin"], row)
    for row in waiting.values():
        # Results of older versions do not have the look-ups.
        if (end := row.get("resolved_s")) is not None:
            found.setdefault(row["object"], []).append(Phase("dns", row["queried_s"], end))
    for connection in connections:
        own = [row for row in rows if str(row["connection"]) == connection.key and row["requested_s"] is not None]
        found.setdefault(min(own, key=lambda row: row["requested_s"])["object"], []).extend(connection.setup)
    return found


def _request(row: Row, setup: Sequence[Phase], protocol: str) -> Request:
    found, requested, first, last = (row[f"{step}_s"] for step in ("found", "requested", "first_byte", "finished"))
    if requested is None:
        phases = [Phase("receive", found, last)]
    else:
        phases = _before(found, requested, setup)
        if first is not None:
            phases += [Phase("wait", requested, first), Phase("receive", first, first if last is None else last)]
    return Request(
        row["name"],
        row["origin"],
        row["type"],
        row["source"],
        None if requested is None else str(row["connection"]),
        row["bytes"],
        "incomplete" if last is None else {"revalidated": "304", "cache": "from the cache"}.get(row["source"], "200"),
        protocol,
        tuple(phases),
    )


def _before(found: float, requested: float, setup: Sequence[Phase]) -> list[Phase]:
    """Return the phases from the discovery of an object to its request."""
    phases, at = [], found
    for step in sorted(setup, key=lambda each: each.start):
        # What began earlier, for another object, was waited for from the discovery only.
        start, end = max(step.start, at), min(step.end, requested)
        if end - start < _SHORTEST:
            continue
        if start - at >= _SHORTEST:
            phases.append(Phase("queued", at, start))
        phases.append(Phase(step.name, start, end))
        at = end
    if requested - at >= _SHORTEST or not phases:
        phases.append(Phase("queued", at, requested))
    return phases
