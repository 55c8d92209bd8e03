"""Studies: definition, formulas, runner and rows, findings, and a reduced run of a real study."""

import io
import json
import math
import os
import re
import signal
import subprocess
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from typer.testing import CliRunner

from airpath import realtime, study
from airpath.cli.study import app as study_commands
from airpath.statistics import mean_interval, paired_difference, student_t
from airpath.study import arrivals, checks, definition, emulation, metrics, runner, simulation
from airpath.study.definition import Case
from airpath.study.rows import Emulated, Row, RowKey, Rows, row_key
from airpath.study.tolerance import Tolerance
from airpath.toml_lines import lines_of
from support import ROOT, Command

SMALL = """\
format = 2
id = "small"
title = "A study in small"
seed = 5
repeat = 3

[tolerance]
round-trip = { relative = 0.1 }
application-bit-rate = { absolute = 5 }

[axis.bler]
"1 %" = { set = { "bearer.bler" = 0.01 }, inputs = { bler = 0.01 } }
"10 %" = { set = { "bearer.bler" = 0.1 }, inputs = { bler = 0.1 } }
[axis.bearer]
dch = { set = { "bearer.preset" = "dch" } }
hs = { set = { "bearer.preset" = "hs" } }

[[experiment]]
name = "trip"
text = "Round trips."
scenario = "scenario.toml"
axes = { bearer = ["dch", "hs"], bler = ["1 %", "10 %"] }
metrics = ["round-trip"]
[experiment.published]
round-trip = [[100, 200], "predict"]
[[experiment.difference]]
name = "trip-difference"
metric = "round-trip"
axis = "bler"
minuend = "10 %"
subtrahend = "1 %"
published = [100, "predict"]

[[experiment]]
name = "rate"
text = "Rates."
scenario = "scenario.toml"
set = { "flow.0.bytes" = "1 MB" }
repeat = 4
axes = {}
metrics = ["application-bit-rate"]
[experiment.published]
application-bit-rate = 800

[[finding]]
id = "trip-rises"
text = "Round trips rise."
check = "rises"
along = "bler"
rows = [{ experiment = "trip", metric = "round-trip" }]

[[finding]]
id = "rate-beats-trip"
text = "Rates are compared with round trips, which is nonsense, but needs both experiments."
check = "exceeds"
rows = [{ experiment = "rate", metric = "application-bit-rate" }]
than = [{ experiment = "trip", metric = "round-trip", bearer = "dch", bler = "1 %" }]
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write the small study, with parts replaced, into the studies' folder; return its folder."""

    def write(*replacements: tuple[str, str]) -> Path:
        text = SMALL
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new, 1)
        folder = tmp_path / "small"
        folder.mkdir()
        (folder / "study.toml").write_text(text)
        (folder / "scenario.toml").write_text("format = 1\n")
        monkeypatch.setattr(definition, "_STUDIES", tmp_path)
        return folder

    return write


class Core:
    """Replaces the Rust core: round trips follow from the overrides, with a small scatter."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.outcome = "finished"
        self.stopped: str | None = None
        self.without_value: set[tuple[float | None, int]] = set()
        """BLER and repetition of the flows without a round trip."""

    def execute(self, scenario: Path, **arguments: Any) -> dict[str, Any]:
        """Replace `airpath.run.execute`."""
        # Overrides arrive as on the command line: as texts.
        overrides = {key: float(value) if key == "bearer.bler" else value for key, value in arguments["set"].items()}
        repeat = arguments["repeat"]
        assert arguments["first"] == 0
        self.calls.append({"scenario": scenario, "set": overrides, "seed": arguments["seed"], "repeat": repeat})
        assert (arguments["out"], arguments["capture"], arguments["log"]) == (None, False, False)
        trip = 0.1 + overrides.get("bearer.bler", 0.01) * (1 if overrides.get("bearer.preset") == "dch" else 0.1)
        trips = [
            math.nan if (overrides.get("bearer.bler"), each) in self.without_value else trip + 0.001 * each
            for each in range(repeat)
        ]
        flows = [a_flow(repetition=each, outcome=self.outcome, rtt_mean_s=value) for each, value in enumerate(trips)]
        return {"stopped": self.stopped, "flows": flows, "links": []}


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    replacement = Core()
    monkeypatch.setattr(simulation, "execute", replacement.execute)
    return replacement


def a_flow(**values: Any) -> dict[str, Any]:
    """A row of `flows`: 100 packets of 1,460 bytes in 1.5 s, five of them retransmissions."""
    flow = {
        "repetition": 0,
        "name": "download",
        "outcome": "finished",
        "bytes": 146_000,
        "data_packets": 105,
        "retransmitted_packets": 5,
        "duration_s": 1.4,
        "acknowledged_s": 1.5,
        "rtt_mean_s": 0.25,
    }
    return flow | values


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("degrees", "t"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045), (199, 1.972)]
)
def test_students_t_is_that_of_the_tables(degrees: int, t: float) -> None:
    assert student_t(degrees) == pytest.approx(t, abs=5e-4)


def test_the_interval_of_a_mean() -> None:
    interval = mean_interval([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * math.sqrt(5 / 3) / 2
    assert (interval.mean, interval.n) == (2.5, 4)
    assert (interval.low, interval.high) == pytest.approx((2.5 - half, 2.5 + half))


def test_one_repetition_has_no_interval() -> None:
    with pytest.raises(ValueError, match="two repetitions"):
        mean_interval([1.0])


def test_a_paired_difference_is_free_of_what_both_share() -> None:
    difference = paired_difference([11.0, 22.0, 33.0], [10.0, 21.0, 32.0])
    assert (difference.mean, difference.low, difference.high) == (1.0, 1.0, 1.0)


def test_a_paired_difference_leaves_out_repetitions_without_both_values() -> None:
    difference = paired_difference([math.nan, 22.0, 33.0, 44.0], [10.0, 21.0, math.nan, 43.0])
    assert (difference.mean, difference.n) == (1.0, 2)
    with pytest.raises(ValueError, match="two repetitions"):
        paired_difference([math.nan, 2.0], [1.0, 1.0])


# --- formulas -------------------------------------------------------------------------------------


def test_application_bit_rate_is_data_over_time() -> None:
    assert metrics.application_bit_rate(a_flow()) == pytest.approx(146_000 * 8 / 1.5)


def test_packets_are_counted_once_with_their_headers() -> None:
    assert metrics.bytes_with_headers(a_flow()) == 146_000 + 100 * 40


def test_utilisation_of_a_channel() -> None:
    inputs = {"channel_bps": 1e6, "channels": 1, "bler": 0.2}
    expected = 100 * (150_000 * 8 / 1.5) / 0.8 / 1e6
    assert metrics.METRICS["utilisation"].compute([a_flow()], inputs) == pytest.approx(expected)


def test_a_shared_channel_is_in_use_until_the_last_is_served_and_own_channels_each_for_itself() -> None:
    flows = [a_flow(acknowledged_s=1.0), a_flow(acknowledged_s=2.0)]
    bits = 150_000 * 8
    compute = metrics.METRICS["utilisation"].compute
    shared = compute(flows, {"channel_bps": 2e6, "channels": 1, "bler": 0.0})
    own = compute(flows, {"channel_bps": 2e6, "channels": 2, "bler": 0.0})
    assert shared == pytest.approx(100 * 2 * bits / 2.0 / 2e6)
    assert own == pytest.approx(100 * (bits / 1.0 + bits / 2.0) / 2 / 2e6)


def _product(size: int, segment: int, kbit_per_s: float, round_trip_s: float) -> float:
    flows = [
        {"kind": "datagrams", "inter_arrival_mean_s": 8 * size / (1e3 * kbit_per_s)},
        {"kind": "ping", "delay_mean_s": round_trip_s},
    ]
    return metrics.METRICS["bandwidth-delay-product"].compute(flows, {"payload": size, "segment": segment})


@pytest.mark.parametrize(
    ("size", "segment", "rates", "published", "fits"),
    [
        (128, 88, (45.1, 230.5), (792, 4048), True),
        (512, 472, (55.6, 356.8), (1888, 10856), False),
        (1500, 1460, (55.8, 370.9), (2920, 21900), True),
    ],
)
def test_the_product_of_bandwidth_and_delay_fits_two_sizes_of_table_ii(
    size: int, segment: int, rates: tuple[float, float], published: tuple[int, int], fits: bool
) -> None:
    # Table II of umts-live by the rates of its Table I: is there one round trip for both
    # directions? Rounding up to whole segments is our assumption, which 512 bytes contradict.
    found = any(
        tuple(_product(size, segment, rate, ms / 1e3) for rate in rates) == published for ms in range(100, 1000)
    )
    assert found == fits


def test_figures_without_data_are_nan() -> None:
    assert math.isnan(_product(128, 88, math.nan, 0.2))
    assert math.isnan(_product(128, 88, 45.1, math.nan))
    for name in ("lowest-signal", "highest-signal"):
        flows = [{arrivals.KEY: arrivals.Observation()}]
        assert math.isnan(arrivals.ARRIVAL_METRICS[name].compute(flows, {"pilot": -109.0}))


def test_mean_and_deviation_across_users() -> None:
    flows = [a_flow(bytes=125 * rate, acknowledged_s=1.0) for rate in (100, 200, 300)]
    assert metrics.METRICS["application-bit-rate"].compute(flows, {}) == pytest.approx(200)
    assert metrics.METRICS["application-bit-rate-deviation"].compute(flows, {}) == pytest.approx(100)


@pytest.mark.parametrize("number", [1, 2, 7])
def test_three_classes_need_three_groups_of_flows(number: int) -> None:
    with pytest.raises(study.StudyError, match=f"bit-rate-of-class-b.*not {number} flows"):
        metrics.METRICS["bit-rate-of-class-b"].compute([a_flow()] * number, {})
    flows = [a_flow(acknowledged_s=seconds) for seconds in (1.0, 1.0, 2.0, 2.0, 4.0, 4.0)]
    rates = [metrics.METRICS[f"bit-rate-of-class-{name}"].compute(flows, {}) for name in "abc"]
    assert rates == pytest.approx([rates[2] * 4, rates[2] * 2, rates[2]])


def test_users_of_a_class_are_next_to_each_other() -> None:
    flows = [a_flow(bytes=125 * rate, acknowledged_s=1.0) for rate in (100, 200, 300, 500, 700, 900)]
    figures = [metrics.METRICS[f"bit-rate-of-class-{name}"].compute(flows, {}) for name in "abc"]
    assert figures == pytest.approx([150, 400, 800])


def test_lost_packets_are_those_of_the_direction_of_the_data() -> None:
    links = [
        {
            "direction": "down",
            "dropped": {"loss": {"packets": 3, "bytes": 90}, "queue-full": {"packets": 2, "bytes": 60}},
        },
        {"direction": "down", "dropped": {}},
        {"direction": "up", "dropped": {"loss": {"packets": 21, "bytes": 840}}},
    ]
    lost = metrics.METRICS["lost-packets"].compute
    assert lost([a_flow(kind="download", links=links)], {}) == pytest.approx(100 * 5 / 105)
    assert lost([a_flow(kind="upload", links=links)], {}) == pytest.approx(20)


def test_tolerances() -> None:
    assert Tolerance(relative=0.1).admits(110, 100)
    assert not Tolerance(relative=0.1).admits(111, 100)
    assert Tolerance(absolute=5).admits(25, 30)
    assert not Tolerance(absolute=5).admits(24.9, 30)
    assert Tolerance(factor=3).admits(4, 12)
    assert not Tolerance(factor=3).admits(3.9, 12)


# --- the definition -------------------------------------------------------------------------------


def test_axes_are_multiplied_out_and_published_values_put_in_place(small: Callable[..., Path]) -> None:
    small()
    (found,) = study.studies()
    trip, rate = found.experiments
    assert found.experiment_names == ("trip", "rate")
    assert [case.axis_values for case in trip.cases[:2]] == [
        {"bearer": "dch", "bler": "1 %"},
        {"bearer": "dch", "bler": "10 %"},
    ]
    assert trip.cases[1].set == {"bearer.preset": "dch", "bearer.bler": 0.1}
    assert trip.cases[1].inputs == {"bler": 0.1}
    assert [case.published["round-trip"] for case in trip.cases] == [100, 200, None, None]
    assert (trip.cases[0].repeat, rate.cases[0].repeat) == (3, 4)
    assert rate.cases[0].published == {"application-bit-rate": 800}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 2", "format = 1", "study.toml:1: the format is 1; this version of airpath reads format 2"),
        ('title = "A study in small"', "", "'title' is missing"),
        ("seed = 5", 'seed = "five"', "'seed' has a value of the wrong type"),
        ("repeat = 3", "repeat = 3\nrepat = 4", "unknown key 'repat'; did you mean 'repeat'?"),
        ('metrics = ["round-trip"]', 'metrics = ["round-trips"]', "did you mean 'round-trip'?"),
        ('bearer = ["dch", "hs"]', 'bearer = ["dch", "hsd"]', "experiment 'trip'|did you mean 'hs'"),
        ('bearer = ["dch", "hs"]', 'beaver = ["dch", "hs"]', "no 'beaver'; did you mean 'bearer'?"),
        ("round-trip = [[100, 200], ", "round-trip = [[100], ", "nested like the axes; here a list of 2 values"),
        (
            "round-trip = [[100, 200], ",
            'round-trip = [[100, "x"], ',
            "must be a number, a range .'26 to 33'.*or 'predict', not 'x'",
        ),
        ("round-trip = [[100, 200], ", "utilisation = [[100, 200], ", "no metric 'utilisation' in 'metrics'"),
        ('scenario = "scenario.toml"', 'scenario = "other.toml"', "no scenario other.toml"),
        ('check = "rises"', 'check = "rise"', "did you mean 'rises'?"),
        ('rows = [{ experiment = "trip"', 'rows = [{ experiment = "trap"', "did you mean 'trip'?"),
        ('axis = "bler"', 'axis = "blur"', "difference: there is no axis 'blur'.*did you mean 'bler'?"),
        ("{ relative = 0.1 }", "{ relative = 0.1, factor = 3 }", "exactly one of relative, absolute and factor"),
        ("round-trip = { relative = 0.1 }", "", "metric 'round-trip' has no tolerance"),
        (
            "round-trip = {",
            "rond-trip = { absolute = 1 }\nround-trip = {",
            "no metric or difference of this study .*'rond-trip'",
        ),
        (
            'metrics = ["application-bit-rate"]',
            'metrics = ["utilisation"]',
            "needs 'channel_bps' in 'inputs'|in 'metrics'",
        ),
        ("format = 2", "format = ", "study.toml: "),
    ],
)
def test_the_error_of_an_unusable_study_has_place_and_reason(
    small: Callable[..., Path], old: str, new: str, message: str
) -> None:
    small((old, new))
    with pytest.raises(study.StudyError, match=message) as caught:
        study.studies()
    assert "small/study.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "keys"), [("differences", ""), ("aggregates", 'name = "trip-mean"\nmetric = "round-trip"\ntake = "mean"')]
)
def test_an_emulated_experiment_has_no_derived_rows(small: Callable[..., Path], kind: str, keys: str) -> None:
    table_of_emulation = ("[axis.bler]", '[emulation]\nexperiments = ["trip"]\n[axis.bler]')
    if kind == "differences":
        small(table_of_emulation)
    else:
        first = SMALL.index("[[experiment.difference]]")
        table = SMALL[first : SMALL.index("[[experiment]]", first)]
        small(table_of_emulation, (table, f"[[experiment.aggregate]]\n{keys}\n\n"))
    with pytest.raises(study.StudyError, match=rf"small/study\.toml:12: emulation: .*'trip' has {kind}.*remove 'trip'"):
        study.studies()


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("repeat = 3", "repeat = 3\nrepat = 4", "6: unknown key 'repat'"),
        ('metrics = ["round-trip"]', 'metrics = ["round-trips"]', "23: experiment 'trip': no metric"),
        ("round-trip = [[100, 200], ", "round-trip = [[100], ", "24: experiment 'trip': the published values"),
        ('axis = "bler"', 'axis = "blur"', "29: experiment 'trip': difference: there is no axis"),
        ('check = "rises"', 'check = "rise"', r"\d+: finding 'trip-rises': no check 'rise'"),
        ('"10 %" = { set', '"10 %" = { sat', "13: axis.bler.10 %: unknown key 'sat'; did you mean 'set'"),
    ],
)
def test_an_error_in_a_study_names_its_line(small: Callable[..., Path], old: str, new: str, place: str) -> None:
    small((old, new))
    with pytest.raises(study.StudyError, match=rf"study\.toml:{place}"):
        study.studies()


def test_the_lines_of_all_keys_of_the_studies_are_found() -> None:
    for path in sorted((ROOT / "studies").glob("*/*.toml")):
        text = path.read_text(encoding="utf-8")
        document, lines = tomllib.loads(text), lines_of(text)
        assert set(document) <= {key for key, *_ in lines}
        for keys, line in lines.items():
            value: Any = document
            for key in keys:
                value = value[key]
            name = next(key for key in reversed(keys) if isinstance(key, str))
            assert name in text.splitlines()[line - 1], (path, keys, line)


# --- the runner -----------------------------------------------------------------------------------


def test_a_run_gives_the_rows_in_the_order_of_the_study(small: Callable[..., Path], core: Core) -> None:
    small()
    result = study.run("small")
    assert [(row.experiment, row.metric, *row.case.values()) for row in result.rows] == [
        ("trip", "round-trip", "dch", "1 %"),
        ("trip", "round-trip", "dch", "10 %"),
        ("trip", "round-trip", "hs", "1 %"),
        ("trip", "round-trip", "hs", "10 %"),
        ("trip", "trip-difference", "dch", "10 % − 1 %"),
        ("trip", "trip-difference", "hs", "10 % − 1 %"),
        ("rate", "application-bit-rate"),
    ]
    assert [call["seed"] for call in core.calls] == [5] * 5
    assert [call["repeat"] for call in core.calls] == [3, 3, 3, 3, 4]
    assert core.calls[-1]["set"] == {"flow.0.bytes": "1 MB"}


def test_differences_are_paired(small: Callable[..., Path], core: Core) -> None:
    small()
    difference = study.run("small").rows[4]
    assert difference.interval.mean == pytest.approx(90)
    assert difference.interval.high - difference.interval.low == pytest.approx(0, abs=1e-9)
    assert (difference.published, difference.agrees) == (100, True)


def test_a_difference_may_have_a_tolerance_of_its_own(small: Callable[..., Path], core: Core) -> None:
    # Without one it has the 10 % of the round trip.
    small(("round-trip = {", "trip-difference = { absolute = 9 }\nround-trip = {"))
    assert study.run("small").rows[4].agrees is False


def test_a_difference_in_percent_is_one_of_the_minuend(small: Callable[..., Path], core: Core) -> None:
    small(("published = [100, ", 'in_percent = true\npublished = ["yes, at least 40", '))
    result = study.run("small")
    minuend, difference = result.rows[1], result.rows[4]
    expected = [100 * (1 - (each - 90) / each) for each in minuend.samples]
    assert difference.samples == pytest.approx(expected)
    assert result.to_dict()["rows"][4]["unit"] == difference.definition.unit == "%"
    assert difference.agrees is True


def test_differences_are_paired_by_repetition_where_one_has_no_value(small: Callable[..., Path], core: Core) -> None:
    small()
    core.without_value = {(0.01, 0), (0.1, 3)}
    rows = study.run("small", only="trip", repeat=5).rows
    assert [rows[0].interval.n, rows[1].interval.n] == [4, 4]
    difference = rows[4]
    assert difference.interval.n == 3
    assert difference.interval.mean == pytest.approx(90)
    assert difference.interval.high - difference.interval.low == pytest.approx(0, abs=1e-9)


def test_a_difference_needs_two_repetitions_with_both_values(small: Callable[..., Path], core: Core) -> None:
    small()
    core.without_value = {(0.01, 0), (0.1, 1)}
    with pytest.raises(study.StudyError, match=r"trip, dch, 10 % − 1 %: only 1 of 3 .* 'trip-difference'.*--repeat"):
        study.run("small", only="trip")


def test_the_json_has_the_promised_shape(small: Callable[..., Path], core: Core) -> None:
    small()
    data = study.run("small", seed=9, repeat=2).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert list(data) == ["study", "seed", "version", "complete", "rows", "findings"]
    assert (data["study"], data["seed"]) == ("small", 9)
    keys = ["experiment", "case", "metric", "unit", "published", "ours", "low", "high", "n"]
    assert all(list(row) == keys for row in data["rows"])
    assert all(row["low"] <= row["ours"] <= row["high"] and row["n"] == 2 for row in data["rows"])
    assert data["rows"][0]["case"] == {"bearer": "dch", "bler": "1 %"}
    assert [row["published"] for row in data["rows"][:3]] == [100, 200, None]
    assert [list(each) for each in data["findings"]] == [["id", "text", "holds"]] * 2


def test_only_some_experiments_leave_out_findings_that_need_others(small: Callable[..., Path], core: Core) -> None:
    small()
    result = study.run("small", only="trip")
    assert {row.experiment for row in result.rows} == {"trip"}
    assert [(each.id, each.holds) for each in result.findings] == [("trip-rises", True)]
    assert len(study.run("small", only=["trip", "rate"]).findings) == 2
    assert study.run("small", only=["rate"]).findings == []


def test_the_exit_code_reports_whether_all_findings_hold(small: Callable[..., Path], core: Core) -> None:
    small(('check = "rises"', 'check = "falls"'))
    result = study.run("small", only="trip")
    assert [each.holds for each in result.findings] == [False]
    assert result.exit_code == 1
    assert study.run("small", only="rate").exit_code == 0


def test_a_report_is_written_although_a_finding_fails(
    small: Callable[..., Path], core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(('check = "rises"', 'check = "falls"'))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(study_commands, ["report", "small"])
    assert done.exit_code == 0, done.output
    assert "Round trips." in (tmp_path / "small.html").read_text(encoding="utf-8")
    for option in ("--out", "--output", "-o"):
        assert CliRunner().invoke(study_commands, ["report", "small", option, f"{option}.html"]).exit_code == 0
        assert (tmp_path / f"{option}.html").is_file()


def test_ranges_and_spreads_are_printed_as_they_were_published(small: Callable[..., Path], core: Core) -> None:
    small(("round-trip = [[100, 200], ", 'round-trip = [["within 90 to 100", "200 ± 20"], '))
    result = study.run("small", only="trip")
    assert [row.agrees for row in result.rows[:2]] == [False, True]
    assert [row.agrees_uniformly for row in result.rows[:2]] == [True, True]
    data = result.to_dict()["rows"]
    assert (data[0]["published"], data[0]["published_range"]) == (95, [90, 100])
    assert (data[1]["published"], data[1]["published_deviation"]) == (200, 20)
    markdown = result.render_markdown()
    assert "| within 90 to 100 | 111.0 |" in markdown
    assert "| 200 ± 20 | 201.0 |" in markdown


def test_answers_are_compared_by_our_threshold(small: Callable[..., Path], core: Core, tmp_path: Path) -> None:
    answers = '[["yes, at most 120", "yes, at most 120"], ["no, at least 300", "predict, at most 50"]]'
    small(('round-trip = [[100, 200], "predict"]', f"round-trip = {answers}"))
    result = study.run("small", only="trip")
    assert [row.agrees for row in result.rows[:4]] == [True, False, True, None]
    assert [row.agrees_uniformly for row in result.rows[:4]] == [True, False, True, None]
    data = result.to_dict()["rows"]
    assert [data[1][key] for key in ("published", "published_property", "property", "threshold")] == [
        None,
        True,
        False,
        "at most 120",
    ]
    markdown = result.render_markdown()
    assert "| yes, at most 120 | yes, 111.0 |" in markdown
    assert "| no, at least 300 | no, " in markdown
    assert "| predict, at most 50 | no, " in markdown
    result.report(tmp_path / "report.html")
    assert "yes (yes: at most 120)" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("answer", ["maybe, at most 1", "yes, at about 1", "yes, at most many"])
def test_an_unknown_answer_is_an_error(small: Callable[..., Path], answer: str) -> None:
    small(("round-trip = [[100, 200], ", f'round-trip = [["{answer}", 1], '))
    with pytest.raises(study.StudyError, match=r"'yes, at most 20'"):
        study.run("small")


def test_progress_counts_repetitions_over_all_cases(small: Callable[..., Path], core: Core) -> None:
    small()
    seen: list[tuple[int, int]] = []
    study.run("small", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 16), (6, 16), (9, 16), (12, 16), (16, 16)]


def test_unknown_names_are_answered_with_the_nearest(small: Callable[..., Path], core: Core) -> None:
    small()
    with pytest.raises(study.UnknownNameError, match="no study 'smal'; did you mean 'small'"):
        study.run("smal")
    with pytest.raises(study.UnknownNameError, match="no experiment of small 'trips'; did you mean 'trip'"):
        study.run("small", only=["trips"])
    with pytest.raises(study.UnknownNameError, match="no experiment of small 'xyz'; there is trip, rate"):
        study.run("small", only=["xyz"])
    with pytest.raises(ValueError, match="repeat is 1"):
        study.run("small", repeat=1)
    assert core.calls == []


def test_a_flow_that_does_not_finish_is_an_error(small: Callable[..., Path], core: Core) -> None:
    small()
    core.outcome = "unfinished"
    with pytest.raises(study.StudyError, match=r"trip, dch, 1 %: download was unfinished .* longer duration"):
        study.run("small")


def test_ctrl_c_keeps_the_complete_experiments(small: Callable[..., Path], core: Core) -> None:
    small()

    def interrupt(done: int, total: int) -> None:
        # The experiment `trip` is complete.
        if done == total - 4:
            raise KeyboardInterrupt

    result = study.run("small", progress=interrupt)
    assert not result.complete
    assert not result.to_dict()["complete"]
    assert {row.experiment for row in result.rows} == {"trip"}
    assert study.run("small").complete


def test_ctrl_c_under_the_real_clock_keeps_the_complete_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_experiment(cases: Sequence[Case], *_: Any, **__: Any) -> dict[RowKey, Emulated]:
        figure = Emulated(samples=(1.0, 2.0), late_s=0.0, overruns=0, valid=True)
        return {
            row_key(case.experiment, case.axis_values, metric.name): figure
            for case in cases
            if case.experiment == cases[0].experiment
            for metric in case.metrics
        }

    monkeypatch.setattr(runner, "run_cases", first_experiment)
    names = definition.load_study("hsdpa-sim").emulation.experiments[:2]
    result = study.run("hsdpa-sim", only=names, clock="real", repeat=2)
    assert not result.complete
    assert len({row.experiment for row in result.rows}) == 1
    monkeypatch.setattr(runner, "run_cases", lambda *_, **__: {})
    with pytest.raises(KeyboardInterrupt):
        study.run("hsdpa-sim", only=names[0], clock="real", repeat=2)


def test_ctrl_c_ends_the_emulated_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(realtime, "obstacle", lambda: None)
    monkeypatch.setattr(emulation, "_measure", interrupt)
    found = definition.load_study("hsdpa-sim")
    cases = found.experiments[0].cases
    figures = emulation.run_cases(cases, found.emulation, seed=1, repeat=2, parallel=1, on_case_done=lambda: None)
    assert figures == {}


def test_an_interrupt_ends_running_links_and_keeps_complete_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    found = definition.load_study("hsdpa-sim")
    experiment = next(each for each in found.experiments if each.name in found.emulation.experiments)
    first, second = experiment.cases[:2]
    has_finished = Event()
    ended: list[int] = []

    def measure(case: Case, _emulation: Any, _seed: int, _repeat: int, links: realtime.Links) -> realtime.Measured:
        if case is first:
            with subprocess.Popen(["sleep", "600"], text=True) as link:
                links.add(link)
                assert has_finished.wait(30)
                os.kill(os.getpid(), signal.SIGINT)
                ended.append(link.wait(30))
            raise realtime.RealtimeError("the link ended")
        return realtime.Measured((transfer, transfer), late_s=0.0, overruns=0, valid=True)

    transfer = realtime.Transfer(100_000, 0.1, 0.2, 2.0, 2.1, 70, 0)
    monkeypatch.setattr(realtime, "obstacle", lambda: None)
    monkeypatch.setattr(emulation, "_measure", measure)
    figures = emulation.run_cases(
        [first, second], found.emulation, seed=1, repeat=2, parallel=2, on_case_done=has_finished.set
    )
    assert ended == [-signal.SIGTERM]
    assert {key[1] for key in figures} == {tuple(second.axis_values.values())}


def test_interruption_and_other_ends_are_not_taken_for_results(small: Callable[..., Path], core: Core) -> None:
    small()
    core.stopped = "interrupted"
    with pytest.raises(KeyboardInterrupt):
        study.run("small")
    core.stopped = "out of memory"
    with pytest.raises(study.StudyError, match="out of memory"):
        study.run("small")


def test_text_and_markdown_show_published_beside_ours(small: Callable[..., Path], core: Core) -> None:
    from rich.console import Console

    small()
    result = study.run("small")
    written = io.StringIO()
    result.render_text(Console(file=written, width=160, highlight=False, markup=False))
    text = written.getvalue()
    assert "trip-difference (ms)" in text
    assert "predict" in text
    assert (
        "2 of 4 published figures agree within the study's tolerances; 4 do by the measure that all studies share"
        in text
    )
    assert "✓ holds  Round trips rise." in text
    markdown = result.render_markdown()
    assert "| dch | 1 % | round-trip (ms) | 100 | 111.0 |" in markdown
    assert "| Round trips rise. | yes |" in markdown


# --- checks ---------------------------------------------------------------------------------------


def rows_of(**series: list[tuple[float, ...]]) -> Rows:
    """Rows of an experiment `e`: for each value of axis `kind`, the samples along axis `step`."""
    kind = metrics.METRICS["round-trip"]
    return Rows(
        [
            Row("e", {"kind": name, "step": str(step)}, kind.name, kind, None, Tolerance(relative=0.1), samples)
            for name, values in series.items()
            for step, samples in enumerate(values)
        ]
    )


def holds(check: str, rows: Rows, kind: str, than: str | None = None) -> bool:
    """Whether a check on one kind's rows holds, against those of another."""
    selector = checks.Selector("e", "round-trip", {"kind": kind})
    compared = () if than is None else ({"kind": than},)
    return checks.CHECKS[check](checks.FindingDefinition("f", "", check, (selector,), "step", compared), rows)


DOWN = [(10.0, 10.2, 9.8), (9.0, 9.1, 8.9), (8.0, 8.2, 7.8)]
LEVEL = [(10.0, 10.2, 9.8), (10.1, 10.1, 9.9), (10.1, 10.2, 9.7)]
BUMPY = [(10.0, 10.2, 9.8), (11.0, 11.3, 10.7), (8.0, 8.2, 7.8)]
NOISY = [(10.0, 14.0, 6.0), (9.0, 14.0, 6.0), (8.0, 6.0, 14.0)]


def test_falling_and_rising_need_certainty_and_no_step_against() -> None:
    rows = rows_of(down=DOWN, level=LEVEL, bumpy=BUMPY, noisy=NOISY, up=DOWN[::-1])
    assert holds("falls", rows, "down")
    assert not any(holds("falls", rows, kind) for kind in ("level", "bumpy", "noisy", "up"))
    assert holds("rises", rows, "up")
    assert not any(holds("rises", rows, kind) for kind in ("down", "level", "bumpy", "noisy"))


def test_changing_less() -> None:
    rows = rows_of(level=LEVEL, down=DOWN, up=DOWN[::-1], noisy=NOISY)
    assert holds("changes-less", rows, "level", than="down")
    assert holds("changes-less", rows, "level", than="up")
    assert not holds("changes-less", rows, "level", than="noisy")
    assert not holds("changes-less", rows, "down", than="level")


def test_exceeding_and_not_lying_below() -> None:
    rows = rows_of(high=[(5.0, 5.1, 4.9)], low=[(4.0, 4.1, 3.9)], other=[(5.0, 5.0, 5.1)])
    assert holds("exceeds", rows, "high", than="low")
    assert not holds("exceeds", rows, "high", than="other")
    assert holds("not-below", rows, "high", than="other")
    assert not holds("not-below", rows, "low", than="high")


def test_reaching_a_printed_figure() -> None:
    rows = rows_of(sure=[(5.0, 5.1, 4.9)], unsure=[(5.0, 9.0, 2.0)])
    for kind, published, expected in (("sure", 4.5, True), ("sure", 5.0, False), ("unsure", 4.5, False)):
        selector = checks.Selector("e", "round-trip", {"kind": kind})
        finding = checks.FindingDefinition("f", "", "reaches", (selector,), None, (), published)
        assert checks.reaches(finding, rows) is expected, (kind, published)
    with pytest.raises(LookupError, match="add 'published' to the finding"):
        holds("reaches", rows, "sure")


def test_a_gap_closes() -> None:
    closing = [(20.0, 20.1, 20.0), (15.0, 15.2, 15.1), (11.0, 11.0, 11.2)]
    rows = rows_of(closing=closing, one=[(10.0, 10.1, 9.9)] * 3, other=[(10.1, 10.0, 9.9)] * 3)
    assert holds("gap-closes", rows, "closing", than="one")
    assert not holds("gap-closes", rows, "other", than="one")


def test_a_finding_that_selects_nothing_is_an_error(small: Callable[..., Path], core: Core) -> None:
    small(('rows = [{ experiment = "trip", metric = "round-trip" }]', 'rows = [{ experiment = "trip", metric = "x" }]'))
    with pytest.raises(study.StudyError, match="finding 'trip-rises' of small: no row of 'x' in 'trip'"):
        study.run("small", only="trip")


# --- the real one ---------------------------------------------------------------------------------


def test_every_published_value_of_hsdpa_sim_is_there() -> None:
    hsdpa = next(each for each in study.studies() if each.id == "hsdpa-sim")
    published = {
        table.name: sum(value is not None for case in table.cases for value in case.published.values())
        + sum(value is not None for difference in table.differences for value in difference.published.values())
        for table in hsdpa.experiments
    }
    assert published == {
        "slow-start": 20,
        "first-round-trip": 2,
        "windows": 0,
        "rlc-round-trip": 2,
        "rtt": 6,
        "utilisation-16MB": 9,
        "utilisation-100kB": 9,
        "utilisation-50kB": 0,
        "utilisation-20kB": 9,
        "retransmission-delay": 0,
        "three-users": 9,
        "delivery": 0,
        "combining": 0,
        "pages": 0,
        "schedulers-3-users": 45,
        "schedulers-6-users": 0,
        "schedulers-for-tcp": 0,
        "short-beside-long": 0,
    }
    # Nothing is random in these, or little.
    exact = {"slow-start", "first-round-trip", "windows", "delivery"}
    assert all(case.repeat >= 30 for table in hsdpa.experiments if table.name not in exact for case in table.cases)


def test_the_studies_readme_counts_as_the_tables_of_agreement_do() -> None:
    counted = []
    for name in ("gsm-csd", "gprs-proxy", "gprs-la", "umts-live", "proposals", "hsdpa-sim"):
        table = (ROOT / "studies" / name / "agreement.md").read_text(encoding="utf-8")
        found = re.search(r"(\d+) of (\d+) published figures agree .*; (\d+) do", table)
        assert found is not None, name
        holds, denied = (table.count(f"| {word} |\n") for word in ("yes", "**no**"))
        counted.append([*map(int, found.groups()), holds, holds + denied])
    rows = [*counted, [sum(column) for column in zip(*counted, strict=True)]]
    readme = (ROOT / "studies" / "README.md").read_text(encoding="utf-8")
    for agree, printed, uniformly, holds, findings in rows:
        assert f" | {agree} of {printed} | {uniformly} | {holds} of {findings} |" in readme
    agree, printed = rows[-1][:2]
    assert (
        f"{agree} of the {printed} figures agree ({100 * agree / printed:.0f} %), short of the goal of 90 %" in readme
    )


@pytest.mark.parametrize("name", sorted(each.parent.name for each in (ROOT / "studies").glob("*/study.toml")))
def test_each_finding_is_a_sentence_of_its_own(name: str) -> None:
    for finding in definition.load_study(name).findings:
        assert re.fullmatch(r"[A-Z0-9].*[.]", finding.text), finding.text


def test_studies_lie_in_the_checkout_and_in_the_package() -> None:
    folder = ROOT / "studies" / "hsdpa-sim"
    rtt = next(each for each in definition.load_study("hsdpa-sim").experiments if each.name == "rtt")
    assert rtt.cases[0].scenario.samefile(folder / "round-trip.toml")
    assert (folder / "README.md").is_file()


@pytest.mark.slow
def test_an_experiment_in_small(airpath_command: Command) -> None:
    done = airpath_command(
        "study", "run", "hsdpa-sim", "--only", "utilisation-20kB", "--repeat", "20", "--format", "json"
    )
    assert done.code == 0, done.err
    utilisation = [row for row in done.json["rows"] if row["metric"] == "utilisation"]
    assert (len(utilisation), len(done.json["rows"])) == (9, 27)
    assert all(abs(row["ours"] - row["published"]) < 5 for row in utilisation)
