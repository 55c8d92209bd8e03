"""The cause of each moment of a real connection, from the link's events and the kernels' samples.

No capture is read here. The link's events give when packets waited, when the link was full, silent
or carried other connections, and when a handshake or a FIN passed. The samples of `struct tcp_info`
give what limited the sender according to its kernel: unsent data, chronographs of the receive
window and of the send buffer, congestion window, threshold and state of recovery. The causes are
tested in the order of docs/trace-causes.md, which also has the rules for what is not decided.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from radio_log import radio_gaps
from truth import LEAST_GAP, MARKS, PAUSE, Intervals, Steps, as_intervals, events

STEP = 2_000_000
"""Nanoseconds of a moment."""

AROUND = 20_000_000
"""Nanoseconds on each side over which a chronograph is read: it counts in ticks of 4 ms."""

PATIENCE = 100_000_000
"""Nanoseconds: moments farther from the next sample are not decided."""

UNDECIDED = ""

RECOVERY, LOSS = 3, 4
"""States of the congestion control (enum tcp_ca_state)."""

UNACKNOWLEDGED = ("established", "fin-wait-1", "close-wait", "last-ack", "closing")


@dataclass(frozen=True)
class Moments:
    """The causes of moments, one every [`STEP`]."""

    times: np.ndarray
    """Nanoseconds since 1970."""
    causes: np.ndarray
    shared: np.ndarray
    """Whether the link was full of this and other connections: they alternate packet by packet."""


@dataclass(frozen=True)
class Run:
    """What a run left: the link's events, and the samples of both ends."""

    folder: Path
    packets: pl.DataFrame = field(init=False)
    """Empty without a link."""
    origin: int = field(init=False)
    """The start of the link, in nanoseconds since 1970."""
    flows: list[dict[str, object]] = field(init=False)
    samples: dict[str, pl.DataFrame] = field(init=False)
    proxied: bool = field(init=False)

    def __post_init__(self) -> None:
        """Reads the tables."""
        set_ = object.__setattr__
        result = self.folder / "run"
        set_(
            self, "samples", {end: pl.read_parquet(result / f"tcp_info.{end}.parquet") for end in ("server", "mobile")}
        )
        summary = json.loads((result / "summary.json").read_text()) if (result / "summary.json").exists() else {}
        set_(self, "flows", [flow for flow in summary.get("flows", []) if flow["kind"] == "tcp"])
        set_(self, "origin", round(summary.get("emulation", {}).get("started_s", 0) * 1e9))
        packets = events(result, "packets") if summary else pl.DataFrame()
        if not packets.is_empty():
            packets = packets.with_columns(pl.col("time") + self.origin)
        set_(self, "packets", packets)
        set_(self, "proxied", bool(summary) and "[proxy" in (result / "scenario.toml").read_text())

    def connections(self) -> list[tuple[int, int]]:
        """The ports of client and server of each connection that a client's kernel had."""
        known = self.samples["mobile"]
        if known.is_empty():
            return []
        return sorted(known.filter(pl.col("state") == "established").select("local", "remote").unique().rows())

    def socket(self, end: str, ports: tuple[int, int]) -> pl.DataFrame:
        """The samples of a connection's socket at one end."""
        local, remote = ports if end == "mobile" else ports[::-1]
        known = self.samples[end]
        return known.filter((pl.col("local") == local) & (pl.col("remote") == remote)).sort("time")

    def sent_by(self, end: str, ports: tuple[int, int]) -> bool:
        """Whether this end sends more than the other."""
        mine, theirs = (
            int(self.socket(each, ports)["bytes_acked"].max() or 0)  # type: ignore[arg-type]
            for each in (end, "server" if end == "mobile" else "mobile")
        )
        return mine > theirs

    def flow(self, client: int, server: int) -> int | None:
        """The flow of the link that carries a connection."""
        for flow in self.flows:
            ports = [int(str(flow[end]).rpartition(":")[2]) for end in ("local", "remote")]
            if sorted(ports) == sorted([client, server]):
                return int(str(flow["flow"]))
        return None


class Half:
    """One direction of a connection: the data of the end `sender`."""

    def __init__(self, run: Run, ports: tuple[int, int], sender: str, near: str, bbr: bool):
        self.run, self.bbr, self.sender = run, bbr, sender
        self.forward, self.backward = ("down", "up") if sender == "server" else ("up", "down")
        self.info = run.socket(sender, ports)
        self.flow = run.flow(*ports)
        self.near = near
        # A proxy ends the connection: the link's packets are not those of the server's kernel.
        self.linked = self.flow is not None and not run.proxied
        if self.flow is not None:
            self._link()

    def _link(self) -> None:
        packets = self.run.packets.filter(pl.col("flow") == self.flow)
        sent = packets.filter(pl.col("step") == "sent").select(
            "packet", "direction", "offset", "length", "ack", "flags", "retransmission", sent="time"
        )
        over = (
            packets.filter(pl.col("step").is_in(["received", "dropped"]))
            .group_by("packet")
            .agg(gone=pl.col("time").max(), received=pl.col("time").filter(pl.col("step") == "received").min())
        )
        last = packets["time"].max()
        self.sent = sent.join(over, on="packet", how="left").with_columns(pl.col("gone").fill_null(last)).sort("sent")
        self.data = self.sent.filter((pl.col("direction") == self.forward) & (pl.col("length") > 0))

    # The kernel's samples.

    def nearest(self, name: str, times: np.ndarray) -> np.ndarray:
        """A field of the sample that is nearest to each of the times."""
        known = self.info["time"].to_numpy()
        return Steps((known[1:] + known[:-1]) / 2, self.info[name].to_numpy()[1:], self.info[name][0]).at(times)

    def limited(self, chronograph: str, times: np.ndarray) -> np.ndarray:
        """Whether a chronograph ran for most of the time around each of the times."""
        known = self.info["time"].to_numpy().astype(float)
        total = 1e3 * self.info[chronograph].to_numpy().astype(float)
        before, after = (np.interp(times + shift, known, total) for shift in (-AROUND, AROUND))
        return after - before > AROUND

    def sampled(self, times: np.ndarray) -> np.ndarray:
        """Whether there is a sample near each of the times; or the socket does not exist then."""
        known = self.info["time"].to_numpy()
        at = np.clip(np.searchsorted(known, times), 1, len(known) - 1)
        distance = np.minimum(np.abs(times - known[at - 1]), np.abs(times - known[at]))
        return (distance < PATIENCE) | (times < known[0]) | (times > known[-1])

    # The link's events.

    def bottleneck(self, direction: str) -> tuple[str, float, pl.DataFrame] | None:
        """The slowest hop: its name, the time that it takes for a byte, and its packets."""
        best: tuple[str, float, pl.DataFrame] | None = None
        hops = self.run.packets.filter(
            (pl.col("direction") == direction) & pl.col("step").is_in(["queued", "delivered"])
        )
        for name in hops["component"].unique(maintain_order=True):
            times = (
                hops.filter(pl.col("component") == name)
                .group_by("packet")
                .agg(
                    queued=pl.col("time").filter(pl.col("step") == "queued").min(),
                    left=pl.col("time").filter(pl.col("step") == "delivered").min(),
                    backlog=pl.col("backlog_packets").max(),
                    size=pl.col("size").first(),
                    flow=pl.col("flow").first(),
                )
                .drop_nulls(["queued", "left"])
                .sort("left", "packet")
            )
            if times.is_empty():
                continue
            behind = times.with_columns(each=pl.col("left").diff() / pl.col("size")).filter(
                (pl.col("backlog") >= 3) & (pl.col("size") >= 0.9 * pl.lit(times["size"].max()))
            )["each"]
            service = float(behind.median()) if len(behind) > 5 else 0.0  # type: ignore[arg-type]
            if best is None or service > best[1]:
                best = (name, service, times)
        return best

    def served(self, direction: str) -> tuple[str, float, pl.DataFrame] | None:
        """The bottleneck, the time of its largest packet, and the times of each packet in it."""
        found = self.bottleneck(direction)
        if found is None or found[2].is_empty():
            return None
        name, each, times = found
        if each == 0:
            # A link that rarely has a queue: the packets that left right after the one before.
            quickest = (times["left"] - times["queued"]).min()
            close = times.filter(pl.col("queued") + quickest < pl.col("left").shift(1))
            spacing = (close["left"].diff() / close["size"]).to_numpy()[1:]
            each = float(np.median(spacing)) if len(spacing) > 5 else 0.0
        alone = times.select((pl.col("left") - pl.col("queued") - pl.col("size") * each).alias("rest"))["rest"]
        propagation = max(0.0, float(alone.min()))  # type: ignore[arg-type]
        done = times.with_columns(done=pl.col("left") - propagation).with_columns(
            begin=pl.max_horizontal("queued", pl.col("left").shift(1).fill_null(0) - propagation)
        )
        return name, each * float(times["size"].max()), done  # type: ignore[arg-type]

    def base(self) -> float:
        """The shortest round trip that the sender's kernel has measured on any connection.

        All of them have one path. The packets of one connection may all have waited behind others.
        """
        sockets = [self.run.socket(self.sender, ports)["min_rtt"] for ports in self.run.connections()]
        samples = pl.concat(sockets)
        samples = samples.filter(samples.is_between(1, 2**31))
        return 1e3 * float(samples.min()) if len(samples) else 50e6  # type: ignore[arg-type]

    def silences(self, direction: str, hop: tuple[str, float, pl.DataFrame] | None) -> Intervals:
        """When the radio has something to send, and sends nothing or may not send."""
        result, origin = self.run.folder / "run", self.run.origin
        gaps = [gap for gap in radio_gaps(result) if gap.direction in {None, direction}]
        begins, ends = [gap.begin + origin for gap in gaps], [gap.end + origin for gap in gaps]
        radio = events(result, "radio")
        if hop is not None and not radio.is_empty():
            ttis = radio.filter(pl.col("direction") == direction).sort("time")
            stops = np.concatenate([[0], (ttis["time"] + ttis["duration"]).to_numpy() + origin])
            starts = np.concatenate([ttis["time"].to_numpy() + origin, [int(self.run.packets["time"].max())]])  # type: ignore[arg-type]
            mine = hop[2].filter(pl.col("flow") == self.flow)
            queued, left = mine["queued"].to_numpy(), mine["left"].to_numpy()
            least = max(LEAST_GAP, float((left - queued).min())) if len(left) else LEAST_GAP
            for begin, end in zip(stops, starts, strict=True):
                waiting = queued[(queued < end) & (left > end)]
                if end - begin > least and len(waiting) and end - max(begin, waiting.min()) > least:
                    begins.append(max(begin, waiting.min()))
                    ends.append(end)
        return Intervals(np.array(begins, dtype=float), np.array(ends, dtype=float))

    def timer(self, silent: list[Intervals]) -> Intervals:
        """From when nothing is in flight and the radio can send, until the timer sends."""
        begins, ends = [], []
        gone, came = np.sort(self.sent["gone"].to_numpy()), np.sort(self.sent["sent"].to_numpy())
        received = np.sort(self.sent.filter(pl.col("direction") == self.backward)["received"].drop_nulls().to_numpy())
        for time in self.data.filter("retransmission")["sent"]:
            before = gone[gone <= time]
            # Something arrived just before: that, and no timer, made the sender send.
            heard = received[(received <= time) & (received > time - 10_000_000)]
            if not len(before) or np.searchsorted(came, time) > len(before) or len(heard):
                continue
            begin = before[-1]
            inside = [end for each in silent for end in each.ends[(each.begins < time) & (each.ends > begin)]]
            begins.append(max([begin, *inside]))
            ends.append(time)
        return Intervals(np.array(begins, dtype=float), np.array(ends, dtype=float))

    def spurious(self, done: pl.DataFrame) -> Intervals:
        """The time that the bottleneck spends on data whose earlier copy arrives."""
        arrives: set[int] = set()
        useless = []
        for packet, offset, received in self.data.select("packet", "offset", "received").iter_rows():
            if offset in arrives:
                useless.append(packet)
            if received is not None:
                arrives.add(offset)
        mine = done.filter(pl.col("packet").is_in(useless))
        return Intervals(mine["begin"].to_numpy().astype(float), mine["done"].to_numpy().astype(float))

    # The classification.

    def classify(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The causes, whether this direction has data to send, and whether the link is shared."""
        causes, wanting = self._kernel(times)
        shared = np.zeros(len(times), dtype=bool)
        if self.flow is None or (self.run.proxied and self.near != "mobile"):
            return causes, wanting, shared
        if self.run.proxied:
            # The sender of these packets is the proxy: what limits it is not known.
            causes[:] = UNDECIDED
            wanting[:] = False
        inside = as_intervals(self.sent, "sent", "gone").contain(times)
        wanting |= inside
        hop, reverse = self.served(self.forward), self.served(self.backward)
        if hop is None:
            return causes, wanting, shared
        _, service, done = hop
        base = self.base()
        window = max(base, 2 * service)
        mine = done.filter(pl.col("flow") == self.flow)
        full = as_intervals(mine, "queued", "done").lasting(window, PAUSE * window).contain(times)
        others = done.filter(pl.col("flow") != self.flow)
        theirs = as_intervals(others, "begin", "done").contain(times)
        waits = full & theirs
        if reverse is not None:
            own = reverse[2].filter(pl.col("flow") == self.flow)
            stuck = as_intervals(own, "queued", "begin").lasting(window, PAUSE * window).contain(times)
            beside = as_intervals(reverse[2].filter(pl.col("flow") != self.flow), "begin", "done").contain(times)
            waits |= stuck & beside & ~full
        entered = done.sort("queued")
        drained = Steps(entered["queued"].to_numpy(), np.maximum.accumulate(entered["done"].to_numpy()), 0)
        marks = [times + (part / MARKS - 0.5) * window for part in np.arange(MARKS) + 0.5]
        standing = sum(np.maximum(drained.at(each) - each - service, 0) for each in marks) / MARKS
        forward, backward = self.silences(self.forward, hop), self.silences(self.backward, reverse)
        data_inside = as_intervals(self.data, "sent", "gone").contain(times)
        silent = wanting & (forward.contain(times) | (backward.contain(times) & ~(data_inside & full)))
        causes[full] = "path-rate"
        causes[full & (standing > base)] = "queueing"
        causes[waits] = "sharing"
        # Within a round trip of another's packet, both use the link.
        near_others = as_intervals(others, "queued", "done").lasting(0, window).contain(times)
        shared = full & near_others
        if self.linked:
            causes[self.spurious(done).contain(times) & ~shared] = "spurious"
            causes[self.timer([forward, backward]).contain(times)] = "timer"
        causes[silent] = "radio"
        return causes, wanting, shared & ~silent

    def _kernel(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the sender's kernel reports, without the link."""
        causes = np.full(len(times), "application", dtype=object)
        if len(self.info) < 2:
            return causes, np.zeros(len(times), dtype=bool)
        unsent, unacknowledged = self.nearest("notsent_bytes", times), self.nearest("unacked", times)
        cwnd, segment = self.nearest("snd_cwnd", times), self.nearest("snd_mss", times)
        state = np.array(self.info["state"].to_list(), dtype=object)
        known = self.info["time"].to_numpy()
        open_ = Steps((known[1:] + known[:-1]) / 2, np.isin(state, UNACKNOWLEDGED)[1:], False).at(times) > 0
        open_ &= times <= known[-1]
        has_data = open_ & (unsent > 0)
        causes[has_data] = "congestion-window"
        slow = cwnd < self.nearest("snd_ssthresh", times)
        if not self.bbr:
            causes[has_data & slow] = "slow-start"
        # A sub-MSS segment that the windows allow is held back by Nagle's algorithm only.
        nagle = has_data & (unsent < segment) & (unacknowledged > 0) & (unacknowledged < cwnd)
        causes[nagle] = "application"
        causes[open_ & self.limited("sndbuf_limited", times)] = "application"
        causes[open_ & self.limited("rwnd_limited", times)] = "receive-window"
        recovering = open_ & np.isin(self.nearest("ca_state", times), [RECOVERY, LOSS])
        causes[recovering] = "recovery"
        causes[~self.sampled(times)] = UNDECIDED
        return causes, open_ & ((unsent > 0) | (unacknowledged > 0))


def truth(run: Run, ports: tuple[int, int], near: str, bbr: bool) -> Moments | None:
    """The causes of a connection, over the time of a capture at the end `near`."""
    halves = [Half(run, ports, end, near, bbr) for end in ("server", "mobile")]
    main, other = halves if run.sent_by("server", ports) else halves[::-1]
    if len(main.info) < 2:
        return None
    span = _span(main, near)
    times = np.arange(span[0] + STEP / 2, span[1], STEP)
    (causes, wanting, shared), (back, wanting_back, shared_back) = main.classify(times), other.classify(times)
    # The other direction counts where the main one has nothing to send, or where its own data
    # fills the link in front of the acknowledgements.
    busy = [np.isin(each, ["path-rate", "queueing"]) for each in (causes, back)]
    limited = np.isin(causes, ["slow-start", "congestion-window", "recovery"])
    use_back = (~wanting & wanting_back) | (limited & ~busy[0] & busy[1])
    causes[use_back], shared[use_back] = back[use_back], shared_back[use_back]
    established, closing = _opened_and_closing(main, other, near)
    causes[times > closing] = "closing"
    causes[times < established] = "set-up"
    shared &= (times >= established) & (times <= closing)
    return Moments(times, causes, shared)


def _at(half: Half, near: str, flags: int, choose: Callable[[pl.Expr], pl.Expr]) -> int | None:
    """When the first segment with any of some flags passes the end `near`."""
    seen = pl.when((pl.col("direction") == "down") == (near == "server")).then("sent").otherwise("received")
    rows = half.sent.filter(choose(pl.col("flags") & flags)).select(seen.alias("seen")).drop_nulls()
    return None if rows.is_empty() else int(rows["seen"].min())  # type: ignore[arg-type]


def _span(half: Half, near: str) -> tuple[int, int]:
    if half.flow is None:
        ends = [half.run.samples[end]["time"] for end in ("server", "mobile")]
        return int(ends[0].min()), int(ends[0].max())  # type: ignore[arg-type]
    seen = pl.when((pl.col("direction") == "down") == (near == "server")).then("sent").otherwise("received")
    times = half.sent.select(seen.alias("seen")).drop_nulls()["seen"]
    return int(times.min()), int(times.max())  # type: ignore[arg-type]


def _opened_and_closing(half: Half, other: Half, near: str) -> tuple[float, float]:
    """The end of the handshake at the capture, and the time when only the closing remains."""
    if half.flow is None:
        states = half.info["state"]
        first = half.info.filter(states.is_in(UNACKNOWLEDGED))["time"].min()
        done = half.info.filter((states != "established") & (pl.col("unacked") <= 1) & (pl.col("notsent_bytes") <= 1))
        done = done.filter(pl.col("state") != "close-wait")["time"].min()
        return float(first or 0), float(done or np.inf)  # type: ignore[arg-type]
    if near == "mobile":
        opened = _at(half, near, 18, lambda flags: flags == 18)
    else:
        up = half.sent.filter((pl.col("direction") == "up") & (pl.col("flags") & 2 == 0))["received"].drop_nulls()
        opened = int(up.min()) if len(up) else None  # type: ignore[arg-type]
    fin = _at(half, near, 5, lambda flags: flags > 0)
    acknowledged = []
    for each in (half, other):
        if each.data.is_empty():
            continue
        total = int((each.data["offset"] + each.data["length"]).max())  # type: ignore[operator]
        acks = each.sent.filter((pl.col("direction") == each.backward) & (pl.col("ack") >= total))
        column = "received" if each.sender == near else "sent"
        acknowledged.append(acks[column].min() if len(acks) else np.inf)
    closing = np.inf if fin is None or None in acknowledged else max([fin, *acknowledged])
    return float(opened or 0), float(closing)
