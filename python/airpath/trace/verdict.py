"""What limited a transfer, and where: the sentences of a connection, and of several together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from airpath.quantities import seconds
from airpath.trace.avoidable import avoidable_sentence
from airpath.trace.before_capture import before_capture
from airpath.trace.causes import cause_shares, seconds_of
from airpath.trace.elapsed import FULL, LINKS, elapsed
from airpath.trace.format import Row, percent
from airpath.trace.messages import (
    behind,
    ending,
    filled_by,
    has_radio,
    in_transit,
    losses,
    other_causes,
    radio_sentence,
    sentence,
    spurious_timers,
    sum_of,
    sum_sentence,
)
from airpath.trace.radio_log import FIXED_OUTAGE
from airpath.trace.run_flows import limit_of

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

_NETWORK, _SENDER, _RECEIVER, _APPLICATIONS = "the network", "the sender", "the receiver", "the applications"

_FINDINGS = {
    "set-up": (_NETWORK, "the handshake took its round trips"),
    "application": (_APPLICATIONS, "they had no data to send"),
    "latency": (_NETWORK, "requests and replies were in transit (latency of the path)"),
    "slow-start": (_SENDER, "it had not reached the rate of the path yet (slow start)"),
    "receive-window": (_RECEIVER, "its buffer was full"),
    "congestion-window": (_SENDER, "its congestion window was too small for the path"),
    "sender": (_SENDER, "it did not send although the path could carry data (encryption hides why)"),
    "path-rate": (_NETWORK, "the {link} was fully used"),
    "queueing": (_NETWORK, "the {link} was fully used"),
    "sharing": (_NETWORK, "the {link} was full with other connections of the client"),
    "radio": (_NETWORK, "the path carried nothing"),
    "timer": (_SENDER, "it waited for its retransmission timer"),
    "recovery": (_NETWORK, "lost data had to be sent again"),
    "spurious": (_SENDER, "it sent data again that had arrived"),
    "closing": (_APPLICATIONS, "they closed the connection late"),
}
"""Of each cause: where it is, and what happened there."""
_WAITS = {
    "drx": "the mobile to wake up (DRX)",
    "scheduling-request": "uplink grants",
    "grant": "uplink grants",
    "random-access": "random access",
    "harq-repeat": "HARQ retransmissions",
    FIXED_OUTAGE: FIXED_OUTAGE,
}
"""Of each state in which packets wait although the radio carries some: what they wait for."""
_BY_LIMIT = {
    "policer": {
        "congestion-window": (_NETWORK, "a policer dropped packets, so that the congestion window stayed small"),
        "recovery": (_NETWORK, "what a policer dropped had to be sent again"),
    },
    "ecn": {
        "congestion-window": (_NETWORK, "congestion marks (ECN) held the congestion window down"),
        "path-rate": (_NETWORK, "the {link} was used at the rate that congestion marks (ECN) allowed"),
    },
}
"""Findings in place of those of `_FINDINGS` where the reason of a small window is known."""
_LEAST = 10
"""The sentence names no cause with a smaller share in per cent, unless it has the most time."""
_MOSTLY = 0.5
"""If the applications have more than this share of time, the rest has a sentence of its own."""
_LOW = 0.5
"""From this share of time with low confidence the sentence begins with `Probably`."""


def sentences(trace: "TraceData", flow: Row) -> list[str]:
    """Return the sentences about a connection, for the terminal and for the report.

    Args:
        trace: The trace.
        flow: The connection, a row of `connection_rows.flows`.
    """
    number = flow["connection"]
    directions = trace.directions.filter(connection=number).rows(named=True)
    one_way = trace.one_way.filter(connection=number).rows(named=True)
    pieces = trace.causes.filter(connection=number).rows(named=True)
    states = trace.radio_states.filter(connection=number).rows(named=True)
    signals = trace.run_flows.signals(flow)
    texts = [
        verdict(flow, pieces, states, limit_of(signals, directions)),
        sentence(flow),
        radio_sentence(states),
        before_capture(trace, flow),
        behind(flow, trace.connections.iter_rows(named=True)),
        ending(flow, directions),
        spurious_timers(flow, directions, pieces),
        *losses(directions, one_way),
        *in_transit(one_way),
        *(sentence for each in signals for sentence in each.sentences),
    ]
    return [text for text in texts if text]


def of_quic(trace: "TraceData", flow: Row) -> list[str]:
    """Return the sentences about a QUIC flow, for the terminal and for the report.

    Args:
        trace: The trace.
        flow: The flow, a row of `quic.flows`.
    """
    pieces = trace.causes.filter(quic=flow["quic"]).rows(named=True)
    states = trace.radio_states.filter(quic=flow["quic"]).rows(named=True)
    texts = (verdict(flow, pieces, states), sentence(flow), _with_data(flow), radio_sentence(states))
    return [text for text in texts if text]


def _with_data(flow: Row) -> str:
    """Return the time of a QUIC flow in which data was in transit as a sum of its causes.

    Else the causes that `sentence` combines.
    """
    radio, totals = has_radio([flow]), seconds_of(flow)
    rest = {name: total for name, total in totals.items() if name != "application"}
    if not rest or sum(rest.values()) > _MOSTLY * sum(totals.values()):
        return other_causes(totals, radio=radio)
    return f"Without the time of the applications, {sum_sentence(rest, sum(rest.values()), radio=radio)}"


def verdict(flow: Row, pieces: Iterable[Row], states: Iterable[Row] = (), limit: str | None = None) -> str:
    """Return what limited a connection.

    Args:
        flow: The connection, a row of `connection_rows.flows`.
        pieces: Its rows of `Trace.causes`.
        states: Its rows of `Trace.radio_states`.
        limit: What held its congestion window down: `policer`, `ecn`, or `None` if it is unknown.
    """
    if flow.get("captured_end"):
        return f"The causes are unknown: only segments from the {flow['captured_end']} are in the capture."
    pieces = list(pieces)
    return _of_times(
        sum_of([flow]), filled_by(pieces), _low(pieces), radio=has_radio([flow]), states=waits(states), limit=limit
    )


def waits(states: Iterable[Row]) -> dict[str, float]:
    """Return the seconds of the cause `radio` by their reason in the radio log.

    Args:
        states: Rows of `Trace.radio_states`.
    """
    found: dict[str, float] = {}
    for state in states:
        if state["cause"] == "radio" and (reason := _WAITS.get(state["state"])):
            found[reason] = found.get(reason, 0.0) + (state["end"] - state["start"]) / 1e9
    return found


def all_connections(trace: "TraceData", flows: Sequence[Row]) -> list[str]:
    """Return what limited several connections, and their time as a sum of causes.

    The time of one client is its elapsed time, in which each moment counts once. That of several
    clients is the sum over their connections.

    Args:
        trace: The trace.
        flows: Rows of `connection_rows.flows`.
    """
    known = {flow["connection"]: flow for flow in flows if not flow.get("captured_end")}
    if not known:
        return []
    pieces = [each for each in trace.causes.iter_rows(named=True) if each["connection"] in known]
    states = waits(each for each in trace.radio_states.iter_rows(named=True) if each["connection"] in known)
    low, radio = _low(pieces), has_radio(known.values())
    count = f"All {len(known):,} connections" if len(known) > 1 else f"Connection {next(iter(known))}"
    addresses = {flow["client_address"] for flow in known.values()}
    if len(addresses) == 1:
        own = elapsed(known.values(), trace.causes, trace.directions)
        client = next(iter(known.values())).get("client_name") or addresses.pop()
        return [
            f"{count} of {client}, {seconds(own.span_s)} from the first to the last segment. "
            f"{_of_times(own.causes, own.filled, low, radio=radio, states=states)}",
            f"The elapsed time, each moment once, {sum_sentence(own.causes, own.span_s, radio=radio)} "
            f"{' '.join(filter(None, (avoidable_sentence(own.causes), other_causes(own.causes, radio=radio))))}",
            *_losses(trace, list(known)),
        ]
    totals = sum_of(known.values())
    begin = min(flow["start"] for flow in known.values())
    end = max(flow["start"] + flow["duration_s"] * 1e9 for flow in known.values())
    times = sum_sentence(totals, sum(flow["duration_s"] for flow in known.values()), radio=radio)
    span = seconds((end - begin) / 1e9)
    return [
        f"{count}, {span} from the first to the last segment. "
        f"{_of_times(totals, filled_by(pieces), low, radio=radio, states=states)}",
        f"Time of the connections in sum, {times} "
        f"{' '.join(filter(None, (avoidable_sentence(totals), other_causes(totals, radio=radio))))}",
        *_losses(trace, list(known)),
    ]


def _losses(trace: "TraceData", connections: Sequence[int]) -> list[str]:
    """Return a sentence for each direction that lost segments before the capture point."""
    import polars as pl

    own = pl.col("connection").is_in(connections)
    counters = ("lost_before_capture", "retransmissions", "spurious")
    directions = trace.directions.filter(own).group_by("from", maintain_order=True).agg(pl.col(counters).sum())
    one_way = trace.one_way.filter(own)
    if one_way["connection"].n_unique() < len(connections):
        # The other capture lacks some of them: its count is too small.
        one_way = one_way.clear()
    lost = one_way.group_by("from").agg(pl.col("lost").sum())
    return losses(directions.iter_rows(named=True), lost.iter_rows(named=True))


def _low(pieces: Iterable[Row]) -> float:
    """Return the share of time whose cause has a low confidence."""
    whole = low = 0
    for piece in pieces:
        length = piece["end"] - piece["start"]
        whole += length
        low += length if piece["confidence"] == "low" else 0
    return low / whole if whole else 0.0


def _of_times(
    totals: Mapping[str, float],
    filled: Mapping[str, Mapping[str | None, float]],
    low: float,
    *,
    radio: bool,
    states: Mapping[str, float] | None = None,
    limit: str | None = None,
) -> str:
    """Return a sentence with the causes that took most of a time.

    Args:
        totals: The seconds of each cause by its name.
        filled: Those with a full link, by the end whose packets filled it, as far as that is known.
        low: The share of time whose cause has a low confidence.
        radio: Whether a radio log shows that the path has a radio.
        states: The seconds of the cause `radio` by reason, as `waits` returns them.
        limit: What held the congestion window down.
    """
    if not totals:
        return ""
    share = cause_shares(totals)
    whole = sum(totals.values())
    findings_of = _BY_LIMIT.get(limit or "", {})
    findings = [*_full_link(share, filled, whole, findings_of), *_sharing(share, filled, whole)]
    for name in totals:
        place, what = findings_of.get(name, _FINDINGS[name])
        if radio and name == "radio":
            findings += _radio(share[name], totals[name], states or {})
        elif name not in FULL:
            findings.append((share[name], place, f"{what} ({percent(share[name])})"))
    findings.sort(key=lambda finding: -finding[0])
    places: dict[str, list[str]] = {}
    for part, place, text in findings:
        if part >= _LEAST or not places:
            places.setdefault(place, []).append(text)
    # The place with the most time first, not that of the largest cause.
    time = {
        place: sum(
            share[name] for name in totals if _BY_LIMIT.get(limit or "", {}).get(name, _FINDINGS[name])[0] == place
        )
        for place in places
    }
    ordered = sorted(places, key=lambda place: -time[place])
    parts = [f"{place}: {', and '.join(places[place])}" for place in ordered]
    return f"{'Probably limited' if low > _LOW else 'Limited'} by {'; and by '.join(parts)}."


def _radio(share: float, seconds: float, states: Mapping[str, float]) -> list[tuple[float, str, str]]:
    """Return the time without a passing packet by its reason: the share, the place and the text."""
    scale = share / max(seconds, sum(states.values()))
    outage = scale * states.get(FIXED_OUTAGE, 0.0)
    reasons = {reason: scale * time for reason, time in states.items() if reason != FIXED_OUTAGE}
    waited = sum(reasons.values())
    found = [
        (share - waited - outage, "the radio carried nothing"),
        (waited, f"packets waited for {' and '.join(sorted(reasons, key=lambda reason: -reasons[reason]))}"),
        (outage, "the fixed network had an outage"),
    ]
    return [(part, _NETWORK, f"{what} ({percent(part)})") for part, what in found if part > share / 100]


def _full_link(
    share: Mapping[str, float],
    filled: Mapping[str, Mapping[str | None, float]],
    whole: float,
    findings_of: Mapping[str, tuple[str, str]],
) -> list[tuple[float, str, str]]:
    """Return how long each direction of the link was full: the share, the place and the text."""
    # Both are a fully used link: one finding.
    parts = _by_end({name: share[name] for name in ("queueing", "path-rate") if name in share}, filled, whole)
    found = []
    for end, of in parts.items():
        part = sum(of.values())
        text = percent(part)
        if "queueing" in of:
            queued = percent(of["queueing"])
            text += f", {queued} with a long queue in front of it" if queued != text else ", with a long queue"
        place, what = findings_of.get("path-rate" if "queueing" not in of else "", _FINDINGS["path-rate"])
        found.append((part, place, f"{what.format(link=LINKS[end])} ({text})"))
    return found


def _sharing(
    share: Mapping[str, float], filled: Mapping[str, Mapping[str | None, float]], whole: float
) -> list[tuple[float, str, str]]:
    """Return how long others filled each direction: the share, the place and the text."""
    place, what = _FINDINGS["sharing"]
    parts = _by_end({name: share[name] for name in ("sharing",) if name in share}, filled, whole)
    return [
        (part, place, f"{what.format(link=LINKS[end])} ({percent(part)})")
        for end, of in parts.items()
        for part in of.values()
    ]


def _by_end(
    share: Mapping[str, float], filled: Mapping[str, Mapping[str | None, float]], whole: float
) -> dict[str | None, dict[str, float]]:
    """Divide the shares of causes by the end whose packets filled the link.

    If no end has a share that is named, the direction is left out.
    """
    parts: dict[str | None, dict[str, float]] = {}
    for name, part in share.items():
        ends = {end: time for end, time in filled.get(name, {}).items() if time} or {None: 0.0}
        for end, time in ends.items():
            parts.setdefault(end, {})[name] = part if len(ends) == 1 else 100 * time / whole
    if all(sum(of.values()) < _LEAST for of in parts.values()):
        return {None: dict(share)} if share else {}
    return parts
