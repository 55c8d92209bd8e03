"""The same downloads under both clocks: simulated TCP and the kernel's, a study and links."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import bbr
import kernel
import markdown_table
import moq
import pytest
import quic
import quinn
import steps
from clocks import best_attempt, difference, medians, run_seeds

from airpath import realtime, study
from airpath.quantities import parse_size
from airpath.run import execute
from airpath.study import runner, simulation
from support import ROOT, Command
from support.needs import missing, require


@pytest.fixture(scope="module")
def links() -> None:
    """Skip where no link can be made."""
    require("network-namespace")


# --- linux-6 and the kernel -----------------------------------------------------------------------

SHORT = ("384k-150ms-small-buffer", "1M-100ms-loss-1-no-sack", "2M-40ms-small-buffer", "10M-60ms-loss-0.1")


@pytest.mark.slow
def test_the_profile_linux_6_takes_as_long_as_the_kernel(links: None) -> None:
    """One link for each of four cases; all of them: `python benches/two_clocks`."""
    cases = [replace(case, seeds=1) for case in kernel.load_cases(SHORT)]
    compared = kernel.compare(cases, links=len(cases))
    late = [each.case.name for each in compared if not each.valid]
    if late:
        missing("idle-host", f"packets were late in the links of {', '.join(late)}")
    for each in compared:
        assert abs(difference(each)) < kernel.MOST, f"{each.case.name}: {medians(each)}"


@pytest.mark.slow
def test_bbr_takes_as_long_as_that_of_the_kernel(links: None) -> None:
    """One link; all cases: `python benches/two_clocks --only bbr`."""
    (row,) = bbr.compare(bbr.downloads(["2M-40ms-large-buffer"], seeds=1), links=1)
    if not row.valid:
        missing("idle-host", "packets were late in the link")
    assert abs(difference(row)) < 0.08, row
    simulated, real = medians(row, "delay_p95_s")
    # CUBIC fills the queue of 1,000 packets: seconds.
    assert simulated < 0.2
    assert real < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("congestion", ["reno", "bbr"])
def test_the_delivery_rate_of_the_kernel_is_that_of_the_link(links: None, congestion: str) -> None:
    """`tcpi_delivery_rate`; `crates/tcp/tests/bbr.rs` asserts the same of the simulator's."""
    case = replace(kernel.load_cases(["10M-300ms-small-buffer"])[0], round_trip=0.04, queue=200, seeds=1)
    measured = realtime.measure(case.scenario, bytes=3_000_000, set=case.link(1), congestion=congestion)
    if not measured.valid:
        missing("idle-host", "packets were late in the link")
    # The kernel's last sample. On a busy host the application reads late, and samples are lower.
    assert measured.transfers[0].delivery_rate_bps == pytest.approx(case.rate * 1448 / 1500, rel=0.15)


def test_pacing_gains_are_read_from_the_event_log(tmp_path: Path) -> None:
    case = bbr.downloads(["2M-40ms-large-buffer"], seeds=1)[0]
    summary = execute(case.scenario, set={**case.overrides(1), **case.tcp}, seed=1, out=tmp_path, log=True)
    shares = dict(zip(bbr.GAINS, bbr.gains_of(tmp_path), strict=True))
    assert sum(shares.values()) == pytest.approx(1)
    # A cycle has one phase of 1.25, at most one of 0.75, and six of 1.
    assert 0.6 < shares["1"] < 0.95
    assert 0.02 < shares["1.25"] < 0.25
    mean, high = bbr.delays_of(tmp_path)
    assert 0 < mean < high < summary["flows"][0]["duration_s"]


def test_probes_of_the_round_trip_are_read_from_the_event_log(tmp_path: Path) -> None:
    (case,) = bbr.downloads(["2M-40ms-probe-rtt"], seeds=1)
    summary = execute(case.scenario, set={**case.overrides(1), **case.tcp}, seed=1, out=tmp_path, log=True)
    assert 20 < summary["flows"][0]["duration_s"] < 30
    # One each ten seconds. With four segments in flight it takes 200 ms and a tick of 4 ms, and
    # ends with the next acknowledgement, at most a round trip later.
    probes = bbr.probes_of(tmp_path)
    assert len(probes) == 2
    for whole, held in probes:
        assert 0.2 < held <= 0.204 + 0.042
        assert held < whole < held + 0.1


def test_a_table_of_probes_lists_the_cases_that_have_them() -> None:
    run = bbr.Run(25.0, 0, 0.01, 0.02, (0.0, 0.0, 0.1, 0.1, 0.8), probes=((0.3, 0.204), (0.25, 0.201)))
    without = replace(run, probes=())
    rows = [
        bbr.Row("long", 6_000_000, simulated=(run,), real=(run, without), valid=True),
        bbr.Row("short", 1_000, simulated=(without,), real=(without,), valid=True),
    ]
    _, _, *lines = bbr.probe_table(rows)
    lengths = "275 (250 to 300) | 275 (250 to 300) | 202 (201 to 204) | 202 (201 to 204)"
    assert lines == [f"| long | 6,000,000 | 2 | 2.0 | 1.0 | {lengths} |"]


def test_a_policer_is_one_of_the_cases_of_bbr() -> None:
    (case,) = bbr.downloads(["10M-100ms-policed"], seeds=1)
    assert case.title == "10 Mbit/s, 100 ms, queue of 100, policer of 2 Mbit/s and 100 kB"
    assert case.overrides(1)["bearer.downlink.policer.rate"] == "2000000 bit/s"
    assert len({(each.title, each.bytes) for each in bbr.downloads([], seeds=1)}) == len(bbr.downloads([], seeds=1))


def test_cases_are_many_and_different() -> None:
    cases = kernel.load_cases()
    assert len(cases) >= 12
    assert len({case.name for case in cases}) == len(cases)
    assert {case.congestion for case in cases} == {"reno", "cubic"}
    assert {case.sack for case in cases} == {case.timestamps for case in cases} == {True, False}
    assert (min(case.rate for case in cases), max(case.rate for case in cases)) == (64e3, 50e6)
    assert (min(case.round_trip for case in cases), max(case.round_trip for case in cases)) == (0.02, 0.6)
    assert (min(case.loss for case in cases), max(case.loss for case in cases)) == (0, 0.03)
    assert any(case.outage == 3 for case in cases)
    with pytest.raises(SystemExit, match="no case nothing; there is 64k-600ms"):
        kernel.load_cases(["nothing"])


@pytest.mark.parametrize(
    ("choose", "first"),
    [
        (quic.load_cases, quic.load_cases()[0].name),
        (lambda names: bbr.downloads(names, seeds=1), "64k-600ms"),
        (lambda names: quinn.compare(names, links=1), "gprs-4\\+1"),
        (lambda names: moq.compare(names, links=1), "gprs-4\\+1"),
    ],
)
def test_an_unknown_case_is_refused(choose: Callable[[list[str]], object], first: str) -> None:
    with pytest.raises(SystemExit, match=f"no case nothing; there is {first}, "):
        choose(["nothing"])


def test_fast_cases_run_alone_after_the_others_and_the_longest_first() -> None:
    reports: list[str] = []
    runs = run_seeds(
        ["short", "fast", "longest"],
        lambda case, seed: f"{case[0]}{seed}",
        links=1,
        seeds=lambda case: 1 if case == "fast" else 2,
        report=reports.append,
        is_fast=lambda case: case == "fast",
        duration=len,
    )
    assert runs == [("s1", "s2"), ("f1",), ("l1", "l2")]
    order = ["longest, seed 1: l1", "longest, seed 2: l2", "short, seed 1: s1", "short, seed 2: s2", "fast, seed 1: f1"]
    assert reports == order


@pytest.mark.parametrize(("lateness", "best", "left"), [([1, 0, 5], 0, 1), ([3, 2, 4, 0], 2, 1), ([0, 1], 0, 1)])
def test_an_invalid_run_is_repeated_and_the_best_counts(lateness: list[int], best: int, left: int) -> None:
    attempts = iter(lateness)
    assert best_attempt(lambda: next(attempts), lambda late: (late > 0, late, 0), most=3) == best
    assert len(list(attempts)) == left


def test_cases_of_bbr_are_chosen_by_their_names() -> None:
    chosen = bbr.downloads(["10M-100ms-policed", "gprs-4+1"], seeds=1)
    assert [case.name for case in chosen] == ["10M-100ms-policed", "gprs-4+1"]


def test_a_table_lists_what_was_compared() -> None:
    case = replace(kernel.load_cases(["384k-150ms-outage-plain"])[0], seeds=3)

    def runs(*durations: float) -> tuple[kernel.Transfer, ...]:
        return tuple(kernel.Transfer(duration, retransmitted) for retransmitted, duration in enumerate(durations))

    compared = [
        kernel.Compared(case, simulated=runs(9, 11, 12), real=runs(10, 10.5, 9), late_s=0.001, valid=True),
        kernel.Compared(replace(case, outage=0), simulated=runs(13), real=runs(10), late_s=0.1, valid=False),
    ]
    lines = kernel.table(compared)
    assert "384 kbit/s, 150 ms, queue of 50, outage of 3 s" in lines[2]
    assert (
        "| Reno without SACK and timestamps | 3 | 11.00 | 10.00 | +10.0 % | 10.0 % | 9.00 to 12.00 | 9.00 to 10.50 | "
        "1.0 | 1.0 |" in lines[2]
    )
    assert "+30.0 %, invalid" in lines[3]
    words = kernel.verdict(compared)
    assert "the median difference is 20.0 %, the largest 30.0 %" in words
    assert "Beyond 25 %: 384 kbit/s, 150 ms, queue of 50." in words


def test_a_table_of_the_page_is_replaced_between_its_marks(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("a\n<!-- t: begin -->\nold\n<!-- t: end -->\nb\n")
    markdown_table.replace_table(document, "t", ["new", "lines", ""])
    assert document.read_text() == "a\n<!-- t: begin -->\nnew\nlines\n<!-- t: end -->\nb\n"
    with pytest.raises(ValueError, match="the markers of the table 'u' are missing"):
        markdown_table.replace_table(document, "u", [])


def test_the_page_has_a_place_for_each_table(tmp_path: Path) -> None:
    copy = tmp_path / "two-clocks.md"
    copy.write_text((ROOT / "docs" / "two-clocks.md").read_text())
    for name in ("kernel", "bbr", "probe-rtt", "study", "steps"):
        markdown_table.replace_table(copy, name, [f"table {name}"])
        assert f"table {name}" in copy.read_text()


def test_steps_lead_from_the_tcp_of_a_study_to_that_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_RUNS", 2)
    lines = steps.table("hsdpa-sim", ("utilisation-20kB",))
    assert lines[0] == "| simulated utilisation, HS-DSCH 384, 10 % | utilisation-20kB |"
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        f"| {words}" for words, _ in (*steps.STEPS, ("all else as `linux-6` has it", None))
    ]


# --- a study --------------------------------------------------------------------------------------


def test_a_study_under_the_real_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without links: the measurements that the study requests, and the use of their figures."""
    requests: list[dict[str, Any]] = []

    def measure(scenario: Path, **options: Any) -> realtime.Measured:
        requests.append(options)
        transfer = realtime.Transfer(
            bytes=options["bytes"],
            connect_s=0.1,
            first_byte_s=0.2,
            duration_s=0.9,
            acknowledged_s=1.0,
            data_packets=14,
            retransmitted_packets=0,
        )
        return realtime.Measured((transfer,) * options["count"], late_s=0.001, overruns=0, valid=len(requests) != 1)

    monkeypatch.setattr(realtime, "measure", measure)
    monkeypatch.setattr(realtime, "obstacle", lambda: None)
    progress: list[tuple[int, int]] = []
    result = study.run(
        "hsdpa-sim",
        only="utilisation-20kB",
        clock="real",
        repeat=3,
        links=1,
        progress=lambda *now: progress.append(now),
    )
    assert len(requests) == 9 + 1, "the first was too late, and was repeated"
    assert {(each["bytes"], each["request"], each["count"]) for each in requests} == {(20_000, 40, 3)}
    assert requests[0]["sysctl"]["net.ipv4.tcp_congestion_control"] == "reno"
    assert progress[-1] == (9 * (200 + 200 + 3),) * 2
    row = result.to_dict()["rows"][0]
    # (20 kB and 14 headers) per second on a channel of 384 kbit/s with 1 % retransmissions.
    assert row["emulated"]["ours"] == pytest.approx(100 * 8 * (20_000 + 14 * 40) / 0.99 / 384_000)
    assert (row["emulated"]["n"], row["emulated"]["valid"]) == (3, True)
    assert row["ours"] < row["emulated"]["control"], "the kernel begins with a larger window"
    markdown = result.render_markdown()
    assert "--clock real" in markdown
    lines = steps.study_tables(result)
    assert lines[0].startswith("**utilisation-20kB.** ")
    assert len([line for line in lines if line.startswith("| DCH")]) == 3 * 3, "loss rates and figures"
    assert "| published | simulated | with linux-6 | real | 95 % interval | n | linux-6 to real |" in markdown


def test_the_heading_of_the_control_is_the_profile_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    transfer = realtime.Transfer(20_000, 0.1, 0.2, 0.9, 1.0, 14, 0)
    in_time = realtime.Measured((transfer, transfer), late_s=0.001, overruns=0, valid=True)
    monkeypatch.setattr(realtime, "measure", lambda *_, **__: in_time)
    monkeypatch.setattr(realtime, "obstacle", lambda: None)
    result = study.run("hsdpa-sim", only="utilisation-20kB", clock="real", repeat=2)
    for overrides, control, compared in (
        ({"tcp.profile": "linux-2.6"}, "with linux-2.6", "linux-2.6"),
        ({"tcp.timestamps": False}, "control", "control"),
    ):
        emulation = replace(result.study.emulation, control_overrides=overrides)
        markdown = replace(result, study=replace(result.study, emulation=emulation)).render_markdown()
        assert f"| published | simulated | {control} | real | 95 % interval | n | {compared} to real |" in markdown


def test_links_that_stay_invalid_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    transfer = realtime.Transfer(20_000, 0.1, 0.2, 0.9, 1.0, 14, 0)
    late = realtime.Measured((transfer, transfer), late_s=0.05, overruns=3, valid=False)
    monkeypatch.setattr(realtime, "measure", lambda *_, **__: late)
    monkeypatch.setattr(realtime, "obstacle", lambda: None)
    text = study.run("hsdpa-sim", only="utilisation-20kB", clock="real", repeat=2).render_markdown()
    assert "Invalid: in 27 rows the host was too busy for the link: 1 % of the packets left up to 50.0 ms late" in text
    assert "the kernel dropped up to 3 packets before the link" in text


@pytest.mark.parametrize("calls_before", [9 + 1, 9 + 9 + 1, 2 * (9 + 9) - 1])
def test_ctrl_c_in_a_simulation_ends_a_study_under_the_real_clock(
    monkeypatch: pytest.MonkeyPatch, calls_before: int
) -> None:
    calls: list[Any] = []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        calls.append(named["set"])
        if len(calls) == calls_before:
            raise KeyboardInterrupt
        return execute(*arguments, **{**named, "repeat": 2})

    def two_repetitions(experiment: Any, *, seed: int, repeat: int | None) -> Any:
        assert repeat is None
        return simulation.plan_of(experiment, seed=seed, repeat=2)

    monkeypatch.setattr(simulation, "execute", interrupted)
    monkeypatch.setattr(runner, "plan_of", two_repetitions)
    monkeypatch.setattr(runner, "run_cases", lambda *_, **__: pytest.fail("it went on"))
    with pytest.raises(KeyboardInterrupt):
        study.run("hsdpa-sim", only=["utilisation-20kB", "utilisation-50kB"], clock="real")
    assert len(calls) == calls_before


def test_what_cannot_be_run_under_the_real_clock_is_reported(
    airpath_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = airpath_command("study", "run", "hsdpa-sim", "--clock", "real", "--only", "rtt")
    assert done.code == 2
    assert "experiment of hsdpa-sim for the real clock 'rtt'; there is utilisation-100kB" in done.err
    done = airpath_command("study", "run", "hsdpa-sim", "--clock", "real", "--report", "r.html")
    assert done.code == 2
    assert "--report draws only simulated figures" in done.err
    done = airpath_command("study", "run", "hsdpa-sim", "--links", "2")
    assert (done.code, "--links is for emulated links" in done.err) == (2, True)
    monkeypatch.setattr(realtime, "obstacle", lambda: "no namespaces")
    with pytest.raises(study.StudyError, match="needs emulated links, and this host cannot make one: no namespaces"):
        study.run("hsdpa-sim", only="utilisation-20kB", clock="real", repeat=2)


@pytest.mark.slow
def test_a_study_over_real_links(links: None, airpath_command: Command) -> None:
    arguments = ("study", "run", "hsdpa-sim", "--clock", "real", "--only", "utilisation-20kB", "--repeat", "3")
    done = airpath_command(*arguments, "--links", "9", "--format", "json", timeout=300)
    assert done.code == 0, done.err
    assert len(done.json["rows"]) == 9 * 3, "figures of each case"
    rows = [row["emulated"] for row in done.json["rows"] if row["metric"] == "utilisation"]
    assert len(rows) == 9
    if not all(row["valid"] for row in rows):
        missing("idle-host", "packets were late in a link of the study")
    assert all(abs(row["control"] / row["ours"] - 1) < kernel.MOST for row in rows), rows


# --- pieces ---------------------------------------------------------------------------------------


def test_sizes_are_read() -> None:
    assert [parse_size(text) for text in ("0 B", "20 kB", "1.5 MB", "64 KiB")] == [0, 20_000, 1_500_000, 65_536]
    with pytest.raises(ValueError, match="'20' is no size"):
        parse_size("20")


def test_a_transfer_that_cannot_be_is_an_error(links: None) -> None:
    with pytest.raises(realtime.RealtimeError, match="no_such_parameter"):
        realtime.measure(ROOT / "examples" / "hs-dsch.toml", bytes=1, sysctl={"net.ipv4.no_such_parameter": 1})


def test_the_demo_goes_on_where_no_link_can_be_made(tmp_path: Path) -> None:
    script = ROOT / "examples" / "curl.sh"
    done = subprocess.run(["sh", script, tmp_path / "out", "false"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no real download" in done.stderr
