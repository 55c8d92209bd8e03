"""Where the time goes: the delay that each hop of the path adds to a packet."""

from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.radio_terms import bearer_names
from airpath.plot.selection import Line, NothingToDrawError, Results, drawn, lines
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.units import seconds_unit
from airpath.plot.values import average, largest, numbers
from airpath.tables import PROXY, is_quic

_READ = (
    "The mean delay of data packets in each hop, by time step: queueing, transmission, retransmissions, propagation. "
    "The height of the stack is the one-way delay."
)
_READ_SEVERAL = "The mean delay of a data packet in each hop; the length of a bar is the one-way delay."
_STEPS = 120


def hops(results: Results, flow: int | None = None, *, repetition: int | None = None) -> go.Figure:
    """Draw the one-way delay of data packets by hop: of one result over time, of several the means.

    Args:
        results: One result, or several to be compared.
        flow: Number of the transfer; by default the median one.
        repetition: The repetition; by default the median one.

    Raises:
        NotLoggedError: A run did not log the `packets` table.
        NothingToDrawError: There is no transfer over TCP, or none of its packets went through.
    """
    runs = drawn(results, repetition)
    chosen = [each for run in runs if (each := run.transfer(flow)) is not None]
    if not chosen:
        raise NothingToDrawError("the run has no transfer over TCP")
    picked, notes = lines(runs, flow) if len(runs) > 1 else lines(runs, chosen[0]["flow"])
    stays = [_stays(line) for line in picked]
    if all(frame.height == 0 for frame in stays):
        names = ", ".join(dict.fromkeys(str(line.flow["name"]) for line in picked))
        raise NothingToDrawError(f"no data packet of {names} reached its end")
    notes += [note for note, applies in _NOTES.items() if any(applies(line) for line in picked)]
    stays = [
        frame.with_columns(hop=pl.col("hop").replace(bearer_names(line.run)))
        for line, frame in zip(picked, stays, strict=True)
    ]
    if len(picked) == 1:
        return _over_time(picked[0], stays[0], notes, _which(picked[0], flow))
    return _means(picked, stays, notes)


def _which(line: Line, flow: int | None) -> str:
    """Return which transfer of a run is drawn, and why; nothing of its only one."""
    several = len(line.run.transfers)
    if several < 2:
        return ""
    why = f", the one of median throughput of {several:,} transfers" if flow is None else ""
    return f"Drawn: {line.flow['name']}{why}. "


def _over_time(line: Line, stays: pl.DataFrame, notes: list[str], which: str) -> go.Figure:
    span = line.run.span
    width = span / _STEPS
    order = _order(stays)
    cells = stays.group_by("hop", cell=(pl.col("t") / width).floor().cast(pl.Int64)).agg(pl.col("stay").mean())
    every = cells.select("cell").unique().sort("cell")
    scale, unit = seconds_unit(largest(cells.group_by("cell").agg(pl.col("stay").sum())["stay"]))
    figure = blank(270, y_title=f"one-way delay ({unit})", span=span)
    words = []
    for number, hop in enumerate(order):
        colour = theme.hop(number).light
        means = every.join(cells.filter(hop=hop), on="cell", how="left").sort("cell")["stay"].fill_null(0)
        figure.add_trace(
            go.Scatter(
                x=numbers((every["cell"] + 0.5) * width),
                y=numbers(means, scale),
                name=hop,
                stackgroup="hops",
                line={"width": 1, "color": colour},
                fillcolor=f"{colour}80",
                hovertemplate="%{x:.3g} s: %{y:.4g}",
            )
        )
        mean = average(stays.filter(hop=hop)["stay"])
        words.append(f"{hop} {mean * scale:.4g} {unit}")
    figure.update_layout(showlegend=True)
    alt = f"Mean one-way delay of {line.flow['name']} by hop: {', '.join(words)}."
    return captioned(figure, Caption("Where the time goes", which + _READ, alt, notes))


def _means(chosen: Sequence[Line], stays: Sequence[pl.DataFrame], notes: list[str]) -> go.Figure:
    order = list(dict.fromkeys(hop for frame in stays for hop in _order(frame)))
    means = [{hop: average(frame.filter(hop=hop)["stay"]) for hop in order} for frame in stays]
    scale, unit = seconds_unit(max(sum(each.values()) for each in means))
    figure = blank(100 + 44 * len(chosen), x_title=f"mean one-way delay ({unit})")
    for number, hop in enumerate(order):
        colour = theme.hop(number).light
        figure.add_trace(
            go.Bar(
                x=[each[hop] * scale for each in means],
                y=[line.label for line in chosen],
                name=hop,
                orientation="h",
                marker={"color": f"{colour}b0", "line": {"color": colour, "width": 1}},
                text=[f"{each[hop] * scale:,.0f}" for each in means],
                textposition="inside",
                insidetextanchor="middle",
                hovertemplate=f"{hop}: %{{x:.4g}} {unit}<extra>%{{y}}</extra>",
            )
        )
    figure.update_layout(barmode="stack", bargap=0.35, showlegend=True)
    figure.update_yaxes(autorange="reversed", automargin=True, showgrid=False, ticks="")
    alt = "; ".join(
        f"{line.label}: {', '.join(f'{hop} {each[hop] * scale:.4g} {unit}' for hop in order)}"
        for line, each in zip(chosen, means, strict=True)
    )
    return captioned(figure, Caption("Where the time goes", _READ_SEVERAL, f"Mean one-way delay by hop: {alt}.", notes))


def _stays(line: Line) -> pl.DataFrame:
    """Return the seconds that each delivered data packet was in each hop.

    `t` is the time at which the packet entered its first hop. A proxy ends connections: the packets
    that it absorbs have arrived, and it creates those towards the receiver.
    """
    events = line.of_flow("packets").filter(pl.col("direction") == line.direction)
    has_data = pl.col("size") > pl.col("size").max() / 2 if is_quic(line.flow) else pl.col("length") > 0
    data = events.filter(pl.col("step").is_in(["sent", "created"])).filter(has_data).select("packet")
    ended = (pl.col("step") == "absorbed") & (pl.col("component") == PROXY)
    arrived = events.filter((pl.col("step") == "received") | ended).select("packet")
    came = events.filter(pl.col("step") == "queued").select("packet", "component", came="t")
    left = events.filter(pl.col("step") == "delivered").select("packet", "component", left="t")
    joined = came.join(left, on=["packet", "component"]).join(data, on="packet", how="semi")
    stays = joined.join(arrived, on="packet", how="semi").select(
        "packet", "came", t=pl.col("came").min().over("packet"), stay=pl.col("left") - pl.col("came"), hop="component"
    )
    return stays.collect().sort("t", "came")


def _crosses_proxy(line: Line) -> bool:
    return any(component["name"] == PROXY for component in line.run.result.summary["components"])


_NOTES = {
    "The time of the data in the proxy is left out.": _crosses_proxy,
    "Of QUIC, packets of more than half the greatest size count as data.": lambda line: is_quic(line.flow),
}
"""Notes, and the lines to which they apply."""


def _order(stays: pl.DataFrame) -> list[str]:
    """Return the hops in the order of the path."""
    firsts = stays.group_by("hop").agg(pl.col("came").min()).sort("came", "hop")
    return firsts["hop"].to_list()
