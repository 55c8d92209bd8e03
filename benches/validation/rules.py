"""Known differences from other programs, each with its condition and its reason.

A rule describes a property of the other program, by the settings of the scenario and by what both
programs did, never a single scenario. A difference beyond chance without a rule is an error of
`python benches/validation`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from differences import Compared

FEW = 4
"""Packets per flow, on the path and in the queue: with fewer, three duplicates cannot arrive."""


@dataclass(frozen=True)
class Rule:
    """A known difference."""

    name: str
    condition: str
    reason: str
    applies: Callable[[Compared], bool]


def repeats_more(compared: Compared) -> bool:
    """Return whether the other program has a clearly larger share of retransmissions."""
    ours, theirs = compared.repeated
    return theirs > 1.25 * ours + 0.02


def times_out_more(compared: Compared) -> bool:
    """Return whether the other program has clearly more time-outs."""
    if compared.timeouts is None:
        return False
    ours, theirs = compared.timeouts
    return theirs >= max(ours + 2, 2 * ours)


def later_by(compared: Compared, low: float, high: float) -> bool:
    """Return whether the other program completes files later by a time within these limits."""
    ours, theirs = compared.means
    return compared.figure == "completion" and low <= theirs - ours <= high


def flight(compared: Compared) -> float:
    """Return a round trip and the delay of an acknowledgement, in seconds."""
    return compared.scenario.round_trip + 0.1


RULES: tuple[Rule, ...] = (
    Rule(
        "ns-3 without SACK",
        "ns-3, no SACK, and its share of retransmissions is above 1.25 times airpath's plus 2 %",
        "Without SACK ns-3 3.37 sends again most of what is outstanding, also packets that have arrived. After a "
        "burst of losses it is faster than NewReno, which repairs one loss per round trip (RFC 6582), and otherwise "
        "slower. The kernel repeats as few packets as airpath.",
        lambda each: "ns-3" in each.rival and not each.scenario.sack and repeats_more(each),
    ),
    Rule(
        "ns-3 with ECN",
        "ns-3, ECN, and its flows have more equal shares",
        "ns-3 3.37 sends retransmissions as ECN-capable (TcpSocketBase::AddSocketTags), against RFC 3168 §6.1.5. "
        "CoDel marks them, but drops those of airpath and of the kernel: a flow after a time-out falls behind flows "
        "that receive marks only.",
        lambda each: (
            "ns-3" in each.rival and each.scenario.ecn and each.figure == "Jain's index" and each.difference < 0
        ),
    ),
    Rule(
        "ns-3, timer in recovery",
        "ns-3, SACK, and at least two time-outs more than airpath, and twice as many",
        "ns-3 3.37 restarts the retransmission timer only with the first partial acknowledgement, also with SACK "
        "(TcpSocketBase::ProcessAck). A recovery that repairs several losses then ends in a time-out: all packets "
        "without a SACK are sent again, and TcpCubic forgets its last maximum. Other flows take the capacity, so the "
        "mean completion time can change in both directions.",
        lambda each: "ns-3" in each.rival and each.scenario.sack and times_out_more(each),
    ),
    Rule(
        "ns-3, one flight",
        "ns-3, files, delayed acknowledgements, and ns-3 completes later by at most a round trip",
        "The second flight of ns-3 3.37 is two segments shorter: 18 after an initial window of 10. A file that just "
        "fits into two flights needs a third.",
        lambda each: "ns-3" in each.rival and each.scenario.delayed and later_by(each, 0, each.scenario.round_trip),
    ),
    Rule(
        "TCP/Linux after a time-out",
        "TCP/Linux, and at least two time-outs more than airpath, and twice as many",
        "TCP/Linux has no RACK, tail loss probes, F-RTO and undo. It times out more often, and sends all outstanding "
        "packets again.",
        lambda each: each.rival == "ns-2 TCP/Linux" and times_out_more(each),
    ),
    Rule(
        "TCP/Linux, Reno-friendly CUBIC",
        "TCP/Linux, CUBIC in the Reno-friendly region (RFC 9438 §4.3), and airpath has up to 26 % more goodput",
        "TCP/Linux computes the growth of the Reno-friendly region for its own factor 0.8 when it starts, before the "
        "factor is set to 0.7. It adds 0.33 segments per round trip, not 0.53: √(0.53/0.33) = 1.26.",
        lambda each: (
            each.rival == "ns-2 TCP/Linux"
            and each.scenario.controller == "cubic"
            and each.scenario.is_reno_friendly
            and each.figure == "goodput"
            and 0 < each.difference < 0.26
        ),
    ),
    Rule(
        "TCP/Linux, one flight",
        "TCP/Linux, files, and the difference is at most a round trip and a delayed acknowledgement",
        "The SYN of TCP/Linux is a packet of its first window, and its acknowledgement widens the window. Flights "
        "differ by a segment: some files need a round trip more or less, or end with a segment whose acknowledgement "
        "is delayed by 100 ms.",
        lambda each: each.rival == "ns-2 TCP/Linux" and later_by(each, -flight(each), flight(each)),
    ),
    Rule(
        "TCP/Linux, small windows",
        f"TCP/Linux, Jain's index, and the path and its queue hold fewer than {FEW} packets per flow",
        "Timers repair most losses. TCP/Linux has no RACK and no tail loss probes, and its timer has a minimum of "
        "200 ms as a whole. With these settings airpath, too, has fewer retransmissions and less equal shares.",
        lambda each: (
            each.rival == "ns-2 TCP/Linux" and each.figure == "Jain's index" and each.scenario.packets_per_flow < FEW
        ),
    ),
)


def reason(compared: Compared) -> Rule | None:
    """Return the first rule that explains a difference."""
    return next((rule for rule in RULES if rule.applies(compared)), None)
