"""`airpath link`: a real program on an emulated link."""

import errno
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from airpath.cli.command_for import command_for
from airpath.cli.completion import complete_scenario
from airpath.cli.link_repeat import command_line, repeat_link, report_end
from airpath.cli.messages import ExitCode, Problem, check_outputs, explained, is_quiet, note, replacing_result
from airpath.cli.options import Capture, NoLog, Out, Overrides, Quiet, Seed
from airpath.cli.proxy_option import Proxy, proxy_override
from airpath.cli.scenario_notes import note_late_on_link, note_unused_by_link
from airpath.cli.second_option import Second, second_override
from airpath.files import printable
from airpath.input_kind import is_capture, kind_of_folder
from airpath.link import new_link_result, read_link
from airpath.quantities import seconds
from airpath.scenario import next_step_without
from airpath.sidecar import sidecar

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"

_MAX_HOSTS = 60_000
_LONGEST_NAME = 253
_HOST_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")
"""Labels of at most 63 octets (RFC 1035 §2.3.4)."""
_MAX_PORT = 65_535
_PR_SET_DUMPABLE = 4  # linux/prctl.h
_RESERVED_HOSTS = frozenset({"localhost", "mobile", "mobile6", "second", "second6", "server", "server6"})


def link(
    context: typer.Context,
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="PRESET|SCENARIO.toml",
            help="The link: a preset, or a scenario.",
            autocompletion=complete_scenario,
        ),
    ],
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command, at the mobile.")],
    set: Overrides = None,
    seed: Seed = None,
    proxy: Proxy = None,
    second: Second = None,
    mptcp: Annotated[
        bool, typer.Option("--mptcp", help="Let MPTCP of the kernel use the second bearer, too; needs --second.")
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="Run this server at the other end, as host `server`; without it the outside is there (needs root).",
        ),
    ] = None,
    out: Out = None,
    capture: Capture = False,
    no_log: NoLog = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the delivered packets as recorded links PATH.down and PATH.up."),
    ] = None,
    precise: Annotated[
        bool | None,
        typer.Option(
            help="Poll the clock while packets are in flight, at the cost of a core; default with three cores or more."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The run is invalid if more than 1 % of the packets are later than this; by default half a TTI of "
            "the bearer, at least 2 ms.",
        ),
    ] = None,
    mtu: Annotated[
        int, typer.Option(min=68, max=65535, metavar="BYTES", help="The largest IP packet; below 1280 without IPv6.")
    ] = 1500,
    sysctl: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K=V", help="Set a kernel parameter of both ends, as in net.ipv4.tcp_congestion_control=reno."
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further name of the server, with an address of its own; repeatable."),
    ] = None,
    host_port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT",
            help="Reach this port of the host's own localhost at `server`; repeatable.",
        ),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Run the command N times, and print the median of its time."),
    ] = 1,
    open: Annotated[
        bool, typer.Option("--open", help="Show rate, queues, radio state and lateness on a page, while it runs.")
    ] = False,
    offload: Annotated[
        bool, typer.Option(help="Take TCP from the kernel in large segments and segment it here: faster.")
    ] = True,
    device: Annotated[
        Literal["tun", "veth"] | None, typer.Option(help="The device; by default the best one of this host.")
    ] = None,
    status: Annotated[
        bool | None, typer.Option(help="Show a status line at the bottom; default on a terminal.")
    ] = None,
    quiet: Quiet = False,
    end_fd: Annotated[int | None, typer.Option("--end-fd", hidden=True)] = None,
    no_scenario_note: Annotated[bool, typer.Option("--no-scenario-note", hidden=True)] = False,
) -> None:
    """Run a real program on an emulated link.

    The command's input, output, exit code and signals pass through. With --serve the server runs at
    the other end, as host `server`, and both ends are isolated. With --host-port a server of the
    host itself is there. Without both the outside is at the other end, which needs root.

    \b
    Examples:
      airpath link hs-dsch-384 --serve 'python3 -m http.server 8000' -- curl http://server:8000/
      airpath link umts-dch-384 -- curl -o /dev/null http://example.org/
      airpath link umts-dch-64 --out runs/one --capture --serve 'iperf3 -s' -- iperf3 -c server
      airpath link gprs-3+1 --proxy http --serve 'python3 -m http.server 8000' -- curl http://server:8000/
      airpath link 3g --host-port 3000 --open -- chromium http://server:3000/
      airpath link gprs --repeat 5 --serve 'python3 -m http.server 8000' -- curl -sfo /dev/null http://server:8000/
      airpath link lte --second wifi-n --serve 'iperf3 -s' -- iperf3 -c server --bind-dev air1
      airpath link wired -- airpath link umts-dch-64 -- ping -c 3 192.0.2.1

    \b
    Exit codes: those of the command, and
      125  bad usage, or the link could not be set up, failed, or could not write its result
      126  the command cannot be executed
      127  the command does not exist
    """
    if capture and out is None:
        raise Problem("--capture needs a result folder", next_step="add --out DIR")
    # A command in quotes is one word.
    name, quoted, _ = command[0].partition(" ")
    is_quoted = bool(quoted) and len(command) == 1 and shutil.which(command[0]) is None and shutil.which(name)
    if is_quoted or ("/" not in command[0] and shutil.which(command[0]) is None):
        raise _not_started(command[0], errno.ENOENT)
    _check_serve(serve)
    if repeat > 1:
        with explained():
            read, overrides = scenario_of(scenario), _overrides(set or [], proxy, second)
            new = new_link_result(
                read,
                command,
                overrides=overrides,
                seed=seed,
                serve=serve,
                mtu=mtu,
                sysctl=_parameters(sysctl or []),
                capture=capture,
                log=not no_log,
            )
        note_unused_by_link(read[0], [key for key, _ in overrides])
        code, ends = repeat_link(repeat, new, command_line(context), out=out, record=record)
        note_late_on_link(read, overrides, ends)
        raise typer.Exit(code)
    if end_fd is not None:
        os.set_inheritable(end_fd, False)  # the programs of the link do not get it
    try:
        outcome = _run(
            scenario,
            command,
            sets=set or [],
            proxy=proxy,
            second=second,
            mptcp=mptcp,
            seed=seed,
            serve=serve,
            out=out,
            log=not no_log,
            capture=capture,
            record=record,
            precise=precise,
            budget=budget,
            device=device,
            offload=offload,
            mtu=mtu,
            sysctls=sysctl or [],
            hosts=host or [],
            host_ports=ports_of(host_port or []),
            open_page=open,
            status=status,
            scenario_note=not no_scenario_note,
        )
    except Problem as problem:
        is_outside = serve is None and not host_port
        if is_outside and "the outside" in problem.message and (place := localhost_in(command)):
            problem.next_step = own_host(place)
        raise
    if outcome["exit"] == "not-executed":
        raise _not_started(command[0], outcome["number"])
    if end_fd is not None:
        report_end(end_fd, outcome["summary"])
    if outcome["exit"] == "code" and outcome["number"] and host_port and (place := localhost_in(command)):
        note(f"{place} is the mobile itself; {own_host(place)}")
    _warn(outcome, out, outside=serve is None and not host_port)
    if record is not None:
        _note_unrecorded(record)
    _end_like(outcome)


def _run(
    scenario: str,
    command: list[str],
    *,
    sets: list[str],
    proxy: str | None,
    second: str | None,
    out: Path | None,
    capture: bool,
    precise: bool | None,
    budget: str | None,
    sysctls: list[str],
    host_ports: list[int],
    open_page: bool,
    status: bool | None,
    record: Path | None,
    scenario_note: bool,
    **options: Any,
) -> dict[str, Any]:
    from airpath import _native
    from airpath.result_folder import clear_result_folder, cleared_unless_started, new_result

    overrides = _overrides(sets, proxy, second)
    parameters = _parameters(sysctls)
    if budget is not None and _ZERO.fullmatch(budget.strip()):
        raise Problem(f"--budget {budget}: every packet is later", next_step="give a time, as in --budget '5 ms'")
    _check_hosts(options["hosts"], serve=options["serve"])
    if record is not None:
        check_outputs(record.with_name(f"{record.name}.down"), record.with_name(f"{record.name}.up"))
    with explained(), _advised(parameters), replacing_result(out), ExitStack() as stack:
        text, name = scenario_of(scenario)
        if scenario_note:
            note_unused_by_link(text, [key for key, _ in overrides])
        folder = None
        if out is not None:
            inputs = {key: options[key] for key in ("seed", "serve", "mtu", "log")}
            new = new_link_result(
                (text, name), command, overrides=overrides, sysctl=parameters, capture=capture, **inputs
            )
            folder = stack.enter_context(new_result(out, new))
            stack.enter_context(cleared_unless_started(folder))
        # Until the command takes the signal, Ctrl-C ends this process at once, and the kernel
        # removes the namespaces.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        relay = -1
        if host_ports:
            relay = stack.enter_context(sidecar("host_ports")).fileno()
        if open_page:
            title = f"{shlex.join(command)} over {Path(scenario).stem}"
            page = stack.enter_context(sidecar("live", str(os.getpid()), title))
            address = ""
            with suppress(ConnectionError):
                address = page.recv(100).decode()
            if not address:
                raise Problem("the live page of --open cannot be served", next_step="leave out --open")
            note(f"the link is shown at {address} while it runs")
        result = _native.link(
            text,
            name,
            overrides,
            options.pop("seed"),
            command,
            out=None if folder is None else str(folder),
            capture=capture,
            precise=precise,
            budget=budget,
            record=record,
            parameters=list(parameters.items()),
            host_ports=host_ports,
            host_relay=relay,
            watched=open_page,
            status=sys.stderr.isatty() and not is_quiet() if status is None else status,
            **options,
        )
        outcome = json.loads(result)
        if outcome["exit"] == "not-executed" and folder is not None:
            clear_result_folder(folder)  # no command ran: an earlier result stays
        elif scenario_note:
            note_late_on_link(
                (text, name), overrides, [row["simulated_s"] for row in outcome["summary"]["repetitions"]]
            )
    return outcome


def _overrides(sets: list[str], proxy: str | None, second: str | None) -> list[tuple[str, str]]:
    """Return the values that options lay over a scenario; those of --set last."""
    from airpath.cli.key_value import parse_pairs
    from airpath.run import override_texts

    pairs = parse_pairs("--set", sets, example="bearer.downlink.bler=0.1")
    return override_texts(proxy_override(proxy) | second_override(second) | pairs)


def ports_of(texts: list[str]) -> list[int]:
    """Return the ports of `--host-port`.

    Raises:
        Problem: One is no port, or is given twice.
    """
    ports = []
    for text in texts:
        port = int(text) if text.isdecimal() and len(text) <= 5 else 0
        if not 1 <= port <= _MAX_PORT:
            raise Problem(f"--host-port {text}: not a port", next_step="give its number alone, as in --host-port 3000")
        if port in ports:
            raise Problem(f"--host-port {port}: given twice", next_step="remove one of them")
        ports.append(port)
    return ports


_ZERO = re.compile(r"[0.]+\s*[a-z]+")
"""A length of time that is zero."""
_LOCALHOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::(\d+))?(?![\w.-])")


def localhost_in(command: list[str]) -> str | None:
    """Return the address of the own host in a command, with its port."""
    found = next(filter(None, map(_LOCALHOST.search, command)), None)
    return found and found[0]


def own_host(place: str) -> str:
    """Return how the mobile reaches a server of the host."""
    port = place.rpartition(":")[2] if place.rpartition(":")[2].isdecimal() else "PORT"
    return f"reach a server of this host with --host-port {port}, as server:{port}"


def _check_serve(serve: str | None) -> None:
    """Check that the server is a command, as text."""
    if serve is None:
        return
    if serve.strip() in ("", "--"):
        raise Problem("--serve has no command", next_step="write it as in --serve 'python3 -m http.server 8000'")
    if printable(serve) != serve:
        raise Problem("--serve is not UTF-8 text", next_step="start the server by a script of its own")


def _check_hosts(hosts: list[str], *, serve: str | None) -> None:
    """Refuse names that cannot have an address on this link."""
    if hosts and serve is None:
        raise Problem("--host needs a server at the other end", next_step="add --serve CMD")
    if len(hosts) > _MAX_HOSTS:
        raise Problem(f"--host: {len(hosts)} names", next_step=f"give at most {_MAX_HOSTS}")
    known = set(_RESERVED_HOSTS)
    for name in hosts:
        if not _HOST_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            next_step = "use letters, digits, `-` and `_`, with single dots between"
            raise Problem(f"--host {printable(name)!r}: not a host name", next_step=next_step)
        if _is_address(name):
            raise Problem(f"--host {name}: an address, not a name", next_step="give the name of a host")
        # Resolvers compare names without case (RFC 4343).
        if name.lower() in known:
            raise Problem(f"--host {name}: it has an address already", next_step="remove it")
        known.add(name.lower())


def _is_address(name: str) -> bool:
    """Return whether resolvers take a name as an IPv4 address; parts may be missing (inet(3))."""
    try:
        socket.inet_aton(name)
    except OSError:
        return False
    return True


@contextmanager
def _advised(parameters: Mapping[str, str]) -> Iterator[None]:
    """Add what can be done to the error of a kernel parameter.

    For a congestion control this is the advice of `airpath doctor`.
    """
    from airpath import LinkError, _native

    # The link that fails may leave this process in a namespace of its own.
    modes = {key: _mode(key) for key in parameters}
    try:
        yield
    except LinkError as error:
        key = next((key for key in parameters if str(error).startswith(f"the kernel parameter `{key}` ")), None)
        if key is None:
            raise
        if key != CONGESTION_CONTROL:
            raise Problem(str(error), next_step=_after_parameter(str(error), modes[key])) from None
        checks = json.loads(_native.doctor())["checks"]
        check = next(each for each in checks if each["name"] == "congestion controls")
        # The advice is about the congestion controls that airpath's studies use.
        advice = check["next_step"] or ""
        raise Problem(
            f"{error} ({check['finding']})",
            next_step=advice if parameters[CONGESTION_CONTROL] in advice else "select one that can be set in links",
        ) from None


def _mode(key: str) -> int | None:
    """Return the mode of the file of a kernel parameter; `None` without one."""
    # As in sysctl(8), a slash stands for a dot within a part.
    with suppress(OSError):
        return Path("/proc/sys", key.translate(str.maketrans("./", "/."))).stat().st_mode
    return None


def _after_parameter(error: str, mode: int | None) -> str | None:
    """Return the next step after a kernel parameter that cannot be set.

    Args:
        error: The text of its error.
        mode: The mode of its file on the host.
    """
    if os.strerror(errno.EINVAL) in error:
        return "check its value"
    if mode is None or not stat.S_ISREG(mode):
        return "check its name: this kernel has no such parameter"
    if not mode & stat.S_IWUSR:
        return "remove it: it can only be read"
    # A namespace lacks the parameters of the whole host, or has them to read only.
    if any(os.strerror(each) in error for each in (errno.ENOENT, errno.EACCES)):
        return "remove it: this kernel has it for the whole host only"
    return None


def scenario_of(scenario: str) -> tuple[str, str]:
    """Return the text and name of a scenario: of its file, or of one with only a preset."""
    path = Path(scenario)
    if path.suffix == ".toml":
        if not path.exists():
            raise Problem(f"no scenario file '{printable(scenario)}'", next_step=next_step_without(path))
    elif path.is_file() and is_capture(path):
        raise Problem(f"{printable(scenario)} is a capture, not a scenario", next_step=f"`{command_for(scenario)}`")
    elif "://" in scenario:
        example = f"airpath link gprs -- curl {shlex.quote(scenario)}"
        raise Problem(
            f"{scenario} is a URL, not a link", next_step=f"name the link first, and the URL for a program: `{example}`"
        )
    elif path.is_dir():
        _check_folder(path)
    return read_link(scenario)


def _check_folder(folder: Path) -> None:
    """Check that a folder has the name of a preset, and does not stand for a scenario.

    Raises:
        Problem: There is no such preset.
    """
    from airpath import ScenarioError, _native
    from airpath.scenario import scenario_of_result

    with suppress(ScenarioError, UnicodeEncodeError):
        _native.preset(str(folder))
        return
    if (scenario := scenario_of_result(folder)) is not None:
        raise Problem(f"{printable(folder)} is a result, not a scenario", next_step=f"name its scenario: {scenario}")
    what, next_step = kind_of_folder(folder) or ("a folder", "name a preset, or a TOML file in it")
    raise Problem(f"{printable(folder)} is {what}, not a scenario", next_step=next_step)


def _parameters(sysctls: list[str]) -> dict[str, str]:
    """Return the kernel parameters of `--sysctl`.

    Raises:
        Problem: One is not of a network namespace.
    """
    from airpath.cli.key_value import parse_pairs

    parameters = parse_pairs("--sysctl", sysctls, example="net.ipv4.tcp_congestion_control=reno")
    for key in parameters:
        if not key.startswith("net."):
            raise Problem(
                f"--sysctl {key}: not a parameter of a network namespace", next_step="use one that begins with `net.`"
            )
    return parameters


def _warn(outcome: dict[str, Any], out: Path | None, *, outside: bool) -> None:
    """Print notes on standard error: an invalid run, no answer from outside, the result folder.

    That a run is invalid is printed with --quiet, too.
    """
    lateness = outcome["lateness"]
    if not lateness["within_budget"]:
        late = late_text(lateness, outcome["transmission_period_s"])
        note(f"this run is invalid: {late}", always=True)
    if outcome["overruns"]:
        note(
            f"this run is invalid: the kernel dropped {outcome['overruns']} packets before the link;"
            " the programs sent more than this host can carry",
            always=True,
        )
    offered = {"up": 0, "down": 0}
    for row in outcome["summary"]["links"]:
        offered[row["direction"]] += row["offered_packets"]
    if outside and offered["up"] and not offered["down"]:
        note("no packet came back from the outside; `airpath doctor` checks this host's forwarding")
    if out is not None:
        note(f"the result is in {out}; `airpath report {out} -o report.html` draws it")


def _note_unrecorded(record: Path) -> None:
    """Print a note about each direction without a recorded link."""
    for direction in ("down", "up"):
        file = record.with_name(f"{record.name}.{direction}")
        if not file.exists():
            note(f"there is no {file}: the link delivered less than 1,500 bytes in this direction")


def late_text(lateness: dict[str, Any], period_s: float | None) -> str:
    """Return how late packets left, what that changes, and what to do."""
    p99, median, budget = (seconds(lateness[name]) for name in ("p99_s", "p50_s", "budget_s"))
    change = "round trips and gaps of the result are longer by as much"
    if period_s is not None:
        change = f"such a packet may miss its transmission interval (TTI) and wait {seconds(period_s)} more"
    return (
        f"the host was too busy, so times may be wrong by {p99}, more than the {budget} that the link allows. "
        f"1 % of the packets left more than {p99} late, half of them {median}; {change}. "
        "Repeat it with fewer other programs or --precise, or accept it with --budget"
    )


def _end_like(outcome: dict[str, Any]) -> None:
    """Exit with the command's exit code or signal."""
    number = outcome["number"]
    if outcome["exit"] == "code":
        raise typer.Exit(number)
    import ctypes

    sys.stdout.flush()
    if number != signal.SIGKILL:  # which has no handler
        signal.signal(number, signal.SIG_DFL)
    # A core file of this process would replace that of the command; as timeout(1).
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)
    os.kill(os.getpid(), number)
    raise typer.Exit(128 + number)  # reached if the signal does not end this process


def _not_started(command: str, number: int) -> Problem:
    """Return the problem of a command that cannot be executed, by the number of its error."""
    code = ExitCode.NOT_FOUND if number == errno.ENOENT else ExitCode.NOT_EXECUTABLE
    if command in ("", "--"):
        what = "empty" if not command else "`--`"
        raise Problem(f"the command is {what}", next_step="write it after one `--`", exit_code=code)
    next_step = "check the command after `--`"
    if " " in command and shutil.which(command.split(maxsplit=1)[0]) is not None:
        next_step = f"write its words without quotes around them: -- {command}"
    return Problem(f"{command}: {os.strerror(number)}", next_step=next_step, exit_code=code)
