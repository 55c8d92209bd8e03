"""Comparisons: statistics, verdicts, rules, formats, and results of every kind."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import airpath
from airpath.compare import statistics
from airpath.compare.comparison import LEVEL, Comparison, cells
from airpath.compare.output import to_junit, to_markdown
from airpath.compare.rules import parse_rule, read_rules
from airpath.compare.samples import Samples, load_samples
from airpath.compare.statistics import Pair
from airpath.sweep.folder import SCHEMA
from airpath.sweep.kinds import Simulation
from support import DOWNLOAD, PAGE, ROOT, Command
from support.executors import Inline

LOSSY = DOWNLOAD.replace("loss = 0.01", "loss = 0.03")


def samples(name: str, values, seed: int | None = None) -> Samples:
    return Samples(name, {"download": {"duration_s": {str(n): float(v) for n, v in enumerate(values)}}}, seed)


def compared(base, new, *rules: str, seed: int | None = None) -> Comparison:
    parsed = [parse_rule(rule) for rule in rules]
    return Comparison(samples("base", base, seed), [samples("new", new, seed)], figures=None, rules=parsed)


def test_statistics_agree_with_published_examples():
    # Holm (1979), and the example of Mann–Whitney in Conover, Practical Nonparametric Statistics:
    # complete separation of 4 and 4 samples has p = 2/70.
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    apart = Pair(np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 7, 8]), False)
    assert statistics.shift_p(apart) == pytest.approx(2 / 70)
    assert statistics.permutation_p(apart, "mean") == pytest.approx(2 / 70)
    assert apart.least_p == pytest.approx(2 / 70)
    assert statistics.cliffs_delta(apart) == 1.0
    pairs = Pair(np.array([1.0, 2, 3, 4, 5, 6]), np.array([1.5, 2.7, 3.1, 4.3, 5.4, 6.9]), True)
    assert statistics.shift_p(pairs) == pytest.approx(2 / 2**6)
    assert statistics.permutation_p(pairs, "mean") == pytest.approx(2 / 2**6)


def test_a_clear_difference_an_equal_one_and_too_few_repetitions():
    drawn = np.random.default_rng(1)
    base = drawn.normal(10, 0.3, 20)
    row = compared(base, drawn.normal(11, 0.3, 20)).rows[0]
    assert row.verdict == "higher"
    assert row.change is not None
    assert row.change == pytest.approx(0.1, abs=0.03)
    assert row.interval is not None
    assert row.interval[0] < row.change < row.interval[1]
    assert compared(base, base, seed=1).rows[0].verdict == "equal"
    assert compared(base, drawn.normal(10, 0.3, 20)).rows[0].verdict == "no difference found"
    assert compared([1.0, 1.1, 1.2], [9.0, 9.1, 9.2]).rows[0].verdict == "too few repetitions"
    assert compared([1.0], [9.0]).rows[0].verdict == "too few repetitions"


def test_pairs_of_the_same_seed_show_a_small_difference_in_large_noise():
    base = np.random.default_rng(2).normal(10, 3, 12)
    assert compared(base, base * 1.01, seed=7).rows[0].verdict == "higher"
    assert compared(base, base * 1.01).rows[0].verdict == "no difference found"


def test_rules_fail_beyond_the_limit_and_beyond_chance():
    drawn = np.random.default_rng(3)
    base, slower = drawn.normal(10, 0.2, 15), drawn.normal(10.6, 0.2, 15)
    one = compared(base, slower, "duration_s > 5 %", "duration_s > 8 %", "duration_s p95 > 10", "duration_s < -1%")
    assert [each.state for each in one.outcomes] == ["failed", "passed", "failed", "passed"]
    chance = compared(base, drawn.normal(10.02, 0.2, 15), "duration_s > 0 %").outcomes[0]
    assert chance.state == "passed"
    from_zero = compared([0] * 10, range(1, 11), "duration_s > 5 %", "duration_s < -5 %").outcomes
    assert [each.state for each in from_zero] == ["failed", "passed"]
    aborted = compared([10, 11], [], "duration_s > 5 %").outcomes[0]
    assert (aborted.state, aborted.message) == ("failed", "no value of duration_s; 2 repetitions of the base have one")
    few = compared([10, 10.1, 10.2], [11, 11.4, 11.2], "duration_s > 5 %").outcomes[0]
    assert few.state == "undecided"
    assert "too few" in few.message


def test_a_clear_change_stays_below_the_level_after_the_correction_for_many_rules():
    drawn = np.random.default_rng(6)
    pair = Pair(drawn.normal(9, 1, 12), drawn.normal(18, 1, 12), False)
    # With 9,999 permutations no p-value is below 2 / 10,000.
    assert statistics.permutation_p(pair, "mean") * 400 > LEVEL
    assert statistics.permutation_p(pair, "mean", tests=400) * 400 < LEVEL


def test_needed_repetitions_have_the_stated_power():
    drawn = np.random.default_rng(4)
    pair = Pair(drawn.normal(10, 1, 400), drawn.normal(10, 1, 400), False)
    n = statistics.needed_samples(pair, 0.1, LEVEL)
    assert n is not None
    # Two samples of deviation 1, difference 1, 80 % power: 2 · (1.96 + 0.84)² = 15.7.
    assert abs(n - math.ceil(15.7)) <= 3
    found = [
        statistics.shift_p(Pair(drawn.normal(10, 1, n), drawn.normal(11, 1, n), False)) < LEVEL for _ in range(300)
    ]
    assert 0.7 < sum(found) / len(found) < 0.9


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("tests", [1, 2, 5, 20, 200])
def test_the_fewest_repetitions_reach_the_level_after_the_correction(paired: bool, tests: int):
    """Of sides that do not overlap, whose p-value is the least one."""

    def corrected(n: int) -> float:
        base = np.linspace(1, 2, n)
        return statistics.holm([statistics.shift_p(Pair(base, base * 2.5, paired))] * tests)[0]

    fewest = statistics.fewest_samples(LEVEL / tests, paired=paired)
    assert corrected(fewest) < LEVEL <= corrected(fewest - 1)


@pytest.mark.parametrize("n", [3, 6])
def test_the_needed_repetitions_suffice_for_all_rows(n: int):
    figures = ("duration_s", "throughput_bps", "rtt_mean_s", "retransmitted_packets", "delay_p95_s")

    def of(n: int) -> Comparison:
        """Return a comparison of five figures, each larger by 5 % in all repetitions."""
        sides = []
        for name, factor in (("base", 1.0), ("new", 1.05)):
            values = {figure: {str(at): (10 + 0.1 * at) * factor for at in range(n)} for figure in figures}
            sides.append(Samples(name, {"download": values}, seed=1))
        return Comparison(sides[0], sides[1:], figures=figures, rules=[])

    rows = of(n).rows
    assert {(row.verdict, row.needed) for row in rows} == {("too few repetitions", 8)}
    assert cells(rows[0])[-1] == "too few repetitions; about 8 would show 5 %"
    assert {row.verdict for row in of(8).rows} == {"higher"}


def test_equal_scenarios_rarely_fail_a_rule():
    """`benches/false_alarms.py` has 1,000 comparisons; here as many as take a second."""
    drawn = np.random.default_rng(5)
    trials = 60
    alarms = sum(
        bool(compared(*drawn.lognormal(1, 0.5, (2, 8)), "duration_s > 0 %", "duration_s p95 > 0 %").failed)
        for _ in range(trials)
    )
    # At most 5 % of them; 8 or more of 60 have a probability of 2 %.
    assert alarms < 8


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("duration", "is no rule"),
        ("duration_s ~ 5", "is no rule"),
        ("duration_s", r"`>` or `<` is expected at its end; write it as in 'duration_s p95 > 5 %'"),
        ("duration_s 95 > 5", "expected at character 12, '95 > 5'; write .*; the statistics are mean"),
        ("duration_s p95 >= 5 %", "a number is expected at character 17, '= 5 %'; write it as in"),
        ("duration_s p95 > 5 s", "`%`, or nothing more, is expected at character 20, 's'; write it"),
        ("p95(duration_s) > 5", r"character 4, '\(duration_s\) > 5'; figures are duration_s, throughput_bps"),
        ("durtion_s >> 5", "character 12, '> 5'; did you mean 'duration_s'"),
        ("> 5 %", "the name of a figure is expected at character 1, '> 5 %'; figures are duration_s"),
        ("", "the name of a figure is expected at its end"),
        ("throughputbps > 5 %", "did you mean 'throughput_bps'"),
        ("duration_s p96 > 5 %", "no statistic 'p96'; there are mean"),
    ],
)
def test_a_wrong_rule_is_an_error(rule, message):
    with pytest.raises(airpath.RuleError, match=message):
        parse_rule(rule)


def test_a_rule_for_one_flow_and_a_file_of_rules(tmp_path):
    rule = parse_rule("bulk, far: duration_s max > 8")
    assert (rule.group, rule.figure, rule.statistic, rule.limit, rule.is_relative) == (
        "bulk, far",
        "duration_s",
        "max",
        8,
        False,
    )
    path = tmp_path / "limits.toml"
    path.write_text('format = 1\nfail-if = ["duration_s p95 > 5 %", "lost > 3"]\n')
    assert [each.text for each in read_rules(path)] == ["duration_s p95 > 5 %", "lost > 3"]
    path.write_text('format = 1\nfail-if = ["duration_s p95 >> 5 %"]\n')
    with pytest.raises(airpath.RuleError, match=r"limits\.toml:2: .*is no rule"):
        read_rules(path)
    path.write_text("format = 1\nfail_if = []\n")
    with pytest.raises(airpath.RuleError, match="'fail-if' is missing; there is 'fail_if'"):
        read_rules(path)


def test_runs_sweeps_and_folders_of_results(tmp_path: Path):
    for name, scenario in (("a", DOWNLOAD), ("b", LOSSY)):
        airpath.run(scenario, repeat=10, out=tmp_path / name, log=False)
        for seed in range(4):
            airpath.run(scenario, seed=seed, out=tmp_path / f"{name}s" / str(seed), log=False)
        plan = airpath.make_plan(scenario, {"bearer.bler": [0.0, 0.2]}, repeat=6)
        airpath.sweep(plan, out=tmp_path / f"{name}-sweep", workers=1)
    runs = airpath.compare(tmp_path / "a", tmp_path / "b")
    assert {row.figure: row.verdict for row in runs.rows}["retransmitted_packets"] == "higher"
    assert all(row.pair.is_paired for row in runs.rows)
    several = airpath.compare(tmp_path / "as", tmp_path / "bs", figures=["duration_s"])
    assert (len(several.rows[0].pair.base), several.rows[0].pair.is_paired) == (4, False)
    sweeps = airpath.compare(tmp_path / "a-sweep", tmp_path / "b-sweep", figures=["duration_s"])
    assert [row.group for row in sweeps.rows] == ["bearer.bler=0.0, download", "bearer.bler=0.2, download"]
    main = airpath.compare(tmp_path / "a-sweep", tmp_path / "b-sweep").rows
    assert {row.figure for row in main} >= {"duration_s", "retransmitted_packets"}
    assert airpath.compare(tmp_path / "a", tmp_path / "a").rows[0].verdict == "equal"
    with pytest.raises(airpath.IncomparableError, match="no flow in common"):
        airpath.compare(tmp_path / "a", tmp_path / "a-sweep")
    with pytest.raises(airpath.IncomparableError, match="no such result"):
        airpath.compare(tmp_path / "a", tmp_path / "c")


GROUPS = """
[[mobile]]
name = "near"
count = 3
[[mobile]]
name = "far"
count = 2
[[mobile]]
name = "one"
[[flow]]
kind = "ping"
name = "echo"
mobile = "near"
count = 2
"""


def test_flows_of_a_group_are_one_sample_of_a_repetition(tmp_path: Path):
    for name, loss in (("a", 0.01), ("b", 0.03)):
        airpath.run(DOWNLOAD + GROUPS, set={"fixed.loss": loss}, repeat=4, out=tmp_path / name, log=False)
    sides = [tmp_path / name for name in ("a", "b")]
    rows = airpath.compare(*sides, figures=["duration_s", "delay_mean_s"]).rows
    # The table of pings has six flows, all of `near`; the last download is alone.
    assert [row.group for row in rows] == ["download of near", "download of far", "download-5", "echo"]
    assert {(len(row.pair.base), row.pair.is_paired) for row in rows} == {(4, True)}
    flows = airpath.load(sides[0]).flows
    near = flows.filter(pl.col("name").is_in(["download-0", "download-1", "download-2"]), repetition=2)
    assert rows[0].pair.base[2] == pytest.approx(near["duration_s"].mean())

    def groups(*words: str | int) -> list[str]:
        return list(dict.fromkeys(row.group for row in airpath.compare(*sides, flows=words).rows))

    assert groups("download") == ["download of near", "download of far"]
    assert groups("download of far", "echo-0") == ["download of far", "echo-0"]
    assert groups("download-1", 4) == ["download-1", "download-4"]
    assert groups("one") == ["download-5"]
    assert groups("far-0") == ["download-3"]
    for wrong, hint in (("downlaod", "did you mean 'download'"), ("99", "there is download of near, ")):
        with pytest.raises(airpath.IncomparableError, match=f"a has no flow '{wrong}'; {hint}"):
            groups(wrong)

    rules = ["download: duration_s > 900 %", "download-0: duration_s < 99", "echo: sent > 99 %"]
    outcomes = airpath.compare(*sides, flows=["echo", "download of far"], fail_if=rules).outcomes
    assert [(each.group, each.state) for each in outcomes] == [
        ("download of far", "passed"),
        ("download-0", "failed"),
        ("echo", "passed"),
    ]


def test_flows_of_a_group_without_a_value_are_reported(tmp_path: Path, airpath_command: Command):
    airpath.run(DOWNLOAD + GROUPS, repeat=3, out=tmp_path / "a", log=False)
    names = ("near", "far")

    def durations(side: str) -> list[pl.Series]:
        flows = airpath.load(tmp_path / side).flows
        return [flows.filter(pl.col("mobile").str.starts_with(name), kind="download")["duration_s"] for name in names]

    first, last = ([end(each) for each in durations("a")] for end in (min, max))
    cut = {"duration": f"{(max(first) + min(last)) / 2} s"}
    airpath.run(DOWNLOAD + GROUPS, set=cut, repeat=3, out=tmp_path / "b", log=False)
    counts = dict(zip(names, durations("b"), strict=True))
    assert all(0 < each.null_count() < len(each) for each in counts.values())
    done = airpath_command("compare", "a", "b", "--figure", "duration_s", "--format", "json")
    assert done.json["partial"] == [
        f"download of {name}: means are without the flows that have no value: "
        f"duration_s {each.null_count()} of {len(each)} in b"
        for name, each in counts.items()
    ]
    text = " ".join(airpath_command("compare", "a", "b", "--figure", "duration_s").out.split())
    assert done.json["partial"][0] in text


def test_cases_with_different_numbers_of_mobiles_have_one_group(tmp_path: Path):
    for name in ("a", "b"):
        plan = airpath.make_plan(DOWNLOAD + "[[mobile]]\n", {"mobile.count": [1, 3]}, repeat=2)
        airpath.sweep(plan, executor=Inline(), out=tmp_path / name)
    sides = [tmp_path / name for name in ("a", "b")]
    rows = airpath.compare(*sides, figures=["duration_s"]).rows
    assert [row.group for row in rows] == ["mobile.count=1, download", "mobile.count=3, download"]
    one = airpath.compare(*sides, figures=["duration_s"], flows=["download-2"]).rows
    assert [row.group for row in one] == ["mobile.count=3, download-2"]


def test_a_rule_that_the_repetitions_cannot_decide_is_undecided():
    drawn = np.random.default_rng(4)
    base = drawn.normal(10, 4, 20)
    noisy = base + drawn.normal(0, 4, 20)
    noisy += base.mean() * 1.08 - noisy.mean()
    [outcome] = compared(base, noisy, "duration_s > 5 %").outcomes
    assert outcome.state == "undecided"
    assert re.search(r"p = 0\.\d+\): 20 and 20 repetitions are too few; about \d{3,4} repetitions", outcome.message)
    # Enough repetitions for the limit: chance explains the change.
    base = drawn.normal(10, 0.1, 20)
    close = base[::-1] * 1.0001
    [outcome] = compared(base, close, "duration_s > 0 %").outcomes
    assert (outcome.state, "chance explains" in outcome.message) == ("passed", True)


def test_the_caption_names_what_is_corrected(tmp_path: Path, airpath_command: Command):
    airpath.run(DOWNLOAD, repeat=6, out=tmp_path / "a", log=False)
    many = " ".join(airpath_command("compare", "a", "a").out.split())
    assert "p has Holm's correction for" in many
    assert "the intervals have none" in many
    assert "Holm" not in airpath_command("compare", "a", "a", "--figure", "duration_s").out


def test_cases_of_sweeps_are_matched_by_key_in_any_order_of_the_axes(tmp_path: Path):
    axes = {"fixed.loss": [0.0, 0.02], "bearer.bler": [0.0, 0.2]}
    for name, vary in (("a", axes), ("b", dict(reversed(axes.items())))):
        airpath.sweep(airpath.make_plan(DOWNLOAD, vary, repeat=2), executor=Inline(), out=tmp_path / name)
    compared = airpath.compare(tmp_path / "a", tmp_path / "b", figures=["duration_s"])
    assert compared.unmatched == []
    assert [row.verdict for row in compared.rows] == ["equal"] * 4
    assert compared.rows[0].group == "bearer.bler=0.0, fixed.loss=0.0, download"


def test_connections_of_real_programs_are_compared_by_server(tmp_path: Path):
    for side in ("a", "b"):
        for number in range(4):
            folder = tmp_path / side / str(number)
            airpath.run(DOWNLOAD, seed=number, out=folder, log=False)
            # As a link writes it: the name has the client's port.
            summary = json.loads((folder / "summary.json").read_text())
            local, remote = f"100.64.0.2:{5000 + number}", "100.64.0.1:80"
            ends = {"kind": "tcp", "name": f"{local} → {remote}", "local": local, "remote": remote}
            summary["flows"] = [flow | ends for flow in summary["flows"]]
            (folder / "summary.json").write_text(json.dumps(summary | {"emulation": {}}))
    rows = airpath.compare(tmp_path / "a", tmp_path / "b", figures=["duration_s"]).rows
    assert [(row.group, len(row.pair.base), row.pair.is_paired) for row in rows] == [("tcp 100.64.0.1:80", 4, False)]


def test_the_command_and_its_formats(tmp_path: Path, airpath_command: Command):
    airpath.run(DOWNLOAD, repeat=16, out=tmp_path / "a", log=False)
    airpath.run(LOSSY, repeat=16, out=tmp_path / "b", log=False)
    done = airpath_command("compare", "a", "b", "--fail-if", "retransmitted_packets > 50 %", "--junit", "out.xml")
    assert done.code == 1
    assert "failed: retransmitted_packets > 50 %: download" in done.out
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    passed = airpath_command("compare", "a", "a", "--fail-if", "duration_s p95 > 1 %", "--format", "json")
    assert passed.code == 0
    assert json.loads(passed.out)["rules"][0]["state"] == "passed"
    assert airpath_command("compare", "a", "b", "--format", "markdown").out.startswith("### b against a")
    assert airpath_command("compare", "a").code == 2
    assert "did you mean" in airpath_command("compare", "a", "b", "--fail-if", "duratio_s > 1 %").err
    one_of_two = airpath_command("compare", "a", "b", "--figure", "duration_s", "--figure", "nothing")
    assert (one_of_two.code, "no flow has nothing on both sides" in one_of_two.err) == (2, True)


def test_markdown_and_junit_escape_names():
    odd = Samples("a|b", {"x|<y>": {"duration_s": {"0": 1.0, "1": 2.0}}})
    made = Comparison(odd, [odd], figures=None, rules=[parse_rule("duration_s > 5 %")])
    assert "x\\|<y>" in to_markdown(made)
    assert ElementTree.fromstring(to_junit(made).encode())[0][0].get("classname") == "x|<y>"


def test_pages_are_compared_by_name(tmp_path: Path):
    slower = {"bearer.bler": 0.3}
    # With up to 13 and ties, SciPy evaluates each permutation by itself, which takes seconds.
    airpath.run(PAGE, repeat=16, out=tmp_path / "a", log=False)
    airpath.run(PAGE, set=slower, repeat=16, out=tmp_path / "b", log=False)
    rows = airpath.compare(tmp_path / "a", tmp_path / "b").rows
    page = next(row for row in rows if row.figure == "page_time_s")
    assert (page.group, page.verdict) == ("page static-site", "higher")
    rule = airpath.compare(tmp_path / "a", tmp_path / "b", fail_if=["page static-site: page_time_s > 5 %"]).failed
    assert [each.group for each in rule] == ["page static-site"]
    # Objects only by name of a figure.
    objects = airpath.compare(tmp_path / "a", tmp_path / "b", figures=["finished_s"]).rows
    assert {row.group.split()[0] for row in objects} == {"object"}
    plans = [airpath.make_plan(PAGE, {"bearer.bler": [0.0, 0.1]}, set=each, repeat=4) for each in ({}, slower)]
    for name, plan in zip("ab", plans, strict=True):
        airpath.sweep(plan, out=tmp_path / f"{name}-sweep", workers=1)
    sweeps = airpath.compare(tmp_path / "a-sweep", tmp_path / "b-sweep", figures=["page_time_s"])
    assert [row.group for row in sweeps.rows] == [f"bearer.bler={bler}, page static-site" for bler in (0.0, 0.1)]


def test_page_loads_of_a_browser_are_compared_by_view(tmp_path: Path):
    for side, slower in (("a", 0.0), ("b", 1.0)):
        airpath.run(PAGE, out=tmp_path / side, log=False)
        views = [
            {"run": run, "view": view, "page": "front", "page_time_s": 2 + slower + 0.01 * run - view, "missing": []}
            for run in range(5)
            for view in (0, 1)
        ]
        (tmp_path / side / "page.json").write_text(json.dumps(views))
    rows = airpath.compare(tmp_path / "a", tmp_path / "b", figures=["page_time_s"]).rows
    found = {row.group: (len(row.pair.base), row.change) for row in rows}
    assert found["page front"] == (5, pytest.approx(1 / 2.02))
    assert found["page front, view 1"] == (5, pytest.approx(1 / 1.02))


def test_damaged_files_are_reported(tmp_path: Path, airpath_command: Command):
    airpath.run(PAGE, out=tmp_path / "a", log=False)
    for damaged in ("{", "[]", "{}", "[1]", '[{"run": 0}]'):
        (tmp_path / "a" / "page.json").write_text(damaged)
        with pytest.raises(airpath.UnreadableResultError, match=r"page\.json: damaged"):
            airpath.compare(tmp_path / "a", tmp_path / "a")
    (tmp_path / "b").mkdir()
    whole = {"schema": SCHEMA, "airpath": "1", "complete": True, "runs_per_task": 1, "file": "x"}
    for state in ({"schema": SCHEMA}, {**whole, "plan": []}, {**whole, "plan": {"scenario": ""}}):
        (tmp_path / "b" / "sweep.json").write_text(json.dumps(state))
        with pytest.raises(airpath.SweepFolderError, match=r"sweep\.json: damaged"):
            airpath.compare(tmp_path / "b", tmp_path / "b")
    done = airpath_command("compare", tmp_path / "a", tmp_path / "b")
    assert (done.code, "damaged" in done.err) == (2, True)


def test_connections_of_captures_are_selected():
    capture = ROOT / "tests" / "captures" / "http-separate.pcapng"
    every, one = (load_samples(capture, flows).values for flows in (None, ["1"]))
    assert [len(figures["segments"]) for figures in every.values()] == [8]
    assert [len(figures["segments"]) for figures in one.values()] == [1]


def test_folders_of_captures_are_compared_by_service(tmp_path: Path):
    for side, bler in (("a", 0.0), ("b", 0.3)):
        airpath.run(
            DOWNLOAD, set={"bearer.bler": bler}, repeat=5, out=tmp_path / f"{side}-run", capture=True, log=False
        )
        (tmp_path / side).mkdir()
        for capture in (tmp_path / f"{side}-run" / "captures").glob("*-server.pcapng"):
            capture.rename(tmp_path / side / capture.name)
    rows = airpath.compare(tmp_path / "a", tmp_path / "b", figures=["duration_s"]).rows
    assert [(row.group, len(row.pair.base), row.verdict) for row in rows] == [("port 80", 5, "higher")]


def test_the_metrics_of_a_study_are_compared_by_case(tmp_path: Path):
    (tmp_path / "plan.toml").write_text('format = 1\nstudy = { id = "hsdpa-sim", experiment = "rtt" }\nrepeat = 9\n')
    plan = airpath.read_plan(tmp_path / "plan.toml")
    for name, delay in (("a", "50 ms"), ("b", "60 ms")):
        airpath.sweep(replace(plan, fixed={"fixed.delay": delay}), out=tmp_path / name, workers=1)
    compared = airpath.compare(tmp_path / "a", tmp_path / "b", fail_if=["round-trip > 1 %"])
    assert {row.figure for row in compared.rows} == {"round-trip"}
    assert compared.rows[0].group == "channel=DCH 384, 99 ms, bler=1 %"
    assert len(compared.failed) == 4


def test_ports_of_connections_in_a_sweep_are_no_figures(tmp_path: Path):
    plan = replace(airpath.make_plan(DOWNLOAD, {"bearer.bler": [0.1]}, repeat=2), work=Simulation(trace=True))
    airpath.sweep(plan, executor=Inline(), out=tmp_path / "out")
    figures = {name for each in load_samples(tmp_path / "out").values.values() for name in each}
    assert "duration_s" in figures
    assert not {"client_port", "server_port", "start", "start_s", "connection", "repetition"} & figures


def test_what_only_one_side_has_is_reported_and_can_fail(tmp_path: Path, airpath_command: Command):
    both = DOWNLOAD + '\n[[flow]]\nkind = "download"\nname = "extra"\nbytes = "5 kB"\n'
    airpath.run(DOWNLOAD, repeat=6, out=tmp_path / "a", log=False)
    airpath.run(both, repeat=4, out=tmp_path / "b", log=False)
    compared = airpath.compare(tmp_path / "a", tmp_path / "b")
    assert compared.unmatched == [
        f"extra: only in {tmp_path / 'b'}",
        f"download: 2 repetitions only in {tmp_path / 'a'}",
    ]
    assert all(len(row.pair.base) == 4 for row in compared.rows)
    done = airpath_command("compare", "a", "b", "--format", "json")
    assert (done.code, done.json["unmatched"][0]) == (0, "extra: only in b")
    assert "--fail-unmatched" in done.err
    failing = airpath_command("compare", "a", "b", "--fail-unmatched", "--markdown", "x.md")
    assert failing.code == 1
    assert "extra: only in b" in (tmp_path / "x.md").read_text()
    assert airpath_command("compare", "a", "a", "--fail-unmatched").code == 0
