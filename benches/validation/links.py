"""The kernel's TCP over emulated links, as a further program."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from dumbbell import Repetition, Scenario
from programs import FOLDER, Outcome, Program, ProgramError, Settings, document, segment

from airpath.realtime import obstacle
from airpath.scenario import read_scenario

ENDS = FOLDER / "ends.py"
ATTEMPTS = 3
"""A link that was late is set up again up to this number of attempts."""


class Kernel(Program):
    """Parallel downloads with real sockets over `airpath link`."""

    name = family = "kernel"
    settings: Settings = "linux-6"

    def can(self, scenario: Scenario) -> bool:
        """CUBIC only if the host has it."""
        return scenario.controller == "new-reno" or cubic_is_allowed()

    def run(self, repetition: Repetition) -> Outcome:
        """Run a link, again if the host was too busy."""
        for _ in range(ATTEMPTS):
            outcome = self._run(repetition)
            if outcome is not None:
                return outcome
        raise ProgramError(f"the host was too busy in {ATTEMPTS} attempts")

    def _run(self, repetition: Repetition) -> Outcome | None:
        scenario = repetition.scenario
        size = scenario.packets * segment(self.settings)
        controller = "cubic" if scenario.controller == "cubic" else "reno"
        parameters = {
            "net.ipv4.tcp_no_metrics_save": 1,
            "net.ipv4.tcp_rmem": "4096 131072 6291456",
            "net.ipv4.tcp_wmem": "4096 16384 4194304",
            "net.ipv4.tcp_sack": int(scenario.sack),
            "net.ipv4.tcp_ecn": int(scenario.ecn),
        }
        # A lateness below a fiftieth of the round trip does not change the result noticeably.
        budget = f"{max(repetition.round_trip / 50, 0.001) * 1e3:g} ms"
        with tempfile.TemporaryDirectory(prefix="airpath-") as name:
            folder = Path(name)
            (folder / "link.toml").write_text(link(repetition), encoding="utf-8")
            server = [sys.executable, str(ENDS), "serve", "--bytes", str(size), "--congestion", controller]
            starts = ",".join(f"{start:.6f}" for start in repetition.starts)
            client = [sys.executable, str(ENDS), "fetch", "--bytes", str(size), "--starts", starts]
            command = [sys.executable, "-m", "airpath", "link", str(folder / "link.toml"), "--no-log", "--no-status"]
            command += [word for key, value in parameters.items() for word in ("--sysctl", f"{key}={value}")]
            command += ["--seed", str(repetition.seed), "--budget", budget, "--out", str(folder / "result")]
            command += ["--serve", shlex.join(server), "--", *client, "--duration", f"{scenario.duration:.3f}"]
            limit = scenario.duration + 60
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
            except subprocess.TimeoutExpired:
                raise ProgramError(f"not finished within {limit:.0f} s") from None
            if done.returncode != 0:
                raise ProgramError((done.stderr.strip().splitlines() or ["the link failed"])[-1])
            found = json.loads(done.stdout.splitlines()[-1])
            summary = json.loads((folder / "result" / "summary.json").read_text())
        if not summary["emulation"]["lateness"]["valid"]:
            return None
        flows = [flow for flow in summary["flows"] if flow["kind"] == "tcp"]
        sent = sum(flow["data_packets"] or 0 for flow in flows)
        repeated = sum(flow["retransmitted_packets"] or 0 for flow in flows)
        times = tuple(found["times"])
        return Outcome(tuple(found["delivered"]), times, times, repeated / max(1, sent))


def link(repetition: Repetition) -> str:
    """Return the link of a repetition: its flows are those of real programs over one mobile."""
    whole = document(repetition, "linux-6")
    names = ("format", "fixed", "bearer")
    return read_scenario({name: whole[name] for name in names})[0]


def cubic_is_allowed() -> bool:
    """Return whether a socket of this process may use CUBIC."""
    folder = Path("/proc/sys/net/ipv4")
    allowed = (folder / "tcp_allowed_congestion_control").read_text().split()
    available = (folder / "tcp_available_congestion_control").read_text().split()
    return "cubic" in (available if os.geteuid() == 0 else allowed)


def missing() -> str | None:
    """Return why this host cannot make links."""
    return obstacle()
