"""Plans: axes, cases, samples, and the errors of a wrong plan."""

from collections.abc import Callable
from pathlib import Path

import pytest

import airpath
from airpath.sweep.axes import Interval, Levels, latin_hypercube
from airpath.sweep.work import Until
from support import DOWNLOAD

HEAD = 'format = 1\nscenario = "small.toml"\n'


@pytest.fixture
def plan(tmp_path: Path) -> Callable[[str], airpath.Plan]:
    """Read a plan of the small download."""
    (tmp_path / "small.toml").write_text(DOWNLOAD)

    def read(text: str, head: str = HEAD) -> airpath.Plan:
        path = tmp_path / "plan.toml"
        path.write_text(head + text)
        return airpath.read_plan(path)

    return read


def test_a_grid_has_every_combination_with_the_first_axis_slowest(plan):
    made = plan('[axes]\nbearer.bler = [0.0, 0.1]\n"fixed.delay" = ["10 ms", "20 ms", "40 ms"]\n')
    assert made.columns == ("bearer.bler", "fixed.delay")
    assert made.cases[:4] == ((0.0, "10 ms"), (0.0, "20 ms"), (0.0, "40 ms"), (0.1, "10 ms"))
    assert len(made.cases) == 6
    assert made.kinds() == {"bearer.bler": "Float64", "fixed.delay": "String"}
    assert made.overrides(3) == [("bearer.bler", "0.1"), ("fixed.delay", "10 ms")]


def test_intervals_are_linear_or_logarithmic_and_keep_their_unit(plan):
    made = plan(
        '[axes]\nfixed.delay = { from = "10 ms", to = "30 ms", number = 3 }\n'
        'fixed.rate = { from = "1 Mbit/s", to = "100 Mbit/s", number = 3, spacing = "log" }\n'
        'flow.0.start = ["0 s"]\n'
    )
    assert {case[0] for case in made.cases} == {"10 ms", "20 ms", "30 ms"}
    assert [case[1] for case in made.cases[:3]] == ["1 Mbit/s", "10 Mbit/s", "100 Mbit/s"]


def test_values_of_intervals_have_no_exponent(plan):
    made = plan(
        '[axes]\nfixed.delay = { from = "0 s", to = "0.0001 s", number = 3 }\n'
        'fixed.rate = { from = "1000000000 bit/s", to = "2e9 bit/s", number = 2 }\n'
    )
    assert [case[0] for case in made.cases[::2]] == ["0 s", "0.00005 s", "0.0001 s"]
    assert [case[1] for case in made.cases[:2]] == ["1000000000 bit/s", "2000000000 bit/s"]


def test_whole_bounds_give_whole_numbers():
    assert Interval(1, 100, "", 3, is_log=True, is_whole=True).values == (1, 10, 100)


def test_axes_that_change_together_and_a_table_of_cases_are_combined_with_the_grid(plan):
    made = plan(
        '[axes]\nbearer.bler = [0.0, 0.1]\n[[together]]\nfixed.delay = ["1 ms", "2 ms"]\nfixed.loss = [0.0, 0.01]\n'
        '[[case]]\ntcp.profile = "linux-2.4"\n[[case]]\ntcp.profile = "windows-xp"\ntcp.timestamps = false\n'
    )
    assert made.columns == ("bearer.bler", "fixed.delay", "fixed.loss", "tcp.profile", "tcp.timestamps")
    assert len(made.cases) == 8
    assert made.cases[0] == (0.0, "1 ms", 0.0, "linux-2.4", None)
    assert made.cases[3] == (0.0, "2 ms", 0.01, "windows-xp", False)


def test_a_latin_hypercube_has_one_case_in_each_part_of_each_axis():
    axes = {"a": Interval(0, 1, "", 2, is_log=False, is_whole=False), "b": Levels(("x", "y"))}
    sample = latin_hypercube(axes, 20, seed=4)
    assert sorted(int(float(case["a"]) * 20) for case in sample) == list(range(20))
    assert sum(case["b"] == "x" for case in sample) == 10
    assert sample == latin_hypercube(axes, 20, seed=4) != latin_hypercube(axes, 20, seed=5)


def test_the_seed_and_the_overrides_of_all_cases(plan):
    assert plan("").seed == 3
    made = plan("seed = 9\n[set]\nfixed.loss = 0\n[axes]\nbearer.bler = [0.1]\n")
    assert (made.seed, made.overrides(0)) == (9, [("fixed.loss", "0"), ("bearer.bler", "0.1")])


def test_repetitions_until_an_interval_is_narrow(plan):
    made = plan('repeat = { figure = "duration_s", within = 0.05, least = 5, most = 40 }\n')
    assert made.repeat == Until("duration_s", None, 0.05, 5, 40)
    assert made.runs == 40


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[axes]\nbearer.blur = [0.1]\n",
            r"plan\.toml:4: case 0 .*blur: unknown key; did you mean `bler`",
        ),
        ("[axes]\nbearer.bler = [0.1, 7]\n", r"plan\.toml:4.*case 1 \(bearer\.bler=7\)"),
        (
            '[[case]]\nbearer.bler = 0.1\n[[case]]\nbearer.bler = 7\nfixed.delay = "1 s"\n',
            r"plan\.toml:6: case 1 \(bearer\.bler=7, fixed\.delay=1 s\)",
        ),
        ("[axes]\nbearer.bler = 0.1\n", r"plan\.toml:4: axes.*must be a list of values"),
        ("[axes]\nbearer.bler = []\n", "has no values"),
        ("[axes]\nbearer.bler = [0.1, 0.1]\n", "a value twice"),
        ('[axes]\nfixed.delay = { from = "10 ms", to = "1 s", number = 3 }\n', "in 'ms' and 's'; write both"),
        ('[axes]\nfixed.delay = { from = "9 ms", to = "1 ms", number = 3 }\n', "must be smaller"),
        ('[axes]\nfixed.delay = { from = "0 ms", to = "1 ms", number = 3, spacing = "log" }\n', "positive"),
        ('[axes]\nfixed.delay = { from = "0 ms", to = "1 ms", number = 1 }\n', "at least two values"),
        ('[axes]\nfixed.delay = { from = "0 ms", to = "9 ms", step = "3 ms" }\n', "has a step; .*: number = 4"),
        ('[axes]\nfixed.delay = { from = "0 ms", to = "9 ms", step = "4 ms" }\n', "as in number = 5, or a list"),
        ("[axes]\nbearer.bler = { from = 0, to = 1, step = 0 }\n", "as in number = 5, or a list"),
        ('[axes]\nfixed.delay = { from = "0 ms", to = "1 ms", number = 9_000_000_000 }\n', "at most 1,000,000"),
        ('[axes]\nfixed.delay = { from = "0 ms", to = "1 ms", steps = 3 }\n', "has steps; write the number of values"),
        (
            '[axes]\nfixed.delay = { from = "0 ms", to = "1 ms", nummer = 3 }\n',
            "'number' is missing; there is 'nummer'",
        ),
        ("[axes]\nbearer.bler = [0.1]\n[[case]]\nbearer.bler = 0.2\n", "set by two axes"),
        ("[axes]\nbearer.bler = [0.1]\n[[case]]\n[[case]]\nbearer.bler = 0.2\n", "set by two axes"),
        ("[[together]]\n", r"plan\.toml:3: together\.0: it has no axes"),
        ("[[together]]\nbearer.bler = [0.1]\nfixed.loss = [0, 0.1]\n", "equally many values"),
        ("[axes]\nseed = [1, 2]\n", "cannot be an axis"),
        ("sample = { cases = 3 }\n", "needs \\[axes\\]"),
        ("repeat = 0\n", "at least one repetition"),
        ('repeat = { figure = "duration", within = 0.1 }\n', "did you mean 'duration_s'"),
        ('repeat = { figure = "duration_s", within = 3 }\n', "a share of the mean"),
        ("axis = 3\n", "unknown key 'axis'; did you mean 'axes'"),
        ("link = { command = [] }\n", "command must be a list"),
        ("[set]\nbearer.bler = [0.1]\n", r"plan\.toml:\d: set\.bearer: 'bler' has a value that is no number"),
    ],
)
def test_a_wrong_plan_is_an_error_with_its_place(plan, text, message):
    with pytest.raises(airpath.PlanError, match=message):
        plan(text)


def test_a_missing_scenario_and_another_format(plan):
    with pytest.raises(airpath.PlanError, match=r"plan\.toml:2: no scenario file.*; check the path"):
        plan("", 'format = 1\nscenario = "other.toml"\n')
    with pytest.raises(airpath.PlanError, match=r"no scenario file.*; did you mean '.*small\.toml'"):
        plan("", 'format = 1\nscenario = "smal.toml"\n')
    with pytest.raises(airpath.PlanError, match=r"no scenario file.*; did you mean 'umts'"):
        plan("", 'format = 1\nscenario = "umst"\n')
    with pytest.raises(airpath.PlanError, match="this version reads 1"):
        plan("", 'format = 2\nscenario = "small.toml"\n')
