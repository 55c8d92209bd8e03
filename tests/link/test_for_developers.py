"""Links to the host's own servers, the live page, repetitions, and the budget of the lateness."""

import http.server
import json
import re
import shlex
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from airpath.cli.application import app
from airpath.cli.link import late_text
from airpath.cli.link_repeat import command_line, times_text
from airpath.cli.messages import set_quiet
from airpath.sidecar.live import Handler as LiveHandler
from airpath.sidecar.live import Samples, page
from airpath.sidecar.live import Server as LiveServer
from support import Command
from support.link import LinkCommand, descendants_of, python, summary, until, words_of

FETCH = "import sys, urllib.request; print(len(urllib.request.urlopen(sys.argv[1]).read()))"
BODY = b"x" * 20_000


CONNECT = """
import socket, sys
try:
    socket.create_connection(("server", int(sys.argv[1]))).recv(1)
except ConnectionResetError:
    print("reset")
"""


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every request with the same body."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Log nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server at this host's loopback address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


def test_a_server_of_the_host_is_reached(link: LinkCommand, port: int) -> None:
    url = f"http://server:{port}/"
    done = link(*python(FETCH, url), serve=None, options=f"--host-port {port} --out kept --set fixed.delay=30ms")
    assert done.out == "20000\n"
    result = summary(link.folder / "kept")
    assert result["emulation"]["host_ports"] == [port]
    flow = next(each for each in result["flows"] if each["remote"].endswith(f":{port}") and each["direction"] == "down")
    assert flow["delivered_bytes"] > len(BODY)
    assert flow["rtt_min_s"] > 0.06, "the data crosses the link"


def test_a_port_at_which_nothing_listens_is_named(link: LinkCommand) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        free = closed.server_port
    done = link(*python(CONNECT, free), serve=None, options=f"--host-port {free}")
    assert done.out == "reset\n"
    assert f"nothing listens at port {free}" in done.err


def test_the_live_page_shows_the_link_while_it_runs(link: LinkCommand) -> None:
    with link.started("cat", link="gprs", options="--open --no-status", popen={"stdin": -1}) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line
        url = found[0]

        def samples() -> list[dict[str, object]]:
            with urllib.request.urlopen(f"{url}samples?since=0") as answer:
                return json.load(answer)

        until(lambda: len(samples()) > 1, "there are samples", 30)
        assert samples()[0]["budget_s"] == 0.01
        with urllib.request.urlopen(url) as answer:
            assert "cat over gprs" in answer.read().decode()
        other = urllib.request.Request(url, headers={"Host": "site.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(other)
        process.communicate(timeout=30)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url)


def test_repetitions_have_their_seeds_folders_and_times(link: LinkCommand) -> None:
    done = link("sleep", "0.2", options="--repeat 2 --seed 7 -okept")
    results = [summary(link.folder / "kept" / str(number)) for number in range(2)]
    assert [result["seed"] for result in results] == [7, 8]
    times = [result["emulation"]["command_s"] for result in results]
    assert min(times) >= 0.2
    assert times_text(times, 2) in done.err


def test_the_time_of_a_command_that_fails_does_not_count(link: LinkCommand) -> None:
    # It fails in the first and the third run, with other codes.
    script = "echo >> runs; n=$(wc -l < runs); case $n in 1) exit 3;; 3) exit 4;; esac; sleep 0.2"
    done = link("sh", "-c", script, options="--repeat 4 --out kept", code=3)
    times = [summary(link.folder / "kept" / number)["emulation"]["command_s"] for number in ("1", "3")]
    assert times_text(times, 4) in done.err
    assert "in 2 of 4 runs" in done.err
    failures = "repetition 0 (exit code 3), 2 (exit code 4)"
    assert f"the command failed in 2 of 4 runs, whose times do not count: {failures}" in done.err
    done = link("false", options="--repeat 2", code=1)
    assert "the command failed in 2 of 2 runs" in done.err
    assert "time of the command" not in done.err


def test_the_link_of_a_repetition_ends_with_the_repetitions(link: LinkCommand, tmp_path: Path) -> None:
    script = "trap '' TERM; ls -l /proc/self/fd; echo ready; sleep 300"
    (tmp_path / "temporary").mkdir()
    under = ["env", f"TMPDIR={tmp_path / 'temporary'}"]
    with link.started("sh", "-c", script, options="--repeat 2", under=under) as process:
        descriptors = words_of(process.stdout, "ready")
        assert "memfd" not in descriptors
        assert list((tmp_path / "temporary").iterdir()) == []
        everyone = descendants_of(process.pid)
        assert len(everyone) >= 3  # the link, the programs' parent and the command
        process.kill()
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in everyone), "all its processes are gone")


def test_repetitions_replace_an_earlier_result(link: LinkCommand) -> None:
    link("true", options="-o kept")
    assert "the earlier result in kept was replaced" in link("true", options="--repeat 3 -o kept").err
    done = link("true", options="--repeat 2 -o kept", code=125)
    assert "kept has 3 repetitions, and this run has 2: nothing was run" in done.err
    assert "kept/2 was replaced" in link("true", options="--repeat 3 -o kept").err
    assert sorted(each.name for each in (link.folder / "kept").iterdir()) == ["0", "1", "2"]
    drawn = Command(link.folder)("report", "kept")
    assert (drawn.code, drawn.out) == (0, "kept/report.html\n")
    assert (link.folder / "kept" / "report.html").is_file()


def test_a_command_for_localhost_is_explained(link: LinkCommand) -> None:
    command = ("sh", "-c", "exit 7", "http://localhost:3000/")
    done = link(*command, serve=None, options="--host-port 3000", code=7)
    assert "note: localhost:3000 is the mobile itself" in done.err
    assert "--host-port 3000, as server:3000" in done.err


def test_times_are_printed_without_notes_of_temporary_folders(link: LinkCommand) -> None:
    assert "is in" not in link("true", options="--repeat 2").err
    assert "time of the command in 2 runs" in link("true", options="--repeat 2 -q").err


def test_a_command_that_does_not_exist_ends_the_repetitions(link: LinkCommand) -> None:
    done = link("nosuch-command", options="--repeat 3", code=127)
    assert done.err.count("nosuch-command: No such file") == 1
    assert "time of the command" not in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--repeat 2 --capture", "--capture needs a result folder"),
        ("--host-port 80 --host-port 80", "--host-port 80: given twice"),
        ("--budget 0ms", "--budget 0ms: every packet is later"),
        ("--budget 0.0s --repeat 2", "--budget 0.0s: every packet is later"),
    ],
)
def test_wrong_options_start_no_link(link: LinkCommand, options: str, words: str) -> None:
    assert words in link("true", options=options, code=125).err


def test_the_live_page_of_any_title() -> None:
    text = page("printf {ink} \udcff <b>").decode()
    assert "printf {ink} \\udcff &lt;b&gt;: airpath" in text
    assert "MOST = 20000" in text


def test_a_bad_request_for_the_live_page_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    handler = type("LiveHandler", (LiveHandler,), {"samples": Samples(0), "page": b"page"})
    with LiveServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()

        def status(request: str) -> int:
            with socket.create_connection(("127.0.0.1", server.server_port)) as client:
                client.sendall(f"{request}\r\n\r\n".encode())
                return int(client.makefile().readline().split()[1])

        assert status("GET / HTTP/1.0\r\nHost: localhost") == 200
        assert status("GET / HTTP/1.0\r\nHost: [") == 403
        assert status("GET //[ HTTP/1.0\r\nHost: localhost") in (400, 404)
        assert status(f"GET /samples?since={'9' * 5000} HTTP/1.0\r\nHost: localhost") == 400
        server.shutdown()
    assert capfd.readouterr().err == ""


def test_the_times_of_a_command_as_text() -> None:
    assert times_text([2.0, 1.0, 3.0], 3) == (
        "time of the command in 3 runs: median 2 s, from 1 s to 3 s; mean 2 s, 95 % interval 0 ms to 4.484 s"
    )
    assert times_text([2.0], 5) == "time of the command: 2 s in 1 of 5 runs"


def test_a_repetition_has_the_command_line_without_its_options() -> None:
    command: Any = typer.main.get_command(app)
    line = "gprs --repeat 5 -okept --seed=1 --mtu 600 --set a=1 --set=b=2 --proxy --no-precise -q -- x --out y"
    parsed = command.get_command(None, "link").make_context("link", line.split())
    options = ["--set=a=1", "--set=b=2", "--proxy=adaptive", "--no-precise", "--mtu=600", "--quiet"]
    assert command_line(parsed) == [*options, "gprs", "--", "x", "--out", "y"]
    set_quiet(False)


def test_a_late_run_states_what_it_changes() -> None:
    lateness = {"p50_s": 0.0001, "p99_s": 0.012, "budget_s": 0.01}
    assert "may miss its transmission interval (TTI) and wait 20 ms more" in late_text(lateness, 0.02)
    assert "round trips" in late_text(lateness, None)


@pytest.mark.parametrize("options", ["", " --quiet"])
def test_an_invalid_run_is_reported_also_with_quiet(link: LinkCommand, options: str) -> None:
    serve = shlex.join(python("sink.py"))
    done = link(*python("send.py", "server", 30_000), serve=serve, options=f"--budget 1ns{options}")
    assert done.err.startswith("note: this run is invalid: the host was too busy")


@pytest.mark.parametrize(("preset", "budget"), [("gprs", 0.01), ("hsdpa", 0.002), ("wired", 0.002)])
def test_the_budget_is_that_of_the_bearer(link: LinkCommand, preset: str, budget: float) -> None:
    link("true", link=preset, options="--out kept")
    assert summary(link.folder / "kept")["emulation"]["lateness"]["budget_s"] == budget
