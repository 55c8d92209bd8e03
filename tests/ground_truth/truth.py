"""The cause of each interval of a simulated flow, derived from the event tables alone.

No capture is read here. The causes are tested in the order of docs/trace-causes.md: the first one
that matches holds.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from radio_log import radio_gaps

CAUSES = (
    "set-up",
    "application",
    "slow-start",
    "receive-window",
    "congestion-window",
    "path-rate",
    "queueing",
    "sharing",
    "radio",
    "timer",
    "recovery",
    "spurious",
    "closing",
)
"""All causes, as the analyser names them."""

PAUSE = 0.1
"""Share of a round trip: a link whose idle times are no longer counts as busy throughout.

A link that is busy for a round trip or longer is full.
"""

LEAST_GAP = 150_000_000
"""Nanoseconds without a transmission after which a radio with queued data counts as silent.

If the transit of the quickest packet takes longer, that time applies instead.
"""


MARKS = 32
"""Samples of the queue in each round trip."""


@dataclass(frozen=True)
class Truth:
    """Causes of the time between `edges[i]` and `edges[i + 1]`, in nanoseconds of the run."""

    edges: np.ndarray
    causes: np.ndarray


class Steps:
    """A value that changes at given times and holds in between."""

    def __init__(self, times: np.ndarray, values: np.ndarray, before: float):
        order = np.argsort(times, kind="stable")
        self.times = times[order]
        self.values = np.concatenate([[before], values[order]])

    def at(self, times: np.ndarray) -> np.ndarray:
        """The value at each of the times."""
        return self.values[np.searchsorted(self.times, times, side="right")]


class Intervals:
    """A set of times, as intervals that may overlap."""

    def __init__(self, begins: np.ndarray, ends: np.ndarray):
        keep = ends > begins
        times = np.concatenate([begins[keep], ends[keep]])
        changes = np.concatenate([np.ones(keep.sum()), -np.ones(keep.sum())])
        order = np.lexsort((changes, times))
        self.depth = Steps(times[order], np.cumsum(changes[order]), 0)
        self.begins, self.ends = begins[keep], ends[keep]

    def contain(self, times: np.ndarray) -> np.ndarray:
        """Whether each of the times lies in one of them."""
        return self.depth.at(times) > 0

    def lasting(self, least: float, pause: float) -> "Intervals":
        """The stretches of at least `least` that they cover but for gaps of up to `pause`."""
        order = np.argsort(self.begins)
        begins, ends = self.begins[order], np.maximum.accumulate(self.ends[order])
        if not len(begins):
            return self
        apart = np.nonzero(begins[1:] - ends[:-1] > pause)[0]
        first, last = begins[np.concatenate([[0], apart + 1])], ends[np.concatenate([apart, [len(ends) - 1]])]
        long = last - first >= least
        return Intervals(first[long], last[long])


def truth(result: Path, end: str) -> Truth:
    """The causes of flow 0 of a result folder, over the time of a capture at `end`.

    `end` is `server` or `mobile`.
    """
    return Flow(result, end).classify()


def events(result: Path, name: str) -> pl.DataFrame:
    parts = sorted((result / "events" / name).glob("*.parquet"))
    return pl.concat([pl.read_parquet(part) for part in parts]) if parts else pl.DataFrame()


def as_intervals(frame: pl.DataFrame, begin: str, finish: str) -> Intervals:
    return Intervals(frame[begin].to_numpy().astype(float), frame[finish].to_numpy().astype(float))


class Flow:
    """A flow, by the events of its run."""

    def __init__(self, result: Path, end: str):
        self.result = result
        packets = events(result, "packets").filter(pl.col("flow") == 0)
        self.radio = events(result, "radio")
        self.flow = self.described()
        self.kind = self.flow["kind"]
        self.down = self.kind != "upload"
        self.forward, self.backward = ("down", "up") if self.down else ("up", "down")

        sent = packets.filter(pl.col("step") == "sent").select(
            "packet",
            "direction",
            "offset",
            "length",
            "ack",
            "window",
            "flags",
            "retransmission",
            "size",
            sent="time",
        )
        over = (
            packets.filter(pl.col("step").is_in(["received", "dropped"]))
            .group_by("packet")
            .agg(
                gone=pl.col("time").max(),
                received=pl.col("time").filter(pl.col("step") == "received").min(),
            )
        )
        self.sent = (
            sent.join(over, on="packet", how="left")
            .with_columns(
                gone=pl.col("gone").fill_null(int(packets["time"].max()))  # type: ignore[arg-type]
            )
            .sort("sent", "packet")
        )
        self.data = self.sent.filter((pl.col("direction") == self.forward) & (pl.col("length") > 0))
        self.acks = self.sent.filter((pl.col("direction") == self.backward) & pl.col("received").is_not_null())
        hops = packets.filter(pl.col("step").is_in(["queued", "delivered", "dropped"]))
        self.hops = hops.drop("length").join(self.sent.select("packet", "length"), on="packet")
        self.mss = int(self.data["length"].max())  # type: ignore[arg-type]
        here_forward = (end == "server") == self.down
        seen = pl.concat(
            [
                self.sent.filter((pl.col("direction") == self.forward) == here_forward)["sent"],
                self.sent.filter((pl.col("direction") == self.backward) == here_forward)["received"].drop_nulls(),
            ]
        )
        self.span = (int(seen.min()), int(seen.max()))  # type: ignore[arg-type]
        self.tcp = self.sender()

    # The sender's state.

    def described(self) -> dict[str, Any]:
        """The flow, as the scenario has it."""
        return json.loads((self.result / "summary.json").read_text())["flows"][0]

    def sender(self) -> pl.DataFrame:
        """What the sender's TCP did, and when."""
        return events(self.result, "tcp").filter((pl.col("flow") == 0) & (pl.col("direction") == self.forward))

    def acknowledged(self) -> Steps:
        """What has been acknowledged to the sender."""
        acks = self.acks.filter(pl.col("ack").is_not_null()).sort("received")
        return Steps(acks["received"].to_numpy(), np.maximum.accumulate(acks["ack"].to_numpy()), 0)

    def right_edge(self) -> Steps:
        """One past what the receiver's window allows."""
        acks = self.acks.filter(pl.col("ack").is_not_null()).sort("received")
        edges = np.maximum.accumulate((acks["ack"] + acks["window"]).to_numpy())
        return Steps(acks["received"].to_numpy(), edges, 0)

    def highest_sent(self) -> Steps:
        """One past the last byte that was sent."""
        ends = np.maximum.accumulate((self.data["offset"] + self.data["length"]).to_numpy())
        return Steps(self.data["sent"].to_numpy(), ends, 0)

    def written(self) -> Steps:
        """What the application has written to the socket."""
        total = int((self.data["offset"] + self.data["length"]).max())  # type: ignore[operator]
        requests = self.acks.filter(pl.col("length") > 0).sort("received")
        if self.kind == "upload" or requests.is_empty():
            return Steps(np.array([self.established()]), np.array([total]), 0)
        arrivals = requests["received"].to_numpy()
        if self.kind != "transactions":
            return Steps(arrivals, np.full(len(arrivals), total), 0)
        arrived = np.maximum.accumulate((requests["offset"] + requests["length"]).to_numpy())
        return Steps(arrivals, arrived // self.flow["request_bytes"] * self.flow["response_bytes"], 0)

    def established(self) -> int:
        """When the connection was open at the sender."""
        return int(self.tcp.filter(pl.col("trigger") == "established")["time"].min())  # type: ignore[arg-type]

    def closing(self) -> float:
        """The time from which all data has arrived and the connection is closing."""
        fins = self.sent.filter(pl.col("flags") & 1 == 1)
        if fins.is_empty():
            return np.inf
        done = self.acknowledged()
        total = int((self.data["offset"] + self.data["length"]).max())  # type: ignore[operator]
        reached = np.nonzero(done.values[1:] >= total)[0]
        if not len(reached):
            return np.inf
        return float(max(int(fins["sent"].min()), done.times[reached[0]]))  # type: ignore[arg-type]

    # What the path does.

    def bottleneck(self) -> tuple[str, float, pl.DataFrame]:
        """The slowest hop of the data: name, service time of a full segment, packet times."""
        best: tuple[str, float, pl.DataFrame] | None = None
        for name in self.hops["component"].unique(maintain_order=True):
            hop = self.hops.filter((pl.col("component") == name) & (pl.col("direction") == self.forward))
            times = (
                hop.group_by("packet")
                .agg(
                    queued=pl.col("time").filter(pl.col("step") == "queued").min(),
                    left=pl.col("time").filter(pl.col("step") == "delivered").min(),
                    backlog=pl.col("backlog_packets").max(),
                    length=pl.col("length").first(),
                )
                .drop_nulls(["queued", "left"])
                .sort("left", "packet")
            )
            full = times.filter(pl.col("length") == self.mss).with_columns(
                spacing=pl.col("left").diff(), before=pl.col("left").shift(1)
            )
            behind = full.filter(pl.col("backlog") >= 3)["spacing"].drop_nulls()
            if len(behind) <= 5:
                # A link that rarely has a queue: use the packets that, on an idle link, would have
                # overtaken the packet before.
                quickest = (full["left"] - full["queued"]).min()
                behind = full.filter(pl.col("queued") + quickest < pl.col("before"))["spacing"].drop_nulls()
            service = float(behind.median()) if len(behind) > 5 else 0.0  # type: ignore[arg-type]
            if best is None or service > best[1]:
                best = (name, service, times)
        assert best is not None
        return best

    def waiting(self, service: float, times: pl.DataFrame) -> tuple[Intervals, pl.DataFrame]:
        """When packets wait or are transmitted at the bottleneck, without propagation."""
        full = times.filter(pl.col("length") == self.mss)
        shortest = float((full["left"] - full["queued"]).min()) - service  # type: ignore[arg-type,operator]
        propagation = max(0.0, shortest)
        done = times.with_columns(done=pl.col("left") - propagation)
        return as_intervals(done, "queued", "done"), done

    def radio_gaps(self, direction: str, component: str) -> Intervals:
        """When the radio or link has data to send, but sends nothing or may not send."""
        begins, ends = [], []
        for begin, end in self.states(direction):
            begins.append(begin)
            ends.append(end)
        # In a call packets also cross modems: meanwhile no TTI is missing.
        call = 'model = "gsm-csd"' in (self.result / "scenario.toml").read_text()
        if not self.radio.is_empty() and not call:
            ttis = self.radio.filter(pl.col("direction") == direction).sort("time")
            starts = ttis["time"].to_numpy()
            stops = (ttis["time"] + ttis["duration"]).to_numpy()
            hop = self.hops.filter((pl.col("component") == component) & (pl.col("direction") == direction))
            inside = (
                hop.group_by("packet")
                .agg(
                    queued=pl.col("time").filter(pl.col("step") == "queued").min(),
                    left=pl.col("time").filter(pl.col("step") != "queued").max(),
                )
                .drop_nulls()
                .sort("queued")
            )
            queued, left = inside["queued"].to_numpy(), inside["left"].to_numpy()
            least = max(LEAST_GAP, float((left - queued).min())) if len(left) else LEAST_GAP
            stop, start = np.concatenate([[0], stops]), np.concatenate([starts, [self.span[1]]])
            for begin, end in zip(stop, start, strict=True):
                # A packet that leaves only after the next TTI has waited for it.
                waiting = queued[(queued < end) & (left > end)]
                if end - begin > least and len(waiting) and end - max(begin, waiting.min()) > least:
                    begins.append(max(begin, waiting.min()))
                    ends.append(end)
        return Intervals(np.array(begins, dtype=float), np.array(ends, dtype=float))

    def states(self, direction: str) -> list[tuple[int, int]]:
        """When the radio was in a state that carries nothing in this direction."""
        return [(gap.begin, gap.end) for gap in radio_gaps(self.result) if gap.direction in {None, direction}]

    def base_round_trip(self) -> float:
        """The shortest round trip, that of the handshake included."""
        samples = self.tcp["round_trip"].drop_nulls().to_list()
        opening = self.sent.filter(pl.col("flags") & 2 == 2)
        answer = opening.filter(pl.col("direction") == self.forward)
        # A retransmitted SYN gives no sample: the answered copy is ambiguous (Karn).
        if len(answer) == 1:
            samples.append(self.established() - int(answer["sent"][0]))
        return float(min(samples))

    def spurious(self, served: pl.DataFrame) -> Intervals:
        """The time that the bottleneck spends on data whose earlier copy arrives."""
        arrives = np.zeros(int((self.data["offset"] + self.data["length"]).max()), dtype=bool)  # type: ignore[operator]
        useless = []
        for packet, offset, length, received in self.data.select("packet", "offset", "length", "received").iter_rows():
            if arrives[offset : offset + length].all():
                useless.append(packet)
            if received is not None:
                arrives[offset : offset + length] = True
        ordered = served.sort("done").with_columns(begin=pl.max_horizontal("queued", pl.col("done").shift(1)))
        mine = ordered.filter(pl.col("packet").is_in(useless))
        begin = mine["begin"].fill_null(mine["queued"])
        return Intervals(begin.to_numpy().astype(float), mine["done"].to_numpy().astype(float))

    # The sender's phases.

    def recovery(self) -> Intervals:
        """From the detection of a loss until all data sent by then is acknowledged."""
        begins, ends = [], []
        highest, done = self.highest_sent(), self.acknowledged()
        undone = self.tcp.filter(pl.col("trigger") == "undo")["time"].to_numpy()
        for time, trigger in self.tcp.select("time", "trigger").iter_rows():
            if trigger not in {"timeout", "fast-retransmit"}:
                continue
            target = highest.at(np.array([time]))[0]
            reached = np.nonzero(done.values[1:] >= target)[0]
            end = done.times[reached[0]] if len(reached) else self.span[1]
            taken_back = undone[undone >= time]
            begins.append(time)
            ends.append(min(end, taken_back[0]) if len(taken_back) else end)
        return Intervals(np.array(begins, dtype=float), np.array(ends, dtype=float))

    def timer(self, silent: Intervals) -> Intervals:
        """From when nothing is in flight and the radio can send, until the timer expires."""
        begins, ends = [], []
        gone, came = np.sort(self.sent["gone"].to_numpy()), np.sort(self.sent["sent"].to_numpy())
        for time in self.tcp.filter(pl.col("trigger").is_in(["timeout", "tail-probe"]))["time"]:
            # Packets sent at exactly that time are those of the timer.
            before = gone[gone <= time]
            started = came[came < time]
            if not len(before) or len(started) > len(before):
                continue
            begin = before[-1]
            inside = silent.ends[(silent.begins < time) & (silent.ends > begin)]
            begins.append(max([begin, *inside]))
            ends.append(time)
        return Intervals(np.array(begins, dtype=float), np.array(ends, dtype=float))

    # The classification.

    def classify(self) -> Truth:
        """The cause of each interval."""
        component, service, times = self.bottleneck()
        waits, served = self.waiting(service, times)
        base = self.base_round_trip()
        window = max(base, 2 * service)
        forward, backward = self.radio_gaps(self.forward, component), self.radio_gaps(self.backward, component)
        spurious, recovery = self.spurious(served), self.recovery()
        timer = self.timer(
            Intervals(np.concatenate([forward.begins, backward.begins]), np.concatenate([forward.ends, backward.ends]))
        )
        acknowledged, edge, highest, written = (
            self.acknowledged(),
            self.right_edge(),
            self.highest_sent(),
            self.written(),
        )
        congestion = Steps(self.tcp["time"].to_numpy(), self.tcp["congestion_window"].to_numpy(), 0)
        threshold = Steps(
            self.tcp["time"].to_numpy(),
            self.tcp["slow_start_threshold"].fill_null(2**60).to_numpy().astype(float),
            2.0**60,
        )
        moments = [
            self.sent["sent"].to_numpy(),
            self.sent["gone"].to_numpy(),
            self.tcp["time"].to_numpy(),
            served["done"].to_numpy(),
            served["queued"].to_numpy(),
            np.array([self.established(), *self.span]),
        ]
        for intervals in (forward, backward, spurious, recovery, timer):
            moments += [intervals.begins, intervals.ends]
        edges = np.unique(np.concatenate([np.asarray(each, dtype=float) for each in moments]))
        edges = edges[(edges >= self.span[0]) & (edges <= self.span[1])]
        # Long intervals are split: the share of time with a queue changes within them.
        fine = np.arange(self.span[0], self.span[1], 20_000_000, dtype=float)
        edges = np.unique(np.concatenate([edges, fine]))
        middle = (edges[:-1] + edges[1:]) / 2

        full = waits.lasting(window, PAUSE * window).contain(middle)
        entered = served.sort("queued")
        drained = Steps(entered["queued"].to_numpy(), np.maximum.accumulate(entered["done"].to_numpy()), 0)
        # Queueing delay without the packet in transmission, as the mean of a round trip.
        around = [middle + (part / MARKS - 0.5) * window for part in np.arange(MARKS) + 0.5]
        standing = sum(np.maximum(drained.at(times) - times - service, 0) for times in around) / MARKS
        outstanding = highest.at(middle) - np.maximum(acknowledged.at(middle), 0)
        unsent = written.at(middle) - highest.at(middle)
        data_inside = as_intervals(self.data, "sent", "gone").contain(middle)
        any_inside = as_intervals(self.sent, "sent", "gone").contain(middle)
        wanting = (outstanding > 0) | (unsent > 0) | any_inside
        silent = wanting & (forward.contain(middle) | (backward.contain(middle) & ~(data_inside & full)))
        clamp = self.window_limit()
        effective = np.minimum(congestion.at(middle), clamp)
        room = edge.at(middle) - highest.at(middle)
        receiver = (room < self.mss) & (edge.at(middle) - acknowledged.at(middle) <= effective + self.mss)

        causes = np.full(len(middle), "congestion-window", dtype=object)
        slow = (congestion.at(middle) < threshold.at(middle)) & (congestion.at(middle) < clamp)
        causes[slow] = "slow-start"
        causes[receiver] = "receive-window"
        causes[unsent <= 0] = "application"
        # Only Nagle's algorithm holds back a sub-MSS segment that the windows permit.
        partial = (unsent > 0) & (unsent < self.mss) & (outstanding > 0)
        causes[partial & (effective - outstanding >= unsent) & (room >= unsent)] = "application"
        causes[recovery.contain(middle)] = "recovery"
        causes[full] = "path-rate"
        causes[full & (standing > base)] = "queueing"
        causes[spurious.contain(middle)] = "spurious"
        causes[timer.contain(middle)] = "timer"
        causes[silent] = "radio"
        causes[middle > self.closing()] = "closing"
        causes[middle < self.established()] = "set-up"
        return Truth(edges, causes)

    def window_limit(self) -> float:
        """The limit on the sender's window."""
        limit = self.flow["tcp"].get("window_limit")
        return float(limit * self.mss) if isinstance(limit, int) else np.inf
