"""A run's figures as text: one row per flow over all repetitions, and the figures' definitions."""

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from airpath.quantities import (
    CALL_CLOCK,
    DELAY_CLOCK,
    PAGE_CLOCK,
    PLAYBACK_CLOCK,
    SEGMENT_CLOCK,
    TRANSFER_CLOCK,
    count,
    number_of,
    rate,
    score,
    seconds,
    share,
    size,
)
from airpath.result import complete_part, cut_repetitions
from airpath.tables import TRANSFERS, VIDEOS
from airpath.terminal_table import print_table

if TYPE_CHECKING:
    from rich.console import Console

Flow = dict[str, Any]

_MOST_ROWS = 50
"""Most rows of a table."""
_MOST_LINES = 10
"""Most lines with further figures below it."""
_FEWEST_IN_DISTRIBUTION = 10
"""Fewest flows, over all repetitions, whose percentiles are printed."""
_MOST_NAMES = 3
"""Most names of flows in a line."""


def render(summary: dict[str, Any], console: "Console") -> None:
    """Print a summary: the tables of transfers and probes, and the figures' definitions."""
    cut = cut_repetitions(summary)
    summary = complete_part(summary)
    repetitions = summary["repetitions"]
    simulated = _mean((each["simulated_s"] for each in repetitions), seconds)
    many = f", {len(repetitions)} repetitions (mean ± standard deviation)" if len(repetitions) > 1 else ""
    many += f"; without {len(cut)} that were interrupted" if cut else ""
    if "measurement" in summary:
        console.print(f"{summary['scenario']}: {simulated} measured", style="bold")
    else:
        console.print(f"{summary['scenario']}: seed {summary['seed']}, {simulated} simulated{many}", style="bold")
    by_flow: dict[int, list[Flow]] = {}
    for flow in summary["flows"]:
        by_flow.setdefault(flow["flow"], []).append(flow)
    groups = list(by_flow.values())
    transfers = [group for group in groups if group[0]["kind"] in TRANSFERS]
    delays = [group for group in groups if group[0]["kind"] not in (*TRANSFERS, *VIDEOS, "page", "voice")]
    calls = [group for group in groups if group[0]["kind"] == "voice"]
    sessions = [group for group in groups if group[0]["kind"] == "page"]
    if transfers:
        is_split = any(flow.get("proxy_rtt_mean_s") is not None for group in transfers for flow in group)
        # With a proxy, there is one on each side of it.
        round_trips = ("RTT to server", "RTT to mobile") if is_split else ("mean RTT",)
        head = ("flow", "mobile", "outcome", "bytes", "time", "throughput", "retransmitted", *round_trips, "time-outs")
        _print_table(console, head, [_transfer_row(group, is_split=is_split) for group in transfers[:_MOST_ROWS]])
        _print_all(console, transfers, "duration_s", "time", len(groups))
        for line in (TRANSFER_CLOCK, *_tcp_details(transfers)):
            console.print(line, style="dim")
    if delays:
        head = ("flow", "mobile", "outcome", "sent", "lost", "delay", "shortest", "95 %", "longest")
        _print_table(console, head, [_delay_row(group) for group in delays[:_MOST_ROWS]])
        _print_all(console, delays, "delay_mean_s", "mean delay", len(groups))
        console.print(DELAY_CLOCK, style="dim")
        lines = list(filter(None, map(_beyond_delay, delays)))
        for line in lines[:_MOST_LINES]:
            console.print(line, style="dim")
        if len(lines) > _MOST_LINES:
            console.print(f"and {len(lines) - _MOST_LINES:,} more such lines; --format csv prints all", style="dim")
        if any("gaps" in group[0] for group in delays):
            console.print(_PERIODS, style="dim")
    _print_videos(console, groups)
    if calls:
        both = [
            f"{figure} {direction}" for figure in ("MOS", "mouth to ear", "not played") for direction in ("down", "up")
        ]
        _print_table(console, ("flow", "mobile", "outcome", *both), [_call_row(group) for group in calls[:_MOST_ROWS]])
        _print_all(console, calls, "mouth_to_ear_s", "mouth to ear", len(groups))
        console.print(CALL_CLOCK, style="dim")
    _print_pages(console, summary, sessions)
    if drops := _drops(summary.get("links", [])):
        console.print(f"Dropped packets: {drops}.")
    if connections := _connections(summary.get("mobiles", [])):
        console.print(f"Radio connections: {connections}.")


def _drops(links: Sequence[dict[str, Any]]) -> str:
    """Return the numbers of dropped packets by link, direction and cause, over all repetitions."""
    counts: dict[str, dict[str, int]] = {}
    for link in links:
        of_link = counts.setdefault(f"{link['component']} {link['direction']}", {})
        for cause, dropped in link["dropped"].items():
            of_link[cause] = of_link.get(cause, 0) + dropped["packets"]
    words = {
        name: ", ".join(f"{number:,} {cause}" for cause, number in of_link.items() if number)
        for name, of_link in counts.items()
    }
    return "; ".join(f"{name} {text}" for name, text in words.items() if text)


def _connections(mobiles: Sequence[dict[str, Any]]) -> str:
    """Return the handovers, failures and set-ups by bearer, over all repetitions.

    Set-ups only if a mobile has more than one.
    """
    counts: dict[str, list[int]] = {}
    again: set[str] = set()
    for mobile in mobiles:
        own = [mobile[key] for key in _CONNECTION_EVENTS]
        counts[mobile["component"]] = list(map(sum, zip(own, counts.get(mobile["component"], (0, 0, 0)), strict=True)))
        if mobile["connection_setups"] > 1:
            again.add(mobile["component"])
    texts = []
    for name, numbers in counts.items():
        shown = [
            number_of(number, one)
            for (key, one), number in zip(_CONNECTION_EVENTS.items(), numbers, strict=True)
            if number and (key != "connection_setups" or name in again)
        ]
        texts += [f"{name} {', '.join(shown)}"] if shown else []
    return "; ".join(texts)


_CONNECTION_EVENTS = {
    "handovers": "handover",
    "link_failures": "link failure",
    "connection_setups": "connection set-up",
}
"""Columns of `mobiles`, in words."""


def _print_pages(console: "Console", summary: dict[str, Any], sessions: Sequence[Sequence[Flow]]) -> None:
    if not sessions:
        return
    views: dict[tuple[int, int], list[Flow]] = {}
    for view in summary.get("pages", []):
        views.setdefault((view["flow"], view["view"]), []).append(view)
    head = ("flow", "mobile", "outcome", "page", "time", "first byte", "requests", "connections", "bytes", "idle")
    rows = [
        _page_row(group, number, view)
        for group in sessions
        for (flow, number), view in sorted(views.items())
        if flow == group[0]["flow"]
    ]
    _print_table(console, head, rows)
    for line in (PAGE_CLOCK, *_tcp_details(sessions)):
        console.print(line, style="dim")


def _print_videos(console: "Console", groups: Sequence[Sequence[Flow]]) -> None:
    videos = [group for group in groups if group[0]["kind"] == "stream"]
    if videos:
        playback = ("start-up", "stalls", "stalled", "frames", "decoded")
        head = ("flow", "mobile", "outcome", *playback, "sent", "lost", "late", "repaired")
        _print_table(console, head, [_video_row(group) for group in videos[:_MOST_ROWS]])
        _print_all(console, videos, "startup_s", "start-up", len(groups))
        console.print(PLAYBACK_CLOCK, style="dim")
    segmented = [group for group in groups if group[0]["kind"] == "adaptive"]
    if segmented:
        playback = ("start-up", "stalls", "stalled", "quality", "switches", "buffer")
        head = ("flow", "mobile", "outcome", "adaptation", *playback)
        _print_table(console, head, [_segmented_row(group) for group in segmented[:_MOST_ROWS]])
        _print_all(console, segmented, "startup_s", "start-up", len(groups))
        for line in (SEGMENT_CLOCK, *_tcp_details(segmented)):
            console.print(line, style="dim")


def _page_row(group: Sequence[Flow], number: int, views: Sequence[Flow]) -> tuple[str, ...]:
    mean = _means(views)

    again = f", view {number + 1}" if number else ""
    return (
        group[0]["name"],
        group[0]["mobile"],
        _outcomes(group),
        f"{views[0]['page']}{again}",
        mean("page_time_s", seconds),
        mean("first_byte_s", seconds),
        mean("requests", count),
        mean("connections", count),
        mean("bytes", size),
        mean("idle_downlink_s", seconds),
    )


def _means(rows: Sequence[Flow]) -> Callable[[str, Callable[[float], str]], str]:
    """Return what prints the mean of a figure of these rows."""
    return lambda field, format_value: _mean((row.get(field) for row in rows), format_value)


def _mean(values: Iterable[float | None], format_value: Callable[[float], str]) -> str:
    """Return the mean as text, with the standard deviation of several values.

    A dash without values.
    """
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    if len(known) == 1 or min(known) == max(known):
        return format_value(known[0])
    return f"{format_value(fmean(known))} ± {format_value(stdev(known))}"


def _outcomes(group: Sequence[Flow]) -> str:
    outcomes = [flow["outcome"] for flow in group]
    if len(set(outcomes)) == 1:
        return outcomes[0]
    return ", ".join(f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes)))


def _transfer_row(group: Sequence[Flow], *, is_split: bool) -> tuple[str, ...]:
    mean = _means(group)

    # The sender measures one side of the proxy, and the proxy the other.
    round_trips = [mean("rtt_mean_s", seconds), mean("proxy_rtt_mean_s", seconds)][: 1 + is_split]
    if group[0]["kind"] == "upload":
        round_trips.reverse()
    return (
        group[0]["name"],
        group[0]["mobile"],
        _outcomes(group),
        mean("delivered_bytes", size),
        mean("duration_s", seconds),
        mean("throughput_bps", rate),
        mean("retransmitted_packets", count),
        *round_trips,
        mean("timeouts", count),
    )


def _delay_row(group: Sequence[Flow]) -> tuple[str, ...]:
    mean = _means(group)
    return (
        group[0]["name"],
        group[0]["mobile"],
        _outcomes(group),
        mean("sent", count),
        mean("lost", count),
        mean("delay_mean_s", seconds),
        mean("delay_min_s", seconds),
        mean("delay_p95_s", seconds),
        mean("delay_max_s", seconds),
    )


def _video_row(group: Sequence[Flow]) -> tuple[str, ...]:
    mean = _means(group)
    return (
        group[0]["name"],
        group[0]["mobile"],
        _outcomes(group),
        mean("startup_s", seconds),
        mean("stalls", count),
        mean("stall_s", seconds),
        mean("frames", count),
        mean("frames_decodable", count),
        mean("sent", count),
        mean("lost", count),
        mean("late", count),
        mean("repaired", count),
    )


def _segmented_row(group: Sequence[Flow]) -> tuple[str, ...]:
    mean = _means(group)
    return (
        group[0]["name"],
        group[0]["mobile"],
        _outcomes(group),
        group[0]["adaptation"],
        mean("startup_s", seconds),
        mean("stalls", count),
        mean("stall_s", seconds),
        mean("quality_bps", rate),
        mean("switches", count),
        mean("buffer_mean_s", seconds),
    )


def _call_row(group: Sequence[Flow]) -> tuple[str, ...]:
    directions = [[flow[direction] for flow in group] for direction in ("down", "up")]
    figures: tuple[tuple[str, Callable[[float], str]], ...] = (
        ("mos", score),
        ("mouth_to_ear_s", seconds),
        ("frame_loss", share),
    )
    values = (_means(calls)(figure, format_value) for figure, format_value in figures for calls in directions)
    return (group[0]["name"], group[0]["mobile"], _outcomes(group), *values)


def _beyond_delay(group: Sequence[Flow]) -> str | None:
    """Return a line with the figures of datagrams and transactions other than delay.

    `None` for other flows.
    """
    mean = _means(group)

    name = f"{group[0]['name']} of {group[0]['mobile']}"
    if group[0].get("transactions_per_s") is not None:
        return (
            f"{name}: {mean('transactions_per_s', count)} transactions per second over {mean('duration_s', seconds)}; "
            f"a connection opened in {mean('connect_mean_s', seconds)}."
        )
    if group[0].get("exchange"):
        rates = f"; {mean('throughput_bps', rate)} while files were transferred" if "files_complete" in group[0] else ""
        return f"{name}: {_latencies(group)}{rates}."
    if "gaps" in group[0]:
        return (
            f"{name}: {mean('gaps', count)} gaps with losses (longest {mean('gap_max_s', seconds)}), "
            f"{mean('late', count)} late by more than {mean('late_threshold_s', seconds)}, "
            f"{mean('delay_periods', count)} delay periods without losses "
            f"(longest {mean('delay_period_max_s', seconds)}), inter-arrival time "
            f"{mean('inter_arrival_p50_s', seconds)} median, {mean('inter_arrival_max_s', seconds)} maximum."
        )
    return None


def _latencies(group: Sequence[Flow]) -> str:
    """Return the latencies of a terminal or of mail by kind; of mail first those of messages."""
    parts = []
    if group[0].get("protocol") is not None:
        what = "accepted" if group[0]["protocol"] == "smtp" else "readable"
        first, last = (_means(group)(f"{which}_message_s", seconds) for which in ("first", "last"))
        parts.append(f"first message {what} after {first}, last after {last}")
    for kind in group[0]["exchange"]:
        mean = _means([flow["exchange"][kind] for flow in group])
        shares = (f"{share} % {mean(f'p{share}_s', seconds)}" for share in (50, 95, 99))
        parts.append(f"{kind} {', '.join(shares)}")
    return "; ".join(parts)


_PERIODS = (
    "A gap reaches from the last arrival before a loss to the first after it; a delay period from a datagram in time "
    "to the next in time, if those between are late and none is lost."
)
_TEXT_COLUMNS = ("flow", "mobile", "outcome", "page")
_EXPECTED = {"outcome": {"finished"}, "time-outs": {"0"}}
"""Values without information, of columns that a narrow terminal can omit."""


def _print_table(console: "Console", head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; a narrow one omits columns without information."""
    optional = []
    for name in ("mobile", "outcome", "time-outs"):
        values = {row[head.index(name)] for row in rows} if name in head else set()
        if len(values) == 1 and values <= _EXPECTED.get(name, values):
            optional.append(name)
    right = [name for name in head if name not in _TEXT_COLUMNS]
    print_table(console, head, rows, titles=_TEXT_COLUMNS, right=right, optional=optional)


def _print_all(console: "Console", groups: Sequence[Sequence[Flow]], figure: str, name: str, total: int) -> None:
    """Print how the flows are distributed if they are many, and how many rows the table lacks.

    Args:
        console: Where it is printed.
        groups: The flows of the table.
        figure: Their main figure.
        name: Its name.
        total: The number of all flows, also of other tables.
    """
    flows = [flow for group in groups for flow in group]
    if len(groups) > _MOST_ROWS:
        console.print(f"and {len(groups) - _MOST_ROWS:,} more flows; --format csv prints all", style="dim")
    if len(flows) < _FEWEST_IN_DISTRIBUTION:
        return
    values = sorted(flow[figure] for flow in flows if flow.get(figure) is not None)
    outcomes = [flow["outcome"] for flow in flows]
    parts = [", ".join(f"{outcomes.count(each):,} {each}" for each in sorted(set(outcomes)))]
    if values:
        quantiles = (f"p{share} {seconds(_nearest_rank(values, share))}" for share in (50, 95, 99))
        parts.append(f"{name} {', '.join(quantiles)}")
    kinds = ", ".join(dict.fromkeys(str(group[0]["kind"]) for group in groups))
    which = "all flows" if len(groups) == total else f"{len(groups):,} flows ({kinds})"
    console.print(f"{which}: {'; '.join(parts)}")


def _nearest_rank(values: Sequence[float], share: int) -> float:
    """Return the smallest of some sorted values that `share` per cent of them do not exceed."""
    return values[math.ceil(len(values) * share / 100) - 1]


def _tcp_details(groups: Sequence[Sequence[Flow]]) -> list[str]:
    """Return a line for each set of transport settings, with its flows if there are several."""
    users: dict[str, list[str]] = {}
    for group in groups:
        if group[0]["tcp"] is not None:
            users.setdefault(json.dumps(group[0]["tcp"]), []).append(f"{group[0]['name']} of {group[0]['mobile']}")
    lines = []
    for details, names in users.items():
        tcp = json.loads(details)
        profile = tcp.pop("profile", "custom")
        more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        of = f" ({', '.join(names[:_MOST_NAMES])}{more})" if len(users) > 1 else ""
        if "quic" in tcp:
            lines.append(f"QUIC by {profile}{of}: {', '.join([*_values(tcp), *_changed_quic(tcp['quic'])])}.")
        else:
            lines.append(f"TCP {profile}{of}: {', '.join([*_values(tcp), *_changed(tcp, profile)])}.")
    return lines


def _changed(tcp: dict[str, Any], profile: str) -> list[str]:
    """Return the settings that differ from those of the profile; without one, the enabled ones."""
    from airpath import ScenarioError
    from airpath.run import resolve

    probe = {"tcp": {"profile": profile}, "flow": [{"kind": "download", "bytes": "1 B"}]}
    try:
        resolved = resolve({"format": 1, "bearer": {"preset": "wired"}} | probe)
    except ScenarioError:  # a kernel, or a profile of another version
        return list(dict.fromkeys(_flags(tcp)))
    of_profile = dict(_dotted(tomllib.loads(resolved)["flow"][0]["tcp"]))
    shown = {"congestion.algorithm", "initial_window"}
    return [
        f"{key} = {json.dumps(value)}"
        for key, value in _dotted(tcp)
        if key in of_profile.keys() - shown and value != of_profile[key]
    ]


def _changed_quic(quic: dict[str, Any]) -> list[str]:
    """Return the settings of QUIC that differ from the defaults, without the controller."""
    from airpath.run import resolve

    flow = {"kind": "download", "bytes": "1 B", "transport": "quic-quinn"}
    resolved = tomllib.loads(resolve({"format": 1, "bearer": {"preset": "wired"}, "flow": [flow]}))
    defaults = resolved["flow"][0]["quic"]
    return [
        f"{key} = {json.dumps(value)}"
        for key, value in quic.items()
        if key != "congestion" and value != defaults.get(key)
    ]


def _dotted(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _values(tcp: dict[str, Any]) -> Iterable[str]:
    """Yield the most important settings with a value."""
    congestion, timeout = tcp.get("congestion", {}), tcp.get("retransmission_timeout", {})
    for name, value in (
        ("{}", congestion.get("algorithm")),
        ("initial window {}", tcp.get("initial_window")),
        ("segments of {} B", (tcp.get("negotiated") or {}).get("segment_size")),
        ("time-out from {}", timeout.get("minimum")),
    ):
        if value is not None:
            yield name.format(value)


def _flags(tcp: dict[str, Any]) -> Iterable[str]:
    """Yield the names of the enabled settings, those of nested tables included."""
    for part in (tcp, *(tcp.get(name) or {} for name in ("congestion", "recovery", "negotiated"))):
        yield from (key.replace("_", " ") for key, value in part.items() if value is True)
