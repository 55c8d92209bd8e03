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


def is_better(compared: Compared) -> bool:
    """Return whether airpath has more goodput, an earlier completion, or equal shares."""
    return (compared.difference < 0) == (compared.figure == "completion")


RULES: tuple[Rule, ...] = (
    Rule(
        "ns-3 without SACK",
        "ns-3, no SACK, and its share of retransmissions is above 1.25 times ours plus 2 %",
        "Without SACK ns-3 3.37 sends again most of what is outstanding, also packets that have arrived. After a "
        "burst of losses it is faster than NewReno, which repairs one loss per round trip (RFC 6582), and otherwise "
        "slower. The kernel repeats as few packets as airpath.",
        lambda each: "ns-3" in each.rival and not each.scenario.sack and repeats_more(each),
    ),
    Rule(
        "ns-3 after a time-out",
        "ns-3, SACK, its share of retransmissions is above 1.25 times ours plus 2 %, and airpath is better",
        "After a time-out ns-3 3.37 sends all outstanding packets again, also those reported by SACK.",
        lambda each: "ns-3" in each.rival and each.scenario.sack and repeats_more(each) and is_better(each),
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
        "TCP/Linux after a time-out",
        "TCP/Linux, its share of retransmissions is above 1.25 times ours plus 2 %, and airpath is better",
        "TCP/Linux has the code of Linux 2.6.16, which sends all outstanding packets again after a time-out.",
        lambda each: each.rival == "ns-2 TCP/Linux" and repeats_more(each) and is_better(each),
    ),
    Rule(
        "TCP/Linux, small windows",
        f"TCP/Linux, Jain's index, and the path and its queue hold fewer than {FEW} packets per flow",
        "Timers repair most losses. Linux 2.6.16 has another timer and FACK: with these settings airpath has fewer "
        "retransmissions and less equal shares, too.",
        lambda each: (
            each.rival == "ns-2 TCP/Linux" and each.figure == "Jain's index" and each.scenario.packets_per_flow < FEW
        ),
    ),
)


def reason(compared: Compared) -> Rule | None:
    """Return the first rule that explains a difference."""
    return next((rule for rule in RULES if rule.applies(compared)), None)
