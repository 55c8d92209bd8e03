"""Figures of connections, shares, times and names of connections as text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airpath.quantities import count, number_of, rate, seconds, size

Row = Mapping[str, Any]


def figures(directions: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return the figures of a connection's directions as text.

    Figures without a value are left out.

    Args:
        directions: Rows of `Trace.directions` of one connection, in the order of the columns.

    Returns:
        The name of each figure, with one text per direction.
    """
    rows = []
    for name, format_value in _FIGURES:
        texts = _windows(directions) if name == _WINDOW else [format_value(row) for row in directions]
        if any(texts):
            rows.append((name, [each or "–" for each in texts]))
    return rows


def _if(value: float | None, format_value: Callable[[float], str]) -> str:
    return format_value(value) if value else ""


def _has_rate(row: Row) -> bool:
    """Return whether a direction sent more than one flight: less has no meaningful rate."""
    return bool(row["goodput_bps"]) and row["data_segments"] > row["initial_window_segments"]


def _segments(number: float) -> str:
    return number_of(number, "segment")


def _again(row: Row) -> str:
    if not row["retransmissions"]:
        return ""
    triggers = {
        "by the timer": row["timeouts"],
        "fast": row["fast_retransmissions"],
        "tail probe" if row["tail_probes"] == 1 else "tail probes": row["tail_probes"],
        "by a timer, before the late acknowledgement": row["early_timer_retransmissions"],
        "unexplained": row["unexplained_retransmissions"] - row["early_timer_retransmissions"],
    }
    parts = ", ".join(f"{count(number)} {name}" for name, number in triggers.items() if number)
    return f"{count(row['retransmissions'])} ({parts})"


def _spurious(row: Row) -> str:
    if not row["spurious"]:
        return ""
    detectors = {
        "acknowledged before": row["spurious_acknowledged"],
        "by DSACK": row["spurious_dsack"],
        "by timestamp": row["spurious_timestamp"],
        "by F-RTO": row["spurious_forward_acknowledgement"],
        "acknowledged too soon": row["spurious_too_soon"],
        "by extra ACKs": row["spurious_extra_acknowledgement"],
        "seen at the receiver": row["spurious_other_end"],
    }
    parts = ", ".join(f"{count(number)} {name}" for name, number in detectors.items() if number)
    return f"{count(row['spurious'])} ({parts})"


def _spread(row: Row, of: str) -> str:
    if not row[f"{of}s"]:
        return ""
    low, mean, high = (seconds(row[f"{which}_{of}_s"]) for which in ("shortest", "mean", "longest"))
    return low if low == high else f"{low} to {high}, mean {mean}"


def _round_trip(row: Row) -> str:
    """Return the round trips between the capture and the other end."""
    spread = _spread(row, "round_trip")
    return f"to the {'server' if row['from'] == 'client' else 'client'}: {spread}" if spread else ""


def _windows(directions: Sequence[Row]) -> list[str]:
    """Return the window that the receiver of each direction offers: it is in the other's row."""
    return [
        f"unknown scale{_closed(offered)}" if offered["window_scale_unknown"] else _window(offered)
        for offered in reversed(directions)
    ]


def _window(row: Row) -> str:
    if not row["largest_window_bytes"]:
        return ""
    low, high = size(row["smallest_window_bytes"]), size(row["largest_window_bytes"])
    return f"{low if low == high else f'{low} to {high}'}{_closed(row)}"


def _closed(row: Row) -> str:
    closed = row["closed_windows"]
    return f", closed {'once' if closed == 1 else f'{count(closed)} times'}" if closed else ""


_WINDOW = "window of the other end"
_FIGURES: Sequence[tuple[str, Callable[[Row], str]]] = (
    ("sent", lambda row: f"{size(row['unique_bytes'])} in {_segments(row['data_segments'])}"),
    ("throughput", lambda row: rate(row["goodput_bps"]) if _has_rate(row) else ""),
    ("retransmitted", _again),
    ("spurious of these", _spurious),
    ("out of order", lambda row: _if(row["out_of_order"], count)),
    ("round trip from the capture", _round_trip),
    ("the same, outages included", lambda row: _spread(row, "echo_round_trip")),
    ("maximum in flight", lambda row: _if(row["largest_outstanding_bytes"], size)),
    (_WINDOW, _window),
    (
        "initial burst",
        lambda row: _if(row["initial_window_segments"], _segments),
    ),
    ("largest segment", lambda row: _if(row["largest_segment_bytes"], size)),
    ("longest pause", lambda row: seconds(row["longest_idle_s"])),
)
"""Name and text of each figure of a direction."""

_NAMED = 8
"""A sentence names at most this number of connections."""


def named(connections: Sequence[int]) -> str:
    """Return the numbers of connections as text."""
    numbers = ", ".join(map(str, connections[:_NAMED]))
    more = f" and {len(connections) - _NAMED:,} more" if len(connections) > _NAMED else ""
    return f"connection{'s' * (len(connections) > 1)} {numbers}{more}"


def percent(share: float) -> str:
    """Return a share in per cent; one that rounds to zero as `< 1 %`."""
    return f"{share:.0f}\u00a0%" if round(share) else "<\u00a01\u00a0%"
