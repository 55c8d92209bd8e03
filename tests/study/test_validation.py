"""The comparison with other programs: its scenarios, statistics and rules, without the programs."""

import math
import tomllib
from dataclasses import replace
from random import Random
from statistics import NormalDist, fmean

import comparison
import dumbbell
import formulas
import links
import programs
import pytest
import rules
import tables
from differences import Compared, deviates, figures, jain

import airpath

DRAWN = [dumbbell.draw(1, number) for number in range(300)]


def compared(
    ours: tuple[float, ...], theirs: tuple[float, ...], *, scenario: dumbbell.Scenario | None = None
) -> Compared:
    return Compared(scenario or DRAWN[0], "ns-9", "goodput", ours, theirs, (0.0, 0.0))


# --- Scenarios ------------------------------------------------------------------------------------


def test_a_scenario_depends_on_its_seed_and_number_only() -> None:
    assert dumbbell.draw(1, 7) == DRAWN[7]
    assert dumbbell.draw(2, 7) != DRAWN[7]
    one, same, other = DRAWN[7].repetition(1), dumbbell.draw(1, 7).repetition(1), DRAWN[7].repetition(2)
    assert (one.seed, one.starts, one.losses) == (same.seed, same.starts, same.losses)
    assert one.seed != other.seed


def test_scenarios_cover_their_ranges() -> None:
    for each in DRAWN:
        assert 64e3 <= each.rate <= 200e6
        assert 0.010 <= each.round_trip <= 0.800
        assert 5 <= each.queue <= 1000
        assert not each.ecn or each.codel
    for values in (
        {each.controller for each in DRAWN},
        {each.sack for each in DRAWN},
        {each.ecn for each in DRAWN},
        {each.delayed for each in DRAWN},
        {each.is_long for each in DRAWN},
        {each.codel is None for each in DRAWN},
        {None if each.loss is None else each.loss.bursts for each in DRAWN} - {None},
    ):
        assert len(values) == 2
    assert {each.flows for each in DRAWN} == set(range(1, 11))
    assert min(each.rate for each in DRAWN) < 80e3
    assert max(each.rate for each in DRAWN) > 150e6


def test_scenarios_have_few_packets() -> None:
    for each in DRAWN:
        if each.is_long:
            assert each.duration * each.rate / 8 / dumbbell.PACKET <= 1.001 * dumbbell.CAPACITY
            assert each.duration >= dumbbell.ROUND_TRIPS * each.round_trip
        else:
            assert each.flows * each.packets <= dumbbell.CAPACITY + each.flows


def test_repetitions_differ_by_start_and_round_trip() -> None:
    scenario = next(each for each in DRAWN if each.flows == 5)
    repetitions = [scenario.repetition(number) for number in range(50)]
    assert all(0 <= start <= scenario.stagger for each in repetitions for start in each.starts)
    trips = [each.round_trip / scenario.round_trip for each in repetitions]
    assert 0.95 <= min(trips) < 0.97
    assert 1.03 < max(trips) <= 1.05


@pytest.mark.parametrize(
    ("loss", "mean", "burst"),
    [(dumbbell.Loss(0.02), 0.02, 1 / 0.98), (dumbbell.Loss(0.005, 0.2, bursts=True), 0.005 / 0.205, 5.0)],
)
def test_losses_have_their_mean_and_bursts(loss: dumbbell.Loss, mean: float, burst: float) -> None:
    packets = 400_000
    lost = loss.draw(Random(1), packets)
    bursts = sum(one + 1 != following for one, following in zip(lost, [*lost[1:], -1], strict=True))
    # Five standard deviations of the larger of both kinds.
    assert loss.mean == pytest.approx(mean)
    assert len(lost) / packets == pytest.approx(mean, rel=0.06)
    assert len(lost) / bursts == pytest.approx(burst, rel=0.05)


def test_airpath_resolves_all_scenarios() -> None:
    for each in DRAWN[:40]:
        for settings in ("linux-6", "linux-6 like ns-3", "linux-6 like 2.6.16", "ns2-newreno"):
            airpath.resolve(programs.document(each.repetition(0), settings))


def test_every_scenario_has_a_rival() -> None:
    assert all(any(rival.can(each) for rival in programs.RIVALS) for each in DRAWN)


# --- Figures and chance ---------------------------------------------------------------------------


def test_figures_of_long_flows_and_files() -> None:
    long = next(each for each in DRAWN if each.is_long and each.flows == 2)
    outcome = programs.Outcome((3e6, 1e6), (None, None), (None, None), 0.0)
    assert figures(long, outcome, at_sender=False) == {
        "goodput": pytest.approx(32e6 / long.duration),
        "Jain's index": pytest.approx(0.8),
    }
    files = next(each for each in DRAWN if not each.is_long and each.flows == 2)
    outcome = programs.Outcome((1e6, 1e6), (2.0, 4.0), (3.0, None), 0.0)
    assert figures(files, outcome, at_sender=False) == {"completion": 3.0}
    assert figures(files, outcome, at_sender=True) == {"completion": (3 + files.duration) / 2}
    assert jain((1, 0, 0, 0)) == pytest.approx(0.25)


def test_equal_programs_differ_beyond_chance_as_often_as_a_normal_deviate() -> None:
    random = Random(3)
    trials = 4000
    for repetitions in (4, 16):
        beyond = sum(
            deviates(*([random.gauss(10, 1) for _ in range(repetitions)] for _ in range(2))) > 2 for _ in range(trials)
        )
        # 4.6 %, with four standard deviations; Welch's test has fewer with few repetitions.
        assert 0.025 < beyond / trials < 2 * (1 - NormalDist().cdf(2)) + 0.014


def test_a_difference_needs_size_and_significance() -> None:
    assert compared((12.0, 12.1, 11.9), (10.0, 10.1, 9.9)).is_beyond
    assert not compared((10.5, 10.6, 10.4), (10.0, 10.1, 9.9)).is_beyond, "5 %"
    assert not compared((18.0, 6.0, 12.0), (16.0, 4.0, 10.0)).is_beyond, "chance"
    # Without any chance each difference is real.
    assert math.isinf(compared((12.0, 12.0), (10.0, 10.0)).z)
    assert compared((10.0, 10.0), (10.0, 10.0)).z == 0


class _Constant(programs.Program):
    """A program whose goodput is a number."""

    name = family = "ns-9"
    settings: programs.Settings = "linux-6"

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.runs = 0

    def can(self, scenario: dumbbell.Scenario) -> bool:
        return True

    def run(self, repetition: dumbbell.Repetition) -> programs.Outcome:
        self.runs += 1
        ours = programs.Airpath("linux-6").run(repetition)
        return replace(ours, delivered=tuple(self.factor * each for each in ours.delivered))


def test_scenarios_that_differ_are_repeated() -> None:
    scenario = min((each for each in DRAWN if each.is_long and each.flows > 1), key=lambda each: each.rate)
    equal, half = _Constant(1.0), _Constant(0.5)
    same = comparison.compare(scenario, [equal], repetitions=2)
    assert equal.runs == 2
    assert [(each.figure, each.difference) for each in same] == [("goodput", 0.0), ("Jain's index", 0.0)]
    double, index = comparison.compare(scenario, [half], repetitions=2)
    # Without a reason, new repetitions replace the others.
    assert half.runs == 2 * (comparison.MORE + comparison.FRESH)
    assert len(double.ours) == 2 * comparison.FRESH
    assert double.difference == pytest.approx(1.0)
    assert double.is_beyond
    assert not index.is_large


def test_new_repetitions_judge_a_difference_without_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lucky(_Constant):
        """Differs in the repetitions that come first."""

        def run(self, repetition: dumbbell.Repetition) -> programs.Outcome:
            self.factor = 0.5 if repetition.number < 2 * comparison.MORE else 1.0
            return super().run(repetition)

    scenario = min((each for each in DRAWN if each.is_long and each.flows == 1), key=lambda each: each.rate)
    (goodput,) = comparison.compare(scenario, [Lucky(1.0)], repetitions=2)
    assert goodput.difference == 0
    # A known reason needs no more of them.
    known = rules.Rule("known", "", "", lambda _: True)
    monkeypatch.setattr(rules, "RULES", (known,))
    half = _Constant(0.5)
    comparison.compare(scenario, [half], repetitions=2)
    assert half.runs <= 2 * comparison.MORE


# --- Rules and tables -----------------------------------------------------------------------------


def test_a_difference_without_a_rule_is_unexplained() -> None:
    unknown = compared((12.0, 12.1, 11.9), (10.0, 10.1, 9.9))
    assert rules.reason(unknown) is None
    assert tables.unexplained([unknown, compared((10.0, 10.1), (10.0, 10.1))]) == [unknown]
    assert " ".join(tables.summary([1], [unknown], 1, 3)).endswith("1 of them without a known reason.")
    assert "| ns-9 | goodput | 1 | 20.0 % | 20.0 % | 1 | 1 |" in [
        line.replace(", CoDel", "") for line in tables.groups([unknown])
    ]
    assert "**unexplained**" in tables.differences([unknown])[2]


def test_rules_have_names_and_depend_on_no_number() -> None:
    assert len({rule.name for rule in rules.RULES}) == len(rules.RULES)
    for rule in rules.RULES:
        assert rule.reason
        for each in DRAWN[:50]:
            for rival in programs.RIVALS:
                one = Compared(each, rival.name, "goodput", (2.0, 2.1), (1.0, 1.1), (0.01, 0.4))
                assert rule.applies(one) == rule.applies(replace(one, scenario=replace(each, seed=99, number=9999)))


def test_rules_need_what_their_reason_describes() -> None:
    sack = next(each for each in DRAWN if each.sack and not each.ecn and each.delayed and not each.is_long)
    plain = next(each for each in DRAWN if not each.sack)
    reno = "ns-3 TcpLinuxReno"

    def reason(scenario: dumbbell.Scenario, rival: str, *, repeated: float = 0.01, timeouts: float = 1) -> str | None:
        one = Compared(scenario, rival, "goodput", (2.0, 2.1), (1.0, 1.1), (0.01, repeated), (1, timeouts))
        rule = rules.reason(one)
        return rule and rule.name

    assert reason(sack, reno) is None
    assert reason(sack, reno, timeouts=3) == "ns-3, timer in recovery"
    assert reason(sack, "ns-2 TCP/Linux", timeouts=3) == "TCP/Linux after a time-out"
    assert reason(plain, reno) is None
    assert reason(plain, reno, repeated=0.3) == "ns-3 without SACK"
    for rival in ("kernel", "ns-2 Newreno", "ns-2 Sack1"):
        assert reason(sack, rival, repeated=0.3, timeouts=9) is None


def test_rules_of_slow_rivals_need_a_slow_rival() -> None:
    def reason(
        scenario: dumbbell.Scenario, rival: str, ours: float, theirs: float, **counts: tuple[float, float]
    ) -> str:
        given = {"repeated": (0.1, 0.1), "timeouts": (1.0, 1.0)} | counts
        one = Compared(scenario, rival, "completion", (ours, ours), (theirs, theirs), **given)
        rule = rules.reason(one)
        return rule.name if rule else ""

    base = next(each for each in DRAWN if each.controller == "cubic" and not each.is_long and each.codel is None)
    base = replace(base, sack=True, ecn=False, loss=None, flows=4, packets=30, delayed=False)
    slow, short = replace(base, rate=100e3, queue=100), replace(base, rate=10e6, queue=20)
    cubic = "ns-3 TcpCubic"
    # A queue of 12 s, and of 24 ms.
    assert reason(slow, cubic, 1.0, 1.5, repeated=(0.1, 0.3)) == "ns-3, timer after a time-out"
    assert reason(slow, cubic, 1.5, 1.0, repeated=(0.1, 0.3)) == ""
    assert reason(slow, cubic, 1.0, 1.5, repeated=(0.1, 0.11)) == ""
    assert reason(replace(short, queue=200), cubic, 1.0, 1.5, repeated=(0.1, 0.3)) == "ns-3, timer after a time-out"
    # The slower program has more time-outs.
    assert reason(short, cubic, 1.5, 1.0, timeouts=(8.0, 2.0)) == "ns-3, handshake"
    assert reason(short, cubic, 1.0, 1.5, timeouts=(8.0, 2.0)) == ""
    assert reason(replace(short, packets=100), cubic, 1.5, 1.0, timeouts=(8.0, 2.0)) == ""
    codel = replace(base, codel=dumbbell.CoDel(0.005, 0.1), queue=500, packets=3000)
    assert reason(codel, cubic, 1.5, 1.0, timeouts=(3.0, 1.0)) == "ns-3, overflow in recovery"
    assert reason(replace(codel, queue=50, rate=1e6), cubic, 1.5, 1.0, timeouts=(3.0, 1.0)) == ""
    assert reason(replace(codel, ecn=True), cubic, 1.0, 1.5, repeated=(0.1, 0.2)) == "ns-3 with ECN"
    lossy = replace(base, round_trip=0.5, loss=dumbbell.Loss(0.02), packets=3000, queue=500, flows=1)
    linux = "ns-2 TCP/Linux"
    assert reason(lossy, linux, 60.0, 70.0) == "TCP/Linux, CUBIC with small windows"
    assert reason(lossy, linux, 70.0, 60.0) == ""
    assert reason(replace(lossy, loss=dumbbell.Loss(0.0005)), linux, 60.0, 70.0) == ""


def test_the_table_of_differences_shows_the_largest_of_each_reason() -> None:
    plain = next(each for each in DRAWN if not each.sack and not each.ecn)
    known = [
        Compared(plain, "ns-3 TcpLinuxReno", "goodput", (size, size), (1.0, 1.0), (0.01, 0.4), (1, 1))
        for size in (1.2, 1.5, 1.3, 1.4)
    ]
    unknown = [compared((12.0, 12.1, 11.9), (10.0, 10.1, 9.9))] * 3
    rows = tables.differences([*known, *unknown], 2)[2:]
    assert ["**unexplained**" in row for row in rows] == [True] * 3 + [False] * 2
    assert ["+50 %" in row for row in rows] == [False] * 3 + [True, False]
    assert len(tables.differences([*known, *unknown])) == 2 + 7
    assert "| ns-3 without SACK | 4 |" in tables.reasons(known)[2]


def test_the_table_of_the_kernel_counts_scenarios_without_figures() -> None:
    one = compared((10.0, 10.1), (10.0, 10.1))
    assert tables.kernel([one])[-1].endswith("0 are beyond chance and 10 %.")
    assert " ".join(tables.kernel([one], 2)[-2:]).endswith("2 scenarios gave no figures.")
    assert " ".join(tables.kernel([one], 1)[-2:]).endswith("1 scenario gave no figures.")


# --- Formulas -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_airpath_agrees_with_the_formulas() -> None:
    checks = list(formulas.checks(1, 4, draws=1))
    assert len({check.formula for check in checks}) >= 9
    beyond = [tables.formula_line(check) for check in checks if check.is_beyond]
    assert not beyond
    assert len(tables.formulas(checks)) == 2 + len({check.formula for check in checks})


def test_a_range_of_a_formula_has_no_difference_within() -> None:
    def check(*ours: float) -> formulas.Check:
        return formulas.Check("f", "", ours, (1.0, 2.0), 0.1, str)

    assert check(1.4, 1.6).difference == 0
    assert check(2.4, 2.4).difference == pytest.approx(0.2)
    assert check(2.4, 2.41).is_beyond
    assert not check(1.5, 3.3).is_beyond
    assert fmean(check(1.0, 2.0).ours) == check(1.0, 2.0).mean


def test_pftk_is_the_square_root_law_without_timeouts() -> None:
    loss, round_trip = 1e-6, 0.1
    law = math.sqrt(3 / (2 * 2 * loss)) / round_trip
    assert formulas.pftk_rate(loss, round_trip, 0.3, 2) == pytest.approx(law, rel=0.01)


# --- The kernel's scenarios -----------------------------------------------------------------------


def test_scenarios_of_the_kernel_end_within_a_minute() -> None:
    for number in range(100):
        scenario = dumbbell.draw(1, number, dumbbell.REAL)
        assert 300e3 <= scenario.rate <= 20e6
        assert scenario.duration < 60
        airpath.resolve(links.link(scenario.repetition(0)), set={"flow": []})


def test_a_link_has_the_losses_of_its_simulation() -> None:
    scenario = next(each for each in DRAWN if each.loss)
    simulated = programs.document(scenario.repetition(0), "linux-6")["fixed"]
    assert simulated == tomllib.loads(links.link(scenario.repetition(0)))["fixed"]
    assert "loss" in simulated["down"]
