"""The connections in the event log of a repetition, with their ends, for qlog.

A flow has several connections if each of its transactions has its own. A proxy makes two of one:
mobile to proxy, and proxy to server.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from airpath.result import Result
from airpath.tables import PROXY, is_quic

Kind = Literal["client", "server"]

OPPOSITE = {"down": "up", "up": "down"}
_STEPS = ("sent", "received", "created", "absorbed")
_SYN, _ACK, _FIN = 0x02, 0x10, 0x01
"""Flags of the TCP header."""


@dataclass(frozen=True)
class End:
    """One end of a connection."""

    title: str
    component: str
    kind: Kind
    packets: pl.DataFrame
    """What it `sent` and `received`."""
    senders: pl.DataFrame
    """The changes of its sender."""


@dataclass(frozen=True)
class Connection:
    """A connection of TCP or QUIC."""

    title: str
    group: str
    protocol: Literal["TCP", "QUIC"]
    packets: pl.DataFrame
    """The steps of its packets in the order of time: `sent` and `received` at its ends, and
    `created` by a middlebox between them."""
    quic: pl.DataFrame
    """The packets of QUIC that its ends sent or declared lost, in the order of time."""
    ends: tuple[End, ...]


@dataclass
class _Opened:
    """How far a connection of TCP is, for the segments that are possible in it."""

    reached: dict[str, int] = field(default_factory=lambda: {"down": -1, "up": -1})
    """By direction: stream offset behind the last byte that was sent."""
    answered: bool = False
    """Whether its SYN-ACK has arrived."""

    def allows(self, direction: str, offset: int | None, ack: int | None) -> bool:
        """Return whether a segment may belong to the connection: nothing is sent beyond a gap."""
        is_sent = ack is None or ack <= self.reached[OPPOSITE[direction]]
        return is_sent and (offset is None or offset <= self.reached[direction])


def connections(result: Result, repetition: int) -> Iterator[Connection]:
    """Yield the connections of a repetition, by the number of their flow.

    Raises:
        NotLoggedError: The run did not log the table `tcp` or `packets`.
    """
    own = pl.col("repetition") == repetition
    senders = result.scan("tcp").filter(own).collect().sort("time", maintain_order=True)
    steps = result.scan("packets").filter(own & pl.col("step").is_in(_STEPS)).collect()
    steps = steps.sort("time", maintain_order=True)
    all_quic = result.scan("quic").filter(own).collect().sort("time", maintain_order=True)
    flows = [row for row in result.summary["flows"] if row["repetition"] == repetition]
    known = {row["flow"]: row for row in flows}
    for flow in sorted(set(senders["flow"])):
        # Connection k of a flow has its number plus k times the number of flows.
        row = known[flow % len(flows)]
        title = row["name"] if flow in known else f"{row['name']}, connection {flow // len(flows)}"
        packets, states = steps.filter(flow=flow), senders.filter(flow=flow)
        quic = all_quic.filter(flow=flow)
        for ends, side in _sides(packets, row["mobile"], proxied=PROXY in set(states["component"])):
            numbers = _by_datagrams(quic) if is_quic(row) else _by_segments(side)
            for number, part in _parts(side, numbers):
                yield Connection(
                    title if number == 0 else f"{title}, connection {number}",
                    str(flow) if number == 0 else f"{flow}-{number}",
                    "QUIC" if is_quic(row) else "TCP",
                    part.drop("end"),
                    quic.filter(connection=number),
                    tuple(
                        End(
                            end_title,
                            component,
                            kind,
                            part.filter(end=end_title).drop("end"),
                            _senders(states, component, direction, number, numbers, side.filter(end=end_title)),
                        )
                        for end_title, component, kind, direction in ends
                    ),
                )


_Ends = tuple[tuple[str, str, Kind, str | None], ...]
"""Of each end: title, component, kind, and the direction of its sender if its component has two."""


def _sides(packets: pl.DataFrame, mobile: str, *, proxied: bool) -> Iterator[tuple[_Ends, pl.DataFrame]]:
    """Yield the ends and the steps of each connection between server and mobile.

    The column `end` has the title of the end, null for a middlebox.
    """
    component, step, up = pl.col("component"), pl.col("step"), pl.col("direction") == "up"
    # Either interface of a mobile may carry packets of its flow.
    at_mobile = component.is_in([mobile, f"{mobile}-second"])
    at_server = component == "server"
    is_end = at_mobile | at_server
    proxy = component == PROXY
    to_server = proxy & (((step == "created") & up) | ((step == "absorbed") & ~up))
    between = (step == "created") & ~(proxy if proxied else pl.lit(value=False))
    if not proxied:
        end = pl.when(at_mobile).then(pl.lit(mobile)).when(at_server).then(pl.lit("server")).alias("end")
        ends: _Ends = (("server", "server", "server", None), (mobile, mobile, "client", None))
        yield ends, packets.filter(is_end | between).with_columns(end)
        return
    steps = {"created": "sent", "absorbed": "received"}
    towards_server, towards_mobile = f"{PROXY} towards server", f"{PROXY} towards {mobile}"
    end = (
        pl.when(at_mobile).then(pl.lit(mobile)).when(at_server).then(pl.lit("server"))
        .when(to_server).then(pl.lit(towards_server)).when(proxy).then(pl.lit(towards_mobile)).alias("end")
    )  # fmt: skip
    own_step = pl.when(proxy).then(step.replace(steps)).otherwise(step).alias("step")
    fixed: _Ends = (("server", "server", "server", None), (towards_server, PROXY, "client", "up"))
    radio: _Ends = ((towards_mobile, PROXY, "server", "down"), (mobile, mobile, "client", None))
    yield fixed, packets.filter(at_server | to_server).with_columns(end, own_step)
    yield radio, packets.filter(at_mobile | (proxy & ~to_server) | between).with_columns(end, own_step)


def _by_segments(packets: pl.DataFrame) -> dict[int, int]:
    """Return the number of the connection of each packet of TCP, from 0.

    A SYN begins a connection if that of the connection before was answered. A late segment of an
    earlier connection belongs to the newest one in which its numbers are possible.
    """
    opened: list[_Opened] = []
    numbers: dict[int, int] = {}
    answers: dict[int, int] = {}
    columns = ("step", "direction", "packet", "offset", "length", "ack", "flags")
    for step, direction, packet, offset, length, ack, header_flags in packets.select(*columns).rows():
        if step == "received":
            if packet in answers:
                opened[answers[packet]].answered = True
            continue
        flags = header_flags or 0
        if not opened or (flags & _SYN and not flags & _ACK and opened[-1].answered):
            opened.append(_Opened())
        possible = (k for k in reversed(range(len(opened))) if opened[k].allows(direction, offset, ack))
        number = numbers[packet] = next(possible, len(opened) - 1)
        if flags & _SYN and flags & _ACK:
            answers[packet] = number
        reached = opened[number].reached
        end = (offset or 0) + (length or 0) + bool(flags & _SYN) + bool(flags & _FIN)
        reached[direction] = max(reached[direction], end)
    return numbers


def _by_datagrams(quic: pl.DataFrame) -> dict[int, int]:
    """Return the number of the connection of each datagram of QUIC, from 0."""
    return dict(quic.filter(step="sent").select("packet", "connection").rows())


def _parts(side: pl.DataFrame, numbers: dict[int, int]) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the number of each connection of a flow, and the steps of its packets."""
    if not side.height or len(set(numbers.values())) <= 1:
        yield 0, side
        return
    connection = pl.Series([numbers.get(packet, 0) for packet in side["packet"]])
    for number in sorted(set(numbers.values())):
        yield number, side.filter(connection == number)


def _senders(
    states: pl.DataFrame,
    component: str,
    direction: str | None,
    number: int,
    numbers: dict[int, int],
    packets: pl.DataFrame,
) -> pl.DataFrame:
    """Return the changes of the sender of an end in one of the connections of its flow."""
    rows = states.filter(component=component)
    if direction is not None:
        rows = rows.filter(direction=direction)
    last = max(numbers.values(), default=0)
    if last == 0:
        return rows
    if "established" in set(rows["trigger"]):
        return rows.filter(((pl.col("trigger") == "established").cum_sum().cast(pl.Int64) - 1).clip(0, last) == number)
    # QUIC: from the first packet of this connection to that of the next.
    first: dict[int, int] = {}
    for time, packet in packets.select("time", "packet").rows():
        first.setdefault(numbers.get(packet, 0), time)
    begin, end = (0 if number == 0 else first.get(number)), first.get(number + 1)
    time: Any = pl.col("time")
    if begin is None:
        return rows.clear()
    return rows.filter((time >= begin) & (time < end if end is not None else pl.lit(value=True)))
