"""Lost packets by time, component and cause."""

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.traces import scatter
from airpath.plot.values import numbers

_READ = (
    "Each tick is a lost packet, each row a component and cause. Evenly spread ticks are random losses, clusters a "
    "full queue or a burst of errors."
)
_MOST_ROWS = 12


def losses(results: Results, *, repetition: int | None = None) -> go.Figure:
    """Draw every lost packet over time, in rows by component, direction and cause.

    Args:
        results: One result, or several, whose rows are drawn below each other.
        repetition: The repetition; by default the median one.

    Raises:
        NotLoggedError: A run did not log the `packets` table.
        NothingToDrawError: No packet was lost.
    """
    runs = drawn(results, repetition)
    rows = [(run, each) for run in runs for each in _lost(run)]
    if not rows:
        raise NothingToDrawError("no packet was lost")
    notes = []
    if len(rows) > _MOST_ROWS:
        notes.append(f"Of {len(rows)} components and causes, the {_MOST_ROWS} with most losses are drawn.")
        rows = sorted(rows, key=lambda row: -row[1].height)[:_MOST_ROWS]
    figure = blank(76 + 34 * len(rows), span=max(run.span for run in runs), top=12)
    words = []
    for number, (run, lost) in enumerate(rows):
        component, direction, cause = lost.select("component", "direction", "cause").row(0)
        colour = theme.direction(direction) if len(runs) == 1 else theme.series(run.index)
        name = f"{component} {direction}: {str(cause).replace('-', ' ')} ({lost.height:,})"
        if len(runs) > 1:
            name = f"{run.label} · {name}"
        marker = {"symbol": "line-ns-open", "size": 14, "color": colour.light, "line": {"width": 1.4}}
        figure.add_trace(
            scatter(numbers(lost["t"]), [-number] * lost.height, mode="markers", name=name, marker=marker).update(
                hovertemplate="%{x} s", showlegend=False
            )
        )
        # The row's name is above it: the margin is only wide enough for numbers.
        figure.add_annotation(
            text=name,
            x=0,
            xref="paper",
            xanchor="left",
            xshift=4,
            y=-number,
            yshift=7,
            yanchor="bottom",
            showarrow=False,
            font={"size": 11, "color": theme.MUTED.light},
        )
        words.append(name)
    figure.update_yaxes(range=[0.5 - len(rows), 0.95], showticklabels=False, ticks="", showgrid=False, zeroline=False)
    return captioned(figure, Caption("Lost packets", _READ, f"Losses over time: {'; '.join(words)}.", notes))


def _lost(run: Drawn) -> list[pl.DataFrame]:
    """Return the losses of a run, one frame per component and cause."""
    dropped = run.events("packets").filter(pl.col("step") == "dropped")
    frame = dropped.select("t", "component", "direction", "cause").collect().sort("t")
    return frame.sort("component", "direction", "cause", maintain_order=True).partition_by(
        "component", "direction", "cause"
    )
