"""The programs that run scenarios: airpath, ns-2 and ns-3."""

import hashlib
import json
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from dumbbell import Repetition, Scenario

from airpath.run import execute

FOLDER = Path(__file__).resolve().parent
TARGET = FOLDER.parents[1] / "target" / "validation"
TIMEOUT = 300
"""Seconds after which a program is stopped; the scenario then has no figures."""

Settings = Literal["linux-6", "linux-6 like ns-3", "linux-6 like 2.6.16", "ns2-newreno"]
"""A profile of airpath, and the program whose lack of features it is reduced to."""


@dataclass(frozen=True)
class Outcome:
    """What a program reports of a repetition."""

    delivered: tuple[float, ...]
    """Bytes of each flow at the receiving application."""
    times: tuple[float | None, ...]
    """Seconds of each file from its start to its last byte at the receiver."""
    acknowledged: tuple[float | None, ...]
    """The same to the acknowledgement of the last byte at the sender."""
    repeated: float
    """The share of retransmissions in all segments with data."""
    timeouts: float | None = None
    """Time-outs of all connections."""


class ProgramError(Exception):
    """A program that gave no figures."""


class Program(ABC):
    """A program, with the settings of TCP that it runs scenarios with."""

    name: str
    settings: Settings
    family: str
    """The name in `--rivals`."""
    ends_at_sender = False
    """Whether its times end with the last acknowledgement, not at the receiver."""

    @abstractmethod
    def can(self, scenario: Scenario) -> bool:
        """Whether it has all features of a scenario."""

    @abstractmethod
    def run(self, repetition: Repetition) -> Outcome:
        """Run a repetition.

        Raises:
            ProgramError: It gave no figures.
        """


class Airpath(Program):
    """The simulator of this repository."""

    name = family = "airpath"

    def __init__(self, settings: Settings) -> None:
        self.settings: Settings = settings

    def can(self, scenario: Scenario) -> bool:
        """All scenarios are made for it."""
        return True

    def run(self, repetition: Repetition) -> Outcome:
        """Run a repetition in this process."""
        summary = execute(
            document(repetition, self.settings),
            seed=repetition.seed,
            threads=1,
        )
        flows = summary["flows"]
        sent = sum(flow["data_packets"] for flow in flows)
        return Outcome(
            delivered=tuple(flow["delivered_bytes"] for flow in flows),
            times=tuple(flow["duration_s"] for flow in flows),
            acknowledged=tuple(flow["acknowledged_s"] for flow in flows),
            repeated=sum(flow["retransmitted_packets"] for flow in flows) / max(1, sent),
            timeouts=sum(flow["timeouts"] for flow in flows),
        )


def document(repetition: Repetition, settings: Settings) -> dict[str, Any]:
    """Return a repetition as a scenario of airpath.

    Flows are uploads, because the sender opens them; those of the kernel are downloads.
    """
    scenario = repetition.scenario
    delay = {"delay": f"{repetition.round_trip / 2 * 1e9:.0f} ns"}
    queue: dict[str, Any] = {"packets": scenario.queue}
    if scenario.codel:
        queue |= {
            "discipline": "codel",
            "target": f"{scenario.codel.target * 1e6:.0f} us",
            "interval": f"{scenario.codel.interval * 1e6:.0f} us",
            "ecn": scenario.ecn,
        }
    up: dict[str, Any] = {"rate": f"{scenario.rate:.0f} bit/s", "queue": queue, **delay}
    loss = scenario.loss
    if loss:
        chain = {"good_to_bad": loss.good_to_bad, "bad_to_good": loss.bad_to_good}
        up["loss"] = chain if loss.bursts else loss.good_to_bad
    real = settings == "linux-6"
    mobiles = [f"sender {number}" for number in range(scenario.flows)]
    size = scenario.packets * segment(settings) if scenario.packets else 10**12
    return {
        "format": 1,
        "duration": f"{scenario.duration:.6f} s",
        "fixed": {"down": up, "up": delay} if real else {"up": up, "down": delay},
        "bearer": {
            "model": "wired",
            "uplink": {"rate": "10 Gbit/s", "delay": "0 s"},
            "downlink": {"delay": "0 s"},
        },
        "mobile": [{"name": name} for name in mobiles],
        "flow": [
            {
                "kind": "download" if real else "upload",
                "bytes": f"{size} B",
                "mobile": name,
                "start": f"{start * 1e6:.0f} us",
            }
            for name, start in zip(mobiles, repetition.starts, strict=True)
        ],
        "tcp": tcp(scenario, settings),
    }


def segment(settings: Settings) -> int:
    """Return the payload of a full segment: linux-6 has timestamps."""
    return 1460 if settings == "ns2-newreno" else 1448


def tcp(scenario: Scenario, settings: Settings) -> dict[str, Any]:
    """Return the settings of TCP, without features that the other program lacks."""
    profile = settings.partition(" ")[0]
    common = {"profile": profile, "selective_acknowledgement": scenario.sack}
    congestion: dict[str, Any] = {"algorithm": scenario.controller}
    if settings == "linux-6":
        return {**common, "ecn": scenario.ecn, "congestion": congestion}
    delayed = {"timeout": "100 ms", "minimum": "100 ms", "every": 2 if scenario.delayed else 1}
    if settings == "ns2-newreno":
        unlimited = {"window_limit": "unlimited", "initial_slow_start_threshold": "unlimited"}
        return {**common, **unlimited, "opening_segment": True, "delayed_ack": delayed, "congestion": congestion}
    if scenario.controller == "cubic":
        congestion["hystart"] = "off"
    found = {
        **common,
        "handshake": settings == "linux-6 like ns-3",
        "ecn": scenario.ecn,
        "delayed_ack": {
            **delayed,
            "full_sized": False,
            "quick": int(settings == "linux-6 like ns-3"),
            "quick_growth": False,
        },
        "receive_buffer": {"initial": "1 GB", "maximum": "1 GB"},
        "congestion": congestion,
    }
    if settings == "linux-6 like ns-3":
        # ns-3 3.37 has neither RACK, tail loss probes, F-RTO nor undo, its timer has a minimum of
        # 200 ms as a whole (RFC 6298), and TcpCubic has no Reno-friendly region.
        absent = ("rack", "tail_loss_probe", "forward_rto", "eifel", "duplicate_undo")
        found["recovery"] = dict.fromkeys(absent, False)
        found["retransmission_timeout"] = {"floor": "timeout", "samples": "every-ack"}
        if scenario.controller == "cubic":
            congestion["reno_friendly"] = False
    else:
        # In slow start Linux 2.6.16 adds a segment with each acknowledgement (tcp_slow_start, RFC
        # 3465 with L = 1).
        congestion["slow_start_limit"] = 1
    return found


class Ns2(Program):
    """An agent of ns-2: its own Newreno and Sack1 with their defaults, or TCP/Linux."""

    family = "ns-2"
    ends_at_sender = True

    def __init__(self, agent: Literal["newreno", "sack", "linux"]) -> None:
        self.agent = agent
        self.name = {"newreno": "ns-2 Newreno", "sack": "ns-2 Sack1", "linux": "ns-2 TCP/Linux"}[agent]
        # TCP/Linux does not wait for the acknowledgement of its first packet, the SYN.
        self.settings: Settings = "linux-6 like 2.6.16" if agent == "linux" else "ns2-newreno"

    def can(self, scenario: Scenario) -> bool:
        """It has neither CoDel nor another controller than NewReno in its own agents."""
        if scenario.codel:
            return False
        if self.agent == "linux":
            return scenario.sack  # without blocks it finds no loss
        return scenario.controller == "new-reno" and scenario.sack == (self.agent == "sack")

    def run(self, repetition: Repetition) -> Outcome:
        """Run ns."""
        scenario = repetition.scenario
        options = {
            "agent": self.agent,
            "controller": "cubic" if scenario.controller == "cubic" else "reno",
            "delayed": int(scenario.delayed),
            "rate": f"{scenario.rate:.0f}",
            "delay": f"{repetition.round_trip / 2:.9f}",
            "queue": scenario.queue,
            "starts": " ".join(f"{start:.6f}" for start in repetition.starts),
            "packets": scenario.packets,
            "duration": f"{scenario.duration:.6f}",
            "seed": repetition.seed,
        }
        source = FOLDER / "ns2.tcl"
        words = [str(word) for pair in options.items() for word in pair]
        found = measured(["ns", str(source), *words, "losses"], source, repetition)
        return outcome(found)


class Ns3(Program):
    """A controller of ns-3, with settings of linux-6 as far as it has them."""

    family = "ns-3"
    settings: Settings = "linux-6 like ns-3"

    def __init__(self, controller: Literal["TcpLinuxReno", "TcpCubic"]) -> None:
        self.controller = controller
        self.name = f"ns-3 {controller}"

    def can(self, scenario: Scenario) -> bool:
        """Each class is one controller."""
        return (scenario.controller == "cubic") == (self.controller == "TcpCubic")

    def run(self, repetition: Repetition) -> Outcome:
        """Run the program built from ns3.cc."""
        scenario = repetition.scenario
        options: dict[str, object] = {
            "tcp": self.controller,
            "rate": f"{scenario.rate:.0f}",
            "delay": f"{repetition.round_trip / 2:.9f}",
            "queue": scenario.queue,
            "starts": ",".join(f"{start:.6f}" for start in repetition.starts),
            "packets": scenario.packets,
            "duration": f"{scenario.duration:.6f}",
            "seed": repetition.seed,
            "sack": int(scenario.sack),
            "ecn": int(scenario.ecn),
            "delayed": int(scenario.delayed),
        }
        if scenario.codel:
            options |= {name: f"{1e6 * getattr(scenario.codel, name):.0f}us" for name in ("target", "interval")}
        words = [f"--{name}={option}" for name, option in options.items()]
        found = measured([str(built_ns3()), *words], FOLDER / "ns3.cc", repetition, "--losses=")
        return outcome(found)


NS3_MODULES = ("applications", "internet", "traffic-control", "point-to-point", "bridge", "network", "stats", "core")
"""The libraries of ns3.cc, in the order of the linker."""
LENA_MODULES = ("lte", "spectrum", "propagation", "antenna", "buildings", "mobility", *NS3_MODULES)
"""Those of lena.cc."""


def built_ns3() -> Path:
    """Build ns3.cc and return the program.

    Raises:
        ProgramError: It cannot be built.
    """
    return built("ns3", NS3_MODULES)


@cache
def built(name: str, modules: tuple[str, ...]) -> Path:
    """Build a program against Debian's libraries of ns-3 and return it.

    Raises:
        ProgramError: It cannot be built.
    """
    source, program = FOLDER / f"{name}.cc", TARGET / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        TARGET.mkdir(parents=True, exist_ok=True)
        options = ["-std=c++17", "-O2", "-DNDEBUG", "-I/usr/include/libxml2"]
        libraries = [f"-lns3-{module}" for module in modules]
        command = ["g++", *options, str(source), "-o", str(program), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise ProgramError(f"{source.name} cannot be built: {(errors or ['g++ failed'])[0]}")
    return program


def outcome(found: dict[str, Any]) -> Outcome:
    """Return what ns-2 or ns-3 printed."""
    times = tuple(found["times"])
    repeated = found["repeated"] / max(1, found["sent"])
    return Outcome(tuple(found["delivered"]), times, times, repeated, found["timeouts"])


def measured(command: list[str], source: Path, repetition: Repetition, option: str = "") -> dict[str, Any]:
    """Run a command and return its figures.

    They are kept in `target/validation`, because they depend on nothing in airpath: the next run
    of the same scenarios takes seconds.

    Args:
        command: The command without its last word, a file with the numbers of the lost packets.
        source: The file that the program is made from.
        repetition: The repetition that it runs.
        option: The option that the file belongs to.

    Raises:
        ProgramError: It printed none.
    """
    losses = " ".join(map(str, repetition.losses))
    return printed(command, source, losses, option)


def printed(command: list[str], source: Path, content: str, option: str) -> dict[str, Any]:
    """Run a command with a temporary file of this content, and return the JSON that it prints.

    It is kept, as `measured` describes.

    Args:
        command: The command without its last word, the file.
        source: The file that the program is made from.
        content: That of the file.
        option: The option that the file belongs to.

    Raises:
        ProgramError: It printed none.
    """
    words = [word for word in command[1:] if word != str(source)]
    key = "\0".join([source.read_text(), *words, content])
    kept = TARGET / "outcomes" / f"{source.suffix[1:]}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    with tempfile.NamedTemporaryFile("w", prefix="airpath-input-") as file:
        file.write(content)
        file.flush()
        try:
            done = subprocess.run(
                [*command, option + file.name], capture_output=True, text=True, check=False, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise ProgramError(f"not finished within {TIMEOUT} s") from None
    line = next((line for line in done.stdout.splitlines() if line.startswith("{")), None)
    if line is None:
        raise ProgramError((done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1])
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = kept.with_suffix(".draft")
    draft.write_text(line)
    draft.replace(kept)
    return json.loads(line)


def missing(family: str) -> str | None:
    """Return why the programs of a family cannot be run here."""
    if family == "ns-2":
        return None if shutil.which("ns") else "the program ns is not installed (Debian package ns2)"
    if family in ("ns-3", "lena"):
        if not Path("/usr/include/ns3").is_dir() or not shutil.which("g++"):
            return "its headers or g++ are not installed (Debian packages libns3-dev and g++)"
        try:
            if family == "ns-3":
                built_ns3()
            else:
                built("lena", LENA_MODULES)
        except ProgramError as error:
            return str(error)
    return None


RIVALS: tuple[Program, ...] = (Ns2("newreno"), Ns2("sack"), Ns2("linux"), Ns3("TcpLinuxReno"), Ns3("TcpCubic"))
