"""The emulators that `emulators.py` measures, each started with the same conditions."""

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from namespaces import PRIVILEGED, Namespace, forward, processor_time

HELPERS = ("airpath-probe", "iperf3", "sh", "sleep", "cat", "nsenter", "setpriv")
"""Descendant processes that do not belong to the emulator itself."""

ORDINARY_USER = "nobody"  # words: allow nobody (the name of a Unix user)


@dataclass(frozen=True)
class Conditions:
    """The emulated conditions, the same in both directions."""

    delay_ms: int = 0
    rate_mbps: int | None = None
    queue_packets: int = 1000
    loss: float = 0


@dataclass(frozen=True)
class Work:
    """Programs at both ends; `HOST` stands for the server's address."""

    client: list[str]
    server: list[str] | None = None
    watch: tuple[float, float] | None = None
    """Interval of the measured processor time, in seconds after the client's start."""


@dataclass
class Outcome:
    """The figures of a run."""

    output: str
    cpu: float | None = None
    """The emulator's share of a core."""
    summary: dict[str, object] = field(default_factory=dict)


class MeasurementError(Exception):
    """A run that gave no figures."""


class Contender(ABC):
    """An emulator."""

    name: str

    @abstractmethod
    def missing(self) -> str | None:
        """The reason why it cannot be measured here."""

    def cannot(self, conditions: Conditions) -> bool:
        """Whether it lacks a feature that these conditions need."""
        return False

    def run(self, conditions: Conditions, work: Work) -> Outcome:
        """Runs the work under the conditions."""
        with tempfile.TemporaryDirectory(prefix="airpath-bench-") as name:
            folder = Path(name)
            folder.chmod(0o1777)  # programs of another user write there, too
            return self._run_in(folder, conditions, work)

    @abstractmethod
    def _run_in(self, folder: Path, conditions: Conditions, work: Work) -> Outcome:
        """Runs the work, with files in this folder."""


class Airpath(Contender):
    """`airpath link` with both ends inside."""

    def __init__(self, program: Path, *options: str) -> None:
        self.name = " ".join(["airpath", *options])
        self.program = program
        self.options = options

    def missing(self) -> str | None:
        """Whether it is installed."""
        return None if self.program.exists() else f"{self.program} is not there (make setup)"

    def _run_in(self, folder: Path, conditions: Conditions, work: Work) -> Outcome:
        sets: dict[str, str] = {}
        for way in ("downlink", "uplink"):
            sets[f"bearer.{way}.delay"] = f"{conditions.delay_ms} ms"
            # 1 Tbit/s stands for no limit.
            sets[f"bearer.{way}.rate"] = f"{conditions.rate_mbps or 1_000_000} Mbit/s"
            sets[f"bearer.{way}.queue.packets"] = str(conditions.queue_packets)
            if conditions.loss:
                sets[f"bearer.{way}.loss"] = str(conditions.loss)
        out = folder / "result"
        command = [str(self.program), "link", "wired", *self.options, "--no-status", "--no-log", "--out", str(out)]
        command += [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        command += ["--serve", shlex.join(work.server)] if work.server else ["--serve", "sleep 3600"]
        outcome = observed([*command, "--", *started(folder, work.client, "server")], folder, work)
        outcome.summary = json.loads((out / "summary.json").read_text())
        return outcome


class Bare(Contender):
    """No emulator: a virtual Ethernet pair between namespaces, for the cost of the end points."""

    name = "bare veth"

    def missing(self) -> str | None:
        """Whether namespaces can be made."""
        try:
            Namespace().close()
        except OSError as error:
            return str(error)
        return None

    def cannot(self, conditions: Conditions) -> bool:
        """It emulates nothing."""
        return conditions != Conditions()

    def _run_in(self, folder: Path, conditions: Conditions, work: Work) -> Outcome:
        server = Namespace()
        client = Namespace(beside=server)
        try:
            pair = ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", str(client.process)]
            server.run(*pair)
            for end, address in ((server, "192.0.2.1/30"), (client, "192.0.2.2/30")):
                end.run("ip", "address", "add", address, "dev", "v0")
                end.run("ip", "link", "set", "v0", "up")
            with Server(server, work):
                return observed([*client.enter(), *started(folder, work.client, "192.0.2.1")], folder, work)
        finally:
            client.close()
            server.close()


class Peer(Contender):
    """A third-party emulator, with its programs on the path or in a folder."""

    programs: tuple[str, ...]

    def __init__(self, folder: Path) -> None:
        self.path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", str(folder)])

    def missing(self) -> str | None:
        """Whether its programs are found, and may be used."""
        absent = [program for program in self.programs if shutil.which(program, path=self.path) is None]
        if absent:
            return f"{', '.join(absent)}: not found"
        return None if PRIVILEGED else "only root can make the namespace that it starts from"

    def program(self, name: str) -> str:
        """Where a program is."""
        return shutil.which(name, path=self.path) or name

    @abstractmethod
    def command(self, folder: Path, conditions: Conditions, client: list[str]) -> list[str]:
        """Its command with all conditions around a client."""

    base: str
    """The variable with the server's address in the client's environment."""

    def _run_in(self, folder: Path, conditions: Conditions, work: Work) -> Outcome:
        outside = Namespace()
        try:
            forward(outside.process)
            with Server(outside, work):
                client = started(folder, work.client, f"${self.base}")
                return observed([*outside.enter(), *self.command(folder, conditions, client)], folder, work)
        finally:
            outside.close()


class Mahimahi(Peer):
    """`mm-delay`, `mm-loss` and `mm-link`, nested. They are set-user-ID root and refuse root."""

    name = "mahimahi"
    programs = ("mm-delay", "mm-loss", "mm-link")
    base = "MAHIMAHI_BASE"

    def missing(self) -> str | None:
        """Whether its programs are found, and may be used."""
        missing = super().missing()
        if missing is None and not Path(self.program("mm-delay")).stat().st_mode & 0o4000:
            return f"{self.program('mm-delay')} is not set-user-ID root"
        return missing

    def command(self, folder: Path, conditions: Conditions, client: list[str]) -> list[str]:
        """Nested shells, as an ordinary user."""
        # At least one shell is needed to have an emulator.
        shells = [["mm-delay", str(conditions.delay_ms)]] if conditions.delay_ms or not conditions.rate_mbps else []
        if conditions.loss:
            shells.append(["mm-loss", "downlink", f"{conditions.loss:.9f}"])
        if conditions.rate_mbps:
            trace = folder / "trace"
            trace.write_text(opportunities(conditions.rate_mbps))
            queue = [
                f"--{way}-{what}"
                for way in ("uplink", "downlink")
                for what in ("queue=droptail", f"queue-args=packets={conditions.queue_packets}")
            ]
            shells.append(["mm-link", str(trace), str(trace), *queue, "--"])
        command = client
        for number, shell in reversed(list(enumerate(shells))):
            command = [self.program(shell[0]), *shell[1:], *command]
            if number > 0:
                command = gated(folder / f"gate.{number}", command)
        user = f"--reuid={ORDINARY_USER}"
        return ["setpriv", user, "--regid=nogroup", "--clear-groups", "env", f"PATH={self.path}", *command]


class Rattan(Peer):
    """`rattan link`."""

    name = "rattan"
    programs = ("rattan",)
    base = "RATTAN_BASE"

    def command(self, folder: Path, conditions: Conditions, client: list[str]) -> list[str]:
        """One command with all options."""
        options: list[str] = []
        for way in ("uplink", "downlink"):
            if conditions.delay_ms:
                options += [f"--{way}-delay", f"{conditions.delay_ms}ms"]
            if conditions.loss:
                options += [f"--{way}-loss", str(conditions.loss)]
            if conditions.rate_mbps:
                limit = json.dumps({"packet_limit": conditions.queue_packets})
                options += [f"--{way}-bandwidth", f"{conditions.rate_mbps}Mbps", f"--{way}-queue", "droptail"]
                options += [f"--{way}-queue-args", limit]
        return [self.program("rattan"), "link", *options, "--", *client]


class Server:
    """The server at the far end of an emulator that does not start it itself."""

    def __init__(self, place: Namespace, work: Work) -> None:
        self._process = None
        if work.server:
            command = [*place.enter(), *work.server]
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.3)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()


def started(folder: Path, client: list[str], host: str) -> list[str]:
    """A client that creates a file when it begins; the shell inserts the host."""
    words = " ".join(f'"{host}"' if word == "HOST" else shlex.quote(word) for word in client)
    return ["sh", "-c", f"touch {shlex.quote(str(folder / 'started'))}; exec {words}"]


def gated(gate: Path, command: list[str]) -> list[str]:
    """A command that waits until root lets its namespace forward packets, for mahimahi."""
    quoted = shlex.quote(str(gate))
    wait = f"echo $$ > {quoted}.new; mv {quoted}.new {quoted}; while [ -e {quoted} ]; do sleep 0.02; done"
    return ["sh", "-c", f"{wait}; exec {shlex.join(command)}"]


def observed(command: list[str], folder: Path, work: Work, patience: float = 60) -> Outcome:
    """Runs a command, opens gates, and watches the processor time of the emulator."""
    output, errors = folder / "output", folder / "errors"
    with output.open("w") as out, errors.open("w") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    end = time.monotonic() + patience
    marks = list(work.watch or ())
    taken: list[tuple[float, dict[int, int]]] = []
    began = None
    try:
        while process.poll() is None:
            now = time.monotonic()
            if now > end:
                raise MeasurementError(f"{command[0]} did not end")
            for gate in folder.glob("gate.?"):
                forward(int(gate.read_text()))
                gate.unlink()
            if began is None and (folder / "started").exists():
                began = now
            if began is not None and marks and now >= began + marks[0]:
                marks.pop(0)
                times = processor_time(process.pid, without=HELPERS)
                taken.append((time.monotonic(), times))
            time.sleep(0.02)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    if process.returncode != 0:
        raise MeasurementError(
            f"{shlex.join(command)[:120]}…: exit code {process.returncode}: {errors.read_text()[-300:]}"
        )
    cpu = None
    if len(taken) == 2:
        (t1, before), (t2, after) = taken
        cpu = sum(time - before.get(each, 0) for each, time in after.items()) / 1e9 / (t2 - t1)
    return Outcome(output.read_text(), cpu)


def opportunities(rate_mbps: int) -> str:
    """A mahimahi trace of this rate: the milliseconds at which 1500 bytes may be sent."""
    packets, rest = divmod(rate_mbps, 12)
    if rest:
        raise ValueError("a packet of 1500 bytes a millisecond is 12 Mbit/s: only multiples of that are exact")
    return "1\n" * packets
