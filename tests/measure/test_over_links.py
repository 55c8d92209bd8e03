"""`airpath measure` on a link: figures as in the simulator, connections as reported."""

import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
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
"""Of page time, first byte and the time in transit, as a share."""
STREAM_TOLERANCE = 0.05
"""Of start-up time and stalls, as a share."""
BUDGET = "1ms"
"""Greatest lateness of packets in a run whose times must agree."""
PHASE_S = 0.04
"""Four TTIs of 10 ms: SYN, its answer, request and response each meet them in another phase."""


def measure(command: LinkCommand, *words: object, part: str = "flows", **how: Any) -> dict[str, Any]:
    """Return the only row of a part of the summary of `airpath measure` on a link."""
    serve = shlex.join([str(AIRPATH), "measure", "serve", "--listen", "0.0.0.0"])
    done = command(AIRPATH, "measure", *words, "--format", "json", serve=serve, **how)
    (row,) = json.loads(done.out)[part]
    return row


def transits(packets: pl.DataFrame) -> pl.DataFrame:
    """Return the packets that arrived, with their start and arrival by the link's model.

    Their time in transit does not depend on the load of the host, but for the queue that they meet.
    """
    steps = {step: packets.filter(pl.col("step") == step) for step in ("sent", "received")}
    sent = steps["sent"].select("packet", "direction", "flow", "flags", "length", sent="time")
    return sent.join(steps["received"].select("packet", received="time"), on="packet").sort("sent")


def in_transit(packets: pl.DataFrame, until: str) -> float:
    """Return the seconds in which each connection had packets in transit, as a sum.

    They count until the `first` or the `last` data arrives.
    """
    data = packets.filter(pl.col("direction") == "down", pl.col("length") > 0)["received"]
    end = data.min() if until == "first" else data.max()
    assert isinstance(end, int)
    seconds = 0.0
    for _, connection in packets.filter(pl.col("sent") < end).group_by("flow"):
        busy = 0
        for start, arrival in connection.sort("sent").select("sent", "received").iter_rows():
            seconds += max(0, min(arrival, end) - max(start, busy)) / 1e9
            busy = max(busy, arrival)
    return seconds


@pytest.mark.parametrize("preset", ["wired", "hs-dsch-384", "umts-dch-384"])
def test_ping_agrees_with_the_simulated_one(link: LinkCommand, preset: str) -> None:
    # Without errors: their retransmissions are random.
    change = {} if preset == "wired" else {"bearer.bler": 0}
    ping = {"kind": "ping", "interval": INTERVAL, "requests": PINGS}
    scenario = {"format": 1, "name": "ping", "bearer": {"preset": preset}, "flow": [ping]}
    simulated = airpath.run(scenario, set=change).summary["flows"][0]
    options = ["--out out", *(f"--set {path}={value}" for path, value in change.items())]
    runs: list[dict[str, float]] = []
    for _ in range(TRIES):
        words = ("ping", "server", "--count", PINGS, "--interval", INTERVAL)
        real = measure(link, *words, link=preset, options=" ".join(options))
        assert real["received"] == simulated["received"] == PINGS
        errors = {key: real[key] - simulated[key] for key in ("delay_min_s", "delay_mean_s")}
        assert all(error > -TOLERANCE_S for error in errors.values()), f"too fast: {errors}"
        # A late reply waits less for its TTI: a busy host shortens the time in transit.
        packets = transits(airpath.load(link.folder / "out").packets)
        echoes = packets.filter(pl.col("flags").is_null())
        assert echoes.height == 2 * PINGS
        nanoseconds = int((echoes["received"] - echoes["sent"]).sum())
        errors["in_transit_s"] = nanoseconds / 1e9 / PINGS - simulated["delay_mean_s"]
        # The shortest of all round trips did not wait for a processor.
        if all(errors[key] < TOLERANCE_S for key in ("delay_min_s", "in_transit_s")):
            return
        runs.append(errors)
    pytest.fail(f"slower than simulated: {runs}")


@pytest.mark.parametrize(("think", "count"), [("0.5s", 6), ("1.2s", 5), ("3s", 4)])
def test_a_window_after_idle_times_is_that_of_the_kernel(link: LinkCommand, think: str, count: int) -> None:
    # The shortest keeps the window, the longest leaves the initial one.
    change = {"bearer.downlink.rate": "5Mbit/s", "bearer.downlink.delay": "50ms", "bearer.uplink.delay": "50ms"}
    flow = {"kind": "transactions", "request": "200 B", "response": "200 kB", "transactions": count, "think": think}
    scenario = {"format": 1, "name": "idle", "duration": "60 s", "bearer": {"preset": "wired"}, "flow": [flow]}
    simulated = airpath.run(scenario, set=change).summary["flows"][0]["delay_mean_s"]
    immediate = airpath.run(scenario, set=change | {"tcp.idle_restart": "off"}).summary["flows"][0]["delay_mean_s"]
    options = " ".join(f"--set {path}={value}" for path, value in change.items())
    words = ("transactions", "server", "--request", "200B", "--response", "200kB", "--count", count)
    runs: list[float] = []
    for _ in range(TRIES):
        # The congestion control of the profile, whichever the host's is.
        words_of_run = (*words, "--think", think, "--congestion", "cubic")
        real = measure(link, *words_of_run, link="wired", options=options)["delay_mean_s"]
        assert real > 0.99 * simulated
        if real < 1.02 * simulated:
            break
        runs.append(real)
    else:
        pytest.fail(f"slower than simulated ({simulated}): {runs}")
    assert (simulated > 1.05 * immediate) == (think != "0.5s"), "the idle time has the effect that it is to have"


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
    result = airpath.run(scenario | {"flow": [flow]}, set=change)
    simulated, simulated_packets = result.summary["pages"][0], transits(result.packets)
    options = ["--out out", *(f"--set {path}={value}" for path, value in change.items())]
    # The congestion control of the profile, whichever the host's is.
    words = ("page", "server", "static-site", *words, "--congestion", "cubic")
    runs: list[dict[str, float]] = []
    for _ in range(TRIES):
        real = measure(link, *words, link=preset, options=" ".join(options), part="pages")
        for key in ("objects", "requests", "responses", "bytes", "connections"):
            assert real[key] == simulated[key], key
        for key in ("page_time_s", "first_byte_s"):
            tolerated = max(PAGE_TOLERANCE * simulated[key], PHASE_S)
            assert real[key] > simulated[key] - tolerated, f"{key} is too short"
        packets = transits(airpath.load(link.folder / "out").packets).filter(pl.col("flags").is_not_null())
        # The first connection carries the test request.
        packets = packets.filter(pl.col("flow") != packets["flow"][0])
        loaded = packets.filter(pl.col("direction") == "down", pl.col("length") > 0)["received"].max()
        assert isinstance(loaded, int)
        assert real["page_time_s"] > (loaded - packets["sent"][0]) / 1e9, "the page was loaded before its last byte"
        # Browser and server wait for a processor at each of their many turns.
        # Packets in transit do not.
        errors = {until: in_transit(packets, until) for until in ("first", "last")}
        tolerated = {}
        for until, seconds in errors.items():
            expected = in_transit(simulated_packets, until)
            errors[until] = seconds - expected
            tolerated[until] = max(PAGE_TOLERANCE * expected, PHASE_S)
        if all(errors[until] < tolerated[until] for until in errors):
            return
        runs.append(errors)
    pytest.fail(f"longer in transit than simulated: {runs}")


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


@pytest.mark.soak
def test_a_report_waits_in_the_queue_that_an_overload_has_filled(link: LinkCommand) -> None:
    # The queue of 64 kB takes more than 20 s at the rate of the uplink.
    words = ("datagrams", "server", "--upload", "--rate", "1 Mbit/s", "--duration", "3 s")
    flow = measure(link, *words, link="gprs", timeout=120)
    assert flow["outcome"] == "finished"
    assert 0 < flow["received"] < flow["sent"]
    assert flow["delay_max_s"] > 20


@pytest.mark.parametrize("preset", ["wired", "umts-dch-384"])
def test_a_stream_agrees_with_the_simulated_one(link: LinkCommand, preset: str) -> None:
    # The outage exceeds the buffer: one stall. When it begins in the video is not the same.
    keys = "bler = 0" if preset == "umts-dch-384" else 'downlink.rate = "1 Mbit/s"'
    scenario = f"""\
format = 1
fixed.delay = "40 ms"
bearer = {{ preset = "{preset}", {keys} }}
change = [{{ at = "7 s", outage = "6 s" }}]
"""
    (link.folder / "link.toml").write_text(scenario)
    video = {"rate": "64 kbit/s", "duration": "13 s", "gop": 15, "peak_to_mean": 2}
    flow = {"kind": "stream", "start": "3 s", "video": video, "buffer": "2 s", "repair": "nack"}
    simulated = airpath.run(tomllib.loads(scenario) | {"flow": [flow]}).summary["flows"][0]
    words = ("--rate", "64 kbit/s", "--duration", "13 s", "--gop", 15, "--peak-to-mean", 2)
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


@pytest.mark.parametrize("preset", ["wired", "umts-dch-384"])
def test_adaptive_streaming_agrees_with_the_simulated_one(link: LinkCommand, preset: str) -> None:
    # The outage exceeds the buffer: one stall. The three links of a round run at once, because
    # they mostly wait.
    keys = "bler = 0" if preset == "umts-dch-384" else 'downlink.rate = "400 kbit/s"'
    scenario = f"""\
format = 1
fixed.delay = "40 ms"
tcp.profile = "linux-6"
bearer = {{ preset = "{preset}", {keys} }}
change = [{{ at = "12 s", outage = "10 s" }}]
"""
    (link.folder / "link.toml").write_text(scenario)
    settings = {"duration": "24 s", "segment": "2 s", "startup": "2 s", "buffer": "8 s"}
    rates = ["64 kbit/s", "128 kbit/s", "256 kbit/s"]
    words = ["adaptive", "server", *(word for key, value in settings.items() for word in (f"--{key}", value))]
    words += ["--qualities", ",".join(rates), "--congestion", "cubic", "--algorithm"]

    def measured(algorithm: str) -> dict[str, Any]:
        how = {"options": f"--budget {BUDGET} --out {algorithm}", "timeout": 120}
        return measure(link, *words, algorithm, link=link.folder / "link.toml", **how)

    flow = {"kind": "adaptive", "qualities": rates} | settings
    remaining = ["rate", "bba", "bola"]
    slow: list[dict[str, float]] = []
    for _ in range(TRIES):
        with ThreadPoolExecutor(len(remaining)) as pool:
            rows = list(pool.map(measured, remaining))
        errors = {
            algorithm: adaptive_errors(
                row, link.folder / algorithm, scenario, flow | {"adaptation": {"algorithm": algorithm}}
            )
            for algorithm, row in zip(remaining, rows, strict=True)
        }
        remaining = [algorithm for algorithm, late in errors.items() if late]
        if not remaining:
            return
        slow += [errors[algorithm] for algorithm in remaining]
    missing("idle-host", f"packets were later than {BUDGET} in each of {TRIES} runs: {slow}")


def adaptive_errors(real: dict[str, Any], out: Path, scenario: str, flow: dict[str, Any]) -> dict[str, float]:
    """Compare a video on a link with the simulated one; fail if it differs on an idle host.

    Returns the errors of the times as shares if packets were late; nothing if both agree.
    """
    # The outage is at a time of the link. The first connection carries the test request.
    packets = transits(airpath.load(out).packets).filter(pl.col("flags").is_not_null())
    start = packets.filter(pl.col("flow") != packets["flow"][0])["sent"][0]
    # A TTI earlier or later, the buffer can have passed another threshold of the algorithm.
    starts = [start + shift for shift in (0, -10_000_000, 10_000_000)]
    scenarios = [tomllib.loads(scenario) | {"flow": [flow | {"start": f"{at} ns"}]} for at in starts]
    rows = [airpath.run(one).summary["flows"][0] for one in scenarios]
    simulated = rows[0]
    assert real["outcome"] == simulated["outcome"] == "finished"
    assert real["segments_received"] == simulated["segments_received"] == 12
    errors = {key: real[key] / simulated[key] - 1 for key in ("startup_s", "stall_s", "duration_s")}
    rated, switched = ([row[key] for row in rows] for key in ("quality_bps", "switches"))
    # Two segments may have the next quality.
    spare = 2.01 * (256_000 - 128_000) / 12
    same = real["stalls"] == simulated["stalls"] >= 1
    same &= min(rated) - spare < real["quality_bps"] < max(rated) + spare
    same &= min(switched) - 3 <= real["switches"] <= max(switched) + 3
    if same and all(abs(error) < STREAM_TOLERANCE for error in errors.values()):
        return {}
    if summary(out)["emulation"]["lateness"]["valid"]:
        pytest.fail(f"{out.name}, other than simulated: {real}, {simulated}")
    return errors


REPLAYED = {
    "stream": ("--duration", "5 s", "--buffer", "1 s", "--repair", "nack"),
    "voice": ("--duration", "5 s"),
    "terminal": ("--keys", 20),
    "adaptive": ("--duration", "10 s", "--segment", "1 s", "--startup", "1 s"),
}


def test_the_packets_of_services_are_replayed(link: LinkCommand) -> None:
    def measured(kind: str) -> dict[str, Any]:
        own = LinkCommand(link.folder / kind)
        own.folder.mkdir()
        options = "--set fixed.loss=0.02 --set bearer.bler=0.1 --out out"
        return measure(own, kind, "server", *REPLAYED[kind], link="umts-dch-384", options=options)

    # Each on a link of its own, at once: parity does not depend on the load of the host.
    with ThreadPoolExecutor(len(REPLAYED)) as pool:
        flows = dict(zip(REPLAYED, pool.map(measured, REPLAYED), strict=True))
    for kind, flow in flows.items():
        assert flow["outcome"] == "finished", kind
        folder = link.folder / kind
        steps = check_parity(Command(folder), folder / "out")["step"]
        assert (steps == "dropped").sum() > 0, kind


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
