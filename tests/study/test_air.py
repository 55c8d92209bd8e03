"""Figures of a study from the air interface, and its rows over many repetitions."""

import math
from pathlib import Path

import pytest

from airpath import run, study
from airpath.study import aggregate, arrivals, definition, delays, sender, timelines
from airpath.study.air_interface import _Repetition, _Track, observe
from airpath.study.grid import flattened
from airpath.study.metrics import METRICS
from airpath.study.rows import Row, Rows
from airpath.study.tolerance import Published, Range, Spread, Tolerance, Within
from airpath.toml_table import Table
from support import ROOT

GAP = ROOT / "studies" / "gprs-la" / "gap.toml"


def test_tracks_are_cut_at_the_limits_of_the_interval() -> None:
    track = _Track([0.0, 2.0, 5.0], ["cs-1", "cs-2", "cs-1"])
    assert list(track.spans(1.0, 6.0)) == [(1.0, 2.0, "cs-1"), (2.0, 5.0, "cs-2"), (5.0, 6.0, "cs-1")]
    assert track.first("cs-2", 0.5, 9.0) == 2.0
    assert track.first("cs-2", 3.0, 9.0) == 3.0
    assert track.first("cs-2", 5.0, 9.0) == 9.0


def test_what_happens_before_data_flows_again_is_one_gap() -> None:
    from airpath.study.air_interface import _gaps

    log = _Repetition(drops=[10.0, 10.0, 12.5])
    log.tracks["mode"] = _Track([0.0, 10.0, 12.0], ["transfer", "reselection", "access"])
    log.tracks["tbf"] = _Track([0.0, 10.0, 12.25, 12.5, 14.0], ["transfer", "none", "transfer", "none", "transfer"])
    # One segment per second, two from 20 s on; the second gap begins right after the first.
    log.arrivals = [(float(second), 1000) for second in range(1, 10)]
    log.arrivals += [(20.0 + half / 2, 1000) for half in range(40)]
    log.timeouts = [13.0]
    log.past_threshold = [5.0, 25.0]
    first, second = _gaps(log, 0.0, 40.0)
    assert [(gap.start, gap.end, gap.lost) for gap in (first, second)] == [(10.0, 12.25, 2), (12.5, 14.0, 1)]
    # 49 segments in the rest of the 40 s; the first ones after the gap have the same rate, 2 per
    # second.
    assert first.back == second.back == 20.0
    assert first.slow_start == 12.0


def test_a_change_of_cell_is_seen_as_the_gap_that_it_is(tmp_path: Path) -> None:
    gap = 5.0
    result = run(GAP, set={"bearer.conditions.network.gap": f"{gap} s"}, repeat=2, out=tmp_path / "out")
    for seen in observe(result):
        (only,) = seen.gaps
        assert gap < only.end - only.start < gap + 1
        # The base station holds at most 4 kB: whole packets, and one in transmission.
        assert 1 <= only.lost <= 4
        # Control blocks, which have CS-1, are some percent of all blocks.
        assert seen.schemes.keys() == {1, 2}
        assert 0.01 < seen.schemes[1] < 0.1
        assert seen.slots[4] > 0.99
        # Rate of CS-2: 50 blocks of 30 octets per second, less the control blocks.
        assert 10e3 < seen.rate_a_slot < 12e3
        assert seen.changes == 0


def test_the_bars_of_a_histogram_are_all_of_it(tmp_path: Path) -> None:
    scenario = ROOT / "studies" / "gprs-proxy" / "datagrams.toml"
    result = run(scenario, set={"flow.0.duration": "20 s"}, repeat=2, out=tmp_path / "out")
    flows = result.summary["flows"]
    for flow, seen in zip(flows, delays.observe(result), strict=True):
        assert len(seen) == flow["received"]
        assert [number for number, _ in seen] == list(range(flow["received"]))
        assert min(delay for _, delay in seen) == pytest.approx(flow["delay_min_s"])
        bars = [kind for name, kind in delays.DELAY_METRICS.items() if name.startswith("delays-of-")]
        assert sum(bar.compute([flow | {delays.KEY: seen}], {}) for bar in bars) == pytest.approx(100)


def test_the_first_of_a_burst_and_the_others_differ() -> None:
    # Two bursts of three: the first ones have 1 s and 2 s, the others come 100 and 300 ms later.
    seen = [(0, 1.0), (1, 1.1), (2, 1.4), (3, 2.0), (4, 2.1), (5, 2.4)]
    figures = {
        name: delays.DELAY_METRICS[name].compute([{delays.KEY: seen}], {"burst": 3})
        for name in ("deviation-of-first", "deviation-of-later")
    }
    assert figures == pytest.approx({"deviation-of-first": 500, "deviation-of-later": 100})
    # What follows a lost datagram has no time from the one before.
    without = [each for each in seen if each[0] != 1]
    assert delays.DELAY_METRICS["deviation-of-later"].compute([{delays.KEY: without}], {"burst": 3}) == pytest.approx(
        100
    )


def test_the_rate_of_a_train_ends_with_its_last_datagram() -> None:
    # Trains of two datagrams of 1500 bytes, complete after 10 and 20 ms; of the third one is lost.
    seen = [(0, 0.010), (1, 0.008), (2, 0.019), (3, 0.020), (4, 0.001)]
    rate = delays.DELAY_METRICS["train-rate"].compute([{delays.KEY: seen}], {"burst": 2, "payload": 1500})
    assert rate == pytest.approx((2400 + 1200) / 2)


def test_arrivals_are_bunched_after_what_kept_them(tmp_path: Path) -> None:
    scenario = ROOT / "studies" / "umts-live" / "datagrams.toml"
    flow = {"flow.0.rate": "80 kbit/s", "flow.0.size": 972, "flow.0.duration": "30 s"}
    gap = {"at": "20 s", "handover": "1 s"}
    result = run(
        scenario,
        set=flow
        | {"bearer.downlink.bler": 0.0, "bearer.uplink.bler": 0.0, "change": [gap]}
        | {"bearer.conditions": {"level": "16 dB", "fading": "static"}},
        out=tmp_path / "out",
    )
    (seen,) = arrivals.observe(result)
    assert seen.handovers == [20.0]
    (one,) = ({**each, arrivals.KEY: seen} for each in result.summary["flows"])
    inputs = {"interval": 0.1, "payload": 1000, "pilot": -109}
    figures = {name: kind.compute([one], inputs) for name, kind in arrivals.ARRIVAL_METRICS.items()}
    # The queued packets arrive at the bearer's rate, one in about two TTIs of 10 ms: five or six in
    # an interval.
    assert figures["peak-rate"] in (400, 480)
    # Of 299 inter-arrival times, ten after the gap of a second are at the bearer's rate, and some
    # during their transmission.
    assert 3 <= figures["bunched-arrivals"] <= 4.7
    assert figures["inter-arrival-deviation"] > 10
    assert figures["inter-arrival-before-handover"] == pytest.approx(100, abs=15)
    assert figures["gap-at-handover"] == pytest.approx(1, abs=0.15)
    assert figures["lowest-signal"] == figures["highest-signal"] == -93


def test_a_timeline_ends_with_the_last_connection_that_the_server_closes(tmp_path: Path) -> None:
    scenario = ROOT / "studies" / "gprs-proxy" / "page.toml"

    def times(protocol: str) -> tuple[float, float]:
        result = run(scenario, set={"flow.protocol": protocol}, out=tmp_path / protocol.replace("/", "-"))
        ((seen,), (flow,)) = timelines.observe(result), result.summary["flows"]
        time = timelines.TIMELINE_METRICS["timeline-time"].compute([flow | {timelines.KEY: seen}], {})
        return time, flow["duration_s"]

    with_end, without = times("http/1.0")
    # The end of a connection takes a round trip of the empty link, 0.8 s and the air, at least.
    assert 0.9 < with_end - without < 3
    # Persistent connections stay open until the browser closes them.
    with_end, without = times("http/1.1")
    assert with_end == without


def test_what_a_sender_sees_of_a_loss(tmp_path: Path) -> None:
    result = run(ROOT / "studies" / "gprs-proxy" / "repair.toml", out=tmp_path / "out")
    (flow,) = result.summary["flows"]
    (seen,) = sender.observe(result)
    assert seen.openings == 1
    assert len(seen.acknowledgements) == result.packets.filter(direction="up", step="received").height
    assert all(60 <= time < 61 for time in seen.losses)
    assert len(seen.losses) == sum(
        row["dropped"].get("loss", {"packets": 0})["packets"] for row in result.summary["links"]
    )
    inputs = {"product": 10_000.0, "outstanding": 10_000.0, "restored": 61.0}
    inputs |= {"rate_bps": 36_000.0, "rtt_s": 1.0, "segment": 1348}
    inputs |= {"changed": 50.0, "settled": 2.0, "seconds": 10.0}
    figures = {name: kind.compute([flow | {sender.KEY: seen}], inputs) for name, kind in sender.SENDER_METRICS.items()}
    assert 0 < figures["time-to-product"] < 60
    assert figures["acknowledgements-in-a-group"] >= 1
    # The sender detects the loss after at least one round trip; the queueing delay adds to that.
    assert flow["rtt_mean_s"] / 2 < figures["repair-time"] < 3 * flow["rtt_max_s"]
    assert figures["late-openings"] == 0
    # What was sent until 61 s is acknowledged when the recovery ends, at the latest.
    assert figures["repair-time"] / 2 < figures["recovery-time"] <= figures["repair-time"]
    assert figures["longest-mobile-round-trip"] == pytest.approx(flow["rtt_max_s"])
    # The summary also has the round trip of the handshake.
    assert figures["mobile-round-trip"] == pytest.approx(flow["rtt_mean_s"], rel=0.01)
    assert flow["rtt_min_s"] < figures["full-round-trip"] <= figures["longest-mobile-round-trip"]
    never = sender.SENDER_METRICS["full-round-trip"].compute([flow | {sender.KEY: seen}], {"outstanding": 1e6})
    assert math.isnan(never)


def _sender_figure(name: str, seen: sender.Observation, inputs: dict[str, float]) -> float:
    flow = {sender.KEY: seen, "start_s": 0.0, "duration_s": seen.progress[-1][0]}
    return sender.SENDER_METRICS[name].compute([flow], inputs)


@pytest.mark.parametrize(("product", "cycle"), [(1, 1), (2, 1), (2.5, 2), (3, 2), (4, 2), (4.5, 3), (8, 3), (9, 4)])
def test_the_cycle_of_slow_start_in_which_the_window_reaches_the_product(product: float, cycle: int) -> None:
    # Each acknowledgement of a segment of 1,000 bytes sends two; the log has what was sent before.
    seen = sender.Observation()
    for acknowledged in range(1, 16):
        seen.progress.append((float(acknowledged), 1000 * acknowledged, 1000 * (2 * acknowledged - 1)))
        seen.windows.append((float(acknowledged), 1000 * (acknowledged + 1)))
    inputs = {"rate_bps": 8_000.0 * product, "rtt_s": 1.0}
    assert _sender_figure("cycles-to-product", seen, inputs) == cycle
    assert math.isnan(_sender_figure("cycles-to-product", seen, inputs | {"rtt_s": 100.0}))


def test_the_rate_around_a_change_and_the_data_left_over() -> None:
    # 1 kB each second until 10 s and 2 kB from then on, 5 kB outstanding, of 30 kB.
    acknowledged = [min(each, 10) + 2 * max(each - 10, 0) for each in range(21)]
    seen = sender.Observation(
        progress=[(float(time), 1000 * each, min(1000 * (each + 5), 30_000)) for time, each in enumerate(acknowledged)],
        round_trips=[(0, 0.5)],
    )
    inputs = {"changed": 10.0, "settled": 2.0, "seconds": 5.0}
    assert _sender_figure("rate-before", seen, inputs) == pytest.approx(8)
    assert _sender_figure("rate-after", seen, inputs) == pytest.approx(16)
    assert _sender_figure("outstanding-at-change", seen, inputs) == pytest.approx(5)
    assert math.isnan(_sender_figure("rate-after", seen, inputs | {"seconds": 15.0}))
    # 26 kB are acknowledged at 18 s; then all is sent.
    assert _sender_figure("drain-time", seen, {}) == pytest.approx(2)
    # The first kB in half a second, with a header of 40 bytes, of 32 kbit/s.
    share = _sender_figure("first-round-trip-utilisation", seen, {"rate_bps": 32_000.0, "segment": 1000})
    assert share == pytest.approx(100 * 8 * 1040 / 0.5 / 32_000)


def test_a_repetition_without_the_figure_does_not_count() -> None:
    (row,) = study.run("gprs-proxy", only="queueing-poor", repeat=8).rows
    assert 2 <= row.interval.n < 8


@pytest.mark.parametrize(
    ("take", "of", "over", "expected"),
    [
        ("highest", 2, None, {"a": (2.0, 4.0), "b": (20.0, 40.0)}),
        ("lowest", 2, "case", {"all": (1.0, 3.0)}),
        ("mean", 1, "case", {"all": (5.5, 11.0, 16.5, 22.0, 27.5)}),
        ("highest", 100, None, {"a": (2.0, 4.0), "b": (20.0, 40.0)}),
    ],
)
def test_aggregates_take_repetitions_in_batches(
    take: str, of: int, over: str | None, expected: dict[str, tuple[float, ...]]
) -> None:
    kind = METRICS["throughput"]
    samples = {"a": (1.0, 2.0, 3.0, 4.0, 5.0), "b": (10.0, 20.0, 30.0, 40.0, 50.0)}
    rows = Rows(
        [
            Row("e", {"case": case}, kind.name, kind, None, Tolerance(relative=0.1), each)
            for case, each in samples.items()
        ]
    )
    words = {"name": "row", "take": take, "of": of} | ({} if over is None else {"over": over})
    made = aggregate.read_aggregate(Table(words, "here"), "e", {"case": ["a", "b"]}, kind)
    assert {row.case["case"]: row.samples for row in made.rows(rows, {"case": ["a", "b"]})} == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"take": "hihgest"}, "'take' must be one of mean, highest, lowest, not 'hihgest'; did you mean 'highest'"),
        ({"take": "mean", "of": 0}, "'of' must be at least 1 repetition, not 0"),
        ({"take": "mean", "over": "cases"}, "there is no axis 'cases' in this experiment"),
        ({"take": "mean", "published": "3 to"}, "must be a number, a range .'26 to 33'"),
        ({"take": "mean", "published": "3 to 1"}, "must be a number, a range .'26 to 33'"),
        ({"take": "mean", "published": "within 3 to 1"}, "'within 26 to 33'."),
        ({"take": "mean", "published": "3 ± -1"}, "a mean with its spread .'205 ± 103'"),
        ({"take": "mean", "published": "3 ± about 1"}, "a mean with its spread .'205 ± 103'"),
    ],
)
def test_aggregates_that_make_no_sense_are_refused(words: dict[str, object], message: str) -> None:
    table = Table({"name": "row"} | words, "here", error=study.StudyError)
    with pytest.raises(study.StudyError, match=message):
        aggregate.read_aggregate(table, "e", {}, METRICS["throughput"])


@pytest.mark.parametrize(
    ("words", "published", "admitted", "refused"),
    [
        # The range itself is published: a value is in it or not.
        ("26 to 33", Range(26, 33), (26, 30, 33), (25.9, 33.1)),
        # One figure, published only as a range: up to 10 % from any number of the range.
        ("within 26 to 33", Within(26, 33), (23.5, 26, 30, 36.2), (23.3, 36.4)),
        # A mean: within its published spread, or up to 10 % from it.
        ("200 ± 50", Spread(200, 50), (150, 200, 250), (149, 251)),
        ("200 ± 1", Spread(200, 1), (180, 220), (179, 221)),
    ],
)
def test_ranges_and_spreads_admit_what_the_publication_permits(
    words: str, published: Published, admitted: tuple[float, ...], refused: tuple[float, ...]
) -> None:
    (found,) = flattened(Table({}, "here"), "key", words, ())
    assert found == published
    assert str(found) == words
    tolerance = Tolerance(relative=0.1)
    assert all(tolerance.admits(ours, published) for ours in admitted)
    assert not any(tolerance.admits(ours, published) for ours in refused)


def test_gprs_la_has_what_its_page_prints() -> None:
    la = definition.load_study("gprs-la")
    downloads = next(each for each in la.experiments if each.name == "downloads")
    assert len(downloads.cases) == 8
    assert all(case.repeat >= 64 for case in downloads.cases)
    published = {each.name: list(each.published.values()) for each in downloads.aggregates}
    assert published["throughput-in-all"] == [31, None]
    assert published["highest-in-all"] == [36, None]
    assert published["lowest-in-all"] == [Within(15, 16)] * 2
