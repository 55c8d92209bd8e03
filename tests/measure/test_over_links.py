"""`airpath measure` on a link: figures as in the simulator, connections as reported."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import airpath
from support import Command
from support.link import LinkCommand, summary
from support.needs import missing
from support.parity import check_parity

AIRPATH = Path(sys.executable).with_name("airpath")

PINGS = 40
INTERVAL = "53 ms"
"""No multiple of 2 or 10 ms: requests and replies meet the TTIs in all phases."""

TOLERANCE_S = 0.002
TRIES = 5
"""Runs: one has to agree, none may be too fast. A busy host prolongs round trips."""
PAGE_TOLERANCE = 0.1
"""Of page time and first byte, as a share: the processor time of both ends is not simulated."""
STREAM_TOLERANCE = 0.05
"""Of start-up time and stalls, as a share."""
PHASE_S = 0.04
"""Four TTIs of 10 ms: SYN, its answer, request and response each meet them in another phase."""
BUDGET = "1ms"
"""Greatest lateness of packets in a valid run; other runs do not count."""


def measure(command: LinkCommand, *words: object, part: str = "flows", **how: Any) -> dict[str, Any]:
    """Return the only row of a part of the summary of `airpath measure` on a link."""
    serve = shlex.join([str(AIRPATH), "measure", "serve", "--listen", "0.0.0.0"])
    done = command(AIRPATH, "measure", *words, "--format", "json", serve=serve, **how)
    (row,) = json.loads(done.out)[part]
    return row


@pytest.mark.parametrize("preset", ["wired", "hs-dsch-384", "umts-dch-384"])
def test_ping_agrees_with_the_simulated_one(link: LinkCommand, preset: str) -> None:
    # Without errors: their retransmissions are random.
    change = {} if preset == "wired" else {"bearer.bler": 0}
    ping = {"kind": "ping", "interval": INTERVAL, "requests": PINGS}
    scenario = {"format": 1, "name": "ping", "bearer": {"preset": preset}, "flow": [ping]}
    simulated = airpath.run(scenario, set=change).summary["flows"][0]
    options = [f"--budget {BUDGET} --out out", *(f"--set {path}={value}" for path, value in change.items())]
    slow: list[dict[str, float]] = []
    for _ in range(TRIES):
        words = ("ping", "server", "--count", PINGS, "--interval", INTERVAL)
        real = measure(link, *words, link=preset, options=" ".join(options))
        assert real["received"] == simulated["received"] == PINGS
        errors = {key: real[key] - simulated[key] for key in ("delay_min_s", "delay_mean_s")}
        assert all(error > -TOLERANCE_S for error in errors.values()), f"too fast: {errors}"
        if all(error < TOLERANCE_S for error in errors.values()):
            return
        if summary(link.folder / "out")["emulation"]["lateness"]["valid"]:
            slow.append(errors)
    if not slow:
        missing("idle-host", f"packets were later than {BUDGET} in each of {TRIES} runs")
    pytest.fail(f"slower than simulated: {slow}")


@pytest.mark.parametrize(
    ("preset", "words", "settings"),
    [
        ("wired", ("--connections", 2), {"connections": 2}),
        ("umts-dch-384", ("--connections", 2), {"connections": 2}),
        ("umts-dch-384", ("--protocol", "http/1.0"), {"protocol": "http/1.0"}),
    ],
    ids=["wired", "persistent", "non-persistent"],
)
def test_a_page_agrees_with_the_simulated_one(
    link: LinkCommand, preset: str, words: tuple[object, ...], settings: dict[str, Any]
) -> None:
    # Without errors: their retransmissions are random.
    change = {"bearer.downlink.rate": "1Mbit/s"} if preset == "wired" else {"bearer.bler": 0}
    flow = {"kind": "page", "page": "static-site"} | settings
    scenario = {"format": 1, "name": "page", "bearer": {"preset": preset}, "tcp": {"profile": "linux-6"}}
    simulated = airpath.run(scenario | {"flow": [flow]}, set=change).summary["pages"][0]
    options = [f"--budget {BUDGET} --out out --no-log", *(f"--set {path}={value}" for path, value in change.items())]
    # The congestion control of the profile, whichever the host's is.
    words = ("page", "server", "static-site", *words, "--congestion", "cubic")
    slow: list[dict[str, float]] = []
    for _ in range(TRIES):
        real = measure(link, *words, link=preset, options=" ".join(options), part="pages")
        for key in ("objects", "requests", "responses", "bytes", "connections"):
            assert real[key] == simulated[key], key
        errors = {key: real[key] - simulated[key] for key in ("page_time_s", "first_byte_s")}
        tolerated = {key: max(PAGE_TOLERANCE * simulated[key], PHASE_S) for key in errors}
        assert all(errors[key] > -tolerated[key] for key in errors), f"too fast: {errors}"
        if all(errors[key] < tolerated[key] for key in errors):
            return
        # Browser and server wait for a processor at each of their many turns.
        is_idle = os.getloadavg()[0] < (os.cpu_count() or 1)
        if is_idle and summary(link.folder / "out")["emulation"]["lateness"]["valid"]:
            slow.append(errors)
    if not slow:
        missing("idle-host", f"packets were later than {BUDGET}, or processors busy, in each of {TRIES} runs")
    pytest.fail(f"slower than simulated: {slow}")


def test_each_transaction_has_a_connection_of_its_own(link: LinkCommand, need: Callable[..., str]) -> None:
    tshark = need("tshark")
    out = link.folder / "out"
    command = ("transactions", "server", "--connections", "each", "--count", 12)
    flow = measure(link, *command, options=f"--out {out} --capture")
    assert (flow["received"], flow["connections"]) == (12, "each")
    assert summary(out)["emulation"]["exit"] == "ended with exit code 0"
    for end in ("mobile", "server"):
        # The first connection carries the test request.
        control, *ports = opened(tshark, out / "captures" / f"0000-{end}.pcapng")
        assert len(set(ports)) == flow["received"], f"{end}: {ports}"
        assert control not in ports


@pytest.mark.parametrize("preset", ["wired", "umts-dch-384"])
def test_a_stream_agrees_with_the_simulated_one(link: LinkCommand, preset: str) -> None:
    # The outage exceeds the buffer: one stall. When it begins in the video is not the same.
    keys = "bler = 0" if preset == "umts-dch-384" else 'downlink.rate = "1 Mbit/s"'
    scenario = f"""\
format = 1
fixed.delay = "40 ms"
bearer = {{ preset = "{preset}", {keys} }}
change = [{{ at = "10 s", outage = "6 s" }}]
"""
    (link.folder / "link.toml").write_text(scenario)
    video = {"rate": "64 kbit/s", "duration": "20 s", "gop": 15, "peak_to_mean": 2}
    flow = {"kind": "stream", "start": "3 s", "video": video, "buffer": "2 s", "repair": "nack"}
    simulated = airpath.run(tomllib.loads(scenario) | {"flow": [flow]}).summary["flows"][0]
    words = ("--rate", "64 kbit/s", "--duration", "20 s", "--gop", 15, "--peak-to-mean", 2)
    words = ("stream", "server", *words, "--buffer", "2 s", "--repair", "nack")
    out = link.folder / "out"
    slow: list[dict[str, float]] = []
    for _ in range(TRIES):
        options = f"--budget {BUDGET} --out {out}"
        real = measure(link, *words, link=link.folder / "link.toml", options=options, timeout=120)
        assert real["outcome"] == simulated["outcome"] == "finished"
        check_parity(Command(link.folder), out)
        counts = ("sent", "received", "lost", "stalls", "frames_complete", "frames_decodable")
        differing = {key: (real[key], simulated[key]) for key in counts if real[key] != simulated[key]}
        errors = {key: real[key] / simulated[key] - 1 for key in ("startup_s", "stall_s", "duration_s")}
        if not differing and all(abs(error) < STREAM_TOLERANCE for error in errors.values()):
            return
        if summary(out)["emulation"]["lateness"]["valid"]:
            pytest.fail(f"other than simulated: {differing}, {errors}")
        slow.append(errors)
    missing("idle-host", f"packets were later than {BUDGET} in each of {TRIES} runs: {slow}")


@pytest.mark.parametrize(
    "words",
    [
        ("stream", "--duration", "5 s", "--buffer", "1 s", "--repair", "nack"),
        ("voice", "--duration", "5 s"),
        ("terminal", "--keys", 20),
    ],
    ids=["stream", "voice", "terminal"],
)
def test_the_packets_of_a_service_are_replayed(link: LinkCommand, words: tuple[object, ...]) -> None:
    kind, *options = words
    flow = measure(
        link,
        *(kind, "server", *options),
        link="umts-dch-384",
        options="--set fixed.loss=0.02 --set bearer.bler=0.1 --out out",
    )
    assert flow["outcome"] == "finished"
    steps = check_parity(Command(link.folder), link.folder / "out")["step"]
    assert (steps == "dropped").sum() > 0


def opened(tshark: str, capture: Path) -> list[int]:
    """Return the client's port of each connection in a capture, in the order of opening."""
    opening = "tcp.flags.syn == 1 && tcp.flags.ack == 0 && !tcp.analysis.retransmission"
    line = [tshark, "-r", str(capture), "-Y", opening, "-T", "fields", "-e", "tcp.srcport"]
    return [int(port) for port in subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()]


def test_the_token_of_a_terminal_does_not_hold_its_first_request(link: LinkCommand) -> None:
    # A round trip takes 2 s. Under Nagle's algorithm the token would hold the request of the first
    # key until it is acknowledged, for another round trip.
    session = ("--keys", 1, "--scrolls", 0, "--think", "10 ms", "--key-interval", "10 ms")
    flow = measure(link, "terminal", "server", *session, options="--set fixed.delay=1s")
    assert flow["tcp"]["nagle"] == "minshall"
    assert 2 <= flow["exchange"]["key"]["p50_s"] < 3.5
