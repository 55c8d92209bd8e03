"""The figures show the values of the frames."""

import math
import re
from collections.abc import Callable
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import airpath
from airpath import plot, theme
from airpath.plot.rates import rates_of
from airpath.plot.template import untitled
from airpath.plot.thin import changes, thin
from airpath.plot.values import numbers
from airpath.study.figures import draw as draw_study
from support import DOWNLOAD

MANY = DOWNLOAD.replace('kind = "download"', 'kind = "download"\ncount = 9')


@pytest.fixture(scope="module")
def hs_dsch() -> airpath.Result:
    """A download over HS-DSCH that loses packets."""
    return airpath.run(DOWNLOAD.replace("loss = 0.01", "loss = 0.03"))


@pytest.fixture(scope="module")
def dch() -> airpath.Result:
    """The same over DCH, several times."""
    text = DOWNLOAD.replace("hs-dsch-384", "umts-dch-384").replace('"small"', '"DCH"')
    return airpath.run(text, repeat=6)


@pytest.fixture(scope="module")
def many() -> airpath.Result:
    """More flows than fit into one figure."""
    return airpath.run(MANY, set={"flow.0.bytes": "50 kB"})


OVER_TIME = (
    plot.time_sequence,
    plot.window,
    plot.outstanding,
    plot.round_trip,
    plot.queue,
    plot.throughput,
    plot.radio,
    plot.losses,
    plot.hops,
)


@pytest.mark.parametrize("draw", OVER_TIME, ids=lambda draw: draw.__name__)
def test_a_figure_over_time_is_described(draw: Callable[..., go.Figure], hs_dsch: airpath.Result) -> None:
    figure = draw(hs_dsch)
    caption = plot.caption_of(figure)
    assert caption.title == layout(figure).title.text
    assert caption.read.endswith(".")
    assert any(character.isdigit() for character in caption.alt)
    assert list(layout(figure).xaxis.range) == [0, hs_dsch.repetitions["simulated_s"].item()]
    assert layout(figure).xaxis.title.text == "time (s)"
    # All figures have the same margins, which aligns their time axes.
    assert (layout(figure).margin.l, layout(figure).margin.r) == (78, 22)


@pytest.mark.parametrize("draw", [each for each in OVER_TIME if each is not plot.hops], ids=lambda draw: draw.__name__)
def test_several_runs_share_the_axis_of_the_longest(
    draw: Callable[..., go.Figure], hs_dsch: airpath.Result, dch: airpath.Result
) -> None:
    figure = draw([hs_dsch, dch], repetition=0)
    longest = max(each.repetitions["simulated_s"][0] for each in (hs_dsch, dch))
    assert list(layout(figure).xaxis.range) == [0, longest]
    shown = json_text(figure)
    assert "small" in shown
    assert "DCH" in shown


def test_every_segment_that_was_sent_again_is_marked(hs_dsch: airpath.Result) -> None:
    figure = plot.time_sequence(hs_dsch, bins=10)
    sent = hs_dsch.packets.filter((pl.col("step") == "sent") & (pl.col("direction") == "down") & (pl.col("length") > 0))
    again = sent.filter("retransmission")
    assert again.height > 0
    drawn = trace(figure, "retransmitted")
    assert list(drawn.x) == pytest.approx(list(again["time"] / 1e9), abs=1e-3)
    assert len(trace(figure, "sent").x) < sent.height / 2
    assert "Thinned" in plot.caption_of(figure).notes[-1]
    dropped = hs_dsch.packets.filter((pl.col("step") == "dropped") & (pl.col("direction") == "down"))
    assert len(trace(figure, "lost").x) == dropped.join(sent, on="packet", how="semi").height


def test_windows_are_those_of_the_log(hs_dsch: airpath.Result) -> None:
    figure = plot.window(hs_dsch, bins=10**6)
    down = hs_dsch.tcp.filter(direction="down")
    in_kilobytes = max(down["congestion_window"].to_list()) / 1e3
    assert max(trace(figure, "congestion window").y) == pytest.approx(in_kilobytes, rel=1e-4)
    cuts = down.filter(trigger="fast-retransmit").height
    assert cuts > 0
    assert len(trace(figure, "fast retransmit").x) == cuts


def test_throughput_adds_up_to_what_arrived(hs_dsch: airpath.Result) -> None:
    figure = plot.throughput(hs_dsch)
    down = trace(figure, "down")
    step = down.x[1] - down.x[0]
    span = hs_dsch.repetitions["simulated_s"].item()
    # The last step ends after the run; the last point repeats it at the end.
    bits = sum(rate * 1e3 * step for rate in down.y[:-1])
    assert down.x[-1] == span
    arrived = hs_dsch.packets.filter((pl.col("step") == "received") & (pl.col("direction") == "down"))
    assert bits == pytest.approx(arrived["size"].sum() * 8, rel=1e-3)


def test_throughput_has_means_of_a_given_step(hs_dsch: airpath.Result, dch: airpath.Result) -> None:
    one, other = traces(plot.throughput([hs_dsch, dch], step=0.25))
    assert one.x[1] - one.x[0] == other.x[1] - other.x[0] == 0.25


def test_outstanding_data_are_those_of_the_log(hs_dsch: airpath.Result, dch: airpath.Result) -> None:
    figure = plot.outstanding([hs_dsch, dch], repetition=0)
    for line, result in zip(traces(figure), (hs_dsch, dch), strict=True):
        logged = result.tcp.filter(direction="down", repetition=0)["outstanding"]
        assert max(line.y) == pytest.approx(max(logged.to_list()) / 1e3, rel=1e-4)


def test_segments_of_several_transfers_are_drawn_with_their_syns(hs_dsch: airpath.Result, dch: airpath.Result) -> None:
    assert len(traces(plot.time_sequence([hs_dsch, dch]))) == 4
    figure = plot.time_sequence([hs_dsch, dch], segments=True, repetition=0)
    sent = dch.packets.filter((pl.col("step") == "sent") & (pl.col("direction") == "down") & (pl.col("length") > 0))
    first = sent.filter((pl.col("repetition") == 0) & ~pl.col("retransmission"))
    assert len(trace(figure, "DCH, sent").x) == first.height
    assert list(trace(figure, "DCH, SYN").x) == [0.0]


def test_segments_towards_the_mobile_are_those_of_a_proxy_in_the_path() -> None:
    split = airpath.run(DOWNLOAD, set={"proxy.budget": "20 kB"})
    figure = plot.time_sequence(split)
    made = split.packets.filter((pl.col("step") == "created") & (pl.col("direction") == "down"))
    made = made.filter((pl.col("component") == "proxy") & (pl.col("length") > 0) & ~pl.col("retransmission"))
    assert list(trace(figure, "sent").x) == pytest.approx(list(made["time"] / 1e9), abs=1e-3)


def test_one_quic_transfer_is_drawn_by_its_acknowledged_packets(hs_dsch: airpath.Result) -> None:
    quic = airpath.run(DOWNLOAD, set={"flow.0.transport": "quic-quinn", "name": "quic"})
    figure = plot.time_sequence(quic)
    line = traces(figure)[0]
    acknowledged = max(quic.tcp.filter(direction="down")["acknowledged"].to_list())
    assert acknowledged > quic.summary["flows"][0]["bytes"]
    assert max(line.y) == pytest.approx(acknowledged / 1e3, rel=1e-4)
    # Plotly fits the axis to the data.
    assert layout(figure).yaxis.range is None
    assert layout(figure).yaxis.title.text == "acknowledged data (kB)"
    assert layout(figure).showlegend
    caption = plot.caption_of(figure)
    assert "dot" not in caption.read
    assert "cross" not in caption.read
    assert "retransmitted" not in caption.alt
    assert any("QUIC" in note for note in caption.notes)
    both = plot.time_sequence([quic, hs_dsch])
    assert layout(both).yaxis.title.text == "acknowledged data (kB)"
    assert "cross" in plot.caption_of(both).read


def test_the_tracks_of_the_radio_hold_all_its_air_time(hs_dsch: airpath.Result) -> None:
    tracks = trace(plot.radio(hs_dsch, cells=50), "air time")
    [track], width = tracks.z, tracks.dx
    assert width * 1e3 == pytest.approx(round(width * 1e3 / 2) * 2)  # a whole number of TTIs of 2 ms
    assert max(share for share in track if share is not None) <= 100
    seconds = sum(share / 100 * width for share in track if share is not None)
    used = float(hs_dsch.radio.filter(direction="down")["duration"].sum()) / 1e9
    assert seconds == pytest.approx(used, rel=0.01)


def test_blocks_without_pdus_have_no_share_of_repeats() -> None:
    # A page has figures as JSON, which has no NaN.
    run = airpath.run("lte-20mhz", set={"flow.0.bytes": "500 kB", "bearer.downlink.bler": 0.3})
    assert run.radio.filter(pdus=0).height > 0
    tracks = trace(plot.radio(run, cells=2000), "repeated PDUs")
    assert any(share for row in tracks.z for share in row)
    assert not any(math.isnan(share) for row in tracks.z for share in row if share is not None)


def test_the_rate_of_the_last_step_is_a_mean_of_the_whole_step() -> None:
    packets = pl.DataFrame({"t": [0.1, 0.3, 1.005], "size": [25_000, 25_000, 2_500]})
    assert rates_of(packets, 0.2, 1.01)["rate"].to_list() == pytest.approx([1e6, 1e6, 0, 0, 0, 1e5])
    # A run that is shorter than a step.
    assert rates_of(packets[:1], 0.5, 0.2)["rate"].to_list() == pytest.approx([1e6])


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (("CUBIC", "a window of one megabyte"), ["CUBIC ↓", "CUBIC ↑", "…megabyte ↓", "…megabyte ↑"]),
        (("one unbreakableword", "two unbreakableword"), ["one…eword ↓", "one…eword ↑"]),
        (("1 window of one byte", "1 window of ten byte"), ["…one byte ↓", "…one byte ↑"]),
    ],
)
def test_labels_of_radio_tracks_keep_run_and_direction(labels: tuple[str, str], shown: list[str]) -> None:
    runs = [airpath.run("gprs-4+1", set={"flow.0.bytes": "5 kB"}) for _ in labels]
    for run, label in zip(runs, labels, strict=True):
        run.label = label
    found = list(layout(plot.radio(runs)).yaxis.ticktext)
    assert len(set(found)) == 4
    assert max(map(len, found)) <= 11
    assert found[: len(shown)] == shown


def test_queues_are_those_of_the_log_and_empty_when_all_have_left(hs_dsch: airpath.Result) -> None:
    cell = trace(plot.queue(hs_dsch, bins=10**6), "cell, down")
    queued = hs_dsch.packets.filter((pl.col("component") == "cell") & (pl.col("direction") == "down"))
    assert max(cell.y) == pytest.approx(max(queued["backlog_bytes"].drop_nulls()) / 1e3, rel=1e-4)
    assert cell.y[-1] == 0
    last = queued.filter(step="delivered")["time"].to_list()[-1] / 1e9
    assert cell.x[-1] == pytest.approx(last, abs=1e-3)


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({"proxy.budget": "adaptive"}, "The time of the data in the proxy is left out."),
        ({"flow.transport": "quic-quinn"}, "Of QUIC, packets of more than half the greatest size count as data."),
    ],
)
def test_the_hops_of_a_proxy_and_of_quic_are_drawn(settings: dict[str, str], note: str) -> None:
    result = airpath.run("umts-r99-384", set={"fixed.delay": "20 ms", **settings})
    figure = plot.hops(result)
    assert plot.caption_of(figure).notes == [note]
    delays = {each["name"]: each["y"] for each in figure.to_dict()["data"]}
    assert set(delays) == {"fixed", "cell"}
    assert max(delays["fixed"]) == pytest.approx(20, rel=0.01)
    assert min(delay for delay in delays["cell"] if delay) > 50


def test_a_transfer_without_arrivals_has_no_hops() -> None:
    result = airpath.run("umts-r99-384", set={"duration": "200 ms"})
    with pytest.raises(plot.NothingToDrawError, match="no data packet of download reached its end"):
        plot.hops(result)


def test_the_hops_add_up_to_the_way_of_a_packet(hs_dsch: airpath.Result) -> None:
    figure = plot.hops([hs_dsch, hs_dsch])
    milliseconds = sum(bar.x[0] for bar in traces(figure))
    steps = hs_dsch.packets.filter(direction="down", flow=0)
    data = steps.filter((pl.col("step") == "sent") & (pl.col("length") > 0)).select("packet", sent="time")
    ways = data.join(steps.filter(step="received").select("packet", received="time"), on="packet")
    mean = ways.select((pl.col("received") - pl.col("sent")).mean()).item() / 1e6
    assert milliseconds == pytest.approx(mean, rel=1e-3)


def test_of_many_flows_three_stand_for_all(many: airpath.Result) -> None:
    figure = plot.time_sequence(many)
    assert len([each for each in traces(figure) if each.mode == "lines"]) == 3
    assert "fastest, the median and the slowest" in plot.caption_of(figure).notes[0]
    one = plot.time_sequence(many, flow=2)
    assert "download-2" in plot.caption_of(one).title


def test_of_many_repetitions_the_median_one_is_drawn(dch: airpath.Result) -> None:
    speeds = dch.flows.sort("throughput_bps")
    median = speeds.row((speeds.height - 1) // 2, named=True)["repetition"]
    assert plot.time_sequence(dch).to_dict() == plot.time_sequence(dch, repetition=median).to_dict()
    assert plot.time_sequence(dch).to_dict() != plot.time_sequence(dch, repetition=(median + 1) % 6).to_dict()


def test_the_mean_of_repetitions_has_its_interval(dch: airpath.Result) -> None:
    figure = plot.compare(dch, "duration_s")
    [mean] = [each for each in traces(figure) if each.marker.symbol == "diamond"]
    durations = dch.flows["duration_s"].to_list()
    scale = 1e3 if "(ms)" in layout(figure).xaxis.title.text else 1
    assert mean.x[0] == pytest.approx(fmean(durations) * scale, rel=1e-6)
    half = 2.5706 * stdev(durations) / math.sqrt(6)  # Student's t of five degrees of freedom
    assert mean.error_x.array[0] == pytest.approx(half * scale, rel=1e-4)
    few = plot.compare(airpath.run(DOWNLOAD, repeat=2), "duration_s")
    assert "too few" in plot.caption_of(few).notes[0]
    with pytest.raises(KeyError, match="no 'speed'"):
        plot.compare(dch, "speed")


def test_what_was_not_logged_or_did_not_happen_is_reported() -> None:
    unlogged = airpath.run(DOWNLOAD, log=False)
    for draw in OVER_TIME:
        with pytest.raises(airpath.NotLoggedError, match="run the scenario again with this log on"):
            draw(unlogged)
    wired = airpath.run(DOWNLOAD, set={"bearer": {"preset": "wired"}, "fixed.loss": 0})
    with pytest.raises(plot.NothingToDrawError, match="nothing was sent over a radio"):
        plot.radio(wired)
    with pytest.raises(plot.NothingToDrawError, match="no packet was lost"):
        plot.losses(wired)
    with pytest.raises(plot.NothingToDrawError, match="flow 7 is no transfer"):
        plot.window(wired, flow=7)


def test_a_study_is_drawn_row_by_row() -> None:
    row: dict[str, Any] = {"experiment": "rtt", "metric": "round-trip", "unit": "ms", "n": 30}
    rows = [
        row | {"case": {"channel": "DCH", "bler": "1 %"}, "published": 264, "ours": 260.0, "low": 258.0, "high": 262.0},
        row
        | {"case": {"channel": "DCH", "bler": "5 %"}, "published": None, "ours": 300.0, "low": 299.0, "high": 301.0},
    ]
    figure = draw_study({"rows": rows}, "rtt")
    ours, published = traces(figure)
    assert list(ours.x) == [260, 300]
    assert list(ours.error_x.array) == [2, 1]
    assert list(published.x) == [264]
    assert list(layout(figure).yaxis.ticktext) == ["DCH, BLER 1 %", "DCH, BLER 5 %"]
    assert layout(figure).xaxis.title.text == "round trip (ms)"
    assert layout(figure).xaxis.rangemode == "tozero"
    with pytest.raises(plot.NothingToDrawError, match="no rows"):
        draw_study({"rows": rows}, "loss")


def test_a_published_range_is_drawn_from_end_to_end_and_a_deviation_as_a_bar() -> None:
    row = {"experiment": "ftp", "metric": "ftp-throughput", "unit": "kbyte/s", "low": 75.0, "high": 77.0, "n": 5}
    rows = [
        row | {"case": {"c": "A"}, "published": 82.5, "published_range": [75, 90], "ours": 76.0},
        row | {"case": {"c": "B"}, "published": 82.5, "published_range": [75, 90], "ours": 60.0},
        row | {"case": {"c": "C"}, "published": 80.0, "published_deviation": 4.0, "ours": 76.0},
    ]
    figure = draw_study({"rows": rows}, "ftp")
    ranges, _, published = traces(figure)
    assert list(ranges.x) == [75, 90, None, 75, 90, None]
    assert list(published.x) == [80]
    assert list(published.error_x.array) == [4]
    # The difference is that from the nearest end of the range.
    assert [(shape.x0, shape.x1) for shape in layout(figure).shapes] == [(76, 76), (75, 60), (80, 76)]
    assert "published 75 to 90" in plot.caption_of(figure).alt


def test_a_page_takes_a_figure_without_title_and_template(hs_dsch: airpath.Result) -> None:
    figure = plot.queue(hs_dsch)
    bare = untitled(figure)
    assert not {"title", "template", "meta"} & set(bare["layout"])
    assert bare["layout"]["height"] < layout(figure).height


SAMPLES = st.lists(st.tuples(st.floats(0, 1e4), st.integers(-(10**9), 10**9)), min_size=1, max_size=400)


@given(SAMPLES, st.integers(1, 20))
def test_thinning_keeps_the_extremes(samples: list[tuple[float, int]], bins: int) -> None:
    samples.sort()
    frame = pl.DataFrame(samples, schema={"t": pl.Float64, "y": pl.Int64}, orient="row")
    kept = thin(frame, "y", bins)
    assert kept.height <= 4 * (bins + 1)
    for frames in (kept, frame):
        assert (frames["y"].min(), frames["y"].max()) == (frame["y"].min(), frame["y"].max())
    assert kept.row(0) == frame.row(0)
    assert kept.row(-1) == frame.row(-1)
    assert kept["t"].is_sorted()
    if frame.height <= 4 * bins:
        assert kept.equals(frame)


@given(st.lists(st.integers(0, 3) | st.none(), min_size=1))
def test_changes_are_all_that_steps_need(values: list[int | None]) -> None:
    frame = pl.DataFrame({"t": range(len(values)), "y": values}, schema={"t": pl.Int64, "y": pl.Int64})
    kept = dict(changes(frame, "y").iter_rows())
    held: int | None = None
    for t, y in enumerate(values):
        held = kept.get(t, held)
        assert held == y
    assert len(values) - 1 in kept


@given(st.lists(st.floats(-1e12, 1e12), min_size=1))
def test_numbers_lose_nothing_that_can_be_seen(values: list[float]) -> None:
    most = max(map(abs, values))
    for value, number in zip(values, numbers(pl.Series(values)), strict=True):
        assert abs(value - number) <= 1e-5 * most


# --- Colours --------------------------------------------------------------------------------------

# Machado, Oliveira and Fernandes 2009, full deficiency, on linear sRGB.
_EYES = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_differ_for_every_colour_vision(dark: bool) -> None:
    """In Oklab, where 0.02 is about the least difference visible side by side."""

    def of(colour: theme.Colour) -> str:
        return colour.dark if dark else colour.light

    bars = tuple(dict.fromkeys([*theme.SETUP.values(), *theme.OBJECTS.values()]))
    distinct = ((theme.DOWN, theme.UP, theme.ALERT), theme.SERIES, theme.HOPS, theme.CAUSES, bars)
    for group, least in ((each, 0.1) for each in distinct):
        for one, other in combinations(group, 2):
            for eye in _EYES:
                assert math.dist(_oklab(of(one), eye), _oklab(of(other), eye)) >= least, (of(one), of(other), eye)
        assert all(_contrast(of(colour), of(theme.PAGE)) >= 2 for colour in group)
    # WCAG 2: 3 for graphics, 4.5 for text.
    for colour in (theme.DOWN, theme.UP, theme.ALERT, *theme.SERIES):
        assert _contrast(of(colour), of(theme.PAGE)) >= 3, of(colour)
    for colour in (theme.INK, theme.MUTED, theme.LINK, theme.GOOD, theme.ALERT):
        assert _contrast(of(colour), of(theme.SURFACE)) >= 4.5, of(colour)


def test_each_light_colour_has_one_dark_one() -> None:
    pairs = {(colour.light, colour.dark) for colour in theme.every_colour()}
    assert len(pairs) == len(theme.dark_of())


def test_a_series_never_looks_like_another() -> None:
    looks = [(theme.series(index), theme.dash(index)) for index in range(24)]
    assert len(set(looks)) == 24


def test_only_colours_of_the_theme_are_drawn(hs_dsch: airpath.Result) -> None:
    """A colour outside the theme would stay light on a dark page."""
    for draw in OVER_TIME:
        used = set(re.findall(r"#[0-9a-f]{6}", json_text(draw(hs_dsch))))
        assert used <= set(theme.dark_of()), draw.__name__


def _linear(colour: str) -> tuple[float, ...]:
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def _contrast(one: str, other: str) -> float:
    low, high = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in map(_linear, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _oklab(colour: str, eye: str) -> tuple[float, float, float]:
    """Return a colour as an eye perceives it, in Oklab (Ottosson 2020)."""
    rgb = _linear(colour)
    red, green, blue = (max(sum(weight * part for weight, part in zip(row, rgb, strict=True)), 0) for row in _EYES[eye])
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def layout(figure: go.Figure) -> Any:
    """Return the layout of a figure, whose parts have no types."""
    return figure.layout


def traces(figure: go.Figure) -> list[Any]:
    """Return the traces of a figure."""
    return list(figure["data"])


def trace(figure: go.Figure, name: str) -> Any:
    """Return the trace whose name begins with `name`; exactly one must match best."""
    named = [each for each in traces(figure) if (each.name or "").startswith(name)]
    exact = [each for each in named if each.name == name]
    [found] = exact or named
    return found


def json_text(figure: go.Figure) -> str:
    """Return a figure as its JSON."""
    return figure.to_json() or ""
