"""The event log of a result folder, in the form that the core reads like captures at both ends."""

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.result import Result, UnreadableResultError, load
from airpath.tables import direction_of
from airpath.trace.radio_log import address_of, mobiles_of, origin_of

if TYPE_CHECKING:
    import polars as pl

Flow = tuple[str, str, tuple[bool, int, int] | None]
"""Mobile and server; and the negotiated options, if known: SACK, and the window scales of segments
that go down and up."""
Log = tuple[str, list[Flow], dict[str, bytes]]
"""Its name, its flows, and its columns of integers by name."""

_MISSING = -(2**63)
"""Stands for a missing value."""
_SERVER = "192.0.2.1"
"""The address of all servers in captures of simulated runs."""
_PORTS = (49_152, 16_384)
"""The first port of simulated mobiles, and the number of ports."""
_PORTS_OF_TRANSACTIONS = 1009
"""Distance between the first ports of two flows of transactions or pages."""
_HEADER = ("offset", "length", "ack", "window", "flags", "retransmission")


def of_result(folder: Path, repetition: int) -> Log:
    """Return the packets of a result folder's event log that carry TCP.

    Args:
        folder: The result folder.
        repetition: The repetition.

    Raises:
        UnreadableResultError: The folder is no result, or has no flow over TCP, or no packet of one
            arrived.
        NotLoggedError: The run did not log its packets.
    """
    import polars as pl

    result = load(folder)
    numbers, described = _flows(result, repetition)
    if not numbers:
        raise UnreadableResultError(
            f"{folder}: no flow uses TCP, and connections of QUIC are read from captures",
            next_step="run it again with `--capture`",
        )
    steps = result.scan("packets").with_row_index("row").filter(pl.col("repetition") == repetition)
    event = ("time", "row", "ecn")
    sent = steps.filter(pl.col("step") == "sent", pl.col("offset").is_not_null(), pl.col("flow").is_in(numbers))
    received = steps.filter(pl.col("step") == "received").select(
        "packet", **{f"received_{name}": pl.col(name) for name in event}
    )
    flows = pl.LazyFrame({"flow": numbers, "place": range(len(numbers))}, schema={"flow": pl.Int32, "place": pl.Int64})
    rows = (
        sent.join(received, on="packet", how="left")
        .join(flows, on="flow")
        .with_columns(up=pl.col("direction") == "up", **{f"sent_{name}": pl.col(name) for name in event})
        .select(
            "packet",
            "place",
            "up",
            "size",
            *_HEADER,
            *(f"{end}_{name}" for end in ("sent", "received") for name in event),
        )
        .with_columns(pl.col("sent_time", "received_time") + origin_of(result))
        .collect()
    )
    if rows["received_time"].is_null().all():
        raise UnreadableResultError(
            f"{folder}: none of its {rows.height:,} TCP packets arrived, so there is no connection to analyse",
            next_step=f"`airpath report {folder}` shows where they were lost",
        )
    return (
        f"{folder / 'events' / 'packets'}",
        described,
        {_NAMES.get(each.name, each.name): _column(each) for each in rows},
    )


_NAMES = {"place": "flow", "sent_time": "sent", "received_time": "received"}
"""The core's names of columns whose names differ here."""


def _column(values: "pl.Series") -> bytes:
    import polars as pl

    return array("q", values.cast(pl.Int64).fill_null(_MISSING).to_list()).tobytes()


def clients(result: Result, repetition: int) -> list[tuple[str, int, dict[str, Any]]]:
    """Return address and port of the mobile of each TCP connection, its number, and its flow."""
    mobiles, stride = mobiles_of(result), _stride(result, repetition)
    return [
        (_ends(flow, mobiles, number)[0], flow["flow"] + number * stride, flow)
        for flow, number in _connections(result, repetition)
    ]


def _connections(result: Result, repetition: int) -> list[tuple[dict[str, Any], int]]:
    """Return the TCP connections: their flows, and their numbers in them."""
    return [
        (flow, number)
        for flow in result.summary["flows"]
        # The settings of QUIC are in the place of those of TCP.
        if flow["repetition"] == repetition and flow.get("tcp") is not None and "quic" not in flow["tcp"]
        for number in range(_opened(flow))
    ]


def _opened(flow: dict[str, Any]) -> int:
    """Return the number of connections that a flow has opened, at least one."""
    if flow["kind"] == "transactions":
        return max(flow["sent"], 1) if flow["connections"] == "each" else 1
    return flow.get("opened") or 1


def _stride(result: Result, repetition: int) -> int:
    """Return the distance of the numbers of a flow's connections."""
    return sum(flow["repetition"] == repetition for flow in result.summary["flows"])


def _flows(result: Result, repetition: int) -> tuple[list[int], list[Flow]]:
    """Return the numbers of the TCP flows, and a description of each."""
    several, stride, mobiles = _connections(result, repetition), _stride(result, repetition), mobiles_of(result)
    return (
        [flow["flow"] + number * stride for flow, number in several],
        [(*_ends(flow, mobiles, number), _negotiated(flow)) for flow, number in several],
    )


def _ends(flow: dict[str, Any], mobiles: list[str], connection: int) -> tuple[str, str]:
    """Return the ends of a flow; a simulated flow has the addresses of its captures."""
    if flow.get("local") and flow.get("remote"):
        return flow["local"], flow["remote"]
    number = flow["flow"] * _PORTS_OF_TRANSACTIONS if flow["kind"] in ("transactions", "page") else flow["flow"]
    first, count = _PORTS
    mobile = address_of(mobiles.index(flow["mobile"]))
    return f"{mobile}:{first + (number + connection) % count}", f"{_SERVER}:80"


def _negotiated(flow: dict[str, Any]) -> tuple[bool, int, int] | None:
    """Return the negotiated options of a flow.

    The summary has them from the view of the main sender.
    """
    negotiated = flow["tcp"].get("negotiated")
    if negotiated is None:
        return None
    near, far = negotiated["window_scale"], negotiated["peer_window_scale"]
    down, up = (near, far) if direction_of(flow) == "down" else (far, near)
    return negotiated["selective_acknowledgement"], down, up
