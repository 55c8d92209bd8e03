"""Both clocks give the same figures of services for the same seed and bearer, with block errors.

Block errors depend on the times at which packets arrive, down to the TTI. So the virtual clock gets
the arrivals of the link: the replay gives each packet its exact fate, and the figures follow from
the replayed packets and the definitions in docs/streaming.md, voice.md and terminal.md. The real
ones are those of `airpath measure`.
"""

import json
import shlex
import sys
from collections.abc import Sequence
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

TOLERANCE = 0.05
"""Of each figure, as a share."""
SLACK_S = 0.03
"""Three times the least wait of the kernel for a processor under load (10 ms at 100 Hz)."""
TRIES = 2
FRAME_NS = 1_000_000_000 // 15
BUFFER_FRAMES = 15
FRAMES = 60
OPEN, WINDOW = 4000, 2000
"""Bytes of the displays of a terminal."""
REQUEST, TOKEN = 36, 16
"""Bytes of a request, and of the token at the start of the connection."""

SERVICES = {
    "stream": ("--duration", "4 s", "--gop", 15, "--peak-to-mean", 2, "--buffer", "1 s", "--timeout", "10 s"),
    "voice": ("--duration", "2 s"),
    "terminal": ("--keys", 3, "--scrolls", 0, "--think", "200 ms", "--window", f"{WINDOW} B", "--file", f"{OPEN} B"),
}
BEARERS = {
    "gprs-4+1": ("16 kbit/s", "", ("stream", "terminal")),
    "umts-dch-384": ("64 kbit/s", ", bler = 0.1", tuple(SERVICES)),
    "hsdpa-cat6": ("64 kbit/s", ", uplink.bler = 0.1", tuple(SERVICES)),
    "lte-10mhz": ("64 kbit/s", "", tuple(SERVICES)),
}
"""Rate of the video, keys of the bearer, and services: the uplink of GPRS is too slow for a call.
GPRS, HSDPA and LTE have block errors by their radio conditions."""


def packets_of(packets: pl.DataFrame, flow: int, direction: str) -> pl.DataFrame:
    """Return the packets of a flow in the order of sending, with the time of arrival."""
    own = packets.filter(flow=flow, direction=direction)
    sent = own.filter(step="sent").select("packet", "size", "offset", "length", "retransmission", sent="time")
    arrived = own.filter(step="received").select("packet", arrived="time")
    return sent.join(arrived, on="packet", how="left").sort("sent", "packet")


def flow_with(packets: pl.DataFrame, *conditions: pl.Expr) -> int:
    """Return the number of the flow with most packets that fulfil all conditions."""
    found = packets.filter(pl.col("step") == "sent", *conditions).group_by("flow").len().sort("len")
    return int(found["flow"][-1])


def playback(media: pl.DataFrame) -> dict[str, float]:
    """Return start-up time and stalls of a video with a packet for each frame, by streaming.md."""
    start = media["sent"][0]
    arrivals: list[int | None] = media["arrived"].to_list()
    events = sorted((time, frame) for frame, time in enumerate(arrivals) if time is not None)
    here: set[int] = set()
    highest = newest = -1
    following = 0
    first = None
    stalls: list[int] = []
    waits_since, plays = start, None
    for time, frame in [*events, (events[-1][0] + FRAMES * FRAME_NS, FRAMES)]:
        while plays is not None and following < FRAMES:
            due = plays[0] + (following - plays[1]) * FRAME_NS
            if due > time:
                break
            if following not in here and highest <= following:
                waits_since, plays = due, None
                break
            first = due if first is None and following in here else first
            following += 1
        here.add(frame)
        highest, newest = max(highest, frame), max(newest, frame)
        if plays is None and following < FRAMES and (following in here or highest > following):
            is_all = highest >= FRAMES - 1
            if is_all or newest - following >= BUFFER_FRAMES:
                if following > 0:
                    stalls.append(time - waits_since)
                plays = (time, following)
    assert first is not None
    return {"startup_s": (first - start) / 1e9, "stalls": len(stalls), "stall_s": sum(stalls) / 1e9}


def of_stream(packets: pl.DataFrame) -> tuple[dict[str, int], dict[str, float]]:
    """Return the counts and the times of the video."""
    flow = flow_with(packets, pl.col("flags").is_null(), pl.col("direction") == "down", pl.col("size") > 100)
    media = packets_of(packets, flow, "down")
    assert media.height == FRAMES, "each frame has a packet"
    lost = media["arrived"].null_count()
    times = playback(media)
    return {"sent": FRAMES, "received": FRAMES - lost, "lost": lost, "stalls": int(times.pop("stalls"))}, times


def of_call(packets: pl.DataFrame) -> tuple[dict[str, int], dict[str, float]]:
    """Return the counts and the mean delays of both directions of the call."""
    flow = flow_with(packets, pl.col("flags").is_null(), pl.col("direction") == "up", pl.col("size").is_in([47, 72]))
    counts: dict[str, int] = {}
    times: dict[str, float] = {}
    for direction in ("down", "up"):
        # Without the datagrams that open the path.
        speech = packets_of(packets, flow, direction).filter(pl.col("size") > 40)
        delays = (speech["arrived"] - speech["sent"]).drop_nulls()
        counts |= {f"{direction}_sent": speech.height, f"{direction}_received": delays.len()}
        times[f"{direction}_delay_mean_s"] = float(delays.sum()) / delays.len() / 1e9
    return counts, times


def of_terminal(packets: pl.DataFrame) -> tuple[dict[str, int], dict[str, float]]:
    """Return the time of the two large displays: from the request to the last byte."""
    flow = flow_with(packets, pl.col("direction") == "up", pl.col("length") == REQUEST)
    # Nagle's algorithm may join the requests of keys, but not the last two.
    up = packets_of(packets, flow, "up").filter(pl.col("length") >= REQUEST, ~pl.col("retransmission"))
    requests = up["sent"]
    bytes_up = int((up["offset"] + up["length"]).to_numpy().max()) - TOKEN
    data = packets_of(packets, flow, "down").filter(pl.col("length") > 0, pl.col("arrived").is_not_null())
    total = int((data["offset"] + data["length"]).to_numpy().max())

    def complete(end: int) -> int:
        """When all bytes up to `end` have arrived."""
        reached = 0
        waiting: dict[int, int] = {}
        for offset, length, arrived in data.sort("arrived").select("offset", "length", "arrived").iter_rows():
            waiting[offset] = max(waiting.get(offset, 0), offset + length)
            while any(offset <= reached < last for offset, last in waiting.items()):
                reached = max(last for offset, last in waiting.items() if offset <= reached)
            if reached >= end:
                return int(arrived)
        pytest.fail("the display is not complete")

    times = {"window": complete(total - OPEN) - requests[-2], "open": complete(total) - requests[-1]}
    return {"received": bytes_up // REQUEST}, {name: time / 1e9 for name, time in times.items()}


def measured(service: str, row: dict[str, Any]) -> dict[str, float]:
    """Return the figures of `airpath measure` under the names that the replay has."""
    if service == "voice":
        return {f"{way}_{name}": value for way in ("down", "up") for name, value in row[way].items()}
    if service == "terminal":
        return row | {kind: row["exchange"][kind]["mean_s"] for kind in ("window", "open")}
    return row


def differences(folder: Path, services: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the figures that differ: measured, and from the replay."""
    packets = airpath.load(folder / "again").packets
    found: dict[str, tuple[float, float]] = {}
    for service in services:
        (row,) = json.loads((folder / f"{service}.json").read_text(encoding="utf-8"))["flows"]
        assert row["outcome"] == "finished", row
        real = measured(service, row)
        counts, times = {"stream": of_stream, "voice": of_call, "terminal": of_terminal}[service](packets)
        found |= {f"{service}: {name}": (real[name], each) for name, each in counts.items() if real[name] != each}
        for name, each in times.items():
            if abs(real[name] - each) > max(TOLERANCE * each, SLACK_S):
                found[f"{service}: {name}"] = (real[name], each)
    return found


@pytest.mark.parametrize("preset", BEARERS)
def test_both_clocks_agree_with_block_errors(link: LinkCommand, preset: str) -> None:
    rate, keys, services = BEARERS[preset]
    scenario = link.folder / "link.toml"
    scenario.write_text(
        "format = 1\nseed = 3\n"
        'fixed = { delay = "40 ms", down.loss = 0.01 }\n'
        f'bearer = {{ preset = "{preset}"{keys} }}\n'
        'change = [{ at = "6 s", outage = "2 s" }]\n',
        encoding="utf-8",
    )
    script = ""
    for service in services:
        words = [AIRPATH, "measure", service, "server", *SERVICES[service], "--format", "json"]
        words += ["--rate", rate] if service == "stream" else []
        script += f"{shlex.join(map(str, words))} >{service}.json & "
    serve = shlex.join([str(AIRPATH), "measure", "serve", "--listen", "0.0.0.0"])
    found: dict[str, tuple[float, float]] = {}
    for _ in range(TRIES):
        done = link("sh", "-c", f"{script} wait", link=scenario, serve=serve, options="--out out", timeout=90)
        check_parity(Command(link.folder), link.folder / "out")
        assert all((link.folder / f"{service}.json").stat().st_size for service in services), done.err
        found = differences(link.folder, services)
        if not found:
            return
        if summary(link.folder / "out")["emulation"]["lateness"]["valid"]:
            pytest.fail(f"measured and replayed: {found}")
    missing("idle-host", f"packets were late in each of {TRIES} runs: {found}")
