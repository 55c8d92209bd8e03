"""What commands replace at the place of a new result, and what they do not."""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import airpath
from airpath.result_folder import NewResult, prepare_result_folder
from support import Command
from support.link import LinkCommand, python


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


@pytest.fixture
def responder(airpath_command: Command) -> Iterator[str]:
    """A responder of measurements; yields its address."""
    line = airpath_command.line("measure", "serve", "--listen", "127.0.0.1:0")
    with subprocess.Popen(line, cwd=airpath_command.folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield process.stderr.readline().split()[-1]
        process.terminate()


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
    summary = {"repetitions": [{}], "flows": [], "emulation": {"configuration": "proxy.toml"}}
    (out / "summary.json").write_text(json.dumps(summary))
    (out / "scenario.toml").write_text("mtu = 1500\n")
    for new, fault in (
        (NewResult("proxy", {"mtu": 1400}), "the result of another configuration"),
        (NewResult("link", {"mtu": 1500}), "a result of `airpath proxy`"),
    ):
        with pytest.raises(FileExistsError, match=fault):
            prepare_result_folder(out, new)
    prepare_result_folder(out, NewResult("proxy", {"mtu": 1500}))
    assert list(out.iterdir()) == []


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
