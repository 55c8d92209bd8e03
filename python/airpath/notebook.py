"""The display of a result in a notebook."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

_MOST_ROWS = 20

# Each column: its title, the field of a flow, and the factor from the field to the unit.
_COLUMNS: tuple[tuple[str, str, float], ...] = (
    ("flow", "name", 1),
    ("kind", "kind", 1),
    ("outcome", "outcome", 1),
    ("bytes", "delivered_bytes", 1),
    ("seconds", "duration_s", 1),
    ("kbit/s", "throughput_bps", 1e-3),
    ("retransmitted", "retransmitted_packets", 1),
    ("mean round trip, ms", "rtt_mean_s", 1e3),
)


def html(path: Path, summary: Mapping[str, Any]) -> str:
    """Return the scenario, the state of the run and its first flows, as HTML.

    Args:
        path: The result folder.
        summary: The contents of its `summary.json`.
    """
    flows = summary["flows"]
    state = "" if summary["complete"] else f" <strong>partial: {escape(str(summary['stopped']))}</strong>"
    head = "".join(f"<th>{escape(title)}</th>" for title, _, _ in _COLUMNS)
    body = "".join(_row(flow) for flow in flows[:_MOST_ROWS])
    more = f"<p>and {len(flows) - _MOST_ROWS} more in <code>.flows</code></p>" if len(flows) > _MOST_ROWS else ""
    return (
        f"<div><p><strong>{escape(summary['scenario'])}</strong>, seed {summary['seed']}, "
        f"{len(summary['repetitions'])} repetition(s){state}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
        f"<p>in <code>{escape(str(path))}</code></p></div>"
    )


def _row(flow: Mapping[str, Any]) -> str:
    cells = "".join(f"<td>{_cell(flow.get(field), factor)}</td>" for _, field, factor in _COLUMNS)
    return f"<tr>{cells}</tr>"


def _cell(value: Any, factor: float) -> str:
    match value:
        case None:
            return ""
        case int() if factor == 1:
            return f"{value:,}"
        case int() | float():
            return f"{value * factor:,.3f}"
        case _:
            return escape(str(value))
