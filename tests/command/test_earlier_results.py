"""What commands replace at the place of a new result, and what they do not."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import airpath
from airpath.cli.messages import problem_of
from airpath.result_folder import NewResult, new_result, refusal, written_to
from airpath.run import execute
from support import Command, plain_environment
from support.link import LinkCommand, python
from support.needs import needs


@pytest.fixture
def folder(airpath_command: Command, scenario: Callable[..., Path]) -> Path:
    """The folder of the command, with the results `run` and `replay`."""
    path = scenario()
    assert airpath_command("run", "small.toml", "--out", "run").code == 0
    assert airpath_command("replay", "run", "--out", "replay").code == 0
    return path.parent


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files of a folder."""
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def refused(command: Command, line: str, fault: str, code: int = 2) -> None:
    """Check that a command replaces nothing of its last argument."""
    out = command.folder / shlex.split(line)[-1]
    before = files_of(out)
    done = command(*shlex.split(line))
    assert done.code == code, done.err
    assert f"{out.name} {fault}" in done.err
    assert "\n  next: " in done.err
    assert str(out.name) in done.err.splitlines()[0]
    assert files_of(out) == before


def test_a_replay_replaces_the_same_replay(airpath_command: Command, folder: Path) -> None:
    done = airpath_command("replay", "run", "--out", "replay")
    assert (done.code, "the earlier result in replay was replaced" in done.err) == (0, True)
    refused(airpath_command, "replay run --set fixed.delay='80 ms' --out replay", "has the result of another scenario")
    refused(airpath_command, "replay run --no-log --out replay", "has event tables, and this run has none")
    assert airpath_command("run", "small.toml", "--out", "other").code == 0
    refused(airpath_command, "replay run --out other", "has a result of `airpath run`")
    refused(airpath_command, "run small.toml --out replay", "has a result of `airpath replay`")


def test_a_run_has_flows_and_a_replay_has_none(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    """The flows of a summary show whether a run or a replay wrote it."""
    flow = '[[flow]]\nkind = "download"\nbytes = "200 kB"\n'
    scenario((flow, ""), name="none.toml")
    assert "there is nothing to run" in airpath_command("run", "none.toml", "--out", "none").err
    scenario((flow, flow + 'start = "10 s"\n'), ("seed = 3", 'seed = 3\nduration = "1 s"'), name="late.toml")
    assert airpath_command("run", "late.toml", "--out", "late").code == 0
    assert airpath_command("run", "late.toml", "--set", "flow.0.start=0.1s", "--out", "early").code == 0
    refused(airpath_command, "replay early --out late", "has a result of `airpath run`")
    assert airpath_command("replay", "early", "--out", "replayed").code == 0
    assert airpath.load(airpath_command.folder / "replayed").flows.is_empty()
    refused(airpath_command, "run late.toml --out replayed", "has a result of `airpath replay`")


def test_texts_of_the_user_are_not_split(airpath_command: Command, tmp_path: Path) -> None:
    """A next step begins where the message ends, not at the first semicolon of a name."""
    odd = tmp_path / "a; b"
    odd.mkdir()
    (odd / "own; file").touch()
    for line, message, next_step in (
        ("run lte --out {}", "{} is not empty and holds no airpath result", "name a new or an empty folder"),
        ("report {}", "{}: no result, as it has no summary.json", "name a folder that `airpath run --out` wrote"),
        ("compare {0} {0}", "{}: holds no result", "name a folder that `airpath run --out` wrote"),
        ("sweep {} --out rows", "{} is a folder without a sweep", "name the file of the plan, or"),
        ("plot {} --what queue -o 'x; y'", "{}: no result", "name a folder"),
    ):
        done = airpath_command(*shlex.split(line.format(shlex.quote(str(odd)))))
        first, second = done.err.splitlines()[:2]
        assert first.startswith(f"error: {message.format(odd)}")
        assert second.startswith(f"  next: {next_step}")
    command = ["sh", "-c", "sleep 1; echo a; echo b"]
    error = refusal(odd, f"the result of another command (`{shlex.join(command)}`)")
    problem = problem_of(error)
    assert problem.message.endswith("echo a; echo b'`): nothing was run")
    assert problem.next_step == f"name another folder, or remove this one first: `rm -r {shlex.quote(str(odd))}`"
    assert str(error) == f"{problem.message}; {problem.next_step}"


def test_folders_that_are_no_result_are_refused(airpath_command: Command, folder: Path) -> None:
    for name, file, fault in (
        ("swept", "sweep.json", "is the folder of a sweep"),
        ("mine", "thesis.tex", "is not empty and holds no airpath result"),
        ("run", "notes.txt", "holds 'notes.txt', which no run wrote"),
    ):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / file).write_text("{}")
        refused(airpath_command, f"run small.toml --out {name}", fault)
        refused(airpath_command, f"measure ping 127.0.0.1:1 --out {name}", fault)
        if name != "run":
            refused(airpath_command, f"replay run --out {name}", fault)


@contextmanager
def responding(command: Command) -> Iterator[str]:
    """Run a responder of measurements during the block; yield its address."""
    line = command.line("measure", "serve", "--listen", "127.0.0.1:0")
    with subprocess.Popen(line, cwd=command.folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield process.stderr.readline().split()[-1]
        process.terminate()


@pytest.fixture
def responder(airpath_command: Command) -> Iterator[str]:
    """The address of a responder of measurements."""
    with responding(airpath_command) as address:
        yield address


def test_a_measurement_replaces_the_same_measurement(airpath_command: Command, folder: Path, responder: str) -> None:
    line = f"measure ping {responder} --count 1 --out measured"
    assert airpath_command(*line.split()).code == 0
    done = airpath_command(*line.split())
    assert (done.code, "the earlier result in measured was replaced" in done.err) == (0, True)
    refused(airpath_command, line.replace("--count 1", "--count 2"), "has the result of another measurement")
    before = files_of(folder / "measured")
    assert "`2` has no unit" in airpath_command(*line.replace("--count 1", "--interval 2").split()).err
    assert files_of(folder / "measured") == before
    refused(airpath_command, line.replace("measured", "run"), "has a result of `airpath run`")
    refused(airpath_command, "run small.toml --out measured", "has a result of `airpath measure`")


def test_a_measurement_without_responder_costs_no_result(airpath_command: Command) -> None:
    with responding(airpath_command) as address:
        line = f"measure ping {address} --count 1 --out measured"
        assert airpath_command(*line.split()).code == 0
    before = files_of(airpath_command.folder / "measured")
    done = airpath_command(*line.split())
    assert (done.code, "replaced" in done.err) == (1, False), done.err
    assert files_of(airpath_command.folder / "measured") == before


def test_a_link_replaces_the_same_link(link: LinkCommand) -> None:
    command = Command(link.folder)
    server = shlex.join(python("listen.py"))

    def line(command: str = "true", options: str = "", name: str = "wired", serve: str = server) -> str:
        return f"link {name} --serve {shlex.quote(serve)} {options} --out kept -- {command}"

    assert command(*shlex.split(line())).code == 0
    assert "the earlier result in kept was replaced" in command(*shlex.split(line(options="--capture"))).err
    before = files_of(link.folder / "kept")
    for wrong, fault in (
        (line(), "captures, and this run has none"),
        (line("echo a", "--capture"), "the result of another command (`true`)"),
        (line(options="--capture --seed 7"), "a result with seed 1"),
        (line(options="--capture --mtu 1400"), "the result of a link with another size of packets (--mtu)"),
        (line(options="--capture", serve=f"exec {server}"), "the result of a link with another server (--serve)"),
        (line(options="--capture", name="gprs"), "the result of another scenario"),
    ):
        done = command(*shlex.split(wrong))
        assert (done.code, f"kept has {fault}: nothing was run" in done.err) == (125, True), done.err
        assert files_of(link.folder / "kept") == before
    with pytest.raises(subprocess.CalledProcessError):
        airpath.link("gprs", ["true"], serve=server, out=link.folder / "kept", capture_output=True)


def test_a_live_proxy_replaces_one_with_the_same_configuration(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    summary = {"complete": True, "repetitions": [{}], "flows": [], "emulation": {"configuration": "proxy.toml"}}
    (out / "summary.json").write_text(json.dumps(summary))
    (out / "scenario.toml").write_text("mtu = 1500\n")
    for new, fault in (
        (NewResult("proxy", {"mtu": 1400}), "the result of another configuration"),
        (NewResult("link", {"mtu": 1500}), "a result of `airpath proxy`"),
    ):
        with pytest.raises(FileExistsError, match=fault), new_result(out, new):
            pass
    with new_result(out, NewResult("proxy", {"mtu": 1500})) as folder:
        written = write_result(folder, "new")
    assert files_of(out) == written


NEW = NewResult("run", {"seed": 1})
OTHER = NewResult("run", {"seed": 1, "name": "other"})


def write_result(folder: Path, name: str, *, complete: bool = True, repetitions: int = 1) -> dict[str, bytes]:
    """Write a result of `NEW` with an event table `name`; return its files."""
    summary = {"complete": complete, "repetitions": [{}] * repetitions, "flows": [{}]}
    (folder / "events").mkdir(parents=True)
    (folder / "events" / name).touch()
    (folder / "scenario.toml").write_text("seed = 1\n")
    (folder / "summary.json").write_text(json.dumps(summary))
    return files_of(folder)


@pytest.fixture
def earlier(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """A folder with a complete result and a report, and its files."""
    out = tmp_path / "out"
    files = write_result(out, "earlier")
    (out / "report.html").touch()
    return out, files | {"report.html": b""}


class Killed(BaseException):
    """The process ends at this point."""


@pytest.mark.parametrize("error", [None, Killed])
@pytest.mark.parametrize(
    ("new", "replaces"),
    [
        pytest.param(None, False, id="nothing"),
        pytest.param({"complete": False, "repetitions": 0}, False, id="no-repetition"),
        pytest.param({"complete": False}, False, id="incomplete"),
        pytest.param({}, True, id="complete"),
    ],
)
def test_an_earlier_result_stays_until_there_is_a_new_one(
    earlier: tuple[Path, dict[str, bytes]], new: dict[str, Any] | None, replaces: bool, error: type[Killed] | None
) -> None:
    out, files = earlier
    written: dict[str, bytes] = {}
    with suppress(Killed), new_result(out, NEW) as folder:
        written |= {} if new is None else write_result(folder, "new", **new)
        assert {name: files_of(out)[name] for name in files} == files
        if error is not None:
            raise error
    if replaces:
        assert files_of(out) == written
        return
    assert {name: files_of(out).get(name) for name in files} == files
    # An incomplete result with a repetition stays, too, until the next one.
    is_kept = bool(new) and "repetitions" not in (new or {})
    assert (files_of(written_to(out)) == written) is is_kept
    with new_result(out, NEW) as folder:
        assert not folder.exists()
    assert files_of(out) == files


def killed_after(steps: int, change: Callable[..., Any], done: Iterator[int]) -> Callable[..., Any]:
    """Return `change`, after which the process is killed if `done` has counted to `steps`."""

    def step(*arguments: Any, **options: Any) -> Any:
        if next(done) >= steps:
            raise Killed
        return change(*arguments, **options)

    return step


@pytest.mark.parametrize("steps", range(10))
def test_a_replacement_may_be_killed_at_any_moment(
    earlier: tuple[Path, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Either result is there, at the latest when the next command has begun."""
    out, files = earlier
    changes, done = ((Path, "unlink"), (Path, "rename"), (Path, "rmdir"), (shutil, "rmtree")), count()
    new: dict[str, bytes] = {}
    with monkeypatch.context() as patch, pytest.raises(Killed), new_result(out, NEW) as folder:
        new |= write_result(folder, "new")
        for place, name in changes:
            patch.setattr(place, name, killed_after(steps, getattr(place, name), done))
    assert next(done) == steps + 1
    # One that is refused completes the replacement, and begins nothing.
    with pytest.raises(FileExistsError, match="another scenario"), new_result(out, OTHER):
        pass
    assert files_of(written_to(out)) == new
    if steps == 0:
        assert {name: files_of(out)[name] for name in files} == files


def test_a_run_that_repeats_a_result_in_its_place_reads_each_summary_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def loads(text: bytes) -> Any:
        read.append(text)
        return json.loads(text)

    monkeypatch.setattr("airpath.summary_outline.json", SimpleNamespace(loads=loads))
    before = (folder / "run" / "summary.json").read_bytes()
    # Another process has run it: nothing of it is known.
    execute(folder / "run", out=folder / "run", log=True)
    assert read == [before, (folder / "run" / "summary.json").read_bytes()]


def test_two_commands_do_not_write_to_one_folder(earlier: tuple[Path, dict[str, bytes]]) -> None:
    out, files = earlier
    with new_result(out, NEW) as folder:
        written = write_result(folder, "new")
        with (
            pytest.raises(FileExistsError, match=r"another command writes a result to .*out; wait"),
            new_result(out, NEW),
        ):
            pass
        assert files_of(folder) == written
    assert files_of(out) == written != files


def test_two_commands_do_not_write_to_one_new_folder(tmp_path: Path) -> None:
    out = tmp_path / "some" / "out"
    with new_result(out, NEW) as folder:
        with pytest.raises(FileExistsError, match="another command writes a result to"), new_result(out, NEW):
            pass
        written = write_result(folder, "new")
    assert files_of(out) == written


@pytest.mark.parametrize("error", [None, Killed])
def test_a_new_folder_that_stays_empty_is_removed(tmp_path: Path, error: type[Killed] | None) -> None:
    (tmp_path / "mine").mkdir()
    for name, stays in (("new", False), ("mine", True)):
        with suppress(Killed), new_result(tmp_path / name, NEW):
            if error is not None:
                raise error
        assert (tmp_path / name).exists() is stays


def test_two_runs_at_once_do_not_mix_in_a_new_folder(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    scenario(('bytes = "200 kB"', 'bytes = "20 MB"'))
    lines = [airpath_command.line("run", "small.toml", "--out", "new", "--seed", seed) for seed in "12"]
    with started(lines[0], airpath_command.folder) as one, started(lines[1], airpath_command.folder) as two:
        errors = {process.communicate(timeout=100)[1] for process in (one, two)}
        assert sorted((one.returncode, two.returncode)) == [0, 2]
    assert any("another command writes a result to new" in error or "a result with seed" in error for error in errors)
    assert airpath.load(airpath_command.folder / "new").complete


def test_the_folder_may_be_the_current_one_or_a_link_to_one(airpath_command: Command, folder: Path) -> None:
    (folder / "link").symlink_to("run")
    inside = Command(folder / "run")
    for command, scenario, out in ((inside, "../small.toml", "."), (airpath_command, "small.toml", "link")):
        done = command("run", scenario, "--out", out)
        assert (done.code, f"the earlier result in {out} was replaced" in done.err) == (0, True), done.err
    assert (folder / "link").is_symlink()
    assert airpath_command("report", "run").code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_does_not_replace_a_complete_one(
    airpath_command: Command, scenario: Callable[..., Path], number: signal.Signals
) -> None:
    scenario(('bytes = "200 kB"', 'bytes = "500 MB"'), name="long.toml")
    words = ("run", "long.toml", "--no-log", "--out", "kept")
    assert airpath_command(*words).code == 0
    out = airpath_command.folder / "kept"
    before = files_of(out)
    with started(airpath_command.line(*words), airpath_command.folder) as process:
        wait_for(out / ".new" / "summary.json")
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert {name: files_of(out)[name] for name in before} == before
    assert not airpath.load(out / ".new").complete
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "the partial result is in kept/.new" in err
        assert "it is in kept/.new until the next one, and the earlier one in kept stays" in err


def started(line: list[str], folder: Path) -> "subprocess.Popen[str]":
    """Start a command line; its output is not shown."""
    pipe = subprocess.PIPE
    return subprocess.Popen(line, cwd=folder, env=plain_environment(), stdout=pipe, stderr=pipe, text=True)


def wait_for(path: Path) -> None:
    """Wait until a file is there; fail after half a minute."""
    until = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_link_that_is_ended_during_its_set_up_costs_no_result(link: LinkCommand, number: signal.Signals) -> None:
    command = Command(link.folder)
    # With the file `late` the server listens only after a minute.
    server = f"touch begun; test -e late && sleep 60; exec {shlex.join(python('listen.py'))}"
    line = shlex.split(f"link wired --serve {shlex.quote(server)} --out kept -- true")
    assert command(*line).code == 0
    out = link.folder / "kept"
    before = files_of(out)
    (link.folder / "late").touch()
    (link.folder / "begun").unlink()
    with started(command.line(*line), link.folder) as process:
        wait_for(link.folder / "begun")
        process.send_signal(number)
        process.communicate(timeout=30)
        assert process.returncode
    assert {name: files_of(out)[name] for name in before} == before
    (link.folder / "late").unlink()
    assert "the earlier result in kept was replaced" in command(*line).err
    assert not (out / ".new").exists()


def test_a_link_that_runs_no_command_costs_no_result(link: LinkCommand) -> None:
    command = Command(link.folder)
    script = link.folder / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    server = f"test -e broken && exit 3; exec {shlex.join(python('listen.py'))}"
    line = shlex.split(f"link wired --serve {shlex.quote(server)} --out kept -- ./script")
    assert command(*line).code == 0
    before = files_of(link.folder / "kept")
    script.chmod(0o644)
    done = command(*line)
    assert (done.code, "Permission denied" in done.err, "result" in done.err) == (126, True, False), done.err
    assert files_of(link.folder / "kept") == before
    (link.folder / "broken").touch()
    done = command(*line)
    assert (done.code, "the server ended with exit code 3 before it listened" in done.err) == (125, True), done.err
    assert files_of(link.folder / "kept") == before
    done = command(*line[:-2], "--repeat", "2", *line[-2:])
    assert done.code == 125, done.err
    assert {name: files_of(link.folder / "kept")[name] for name in before} == before


@pytest.fixture
def loaded(link: LinkCommand, need: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A page load, which wrote `kept` in the folder of the command, and its command line.

    Its server listens at the port of the file `port`, and its browser is the file `bin/chromium`.
    """
    browser = link.folder / "bin" / "chromium"
    browser.parent.mkdir()
    browser.symlink_to(need("chromium"))
    monkeypatch.setenv("PATH", f"{browser.parent}:{os.environ['PATH']}")
    (link.folder / "port").write_text("8000")
    (link.folder / "index.html").write_text("<link rel=icon href=data:,><p>text")
    serve = f"exec {shlex.quote(sys.executable)} -m http.server $(cat port)"
    line = ["page", "load", "http://server:8000/index.html", "--serve", serve, "--link", "wired", "--out", "kept"]
    done = Command(link.folder)(*line)
    assert done.code == 0, done.err
    return line


def set_browser(folder: Path, script: str) -> None:
    """Let the browser of `loaded` be a shell script."""
    browser = folder / "bin" / "chromium"
    browser.unlink()
    browser.write_text(f"#!/bin/sh\n{script}\n")
    browser.chmod(0o755)


@needs("tun")
def test_a_load_without_a_view_costs_no_result(link: LinkCommand, loaded: list[str]) -> None:
    before = files_of(link.folder / "kept")
    assert {"page.json", "page.har", "summary.json"} < before.keys()
    command = Command(link.folder)

    def fails(reason: str) -> None:
        done = command(*loaded)
        assert (done.code, reason in done.err, "result" in done.err) == (1, True, False), done.err
        assert files_of(link.folder / "kept") == before

    (link.folder / "port").write_text("8001")
    fails("no server listens at server:8000")
    (link.folder / "port").write_text("8000")
    (link.folder / "index.html").rename(link.folder / "other.html")
    fails("the server answered with status 404")
    (link.folder / "other.html").rename(link.folder / "index.html")
    done = command(*loaded)
    assert (done.code, "the earlier result in kept was replaced" in done.err) == (0, True), done.err
    assert "the result is in kept;" in done.err
    assert not (link.folder / "kept" / ".new").exists()
    before = files_of(link.folder / "kept")
    set_browser(link.folder, "echo no display >&2; exit 3")
    fails("no display")
    other = shlex.join([*loaded[:-2], "--set", "fixed.delay=1ms", *loaded[-2:]])
    refused(command, other, "has the result of another scenario")


@needs("tun")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_load_that_is_ended_before_its_first_view_costs_no_result(
    link: LinkCommand, loaded: list[str], number: signal.Signals
) -> None:
    out = link.folder / "kept"
    before = files_of(out)
    set_browser(link.folder, "touch begun; exec sleep 60")
    with started(Command(link.folder).line(*loaded), link.folder) as process:
        wait_for(link.folder / "begun")
        process.send_signal(number)
        process.communicate(timeout=30)
        assert process.returncode
    assert {name: files_of(out)[name] for name in before} == before
    assert (out / ".new").exists() is (number == signal.SIGKILL)


@pytest.mark.parametrize(
    "line",
    [
        "report run -o",
        "trace run -o",
        "trace compare run run -o",
        "run small.toml --report",
        "study run gsm-csd --report",
    ],
)
def test_a_report_replaces_reports_only(airpath_command: Command, folder: Path, line: str) -> None:
    (folder / "mine.html").write_text("<!doctype html><title>My page</title>")
    done = airpath_command(*line.split(), "mine.html")
    assert (done.code, "mine.html exists and is no report of airpath" in done.err) == (2, True), done.err
    assert "next: name another file" in done.err
    assert (folder / "mine.html").read_text() == "<!doctype html><title>My page</title>"


def test_a_report_replaces_a_report(airpath_command: Command, folder: Path) -> None:
    (folder / "empty.html").touch()
    for name in ("empty.html", "empty.html", "report.html", "report.html"):
        assert airpath_command("report", "run", "-o", name).code == 0
