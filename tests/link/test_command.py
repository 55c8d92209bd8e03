"""A command on a link keeps its own input, output, exit code and signals."""

import fcntl
import os
import pty
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.link import LinkCommand, descendants_of, listener, until, words_of
from support.needs import needs

COUNTS_INTERRUPTS = """
n=0; trap 'n=$((n+1))' INT; echo ready
i=0; while [ $i -lt 10 ]; do sleep 0.05; i=$((i+1)); done
echo interrupted $n times
"""


def test_input_and_output_are_the_commands_own(link: LinkCommand) -> None:
    done = link("sh", "-c", "cat; echo to the user >&2", stdin="one\ntwo\n")
    assert done.out == "one\ntwo\n"
    assert done.err == "to the user\n"


def test_a_large_output_is_whole(link: LinkCommand) -> None:
    assert len(link("head", "-c", "5000000", "/dev/zero").out) == 5_000_000


def test_the_servers_output_does_not_mix_with_the_commands_output(link: LinkCommand) -> None:
    done = link("echo", "mine", serve=f"echo server; exec {listener()}", options="--out kept")
    assert "server" not in done.out
    assert (link.folder / "kept" / "server.log").read_text().startswith("server\n")


@pytest.mark.parametrize("code", [0, 7, 255])
def test_the_exit_code_is_the_commands(link: LinkCommand, code: int) -> None:
    done = link("sh", "-c", f"exit {code}", code=code)
    assert (done.out, done.err) == ("", "")


@needs("full-device")
def test_messages_that_cannot_be_written_do_not_change_the_exit_code(link: LinkCommand) -> None:
    # Of a link that ends with a note, of one with an error, and of repetitions with their times.
    for options, code in (("--out kept", 5), ("--capture", 125), ("--repeat 2", 5)):
        with (
            Path("/dev/full").open("w") as full,
            link.started("sh", "-c", "exit 5", options=options, popen={"stderr": full}) as process,
        ):
            assert process.wait(timeout=30) == code, options
    assert (link.folder / "kept" / "summary.json").is_file()


@pytest.mark.parametrize("name", ["SEGV", "KILL", "TERM"])
def test_death_by_a_signal_is_seen_by_the_shell(link: LinkCommand, name: str) -> None:
    assert link("sh", "-c", f"kill -{name} $$", code=None).code == -signal.Signals[f"SIG{name}"]


def test_a_crash_of_the_command_writes_no_core_file_of_airpath(link: LinkCommand) -> None:
    under = ["sh", "-c", 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', "sh"]
    with link.started("sh", "-c", "kill -SEGV $$", under=under) as process:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        # CLD_DUMPED after a core file.
        assert (ended.si_status, ended.si_code) == (signal.SIGSEGV, os.CLD_KILLED)


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "USR2", "INT", "QUIT"])
def test_a_signal_to_airpath_reaches_the_command(link: LinkCommand, name: str) -> None:
    script = f"trap 'echo got {name}; exit 3' {name}; echo ready; while :; do sleep 0.02; done"
    with link.started("sh", "-c", script) as process:
        words_of(process.stdout, "ready")
        process.send_signal(signal.Signals[f"SIG{name}"])
        out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == (f"got {name}\n", 3)


def test_a_signal_that_ends_the_command_ends_airpath(link: LinkCommand) -> None:
    with link.started("sh", "-c", "echo ready; exec sleep 100") as process:
        words_of(process.stdout, "ready")
        everyone = descendants_of(process.pid)
        assert len(everyone) >= 2  # the programs' parent and the command
        process.terminate()
        assert process.wait(timeout=20) == -signal.SIGTERM
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in everyone), "all its processes are gone")


def test_other_programs_have_a_second_to_end(link: LinkCommand) -> None:
    slow = "trap 'sleep 0.5; echo cleaned; exit' TERM; touch ready; while :; do sleep 0.02; done"
    many = "for i in $(seq 100); do sleep 300 & done"
    script = f'sh -c "$1" & {many}; while ! [ -e ready ]; do sleep 0.02; done; exit 3'
    assert link("sh", "-c", script, "sh", slow, code=3).out == "cleaned\n"


def test_what_nohup_lets_a_command_ignore_stays_ignored(link: LinkCommand) -> None:
    # SIGPIPE is not ignored: only Python ignores it at its start.
    script = "echo ready; sleep 0.3; echo alive; kill -PIPE $$; echo not reached"
    with link.started("sh", "-c", script, under=["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]) as process:
        words_of(process.stdout, "ready")
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == ("alive\n", -signal.SIGPIPE)


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_who_waits_for_a_server_can_be_interrupted(link: LinkCommand, name: str) -> None:
    with link.started("true", serve="echo begun >&2; exec sleep 100") as process:
        words_of(process.stderr, "begun")
        everyone = descendants_of(process.pid)
        process.send_signal(signal.Signals[f"SIG{name}"])
        # Less than the ten seconds that it would wait.
        assert process.wait(timeout=5) != 0
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in everyone), "all its processes are gone")


@contextmanager
def on_terminal(link: LinkCommand, *words: str, options: str = "") -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Run a command on a link in its own terminal; yield the terminal as a descriptor."""
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with link.started(
        *words,
        options=options,
        popen={
            "stdin": theirs,
            "stdout": theirs,
            "stderr": theirs,
            "start_new_session": True,
            "preexec_fn": take_terminal,
        },
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            os.close(ours)


def read_until(terminal: int, word: bytes) -> bytes:
    """Return what a terminal shows, up to `word`."""
    shown = b""
    while word not in shown:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            raise AssertionError(f"no {word!r} in {shown!r}") from None
    return shown


@needs("pseudo-terminal")
@pytest.mark.parametrize("options", ["--no-status", "--status"])
def test_ctrl_c_reaches_the_command_once(link: LinkCommand, options: str) -> None:
    with on_terminal(link, "sh", "-c", COUNTS_INTERRUPTS, options=options) as (process, terminal):
        read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        read_until(terminal, b"interrupted 1 times")
        assert process.wait(timeout=20) == 0


@needs("pseudo-terminal")
def test_ctrl_c_ends_a_command_and_its_link(link: LinkCommand) -> None:
    with on_terminal(link, "sh", "-c", "echo ready; exec sleep 100") as (process, terminal):
        read_until(terminal, b"ready")
        everyone = descendants_of(process.pid)
        os.write(terminal, b"\x03")
        assert process.wait(timeout=20) == -signal.SIGINT
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in everyone), "all its processes are gone")


@needs("pseudo-terminal")
def test_a_command_reads_from_the_terminal(link: LinkCommand) -> None:
    with on_terminal(link, "sh", "-c", "echo ready; read line; echo read $line; test -t 0") as (process, terminal):
        read_until(terminal, b"ready")
        os.write(terminal, b"words\n")
        read_until(terminal, b"read words")
        assert process.wait(timeout=20) == 0


def test_input_and_output_that_are_closed(link: LinkCommand) -> None:
    assert link("seq", "1000000", under=["sh", "-c", '"$@" <&- | head -n 1', "sh"]).out == "1\n"
    for closed in (0, 1, 2):
        link("sh", "-c", "exit 5", under=["sh", "-c", f'exec {closed}>&-; exec "$@"', "sh"], code=5)


@pytest.mark.parametrize(
    ("prepare", "cause"),
    [
        # Without a file for the names of hosts there is none to replace.
        pytest.param("mount -t tmpfs none /etc", "/etc/hosts cannot be replaced", id="no-hosts"),
        pytest.param(
            "for each in $(ls /); do [ -d /$each ] && mkdir -p root/$each && mount --rbind /$each root/$each; done; "
            'set -- chroot root "$@"',
            "as in a chroot",
            id="chroot",
        ),
    ],
)
@needs("network-namespace")
def test_a_host_whose_names_cannot_be_changed_gets_a_note(link: LinkCommand, prepare: str, cause: str) -> None:
    line = link.line("sh", "-c", 'echo "$AIRPATH_SERVER"')
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    script = f'{prepare}; exec "$@"'
    done = subprocess.run(
        ["unshare", *user, "--mount", "sh", "-c", script, "sh", *line],
        cwd=link.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "100.64.0.1\n"), done.stderr
    assert done.stderr.startswith("note: programs cannot use the names `server` and `mobile`: ")
    assert cause in done.stderr


def test_changes_after_the_end_of_the_command_are_noted(link: LinkCommand) -> None:
    scenario = link.folder / "changes.toml"
    changes = (f'[[change]]\nat = "{at}"\noutage = "10 ms"\n' for at in ("0.1 s", "60 s"))
    scenario.write_text(f'format = 1\nbearer.preset = "wired"\n{"".join(changes)}')
    [note] = link("sleep", "0.5", link=scenario).err.splitlines()
    assert note.startswith("note: change.1 at 60 s has no effect: the run ended with its command, ")
    repeated = link("sleep", "0.5", link=scenario, options="--repeat 2").err.splitlines()
    assert repeated[-1].startswith("note: change.1 at 60 s has no effect: the last run ended with its command, ")
    assert sum("no effect" in line for line in repeated) == 1


def test_what_a_link_does_not_use_of_a_scenario_is_named(link: LinkCommand) -> None:
    scenario = link.folder / "flows.toml"
    scenario.write_text(
        'format = 1\nname = "flows"\nbearer.preset = "wired"\ntcp.ecn = true\n[[flow]]\nkind = "ping"\n'
    )
    note = "note: a link does not use [[flow]] and [tcp] of the scenario: real programs make the traffic"
    assert link("true", link=scenario).err.startswith(note)
    assert link("true", link=scenario, options="--quiet").err == ""
    assert link("true", options="--set tcp.ecn=true").err.startswith("note: a link does not use [tcp] of")
    repeated = link("true", link=scenario, options="--repeat 2").err
    assert repeated.count("does not use") == 1


def test_messages_that_cannot_be_written_do_not_end_the_command(link: LinkCommand) -> None:
    with (
        Path("/dev/full").open("w") as full,
        link.started(
            "sh", "-c", "sleep 1; exit 5", serve=f"timeout 0.3 {listener()}", popen={"stderr": full}
        ) as process,
    ):
        assert process.wait(timeout=20) == 5


@pytest.mark.parametrize("pause", ["0", "0.3"])
def test_a_server_may_become_a_daemon(link: LinkCommand, pause: str) -> None:
    link("true", serve=f"(sleep {pause}; exec {listener()}) & exit 0")


def test_a_server_that_ends_before_it_listens_is_an_error(link: LinkCommand) -> None:
    for serve in ("exit 0", "sleep 5 & exit 3"):
        assert "before it listened at any port" in link("true", serve=serve, code=125).err


def test_a_socket_with_a_peer_is_no_server(link: LinkCommand) -> None:
    serves = (
        "import socket, time; u = socket.socket(type=socket.SOCK_DGRAM); u.connect(('100.64.0.2', 9)); "
        "time.sleep(0.5); t = socket.create_server(('', 8000)); time.sleep(60)"
    )
    connects = "import socket; socket.create_connection(('server', 8000), 1)"
    link(sys.executable, "-c", connects, serve=shlex.join([sys.executable, "-c", serves]))


@needs("tun")
def test_a_command_that_removes_its_interface_is_reported(link: LinkCommand) -> None:
    done = link("sh", "-c", "ip link del air0; sleep 1", options="--device tun", code=125)
    assert "has removed its interface" in done.err


@needs("mount-namespace")
def test_sysfs_has_the_interfaces_of_the_link(link: LinkCommand) -> None:
    script = "ls /sys/class/net; cat /sys/class/net/air0/mtu; ls /sys/fs/cgroup | wc -l"
    names, mtu, groups = link("sh", "-c", script).out.rsplit("\n", 3)[:3]
    assert (names.split(), mtu) == (["air0", "lo"], "1500")
    assert int(groups) == len(list(Path("/sys/fs/cgroup").iterdir()))
