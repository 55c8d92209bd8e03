"""Compares single links and connections with formulas of the literature, at random parameters."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from differences import BEYOND_CHANCE
from dumbbell import PACKET

from airpath.quantities import rate, seconds
from airpath.run import execute

SEGMENT = 1448
"""Bytes of payload of a segment with timestamps."""
DATAGRAM = PACKET - 28
COUNTING = {"bytes": 1, "acknowledgements": 2}
"""Segments by which the window grows once, b in the formulas, with an acknowledgement for two."""


@dataclass(frozen=True)
class Check:
    """Values of a run against a formula."""

    formula: str
    parameters: str
    ours: tuple[float, ...]
    """One for each repetition; one only if nothing is random."""
    theory: float | tuple[float, float]
    """The value of the formula, or the range between two of its forms."""
    limit: float
    """The relative difference that the formula's own accuracy allows."""
    show: Callable[[float], str]

    @property
    def mean(self) -> float:
        """The mean of the runs."""
        return statistics.fmean(self.ours)

    @property
    def nearest(self) -> float:
        """The value of the formula, or the nearest end of its range."""
        low, high = self.theory if isinstance(self.theory, tuple) else (self.theory, self.theory)
        return min(max(self.mean, low), high)

    @property
    def difference(self) -> float:
        """The relative difference from the formula."""
        return self.mean / self.nearest - 1

    @property
    def z(self) -> float:
        """The difference in standard errors of the runs."""
        difference = abs(self.mean - self.nearest)
        if len(self.ours) == 1:
            return math.inf if difference else 0.0
        error = statistics.stdev(self.ours) / math.sqrt(len(self.ours))
        return difference / error if error else (math.inf if difference else 0.0)

    @property
    def is_beyond(self) -> bool:
        """Whether the difference is above the limit and beyond chance."""
        return abs(self.difference) > self.limit and self.z > BEYOND_CHANCE


Checks = Iterator[Check]


def checks(seed: int, repetitions: int, draws: int = 3) -> Checks:
    """Run all formulas, each with some draws of random parameters of a seed."""
    for formula in (
        serialisation,
        md1,
        bernoulli,
        gilbert_elliott,
        window_limit,
        additive_increase,
        square_root,
        pftk,
        codel,
    ):
        for number in range(draws):
            yield from formula(Random(f"{seed}/{formula.__name__}/{number}"), repetitions)


def serialisation(random: Random, _: int) -> Checks:
    """A packet alone takes its bits by the rate, rounded up to a nanosecond, and the delay."""
    bits, delay = round(logarithmic(random, 64e3, 200e6)), round(random.uniform(0, 0.4e9))
    (flow,) = run({"rate": f"{bits} bit/s", "delay": f"{delay} ns"}, [datagrams(1e6, packets=1)])["flows"]
    expected = (-(-PACKET * 8 * 10**9 // bits) + delay) / 1e9
    words = f"{rate(bits)}, {seconds(delay / 1e9)}"
    yield Check("serialisation", words, (flow["delay_mean_s"],), expected, 1e-9, lambda value: f"{1e3 * value:.6f} ms")


def md1(random: Random, repetitions: int) -> Checks:
    """Mean time in the queue with Poisson arrivals: M/D/1 (Pollaczek 1930, Khinchine 1932)."""
    bits, load = logarithmic(random, 1e6, 100e6), random.uniform(0.3, 0.85)
    service = PACKET * 8 / bits
    waits = []
    for seed in seeds(random, repetitions):
        now, flows = 0.0, []
        for _ in range(2000):
            now += random.expovariate(load / service)
            flows.append(datagrams(1e9, packets=1) | {"start": f"{now * 1e9:.0f} ns"})
        delays = [flow["delay_mean_s"] for flow in run({"rate": f"{bits:.0f} bit/s"}, flows, seed=seed)["flows"]]
        # The queue is empty at first.
        waits.append(statistics.fmean(delays[200:]) - service)
    expected = load / (2 * (1 - load)) * service
    words = f"load {load:.2f}, {rate(bits)}"
    yield Check("M/D/1, mean wait", words, tuple(waits), expected, 0.10, seconds)


def bernoulli(random: Random, repetitions: int) -> Checks:
    """Independent losses."""
    loss = logarithmic(random, 0.001, 0.3)
    shares = tuple(each["lost"] / each["sent"] for each in lossy(loss, seeds(random, repetitions)))
    yield Check("Bernoulli, share lost", f"{loss:.3%}", shares, loss, 0.03, lambda value: f"{value:.4%}")


def gilbert_elliott(random: Random, repetitions: int) -> Checks:
    """The stationary loss and the mean length of bursts (Gilbert 1960)."""
    enter, leave = logarithmic(random, 0.0005, 0.02), 1 / random.uniform(1.5, 8)
    flows = lossy({"good_to_bad": enter, "bad_to_good": leave}, seeds(random, repetitions))
    shares = tuple(each["lost"] / each["sent"] for each in flows)
    bursts = tuple(each["lost"] / each["gaps"] for each in flows)
    words = f"{enter:.3%} and {leave:.1%}"
    yield Check("Gilbert-Elliott, share lost", words, shares, enter / (enter + leave), 0.05, lambda v: f"{v:.4%}")
    yield Check("Gilbert-Elliott, mean burst", words, bursts, 1 / leave, 0.05, lambda v: f"{v:.3f}")


def window_limit(random: Random, _: int) -> Checks:
    """Goodput of a constant window below the bandwidth-delay product: W by the round trip."""
    round_trip, window = logarithmic(random, 0.02, 0.8), random.randrange(4, 60, 2)
    tcp = {"congestion": {"algorithm": "fixed", "fixed_window": window}, "delayed_ack": acknowledged(1)}
    # Windows arrive at multiples of the round trip; both times are between them.
    goodput = steady({"delay": delay(round_trip)}, tcp, 20.5 * round_trip, 120.5 * round_trip, 1)
    expected = window * SEGMENT * 8 / round_trip
    words = f"W = {window}, {seconds(round_trip)}"
    yield Check("window-limited goodput", words, (goodput,), expected, 0.001, rate)


def additive_increase(random: Random, _: int) -> Checks:
    """Goodput of NewReno alone behind a drop-tail queue, by the fluid model of the sawtooth.

    The window W grows by a segment per round trip from half of its maximum, P + B, the packets on
    the path and in the queue. Below P the goodput is W/R, above it the queue absorbs the window.
    """
    bits, round_trip = logarithmic(random, 2e6, 30e6), random.uniform(0.04, 0.2)
    path = bits * round_trip / 8 / PACKET + 1
    queue = max(1, round(random.uniform(0.02, 1.5) * path))
    link = {"rate": f"{bits:.0f} bit/s", "queue": {"packets": queue}, "delay": delay(round_trip)}
    highest = path + queue
    # Slow start overshoots twice, and a cycle has at most a round trip for each segment of the
    # growth.
    cycle = highest / 2 * (round_trip + queue * PACKET * 8 / bits)
    goodput = steady(link, {}, 4 * cycle, 24 * cycle, 1)
    lowest = max(highest / 2, 1)
    below, start = max(path - lowest, 0), max(lowest, path)
    sent = (path**2 - lowest**2) / 2 if below else 0
    time = below * round_trip
    filled = (highest**2 - start**2) / 2
    capacity = bits / 8 / PACKET
    share = (sent + filled) / (time + filled / capacity) / capacity
    words = f"{rate(bits)}, {seconds(round_trip)}, queue of {queue}"
    yield Check("fluid AIMD, goodput", words, (goodput,), share * bits * SEGMENT / PACKET, 0.10, rate)


def square_root(random: Random, repetitions: int) -> Checks:
    """W √(bp), the constant of the square-root law (Mathis et al. 1997).

    It is 1.22 for periodic and 1.31 for independent losses.
    """
    loss, round_trip = logarithmic(random, 0.0002, 0.002), random.uniform(0.02, 0.3)
    counting, every = random.choice(list(COUNTING.items()))
    values = tuple(
        each * round_trip / 8 / SEGMENT * math.sqrt(every * loss)
        for each in under_loss(loss, round_trip, 1500, counting, seeds(random, repetitions))
    )
    words = f"p = {loss:.3%}, {seconds(round_trip)}, b = {every}"
    yield Check("Mathis, W √(bp)", words, values, (1.22, 1.31), 0.10, lambda value: f"{value:.3f}")


def pftk(random: Random, repetitions: int) -> Checks:
    """Goodput under random losses with time-outs (Padhye, Firoiu, Towsley, Kurose 1998, eq. 32)."""
    loss, round_trip = logarithmic(random, 0.003, 0.05), random.uniform(0.03, 0.4)
    counting, every = random.choice(list(COUNTING.items()))
    expected = pftk_rate(loss, round_trip, round_trip + 0.2, every) * SEGMENT * 8
    words = f"p = {loss:.2%}, {seconds(round_trip)}, b = {every}"
    goodput = under_loss(loss, round_trip, 800, counting, seeds(random, repetitions))
    yield Check("PFTK, goodput", words, goodput, expected, 0.10, rate)


def pftk_rate(loss: float, round_trip: float, timeout: float, every: int) -> float:
    """Return packets per second by equation 32 of the paper, without a limit of the window.

    Args:
        loss: The probability of the loss of a packet.
        round_trip: Seconds.
        timeout: The retransmission timeout in seconds.
        every: Segments by which the window grows once.
    """
    part = (2 + every) / (3 * every)
    window = part + math.sqrt(8 * (1 - loss) / (3 * every * loss) + part**2)
    kept = 1 - loss
    share = (1 - kept**3) * (1 + kept**3 * (1 - kept ** (window - 3))) / (1 - kept**window)
    share = min(1.0, share)
    backoff = 1 + sum(2**power * loss ** (power + 1) for power in range(6))
    packets = kept / loss + window + share / kept
    return packets / (round_trip * (every / 2 * window + 1) + share * backoff * timeout / kept)


def codel(random: Random, _: int) -> Checks:
    """Drops of CoDel against a load that does not react: intervals of I/√n (RFC 8289 §5.3)."""
    bits, load, interval = logarithmic(random, 5e6, 50e6), random.uniform(1.3, 2), random.uniform(0.05, 0.2)
    packet_time = PACKET * 8 / bits
    # CoDel cannot drop more than the load.
    end = random.uniform(20, 60) * interval
    queue = {"discipline": "codel", "packets": 1_000_000, "target": "5 ms", "interval": f"{1e6 * interval:.0f} us"}
    link = {"rate": f"{bits:.0f} bit/s", "queue": queue}
    summary = run(link, [datagrams(load * bits, duration=end)], duration=end)
    dropped = sum(each["dropped"].get("queue-management", {"packets": 0})["packets"] for each in summary["links"])
    # The delay reaches the target as the backlog grows, and drops begin after an interval above it.
    now, expected = 0.005 / (load - 1) + packet_time + interval, 0
    while now <= end:
        expected += 1
        now += interval / math.sqrt(expected)
    words = f"load {load:.2f}, {rate(bits)}, interval {seconds(interval)}, {seconds(end)}"
    yield Check("CoDel, drops", words, (dropped,), expected, 0.10, lambda value: f"{value:,.0f}")


def seeds(random: Random, repetitions: int) -> list[int]:
    """Draw seeds; with equal seeds the losses of different parameters are correlated."""
    return [random.randrange(2**31) for _ in range(repetitions)]


def lossy(loss: object, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return datagram flows of 50,000 packets over a lossy link."""
    return [run({"loss": loss}, [datagrams(12e6, packets=50_000)], seed=seed)["flows"][0] for seed in seeds]


def under_loss(loss: float, round_trip: float, losses: int, counting: str, seeds: Sequence[int]) -> tuple[float, ...]:
    """Return the goodput of NewReno with independent losses on a path without other limits."""
    window = 1.3 / math.sqrt(COUNTING[counting] * loss)
    length = losses / loss / window * round_trip / len(seeds)
    link = {"delay": delay(round_trip), "loss": loss}
    tcp = {"congestion": {"algorithm": "new-reno", "counting": counting}}
    # The first tenth has the slow start.
    return tuple(steady(link, tcp, length / 10, length * 1.1, seed) for seed in seeds)


def steady(link: dict[str, Any], tcp: dict[str, Any], begin: float, end: float, seed: int) -> float:
    """Return the goodput of a connection between two times, in bits per second."""
    settings = {
        "profile": "linux-6",
        "receive_buffer": {"initial": "1 GB", "maximum": "1 GB"},
        "delayed_ack": acknowledged(2),
        "congestion": {"algorithm": "new-reno"},
        **tcp,
    }
    flow = {"kind": "upload", "bytes": "1000 GB"}
    # A run is the exact beginning of a longer one with the same seed.
    early, late = (
        run(link, [flow], tcp=settings, duration=each, seed=seed)["flows"][0]["delivered_bytes"]
        for each in (begin, end)
    )
    return 8 * (late - early) / (end - begin)


def acknowledged(every: int) -> dict[str, object]:
    """Return delayed acknowledgements with a constant timer."""
    return {
        "timeout": "100 ms",
        "minimum": "100 ms",
        "every": every,
        "full_sized": False,
        "quick": 0,
        "quick_growth": False,
    }


def delay(round_trip: float) -> str:
    """Return a round trip as the delay of one direction; the other has none."""
    return f"{round_trip * 1e9:.0f} ns"


def datagrams(bits: float, *, packets: int | None = None, duration: float = 0) -> dict[str, object]:
    """Return a flow of full packets at a constant rate, for a number of packets or a time."""
    if packets is not None:
        duration = (packets - 0.5) * PACKET * 8 / bits
    shape: dict[str, object] = {"kind": "datagrams", "direction": "up", "size": DATAGRAM}
    return shape | {"rate": f"{bits:.0f} bit/s", "duration": f"{duration * 1e9:.0f} ns"}


def run(
    link: dict[str, Any],
    flows: list[dict[str, Any]],
    *,
    tcp: dict[str, Any] | None = None,
    duration: float = 36_000,
    seed: int = 1,
) -> dict[str, Any]:
    """Return the summary of flows over a link; the other direction has no limits."""
    document = {
        "format": 1,
        "duration": f"{duration * 1e9:.0f} ns",
        "fixed": {"up": link},
        "bearer": {"model": "wired", "uplink": {}, "downlink": {}},
        "flow": flows,
        **({"tcp": tcp} if tcp else {}),
    }
    return execute(
        document, set=None, seed=seed, repeat=1, out=None, capture=False, log=False, threads=1, progress=None
    )


def logarithmic(random: Random, low: float, high: float) -> float:
    """Draw a number with a uniform logarithm."""
    return math.exp(random.uniform(math.log(low), math.log(high)))
