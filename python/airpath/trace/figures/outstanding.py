"""The outstanding data, and the receiver's window that limits it."""

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import steps
from airpath.plot.units import bytes_unit
from airpath.plot.values import largest
from airpath.trace.figures.view import FlowView, direction_of, other

_READ = (
    "Data sent and not yet acknowledged, as captured. It grows with the congestion window, up to the receiver's window "
    "(dotted)."
)


def outstanding(view: FlowView, *, bins: int = BINS) -> go.Figure:
    """Draw the outstanding data of each end that sent any.

    Raises:
        NothingToDrawError: No data was sent.
    """
    if not view.main_senders:
        raise NothingToDrawError("no data was sent")
    thinner = Thinner(bins)
    most = max(largest(view.data(sender)["outstanding_bytes"]) for sender in view.main_senders)
    scale, unit = bytes_unit(most)
    figure = blank(260, y_title=f"outstanding ({unit})", span=view.span)
    figure.update_yaxes(range=[0, most * 1.15 * scale])
    words = []
    for sender in view.main_senders:
        direction = direction_of(sender)
        known = _known(view, sender)
        dash = "dash" if direction == "up" and len(view.main_senders) > 1 else "solid"
        style = {"color": theme.direction(direction).light, "width": 1.4, "dash": dash}
        steps(figure, known, "outstanding_bytes", scale, f"outstanding, {direction}", style, thinner)
        window = view.sent.filter(pl.col("from") == other(sender)).filter(pl.col("window_bytes") <= 1.15 * most)
        if window.height:
            style = {"color": theme.MUTED.light, "width": 1.2, "dash": "dot"}
            steps(figure, window, "window_bytes", scale, f"receiver's window, {direction}", style, thinner)
        words.append(f"{direction} up to {largest(known['outstanding_bytes']):,.0f} bytes")
    figure.update_layout(showlegend=True)
    alt = f"Outstanding data over time of flow {view.name}: {'; '.join(words)}."
    return captioned(figure, Caption("Outstanding data", _READ, alt, thinner.notes(), log_axis=False))


def _known(view: FlowView, sender: str) -> pl.DataFrame:
    """Return an end's outstanding data at each of its segments and at each acknowledgement."""
    is_sent = pl.col("from") == sender
    both = view.sent.filter(is_sent | pl.col("acknowledged").is_not_null()).select(
        "t",
        outstanding_bytes=pl.when(is_sent).then("outstanding_bytes"),
        end=pl.when(is_sent).then("end"),
        acknowledged=pl.when(~is_sent).then("acknowledged"),
    )
    highest = pl.col("end").cum_max().forward_fill()
    after = (highest - pl.col("acknowledged")).clip(lower_bound=0)
    return both.with_columns(outstanding_bytes=pl.coalesce("outstanding_bytes", after)).drop_nulls("outstanding_bytes")
