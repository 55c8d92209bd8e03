"""`airpath run`: its formats, its result folder, and randomness from the seed alone."""

import csv
import io
import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import airpath
from support import ROOT, Command

WriteScenario = Callable[..., Path]


def test_text_names_the_end_of_the_clock_and_the_tcp_profile(airpath_command: Command, scenario: WriteScenario) -> None:
    done = airpath_command("run", scenario())
    assert done.code == 0
    assert "download" in done.out
    assert "until the last byte reaches the receiving application" in " ".join(done.out.split())
    assert "TCP linux-6" in done.out
    assert done.err == ""
    assert "\x1b" not in done.out


def test_each_profile_lists_its_options(airpath_command: Command, scenario: WriteScenario) -> None:
    path = scenario()
    details = []
    for profile in ("ns2-newreno", "windows-nt4", "windows-xp", "linux-2.0", "linux-2.4", "linux-6"):
        summary = airpath_command("run", path, "--set", f"tcp.profile={profile}", "--format", "json").json
        tcp = summary["flows"][0]["tcp"]
        assert tcp.pop("profile") == profile
        details.append(tcp)
    assert all(details.count(tcp) == 1 for tcp in details), "two profiles are the same but in name"


def test_repetitions_are_one_row_with_mean_and_deviation(airpath_command: Command, scenario: WriteScenario) -> None:
    done = airpath_command("run", scenario(), "--repeat", "4")
    assert "4 repetitions (mean ± standard deviation)" in " ".join(done.out.split())
    assert sum(line.startswith("download") for line in done.out.splitlines()) == 1


def test_a_proxy_by_name_and_by_file(airpath_command: Command, scenario: WriteScenario) -> None:
    def proxy(*options: str) -> dict[str, Any]:
        shutil.rmtree(airpath_command.folder / "kept", ignore_errors=True)
        summary = airpath_command("run", scenario(), *options, "--out", "kept").code
        assert summary == 0
        return tomllib.loads((airpath_command.folder / "kept" / "scenario.toml").read_text())["proxy"]

    assert proxy("--proxy")["budget"] == "adaptive"
    assert proxy("--proxy", "--seed", "2") == proxy("--proxy", "adaptive") == proxy("--proxy=adaptive")
    assert proxy("--proxy", "gprs-clamp")["profile"] == "linux-2.4"
    assert proxy("--proxy", "gprs-clamp", "--set", "proxy.budget=12 kB")["budget"] == "12 kB"
    assert proxy("--proxy", "fq-codel")["queue"]["bytes"] == "1.5 MB"
    router = airpath_command.folder / "router.toml"
    router.write_text('format = 1\nmobiles = ["10.0.0.0/8"]\n[proxy]\nscheduler = "fifo"\n')
    assert proxy("--proxy", "router.toml")["scheduler"] == "fifo"


def test_round_trips_on_both_sides_of_a_proxy(airpath_command: Command, scenario: WriteScenario) -> None:
    def columns(*options: str) -> dict[str, str]:
        lines = airpath_command("run", scenario(), *options, COLUMNS="200").out.splitlines()
        head, row = lines[1], next(line for line in lines if line.startswith("download"))
        return dict(zip(re.split(r"\s{2,}", head.strip()), re.split(r"\s{2,}", row.strip()), strict=True))

    assert "mean RTT" in columns()
    split = columns("--proxy", "--set", "fixed.delay=10 ms")
    to_server, to_mobile = split["RTT to server"], split["RTT to mobile"]
    assert float(to_server.split()[0]) < 60
    assert to_server.endswith("ms")
    assert to_mobile != to_server


def test_json_is_the_summary(airpath_command: Command, scenario: WriteScenario) -> None:
    done = airpath_command("run", scenario(), "--format", "json", "--out", "kept")
    summary = done.json
    assert summary == json.loads((airpath_command.folder / "kept" / "summary.json").read_text())
    assert (summary["schema"], summary["scenario"], summary["seed"], summary["complete"]) == (2, "small", 3, True)
    assert summary["flows"][0]["outcome"] == "finished"
    assert summary["flows"][0]["delivered_bytes"] == 200_000


def test_jsonl_streams_typed_lines(airpath_command: Command, scenario: WriteScenario) -> None:
    done = airpath_command("run", scenario(), "--format", "jsonl", "--repeat", "2")
    lines = [json.loads(line) for line in done.out.splitlines()]
    kinds = [line["type"] for line in lines]
    assert kinds[0] == "start"
    assert kinds[-1] == "end"
    assert {"flow", "link", "radio", "repetition"} <= set(kinds)
    assert lines[0] == {"type": "start", "scenario": "small", "seed": 3, "repeat": 2}
    assert kinds.count("repetition") == 2


def test_csv_is_the_flows(airpath_command: Command, scenario: WriteScenario) -> None:
    done = airpath_command("run", scenario(), "--format", "csv", "--repeat", "3")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["repetition"] for row in rows] == ["0", "1", "2"]
    assert {row["delivered_bytes"] for row in rows} == {"200000"}
    assert rows[0]["tcp_profile"] == "linux-6"


def test_a_seed_gives_one_result_whatever_the_threads(airpath_command: Command, scenario: WriteScenario) -> None:
    path = scenario()
    command = ["run", path, "--format", "json", "--repeat", "6"]
    first = airpath_command(*command, "--threads", "1").out
    assert airpath_command(*command, "--threads", "1").out == first
    assert airpath_command(*command, "--threads", "2").out == first
    assert airpath_command(*command, "--out", "logged", "--capture").out == first
    assert airpath_command(*command, "--seed", "4").out != first


def test_a_result_can_be_run_again_from_its_scenario(airpath_command: Command, scenario: WriteScenario) -> None:
    settings = ["--set", "fixed.delay=35 ms", "--set", "flow.bytes=50 kB", "--seed", "9"]
    first = airpath_command("run", scenario(), *settings, "--format", "json", "--out", "first")
    again = airpath_command("run", "first/scenario.toml", "--format", "json")
    assert first.json["flows"][0]["bytes"] == 50_000
    assert again.out == first.out


def test_out_keeps_and_replaces_a_result(airpath_command: Command, scenario: WriteScenario) -> None:
    path, kept = scenario(), airpath_command.folder / "kept"
    assert airpath_command("run", path, "--out", "kept", "--repeat", "3", "--capture").code == 0
    assert sorted(entry.name for entry in kept.iterdir()) == ["captures", "events", "scenario.toml", "summary.json"]
    assert len(list((kept / "captures").iterdir())) == 6
    assert airpath_command("run", path, "--out", "kept", "--repeat", "3").code == 2
    done = airpath_command("run", path, "--out", "kept", "--repeat", "4", "--capture")
    assert done.code == 0
    assert "the result is in kept" in done.err
    assert len(list((kept / "captures").iterdir())) == 8


def test_out_never_touches_what_no_run_wrote(airpath_command: Command, scenario: WriteScenario) -> None:
    path, precious = scenario(), airpath_command.folder / "thesis"
    precious.mkdir()
    (precious / "chapter.tex").write_text("words")
    done = airpath_command("run", path, "--out", "thesis")
    assert (done.code, done.out) == (2, "")
    assert "thesis is not empty and holds no airpath result" in done.err
    assert airpath_command("run", path, "--out", "mixed").code == 0
    (airpath_command.folder / "mixed" / "notes.txt").write_text("words")
    done = airpath_command("run", path, "--out", "mixed")
    assert done.code == 2
    assert "mixed holds 'notes.txt', which no run wrote" in done.err
    assert (airpath_command.folder / "mixed" / "summary.json").exists()


def test_a_bad_scenario_costs_no_earlier_result(airpath_command: Command, scenario: WriteScenario) -> None:
    assert airpath_command("run", scenario(), "--out", "kept").code == 0
    before = (airpath_command.folder / "kept" / "summary.json").read_text()
    assert airpath_command("run", scenario(("rate", "rte")), "--out", "kept").code == 2
    assert (airpath_command.folder / "kept" / "summary.json").read_text() == before


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_runs(airpath_command: Command, example: Path) -> None:
    done = airpath_command("run", example, "--format", "json")
    assert done.code == 0, done.err
    assert done.json["complete"]
    assert all(flow["outcome"] != "aborted" for flow in done.json["flows"])


def test_a_report_needs_no_folder(airpath_command: Command, scenario: WriteScenario) -> None:
    path = scenario()
    done = airpath_command("run", path, "--report", "x.html")
    assert done.err == "note: the report is in x.html\n"
    page = (airpath_command.folder / "x.html").read_text()
    assert f"airpath run {path} --report x.html" in page
    assert "/tmp/airpath-" not in page


def test_a_report_that_cannot_be_written_runs_nothing(airpath_command: Command, scenario: WriteScenario) -> None:
    done = airpath_command("run", scenario(), "--report", "no/x.html", "--out", "one")
    assert done.code == 3
    assert "no/x.html cannot be written" in done.err
    assert not (airpath_command.folder / "one").exists()


def test_tables_of_transports_that_no_flow_uses_are_noted(airpath_command: Command, scenario: WriteScenario) -> None:
    path = scenario()
    path.write_text(path.read_text() + '\n[tcp]\nprofile = "linux-2.4"\n[quic]\ncongestion = "cubic"\n')
    for transport, unused in (("tcp", "QUIC"), ("quic-quinn", "TCP")):
        done = airpath_command("run", path, "--set", f"flow.transport={transport}")
        assert done.code == 0
        assert done.err == f"note: no flow uses {unused}: [{unused.lower()}] of the scenario has no effect\n"


def test_what_comes_after_the_end_is_noted(airpath_command: Command) -> None:
    def notes(*sets: str, repeat: int = 1) -> list[str]:
        words = [word for each in sets for word in ("--set", each)]
        done = airpath_command("run", "wired", "--repeat", str(repeat), *words)
        assert done.code == 0
        return [line for line in done.err.splitlines() if "no effect" in line or "more" in line]

    changes = (
        "change=[{ at = '1 ms', delay = '1 ms' }, { at = '20 s', outage = '1 s' }, { at = '9 s', outage = '1 s' }]"
    )
    with_flow = notes(changes)
    assert len(with_flow) == 2
    assert with_flow[0].startswith("note: change.1 at 20 s has no effect: the run ended with its last flow, ")
    assert with_flow[1].startswith("note: change.2 at 9 s has no effect: ")

    pings = "flow=[{ kind = 'ping', count = 100, interval = '1 s', phase = '0 s' }]"
    assert notes(pings, changes, "duration=10 s") == [
        "note: change.1 at 20 s has no effect: the run ended at its `duration`, 10 s"
    ]
    late = "flow=[{ kind = 'ping', name = 'late', count = 2, start = '7 s', stagger = '2 s' }]"
    three = "mobile=[{ name = 'a', count = 2 }, { name = 'b' }]"
    why = "the run ended at its `duration`, 8 s"
    assert notes(late, three, "duration=8 s") == [f"note: flow.0 (`late`) from 9 s on has no effect: {why}"]
    assert notes(late, three, "duration=8 s", "flow.mobile=b") == [f"note: flow.0 (`late`) at 9 s has no effect: {why}"]
    assert notes(late, three, "duration=18 s") == []

    freeze = "flow=[{ kind = 'download', bytes = '100 kB', freeze = [{ from = '5 s', until = '6 s' }] }]"
    assert notes(freeze)[0].startswith("note: flow.0.freeze.0 at 5 s has no effect: the run ended with its last flow, ")
    several = "change=[" + ", ".join(f"{{ at = '{at} s', outage = '1 s' }}" for at in range(30, 36)) + "]"
    assert notes(several)[3:] == ["note: 3 more changes or flows come after the end"]


def test_a_class_of_a_bearer_without_classes_is_refused(airpath_command: Command) -> None:
    wrong = airpath_command("run", "lte", "--set", "mobile.class=a")
    assert wrong.code == 2
    assert "the bearer has no classes" in wrong.err and "mobile.0.class" in wrong.err
    assert "hs-dsch-classes-abc" in wrong.err
    assert airpath_command("run", "hs-dsch-classes-abc", "--set", "mobile.class=a").err == ""


def test_a_stagger_of_a_single_flow_is_noted(airpath_command: Command) -> None:
    line = ("run", "wired", "--set", "flow.stagger=1 s")
    assert airpath_command(*line).err == "note: flow.0.stagger has no effect: the table has one flow\n"
    assert airpath_command(*line, "--set", "flow.count=2").err == ""


def test_a_second_bearer_and_a_proxy_without_flows_are_noted(airpath_command: Command) -> None:
    second = ("run", "wired", "--set", "second_bearer=wired")
    assert "note: no flow uses the second bearer: [second_bearer] has no effect" in airpath_command(*second).err
    for key in ("flow.bearer=second", "steering.mode=active-standby"):
        assert airpath_command(*second, "--set", key).err == ""
    proxy = ("run", "wired", "--proxy")
    assert airpath_command(*proxy).err == ""
    quic = (*proxy, "--set", "flow.transport=quic-quinn")
    assert "note: no flow uses TCP: [proxy] has no effect" in airpath_command(*quic).err
    assert airpath_command(*quic, "--set", "proxy.queue={ rate = '50 Mbit/s' }").err == ""


def test_a_change_after_the_end_of_some_repetitions_is_noted(airpath_command: Command) -> None:
    change = "change=[{ at = '5 s', outage = '1 s' }]"
    flow = "flow=[{ kind = 'download', bytes = '200 kB' }]"
    sets = [word for each in ("fixed.loss=0.05", flow, change) for word in ("--set", each)]
    done = airpath_command("run", "umts-dch-384", "--repeat", "8", "--format", "json", *sets)
    ends = [row["simulated_s"] for row in json.loads(done.out)["repetitions"]]
    before = [end for end in ends if end <= 5]
    assert 0 < len(before) < 8
    some = f"in {len(before)} of 8 repetitions: the last of them ended with its last flow, {max(before):.4g} s"
    assert done.err.splitlines()[0] == f"note: change.0 at 5 s has no effect {some}"


def test_what_comes_after_the_end_in_a_sweep_is_noted_once(airpath_command: Command, tmp_path: Path) -> None:
    def notes(*line: str) -> list[str]:
        done = airpath_command(*line)
        assert done.code == 0, done.err
        return [line for line in done.err.splitlines() if "no effect" in line]

    change = "change=[{ at = '5 s', outage = '1 s' }]"
    line = ("run", "umts-dch-384", "--set", change, "--repeat", "2")
    short = "note: change.0 at 5 s has no effect in 2 of 4 runs: the last of them ended with its last flow, "
    [found] = notes(*line, "--vary", "flow.bytes=50 kB,1 MB")
    assert found.startswith(short)
    all_of_them = "note: change.0 at 5 s has no effect: the last run ended with its last flow, "
    [found] = notes(*line, "--vary", "flow.bytes=50 kB,60 kB")
    assert found.startswith(all_of_them)
    [found] = notes(*line, "--vary", "change.0.at=1 s,5 s,50 s")
    assert found.startswith("note: change.0 from 5 s on has no effect in 4 of 6 runs: the last of them ended ")
    assert notes(*line, "--vary", "change.0.at=1 ms,2 ms") == []
    plan = tmp_path / "plan.toml"
    plan.write_text('format = 1\nscenario = "s.toml"\nrepeat = 2\n[axes]\nflow.bytes = ["50 kB", "1 MB"]\n')
    changed = airpath.resolve("umts-dch-384", set={"change": [{"at": "5 s", "outage": "1 s"}]})
    (tmp_path / "s.toml").write_text(changed)
    [found] = notes("sweep", str(plan), "--out", str(tmp_path / "rows"))
    assert found.startswith(short)


def test_what_has_no_effect_in_a_sweep_is_noted(airpath_command: Command, scenario: WriteScenario) -> None:
    path = scenario()
    path.write_text(path.read_text() + '\n[second_bearer]\npreset = "wired"\n[quic]\ncongestion = "cubic"\n')

    def notes(*words: str) -> list[str]:
        done = airpath_command("run", path, "--set", "flow.stagger=1 s", *words)
        assert done.code == 0, done.err
        return [line.split(":")[1].strip() for line in done.err.splitlines()]

    second, quic, single = "no flow uses the second bearer", "no flow uses QUIC", "flow.0.stagger has no effect"
    assert notes("--vary", "fixed.loss=0,0.01") == [quic, single, second]
    assert notes("--vary", "flow.count=1,2") == [quic, second], "what has an effect in one case is not noted"
    assert notes("--vary", "flow.transport=tcp,quic-quinn", "--vary", "flow.bearer=first,second") == [single]
    prague = ("--set", "tcp.ecn=true", "--set", "tcp.accurate_ecn=true", "--vary", "tcp.congestion=cubic,prague")
    assert notes(*prague)[3:] == ["case 1"]
    assert notes(*prague, "--set", "fixed.queue.discipline=dualpi2")[3:] == []


def test_flows_of_a_sweep_that_did_not_finish_are_noted(airpath_command: Command, tmp_path: Path) -> None:
    line = ("run", "wired", "--set", "duration=1 s", "--repeat", "2", "--vary")
    sizes = ",".join(("1 kB", *(f"{number} GB" for number in range(1, 8))))
    done = airpath_command(*line, f"flow.bytes={sizes}", "--format", "csv")
    lack = "means are without the values they lack"
    assert done.err == f"note: 14 of 16 flows unfinished in cases 1, 2, 3, 4, 5 and 2 more; {lack}\n"
    some = airpath_command(*line, "flow.bytes=1 kB,1 GB", "--out", tmp_path / "rows")
    assert some.err.splitlines()[-1] == f"note: 2 of 4 flows unfinished in case 1; {lack}"
    assert airpath_command("report", tmp_path / "rows", "-o", "rows.html").code == 0
    assert f"2 of 4 flows unfinished in case 1; {lack}." in (airpath_command.folder / "rows.html").read_text()
    again = airpath_command("sweep", tmp_path / "rows")
    assert again.err == f"note: 2 of 4 flows unfinished in case 1; {lack}\n"
    aborted = airpath_command("run", "gprs", "--set", "fixed.loss=1", "--vary", "flow.bytes=1 kB,2 kB")
    assert aborted.err.startswith("note: 2 of 2 flows aborted in all cases: "), aborted.err


def test_prague_without_a_queue_that_marks_is_noted(airpath_command: Command, scenario: WriteScenario) -> None:
    keys = ("tcp.ecn=true", "tcp.accurate_ecn=true", "tcp.congestion=prague")
    line = ["run", "wired", *(word for key in keys for word in ("--set", key))]
    without = airpath_command(*line)
    assert (without.code, "no queue of the path marks packets, so prague" in without.err) == (0, True)
    for queue in ("bearer.downlink.queue.discipline=dualpi2", "bearer.downlink.queue.discipline=cake"):
        assert airpath_command(*line, "--set", queue).err == ""
    drops = ("bearer.downlink.queue.discipline=codel", "proxy={ queue = { rate = '50 Mbit/s', ecn = false } }")
    for queue in drops:
        assert "so prague responds to losses only" in airpath_command(*line, "--set", queue).err


def test_quiet_prints_the_result_only(airpath_command: Command, scenario: WriteScenario) -> None:
    path = scenario()
    loud = airpath_command("run", path, "--out", "one")
    quiet = airpath_command("run", path, "--out", "one", "--quiet")
    assert "the result is in one" in loud.err
    assert (quiet.out, quiet.err) == (loud.out, "")
    assert "no such option" in airpath_command("run", path, "--quiet", "--nonsense").err


def test_a_report_that_fails_does_not_lose_the_figures(airpath_command: Command, scenario: WriteScenario) -> None:
    done = airpath_command("run", scenario(), "--report", "/dev/full", "--format", "csv")
    assert done.code == 3
    assert done.out.startswith("repetition,flow,")
    assert "/dev/full cannot be written" in done.err


def test_a_report_is_written_into_a_new_result_folder(airpath_command: Command, scenario: WriteScenario) -> None:
    """The next run replaces it, and the library beside it."""
    path = scenario()
    assert airpath_command("run", path, "--out", "one", "--report", "one/report.html").code == 0
    assert airpath_command("report", "one", "--shared-library").code == 0
    assert list((airpath_command.folder / "one").glob("plotly-*.min.js"))
    assert airpath_command("run", path, "--out", "one").code == 0
    assert not list((airpath_command.folder / "one").glob("*.js"))


@pytest.mark.parametrize("name", ["summary.json", "events/x.html"])
def test_a_report_replaces_no_file_of_a_result(airpath_command: Command, scenario: WriteScenario, name: str) -> None:
    path = scenario()
    done = airpath_command("run", path, "--out", "one", "--report", f"one/{name}")
    assert (done.code, (airpath_command.folder / "one").exists()) == (2, False)
    assert airpath_command("run", path, "--out", "one").code == 0
    done = airpath_command("report", "one", "-o", f"one/{name}")
    assert done.code == 2
    assert f"one/{name} is a file of a result" in done.err


def test_a_preset_is_found_beside_a_folder_of_its_name(airpath_command: Command) -> None:
    (airpath_command.folder / "wired").mkdir()
    assert airpath_command("run", "wired").code == 0
    assert "did you mean 'wired'?" in airpath_command("run", "wird").err
