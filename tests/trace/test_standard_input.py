"""`airpath trace -`: a terminal is refused, and Ctrl-C ends the input without its writer."""

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

import airpath
from support import DOWNLOAD, Command

_DEADLINE_S = 100


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return airpath.run(DOWNLOAD, out=tmp_path_factory.mktemp("input") / "run", capture=True).captures()[0]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_a_terminal_is_refused(command: Command) -> None:
    terminal, standard_input = pty.openpty()
    try:
        line = command.line("trace", "-")
        done = subprocess.run(
            line, stdin=standard_input, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
    finally:
        os.close(terminal)
        os.close(standard_input)
    assert done.returncode == 2
    assert "standard input is a terminal" in done.stderr
    assert "next: pipe a capture" in done.stderr


@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_an_interrupt_ends_a_pipe_that_stays_open(form: str, capture: Path, command: Command) -> None:
    line = command.line("trace", "-", "--format", form)
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stderr
        pipe = Path(f"/proc/self/fd/{process.stdin.fileno()}").readlink()
        process.stdin.write(capture.read_bytes())
        process.stdin.flush()
        until = time.monotonic() + _DEADLINE_S
        # Signalled when it reads from its own pipe: before, it ends with a KeyboardInterrupt.
        while Path(f"/proc/{process.pid}/fd/0").readlink() == pipe:
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.stdout.read().decode(), process.stderr.read().decode()
        assert process.wait(timeout=_DEADLINE_S) == 130
        process.stdin.close()
    assert "interrupted: the frames read until then are analysed" in err
    assert "ends within a record" not in err
    whole = airpath.trace(capture)
    if form == "text":
        assert f"{sum(file['frames'] for file in whole.reading['files'])} frames" in out
        assert "200 kB in" in out
    else:
        assert f'"segments":{whole.connections["segments"].item()}' in out.replace(" ", "")
