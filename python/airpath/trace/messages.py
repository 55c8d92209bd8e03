"""Sentences about connections and the files of a trace."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from airpath.quantities import count, number_of, rate, seconds, size
from airpath.trace.causes import CAUSES, OTHER, cause_shares, of_name, seconds_of, small_causes
from airpath.trace.elapsed import FULL, LINKS, Elapsed, FullLink, elapsed
from airpath.trace.format import Row, named, percent

if TYPE_CHECKING:
    import polars as pl

_ENDINGS = {
    "closed": "Closed by both ends.",
    "open": "Open at the end of the capture.",
    "idle": "Idle for so long that it counts as ended.",
    "ports-reused": "Ended by another connection with the same ports.",
}
"""Sentences about the end of a connection without a reset."""
_CLIENTS = 3
"""At most this number of clients with a shared path is described."""
_LEAST_SKEW = 0.1
"""A smaller skew, in parts per million, is not reported: 6 ms in a day."""
_MAIN_LINK = 0.85
"""A queue is in a direction of the link that was full for this share of the time in which either
was."""
_LEAST_FULL = 0.1
"""The direction of a link is not described if it was full for a smaller share of the time in which
either was."""


def ends(flow: Row) -> str:
    """Return the two ends of a connection, the client first."""
    return f"{flow['client']} → {flow['server']}"


def name_of(flow: Row) -> str:
    """Return the ends of a connection, after the flow of a result folder that it is.

    The name of a flow of a real program has the ends.
    """
    name = flow.get("flow_name")
    if name and flow["client"] in name and flow["server"] in name:
        return name
    return f"{name}, {ends(flow)}" if name else ends(flow)


def ended(flow: Row) -> str:
    """Return how a connection ended: in the table, in one word.

    Args:
        flow: The connection, a row of `connection_rows.flows`.
    """
    if flow["reset"]:
        return "reset"
    if flow["ending"] == "open":
        # As the sentence of `ending`: the capture ends while the connection closes.
        return ("open", "half-closed", "closing")[flow.get("closing_ends", 0)]
    return str(flow["ending"])


def ending(flow: Row, directions: Iterable[Row]) -> str:
    """Return sentences about the end of a connection, and about a handshake that is not captured.

    Args:
        flow: The connection.
        directions: Its two directions.
    """
    rows = list(directions)
    resets = [row["from"] for row in rows if row["resets"]]
    closing = [row["from"] for row in rows if row.get("fins")]
    if resets:
        text = f"Reset by the {' and the '.join(resets)}."
    elif flow["ending"] == "open" and len(closing) == 2:
        text = "Closed by both ends; the capture ends before the last acknowledgement."
    elif flow["ending"] == "open" and closing:
        text = f"Closed by the {closing[0]}; the capture ends before the other end closed it."
    else:
        text = _ENDINGS[flow["ending"]]
    if not any(row.get("syns", True) for row in rows):
        text += " The capture begins after the handshake; the ports show which end is the server."
    return text


def clock(reading: Row) -> str:
    """Return a sentence about the clock of the other end's capture, if it had to be estimated."""
    estimated = reading.get("clock")
    if not estimated or estimated["uncertainty_s"] is None:
        return ""
    offset, skew = estimated["offset_s"], estimated["skew"] * 1e6
    apart = f"{seconds(abs(offset))} {'ahead of' if offset > 0 else 'behind'}" if offset else "equal to"
    drift = f", with a skew of {skew:+.1f} parts per million" if abs(skew) >= _LEAST_SKEW else ""
    return (
        f"The clock of the other end is {apart} that of the first capture, ± {seconds(estimated['uncertainty_s'])}"
        f"{drift}; one-way delays have this uncertainty."
    )


def in_transit(rows: Iterable[Row]) -> list[str]:
    """Return sentences about losses and delays between two captures.

    Args:
        rows: Rows of `Trace.one_way` of a connection.
    """
    return [
        f"From the {row['from']}: {row['lost']:,} of {row['data_packets']:,} packets with data lost in transit, "
        f"one-way delay {seconds(row['delay_min_ns'] / 1e9)} to {seconds(row['delay_max_ns'] / 1e9)}, "
        f"median {seconds(row['delay_p50_ns'] / 1e9)}."
        for row in rows
        if row["delay_min_ns"] is not None
    ]


def losses(directions: Iterable[Row], one_way: Iterable[Row]) -> list[str]:
    """Return a sentence for each direction that lost segments before the capture point.

    Args:
        directions: The two directions of a connection.
        one_way: Its rows of `Trace.one_way`, which count the losses after the capture point.
    """
    counted = {row["from"]: row["lost"] for row in one_way}
    texts = []
    for row in directions:
        before = row["lost_before_capture"]
        if not before:
            continue
        what = "1 segment was" if before == 1 else f"{count(before)} segments were"
        after = counted.get(row["from"])
        if after is None:
            # Each loss has a retransmission, which the capture shows with the first copy.
            most = max(0, row["retransmissions"] - row["spurious"])
            later = f"at most {count(most)}" if most else "none"
        else:
            later = count(after) if after else "none"
        texts.append(f"From the {row['from']}: {what} lost before the capture point, and {later} after it.")
    return texts


def behind(flow: Row, connections: Iterable[Row]) -> str:
    """Return a sentence that names the connections with which a connection shared its path.

    Args:
        flow: The connection.
        connections: All connections of the trace.
    """
    if not flow.get("sharing_s"):
        return ""
    begin, end = flow["start"], flow["start"] + flow["duration_s"] * 1e9
    others = [
        other["connection"]
        for other in connections
        if other["client_address"] == flow["client_address"]
        and other["connection"] != flow["connection"]
        and other["start"] < end
        and begin < other["start"] + other["duration_s"] * 1e9
    ]
    if not others:
        # Datagrams, or connections that are not selected.
        return ""
    return f"It shared the path with {named(others)} of {flow.get('client_name', flow['client_address'])}."


def filled_by(pieces: Iterable[Row]) -> dict[str, dict[str | None, float]]:
    """Return the seconds of each cause with a full link, by the end whose packets filled it.

    Args:
        pieces: Rows of `Trace.causes`.
    """
    times: dict[str, dict[str | None, float]] = {}
    for piece in pieces:
        if piece.get("cause") in FULL:
            ends = times.setdefault(piece["cause"], {})
            ends[piece["full_by"]] = ends.get(piece["full_by"], 0.0) + (piece["end"] - piece["start"]) / 1e9
    return times


def main_link(filled: Mapping[str, Mapping[str | None, float]]) -> str:
    """Return the direction of a link that was full for most of the time: `link` if that is neither.

    Args:
        filled: As `filled_by` returns it.
    """
    times: dict[str | None, float] = {}
    for ends in filled.values():
        for end, time in ends.items():
            times[end] = times.get(end, 0.0) + time
    longest = max(times, key=lambda end: times[end], default=None)
    return LINKS[longest if times and times[longest] >= _MAIN_LINK * sum(times.values()) else None]


def spurious_timers(flow: Row, directions: Iterable[Row], pieces: Iterable[Row] = ()) -> str:
    """Return a sentence about retransmissions of a timer that were spurious, and why.

    Args:
        flow: The connection.
        directions: Its two directions.
        pieces: Its rows of `Trace.causes`.
    """
    number = every = 0
    for row in directions:
        by_timer = row["early_timer_retransmissions"] + row["timeouts"] + row["tail_probes"]
        number += min(row["spurious"], by_timer)
        every += row["spurious"]
    if not number:
        return ""
    times = seconds_of(flow)
    link = main_link(filled_by(pieces))
    delays = {f"in the queue of the full {link} (bufferbloat)": sum(times.get(name, 0.0) for name in FULL)}
    delays["for the radio" if flow.get("radio_known") else "on the silent path"] = times.get("radio", 0.0)
    where = max(delays, key=lambda name: delays[name])
    waited = f"waited {where}" if delays[where] else "was delayed"
    what = "1 retransmission was" if every == 1 else f"{count(every)} retransmissions were"
    # Which of them are the spurious ones is not counted.
    timers = "" if number == every else f", at most {count(number)} of them by a timer"
    return f"{what} spurious{timers}: the data or its acknowledgement {waited} for longer than the sender's timer."


def together(connections: Sequence[Row], pieces: "pl.DataFrame", directions: "pl.DataFrame") -> list[str]:
    """Return sentences about the clients whose connections shared a path, longest waits first.

    Args:
        connections: All connections of the trace.
        pieces: `Trace.causes`.
        directions: `Trace.directions`.
    """
    clients: dict[str, list[Row]] = {}
    for flow in connections:
        clients.setdefault(flow["client_address"], []).append(flow)
    shared = {
        address: sum(flow.get("sharing_s") or 0 for flow in flows)
        for address, flows in clients.items()
        if len(flows) > 1
    }
    first = sorted((address for address in shared if shared[address]), key=lambda address: (-shared[address], address))
    names = {address: flows[0].get("client_name", address) for address, flows in clients.items()}
    return [of_client(names[address], elapsed(clients[address], pieces, directions)) for address in first[:_CLIENTS]]


def of_client(name: str, own: Elapsed) -> str:
    """Return how full a client's link was, its rate, and the least time of its data."""
    links = [link for link in own.links.values() if link.full_s >= _LEAST_FULL * own.full_s]
    texts = [f"The connections of {name} shared its link, {_full(link, own.span_s, alone=True)}" for link in links[:1]]
    texts += [
        f"The other direction, the {LINKS[link.end]}, {_full(link, own.span_s)}"
        for link in links[1:]
        if link.end is not None and links[0].end is not None
    ]
    return " ".join(texts)


def _full(link: FullLink, span: float, *, alone: bool = False) -> str:
    """Return how long a direction of a link was full, its rate, and the least time of its data."""
    which = "" if not alone else "which " if link.end is None else f"whose {LINKS[link.end]} "
    text = f"{which}was full for {seconds(link.full_s)} of {seconds(span)} ({percent(100 * link.full_s / span)})"
    if not link.rate_bps:
        return f"{text}. Together they {link.moved} {size(link.bytes)}."
    beside = "" if link.bytes >= link.opposite_bytes else ", and acknowledgements"
    text += f", and carried {rate(link.rate_bps)} of data meanwhile{beside}."
    if link.least_s is None:
        return text
    return f"{text} At this rate the {size(link.bytes)} that they {link.moved} take at least {seconds(link.least_s)}."


def sentence(flow: Row) -> str:
    """Return the causes of a connection's time, the largest first, with shares of 100 % in sum."""
    if flow.get("captured_end"):
        return f"{seconds(flow['duration_s'])}, of unknown causes."
    return sum_sentence(seconds_of(flow), flow["duration_s"], radio=has_radio([flow]))


def radio_sentence(states: Iterable[Row]) -> str:
    """Return the states of the radio log in the time of connections, the longest first.

    Args:
        states: Rows of `Trace.radio_states`.
    """
    times: dict[tuple[str, str], int] = {}
    for state in states:
        key = (state["cause"], state["state"])
        times[key] = times.get(key, 0) + state["end"] - state["start"]
    texts = []
    for cause in ("radio", "set-up"):
        own = {name: time for (of_cause, name), time in times.items() if of_cause == cause}
        if own:
            parts = [f"{name} {seconds(own[name] / 1e9)}" for name in sorted(own, key=lambda name: (-own[name], name))]
            words = of_name(cause, radio=True).words
            texts.append(f"{words[0].upper()}{words[1:]}, by state: {', '.join(parts)}.")
    return " ".join(texts)


def has_radio(flows: Iterable[Row]) -> bool:
    """Return whether a radio log shows that the paths of these connections have a radio."""
    return all(flow.get("radio_known", False) for flow in flows)


def sum_of(flows: Iterable[Row]) -> dict[str, float]:
    """Return the seconds of each cause in all connections, in the order of `CAUSES`."""
    each = [seconds_of(flow) for flow in flows]
    return {cause.name: total for cause in CAUSES if (total := sum(of.get(cause.name, 0.0) for of in each))}


def sum_sentence(totals: Mapping[str, float], duration: float, *, radio: bool = False) -> str:
    """Return a time as the sum of its causes.

    Args:
        totals: The seconds of each cause by its name.
        duration: The time in seconds.
        radio: Whether the path has a radio, see `has_radio`.
    """
    share, small = cause_shares(totals), small_causes(totals)
    large = sorted((name for name in totals if name not in small), key=lambda name: -totals[name])
    texts = [f"{seconds(totals[name])} {of_name(name, radio=radio).words} ({percent(share[name])})" for name in large]
    if small:
        texts.append(f"{seconds(sum(totals[name] for name in small))} {OTHER} ({percent(share[OTHER])})")
    return f"{seconds(duration)}: {', '.join(texts)}." if texts else f"{seconds(duration)}."


def main_cause(flow: Row) -> str:
    """Return the cause with the most time, and its share."""
    totals = seconds_of(flow)
    if flow.get("captured_end"):
        return f"unknown: only the {flow['captured_end']} is captured"
    if not totals:
        return "–"
    longest = max(totals, key=lambda name: totals[name])
    return f"{of_name(longest, radio=has_radio([flow])).words}, {percent(cause_shares(totals)[longest])}"


def other_causes(totals: Mapping[str, float], *, radio: bool) -> str:
    """Return a sentence with the causes that `sum_sentence` combines; empty without any.

    Args:
        totals: The seconds of each cause by its name.
        radio: Whether the path has a radio, see `has_radio`.
    """
    parts = [f"{seconds(totals[name])} {of_name(name, radio=radio).words}" for name in small_causes(totals)]
    return f"The other causes: {', '.join(parts)}." if parts else ""


def summary(reading: Row, connections: int, quic: int = 0) -> str:
    """Return a sentence about the files: frames, time, connections, and QUIC flows if any."""
    frames = sum(file["frames"] for file in reading["files"])
    names = ", ".join(file["name"] for file in reading["files"])
    times = [(file["first"], file["last"]) for file in reading["files"] if file["first"] is not None]
    span = (max(last for _, last in times) - min(first for first, _ in times)) / 1e9 if times else 0.0
    flows = ", ".join(counted(connections, quic))
    unit = _unit(reading)
    return f"{names}: {count(frames)} {unit.removesuffix('s') if frames == 1 else unit} in {seconds(span)}, {flows}"


def counted(connections: int, quic: int) -> list[str]:
    """Return the number of connections, and that of QUIC flows if there are any."""
    parts = [number_of(connections, "connection")] if connections or not quic else []
    return parts + ([number_of(quic, "QUIC flow")] if quic else [])


def _unit(reading: Row) -> str:
    """Return the counted unit; an event log has no frames."""
    return "frames" if any(file["link_type"] is not None for file in reading["files"]) else "segments"
