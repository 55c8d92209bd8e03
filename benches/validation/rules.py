"""Known differences from other programs, each with its condition and its reason.

A rule describes a property of the other program, by the settings of the scenario and by what both
programs did, never a single scenario. A difference beyond chance without a rule is an error of
`python benches/validation`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from differences import Compared
from dumbbell import PACKET

FEW = 4
"""Packets per flow, on the path and in the queue: with fewer, three duplicates cannot arrive."""
LEAST_TIMER = 0.2
"""Seconds; the minimum of the retransmission timer of ns-3."""
OVERFLOW = 99
"""Segments: with a window W of 1448 bytes each, 0.3 W * 0.7 W * 1448² is 2³²."""
THREE_FLIGHTS = 10 + 20 + 40
"""Segments of the first three flights of slow start."""
SMALL_WINDOW = 30
"""Segments: with fewer, CUBIC adds one per few acknowledgements."""
MANY_WINDOWS = 10
"""Of a flow that spends little of its time in the first slow start."""


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
    """Return whether the other program has clearly more time-outs: two, or one for two flows."""
    if compared.timeouts is None:
        return False
    ours, theirs = compared.timeouts
    return theirs >= max(ours + min(2, compared.scenario.flows / 2), 2 * ours)


def repeats_more_for_each(compared: Compared) -> bool:
    """Return whether the other program has clearly more retransmissions for each segment."""
    ours, theirs = (share / (1 - share) for share in compared.repeated)
    return theirs > 1.25 * ours + 0.02


def is_slower(compared: Compared) -> bool:
    """Return whether the other program completes files later, or has less goodput."""
    return compared.figure != "Jain's index" and (compared.difference < 0) == (compared.figure == "completion")


def timeouts_decide(compared: Compared) -> bool:
    """Return whether the slower program has more time-outs, by at least one."""
    if compared.timeouts is None:
        return False
    ours, theirs = compared.timeouts
    return theirs - ours >= 1 if is_slower(compared) else ours - theirs >= 1


def cubic_window(compared: Compared) -> float:
    """Return the mean window that losses allow CUBIC, or Reno (RFC 9438 §5.1), in segments."""
    loss = compared.scenario.loss
    if loss is None:
        return math.inf
    return max(1.054 * (compared.scenario.round_trip / loss.mean) ** 0.75, math.sqrt(1.5 / loss.mean))


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
        "ns-3, ECN, and its flows have more equal shares, or its files complete later with more retransmissions",
        "ns-3 3.37 sends retransmissions as ECN-capable (TcpSocketBase::AddSocketTags), against RFC 3168 §6.1.5. "
        "CoDel marks them, but drops those of airpath and of the kernel: a flow after a time-out falls behind flows "
        "that receive marks only. Copies of segments that have arrived stay in the queue of ns-3, and the last new "
        "segments of a file wait behind them.",
        lambda each: (
            "ns-3" in each.rival
            and each.scenario.ecn
            and each.difference < 0
            and (each.figure == "Jain's index" or (each.figure == "completion" and each.repeated[1] > each.repeated[0]))
        ),
    ),
    Rule(
        "ns-3, timer in recovery",
        "ns-3, SACK, and at least two time-outs more than airpath (one with two flows), and twice as many",
        "ns-3 3.37 restarts the retransmission timer only with the first partial acknowledgement, also with SACK "
        "(TcpSocketBase::ProcessAck). A recovery that repairs several losses then ends in a time-out: all packets "
        "without a SACK are sent again, and TcpCubic forgets its last maximum. Other flows take the capacity, so the "
        "mean completion time can change in both directions.",
        lambda each: "ns-3" in each.rival and each.scenario.sack and times_out_more(each),
    ),
    Rule(
        "ns-3, timer after a time-out",
        "ns-3, the full queue delays by more than 200 ms, ns-3 has clearly more retransmissions, and is slower",
        "ns-3 3.37 measures no round trip with a segment sent again, although timestamps allow it "
        "(TcpSocketBase::EstimateRtt), and each new acknowledgement ends the back-off of the timer (NewAck), against "
        "Karn's rule. Once the queue has filled, the timer stays at its minimum of 200 ms, below the round trip: most "
        "segments are sent two or three times.",
        lambda each: (
            "ns-3" in each.rival
            and each.scenario.queue * 8 * PACKET / each.scenario.rate > LEAST_TIMER
            and repeats_more_for_each(each)
            and is_slower(each)
        ),
    ),
    Rule(
        "ns-3, overflow in recovery",
        f"ns-3, SACK, CoDel without ECN, more than {OVERFLOW} packets per flow, airpath is slower, with more time-outs",
        "TcpPrrRecovery::DoRecovery of ns-3 3.37 multiplies delivered bytes and threshold in 32 bits. With large "
        "windows the product overflows, and ns-3 stops sending until the data in flight is below the threshold. The "
        "queue drains, and CoDel drops fewer retransmissions. With the product in 64 bits ns-3, too, has time-outs.",
        lambda each: (
            "ns-3" in each.rival
            and each.scenario.sack
            and each.scenario.codel is not None
            and not each.scenario.ecn
            and each.scenario.packets_per_flow > OVERFLOW
            and not is_slower(each)
            and timeouts_decide(each)
        ),
    ),
    Rule(
        "ns-3, handshake",
        f"ns-3, files of at most {THREE_FLIGHTS} packets, a drop-tail queue that holds less than half of "
        "their packets, and the slower program has more time-outs",
        "ns-3 sends the last acknowledgement of the handshake as a packet of its own, before the data; airpath sends "
        "it with the first data. It takes a place in the queue, so other segments at the end of a file are lost. "
        "Without three segments behind them they are repaired by the timer. Without these packets both programs agree.",
        lambda each: (
            "ns-3" in each.rival
            and not each.scenario.is_long
            and each.scenario.codel is None
            and each.scenario.packets <= THREE_FLIGHTS
            and each.scenario.flows * each.scenario.packets / 2 > each.scenario.queue
            and timeouts_decide(each)
        ),
    ),
    Rule(
        "TCP/Linux after a time-out",
        "TCP/Linux, and at least two time-outs more than airpath (one with two flows), and twice as many",
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
        "TCP/Linux, CUBIC with small windows",
        f"TCP/Linux, CUBIC, losses that allow a window below {SMALL_WINDOW} segments (RFC 9438 §5.1), flows of more "
        f"than {MANY_WINDOWS} of these windows, and airpath is faster by up to 26 %",
        "TCP/Linux computes the number of acknowledgements that add a segment in integers, and waits for one more "
        "(bictcp_cong_avoid compares before it counts). A model of both arithmetics gives 7 % less goodput at a window "
        "of 15. After a time-out TCP/Linux adds a segment per 50 acknowledgements until the next loss.",
        lambda each: (
            each.rival == "ns-2 TCP/Linux"
            and each.scenario.controller == "cubic"
            and cubic_window(each) < min(SMALL_WINDOW, each.scenario.packets_per_flow)
            and (each.scenario.is_long or each.scenario.packets > MANY_WINDOWS * cubic_window(each))
            and is_slower(each)
            and abs(each.difference) < 0.26
        ),
    ),
    Rule(
        "TCP/Linux, CUBIC after a time-out",
        "TCP/Linux, CUBIC, at least one time-out in TCP/Linux, and airpath's flows have more equal shares",
        "After a time-out CUBIC of TCP/Linux adds a segment per 50 acknowledgements until the next loss "
        "(bictcp_update, loss_cwnd = 0), with a queue of hundreds of packets for minutes. The kernel of today, and "
        "airpath, add one per 20 or follow the cubic function. In TCP/Linux the flows with a time-out have the "
        "smallest shares.",
        lambda each: (
            each.rival == "ns-2 TCP/Linux"
            and each.scenario.controller == "cubic"
            and each.figure == "Jain's index"
            and each.timeouts is not None
            and each.timeouts[1] >= 1
            and each.difference > 0
        ),
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
