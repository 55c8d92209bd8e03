"""Random wired scenarios: a dumbbell with one bottleneck, drawn by seed and number.

Senders reach the bottleneck over links of 10 Gbit/s without delay. Packets wait in the bottleneck's
queue, are sent at its rate, and are then lost or arrive after half of the round trip.
Acknowledgements return after the other half, without limits.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Literal

from airpath.quantities import rate, seconds

PACKET = 1500
"""Bytes of a full IP packet."""
CAPACITY = 12_000
"""The largest number of full packets that a scenario carries, which ns-3 takes seconds for."""
ROUND_TRIPS = 40
"""Long flows last for at least this number of round trips; scenarios with fewer transfer files."""
JITTER = 0.05
"""Each repetition draws its round trip from this relative range.

Deterministic simulators otherwise repeat one phase between bursts and queue, which is no estimate
of chance.
"""


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss process that takes a step with every packet."""

    good_to_bad: float
    """Without bursts the probability of the loss of a packet."""
    bad_to_good: float = 1.0
    bursts: bool = False
    """Whether it is a Gilbert-Elliott process; in its bad state all packets are lost."""

    @property
    def mean(self) -> float:
        """The share of packets that are lost."""
        if not self.bursts:
            return self.good_to_bad
        return self.good_to_bad / (self.good_to_bad + self.bad_to_good)

    def draw(self, random: Random, packets: int) -> list[int]:
        """Draw the numbers of the lost packets among the first `packets`."""
        if not self.bursts:
            return [number for number in range(packets) if random.random() < self.good_to_bad]
        lost: list[int] = []
        bad = random.random() < self.mean
        for number in range(packets):
            if bad:
                lost.append(number)
            bad ^= random.random() < (self.bad_to_good if bad else self.good_to_bad)
        return lost


@dataclass(frozen=True, slots=True)
class CoDel:
    """Parameters of the queue discipline, in seconds."""

    target: float
    interval: float


@dataclass(frozen=True)
class Scenario:
    """A scenario; all programs run it with the same settings."""

    seed: int
    number: int
    rate: float
    """Bits per second."""
    round_trip: float
    """Seconds."""
    queue: int
    """Packets that wait at most."""
    codel: CoDel | None
    loss: Loss | None
    flows: int
    packets: int
    """Packets of each file; 0 for long flows."""
    duration: float
    """Seconds at most."""
    stagger: float
    """The flows start within this time."""
    controller: Literal["new-reno", "cubic"]
    sack: bool
    ecn: bool
    delayed: bool
    """Whether the receiver acknowledges every second segment, or after 100 ms."""

    @property
    def is_long(self) -> bool:
        """Whether flows last for the whole run; otherwise they transfer files."""
        return self.packets == 0

    @property
    def packets_per_flow(self) -> float:
        """Packets on the path and in the full queue, for each flow."""
        return (self.rate * self.round_trip / 8 / PACKET + self.queue) / self.flows

    @property
    def is_reno_friendly(self) -> bool:
        """Whether the window of Reno reaches its largest value before that of CUBIC.

        CUBIC takes K = ∛(0.3 W / 0.4) seconds for it, and its estimate of Reno's window 0.3 W /
        0.53 round trips (RFC 9438 §4.2, §4.3).
        """
        window = self.packets_per_flow
        return 0.3 * window / 0.53 * self.round_trip < (0.3 * window / 0.4) ** (1 / 3)

    @property
    def title(self) -> str:
        """The scenario as text."""
        words = [rate(self.rate), seconds(self.round_trip)]
        words.append(f"{'CoDel, ' if self.codel else ''}queue of {self.queue}")
        if self.loss:
            words.append(f"{100 * self.loss.mean:.2g} % loss")
            if self.loss.bursts:
                words[-1] += f" in bursts of {1 / self.loss.bad_to_good:.1f}"
        several = "s" * (self.flows > 1)
        words.append(
            f"{self.flows} {f'long flow{several}' if self.is_long else f'file{several} of {self.packets} packets'}"
        )
        words.append("CUBIC" if self.controller == "cubic" else "NewReno")
        words[-1] += "" if self.sack else " without SACK"
        words += ["ECN"] if self.ecn else []
        words += [] if self.delayed else ["each segment acknowledged"]
        return ", ".join(words)

    def repetition(self, number: int) -> "Repetition":
        """Return the random part of a repetition."""
        return Repetition(self, number)


@dataclass(frozen=True)
class Repetition:
    """What differs between the repetitions of a scenario; equal in all programs."""

    scenario: Scenario
    number: int

    def _random(self, name: str) -> Random:
        return Random(f"{self.scenario.seed}/{self.scenario.number}/{self.number}/{name}")

    @cached_property
    def seed(self) -> int:
        """The seed of a program's own random numbers."""
        # ns-2 has poor sequences with small seeds.
        return self._random("seed").randrange(10**6, 2**31 - 1)

    @cached_property
    def round_trip(self) -> float:
        """Seconds."""
        return self.scenario.round_trip * self._random("round trip").uniform(1 - JITTER, 1 + JITTER)

    @cached_property
    def starts(self) -> tuple[float, ...]:
        """The start of each flow, in seconds, with the resolution of a microsecond."""
        random = self._random("starts")
        return tuple(round(random.uniform(0, self.scenario.stagger), 6) for _ in range(self.scenario.flows))

    @cached_property
    def losses(self) -> list[int]:
        """The numbers of the lost packets after the bottleneck, for programs of others."""
        loss = self.scenario.loss
        # Retransmissions come in addition to the capacity.
        return loss.draw(self._random("losses"), 4 * CAPACITY) if loss else []


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of rates, round trips and times."""

    rate: tuple[float, float] = (64e3, 200e6)
    round_trip: tuple[float, float] = (0.010, 0.800)
    long: float = 300
    """Seconds of long flows at most."""
    files: float = math.inf
    """Seconds in which the bottleneck sends all files."""
    patience: float = 3600
    """Seconds after which files are not waited for any longer, in addition to the next."""
    slack: float = 20
    """A multiple of the time in which the bottleneck sends all files."""


SIMULATED = Ranges()
REAL = Ranges(rate=(300e3, 20e6), round_trip=(0.020, 0.400), long=20, files=6, patience=20, slack=2)
"""Scenarios that run in real time: each takes less than a minute."""


def draw(seed: int, number: int, ranges: Ranges = SIMULATED) -> Scenario:
    """Draw a scenario."""
    random = Random(f"{seed}/{number}")

    def logarithmic(low: float, high: float) -> float:
        return math.exp(random.uniform(math.log(low), math.log(high)))

    bits = round(logarithmic(*ranges.rate))
    round_trip = logarithmic(*ranges.round_trip)
    packet_time = PACKET * 8 / bits
    # No queue holds more than 10 s of data, the time after which most connections have timed out.
    queue = round(logarithmic(5, max(20, min(1000, 10 / packet_time))))
    codel = None
    if random.random() < 0.25:
        # The target is above the time of a packet, and the interval above a round trip (RFC 8289
        # §4.2, §4.3).
        codel = CoDel(max(0.005, 1.5 * packet_time), max(0.1, round_trip))
        queue = max(queue, 50)
    loss = None
    kind = random.random()
    mean = logarithmic(0.0005, 0.03)
    burst = random.uniform(2, 8)
    if kind < 0.35:
        loss = Loss(mean)
    elif kind < 0.6:
        loss = Loss(mean / (1 - mean) / burst, 1 / burst, bursts=True)
    flows = random.randint(1, 10)
    duration = min(ranges.long, CAPACITY * packet_time)
    is_long = random.random() < 0.5 and duration >= ROUND_TRIPS * round_trip
    most = min(CAPACITY, ranges.files / packet_time)
    packets = 0 if is_long else round(logarithmic(10, max(20, most / flows)))
    return Scenario(
        seed=seed,
        number=number,
        rate=bits,
        round_trip=round_trip,
        queue=queue,
        codel=codel,
        loss=loss,
        flows=flows,
        packets=packets,
        # Files end earlier by far, unless a connection is stuck.
        duration=duration if is_long else ranges.patience + ranges.slack * flows * packets * packet_time,
        stagger=random.uniform(0, 0.3 + 2 * round_trip),
        controller=random.choice(("new-reno", "cubic")),
        sack=random.random() < 0.6,
        ecn=codel is not None and random.random() < 0.5,
        delayed=random.random() < 0.7,
    )
