"""The display of results in a notebook."""

from collections.abc import Mapping, Sequence
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
    state = "" if summary["complete"] else f", partial: {summary['stopped']}"
    rows = [[_cell(flow.get(field), factor) for _, field, factor in _COLUMNS] for flow in flows]
    return table(
        summary["scenario"],
        f", seed {summary['seed']}, {len(summary['repetitions'])} repetition(s){state}",
        [title for title, _, _ in _COLUMNS],
        rows,
        rest="in .flows",
        below=f"in {path}",
    )


def table(
    title: str,
    text: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    rest: str = "",
    below: str = "",
    most: int = _MOST_ROWS,
) -> str:
    """Return a paragraph and a table as HTML.

    Args:
        title: What it is.
        text: More about it, beside the title.
        head: The titles of the columns.
        rows: The cells as text.
        rest: Where the other rows are.
        below: A line below the table.
        most: The rows that are shown.
    """
    titles = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:most])
    more = f"<p>and {len(rows) - most:,} more {escape(rest)}</p>" if len(rows) > most else ""
    more += f"<p>{escape(below)}</p>" if below else ""
    return (
        f"<div><p><strong>{escape(title)}</strong>{escape(text)}</p>"
        f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
    )


def _cell(value: Any, factor: float) -> str:
    match value:
        case None:
            return ""
        case int() if factor == 1:
            return f"{value:,}"
        case int() | float():
            return f"{value * factor:,.3f}"
        case _:
            return str(value)
