"""The figures that a study compares, each computed from one repetition of one case.

A study names them in its `study.toml`, with the constants that a formula needs besides the run
(`inputs`).
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airpath.study.errors import StudyError

HEADERS = 40
"""Bytes of IPv4 and TCP headers without options on each data packet (RFC 791 §3.1, RFC 9293
§3.1)."""

Flow = Mapping[str, Any]
"""A row of `flows` in a run's `summary.json`."""
Inputs = Mapping[str, float]
"""The constants of a case from `study.toml`, by name."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a case."""

    name: str
    unit: str
    decimals: int
    """Digits after the point in tables: at least one more than the study published."""
    compute: Callable[[Sequence[Flow], Inputs], float]
    """Computes it from the flows of one repetition and the inputs; `nan` excludes the repetition
    from the figure."""
    inputs: tuple[str, ...] = ()
    """The names of the inputs that the formula reads."""
    observer_name: str | None = None
    """The observer that it needs, a name of `observations.OBSERVERS`; a flow has the observation
    under this name."""


def transfer_time(flow: Flow) -> float:
    """Return the seconds from the terminal's request to the last acknowledgement at the sender.

    A one-way agent of ns-2 measures at the sender, until the acknowledgement arrives. The request
    is included, because the study counts it as uplink traffic.
    """
    return flow["acknowledged_s"]


def application_bit_rate(flow: Flow) -> float:
    """Return the file's size over the transfer time, in bits per second."""
    return flow["bytes"] * 8 / transfer_time(flow)


def bytes_with_headers(flow: Flow) -> int:
    """Return the size of the file as the packets carry it, each packet counted once."""
    packets = flow["data_packets"] - flow["retransmitted_packets"]
    return flow["bytes"] + HEADERS * packets


def retransmit_bit_rate(flows: Sequence[Flow], bler: float) -> float:
    """Return the bit rate of a channel that carries these files, radio retransmissions included.

    It is (file size with TCP/IP headers / time) / (1 − BLER): each block is sent 1 / (1 − BLER)
    times on average. A shared channel is in use until the last user's transfer ends.
    """
    bits = 8 * sum(bytes_with_headers(flow) for flow in flows)
    return bits / max(transfer_time(flow) for flow in flows) / (1 - bler)


def _utilisation(flows: Sequence[Flow], inputs: Inputs) -> float:
    users = len(flows) // int(inputs["channels"])
    channels = [flows[first : first + users] for first in range(0, len(flows), users)]
    rates = [retransmit_bit_rate(channel, inputs["bler"]) for channel in channels]
    return 100 * statistics.fmean(rates) / inputs["channel_bps"]


def _retransmit_bit_rate(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the mean over the users of the rate with headers and radio repetitions, in kbit/s."""
    return statistics.fmean(retransmit_bit_rate([flow], inputs["bler"]) for flow in flows) / 1e3


def _mean_application_bit_rate(flows: Sequence[Flow], _: Inputs) -> float:
    return statistics.fmean(application_bit_rate(flow) for flow in flows) / 1e3


def _bit_rate_of_class(number: int) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of the application bit rate of one of three groups of users, in kbit/s.

    The flows of a group are next to each other, and groups have the same size.

    Raises, when called:
        StudyError: The flows cannot be divided into three groups.
    """

    def formula(flows: Sequence[Flow], _: Inputs) -> float:
        size, remainder = divmod(len(flows), 3)
        if size == 0 or remainder:
            name = f"bit-rate-of-class-{'abc'[number]}"
            raise StudyError(f"the metric '{name}' needs three groups of equal size, not {len(flows)} flows")
        return _mean_application_bit_rate(flows[number * size : (number + 1) * size], _)

    return formula


def _named(flows: Sequence[Flow], prefix: str) -> list[Flow]:
    """Return the flows whose name begins so."""
    return [flow for flow in flows if flow["name"].startswith(prefix)]


def _short_transfer_time(prefix: str) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of the mean transfer time of the flows whose name begins so, in s."""
    return lambda flows, _: statistics.fmean(transfer_time(flow) for flow in _named(flows, prefix))


def _long_bit_rate(flows: Sequence[Flow], inputs: Inputs) -> float:
    return _mean_application_bit_rate(_named(flows, "long"), inputs)


def _deviation_of_application_bit_rate(flows: Sequence[Flow], _: Inputs) -> float:
    return statistics.stdev(application_bit_rate(flow) for flow in flows) / 1e3


def _round_trip(flows: Sequence[Flow], _: Inputs) -> float:
    return 1e3 * statistics.fmean(flow["rtt_mean_s"] for flow in flows)


def _received_rate(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the received rate in kbit/s.

    The counted payload of a datagram over the mean inter-arrival time.
    """
    return 8e-3 * inputs["payload"] / statistics.fmean(flow["inter_arrival_mean_s"] for flow in flows)


def _bandwidth_delay_product(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the datagrams that arrive in one round trip of pings, less one, in bytes of segments.

    A part of a datagram counts as one. Each carries one segment. This way of rounding is our
    assumption: umts-live does not print its own, and it contradicts the row of 512 bytes there.

    Returns:
        The product; `nan` without arrivals or answers.
    """
    datagrams = [flow for flow in flows if flow["kind"] == "datagrams"]
    pings = [flow for flow in flows if flow["kind"] == "ping"]
    rate = 1e3 * _received_rate(datagrams, inputs) / 8
    packets = rate * _delay(pings, inputs) / 1e3 / inputs["payload"] - 1
    return math.ceil(packets) * inputs["segment"] if math.isfinite(packets) else math.nan


def _delay(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean delay in milliseconds.

    The round trip of pings, the one-way delay of datagrams.
    """
    return 1e3 * statistics.fmean(flow["delay_mean_s"] for flow in flows)


def _probe_loss(flows: Sequence[Flow], _: Inputs) -> float:
    return 100 * sum(flow["lost"] for flow in flows) / sum(flow["sent"] for flow in flows)


def _longest(key: str) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of the maximum of a figure over the flows.

    Flows without a value count as 0.
    """
    return lambda flows, _: max(flow[key] or 0.0 for flow in flows)


def _throughput(flows: Sequence[Flow], _: Inputs) -> float:
    return statistics.fmean(flow["throughput_bps"] for flow in flows) / 1e3


def _data_in_flight(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean data in flight, in kB: the rate times the round trip (Little's law)."""
    return statistics.fmean(flow["throughput_bps"] * flow["rtt_mean_s"] for flow in flows) / 8e3


def _transfer_time(flows: Sequence[Flow], _: Inputs) -> float:
    return statistics.fmean(flow["duration_s"] for flow in flows)


def _longest_round_trip(flows: Sequence[Flow], _: Inputs) -> float:
    return max(flow["rtt_max_s"] for flow in flows)


def _half_throughput(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return half of the throughput, for findings that compare another figure with it."""
    return _throughput(flows, inputs) / 2


def _throughput_a_slot(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the throughput over the number of timeslots."""
    return _throughput(flows, inputs) / inputs["slots"]


def _multiplied_throughput(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the throughput times a factor, for findings that compare another figure with it."""
    return _throughput(flows, inputs) * inputs["factor"]


def _lost_packets(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the packets that links dropped in the direction of the data.

    As a percentage of the data packets.

    A repetition must have one flow, whose `links` are those of the run.
    """
    (flow,) = flows
    direction = "up" if flow["kind"] == "upload" else "down"
    links = [link for link in flow["links"] if link["direction"] == direction]
    dropped = sum(each["packets"] for link in links for each in link["dropped"].values())
    return 100 * dropped / max(flow["data_packets"], 1)


def _retransmitted(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the percentage of retransmitted data packets; 0 if no data packet was sent."""
    packets = sum(flow["data_packets"] for flow in flows)
    return 100 * sum(flow["retransmitted_packets"] for flow in flows) / max(packets, 1)


def _ftp_throughput(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean of the completed transfers in 1,024 bytes per second, as BSD's ftp."""
    return _completed_throughput(flows) / 8 / 1024


def _ftp_throughput_of(size: int) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of the throughput of files of a size in kbyte.

    The name of a flow is the size of its file.
    """
    return lambda flows, inputs: _ftp_throughput([flow for flow in flows if flow["name"] == str(size)], inputs)


def _share_of_header_arithmetic(flows: Sequence[Flow], inputs: Inputs) -> float:
    return 100 * _completed_throughput(flows) / inputs["header_limit_bps"]


def _completed_throughput(flows: Sequence[Flow]) -> float:
    """Return the mean throughput of the completed transfers in bit/s; `nan` if there are none."""
    rates = [flow["throughput_bps"] for flow in _completed(flows)]
    return statistics.fmean(rates) if rates else float("nan")


def _completed(flows: Sequence[Flow]) -> list[Flow]:
    return [flow for flow in flows if flow["outcome"] == "finished"]


def _completed_share(flows: Sequence[Flow], _: Inputs) -> float:
    return 100 * len(_completed(flows)) / len(flows)


def _transaction_rate(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the completed transactions per second within a time limit, as netperf counts them.

    A signal ends netperf's run; the transaction that it interrupts does not count.
    """
    return statistics.fmean(_completed_within(flow, inputs["seconds"]) for flow in flows) / inputs["seconds"]


def _completed_within(flow: Flow, seconds: float) -> int:
    if not flow["transactions_per_s"]:
        return 0
    completed = round(flow["transactions_per_s"] * flow["duration_s"])
    return completed - int(flow["duration_s"] > seconds)


def _page_rate(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the bytes of the page before compression over the page time."""
    return inputs["page"] * 8 / flows[0]["duration_s"] / 1e3


def _saved_page_time(flows: Sequence[Flow], _: Inputs) -> float:
    """Return by how much the last page loads faster than the first."""
    return 100 * (1 - flows[-1]["duration_s"] / flows[0]["duration_s"])


def _pipelining_efficiency(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the pipelining efficiency over all connections (gprs-proxy, equation 2), in percent.

    Of the first view of the first page.
    """
    return 100 * flows[0]["views"][0]["pipelining_efficiency"]


def _pipeline_factor(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the highest pipeline factor of a connection (gprs-proxy, equation 1)."""
    return flows[0]["views"][0]["pipeline_factor"]


METRICS = {
    metric.name: metric
    for metric in (
        Metric("round-trip", "ms", 1, _round_trip),
        Metric("utilisation", "%", 1, _utilisation, ("channel_bps", "channels", "bler")),
        Metric("application-bit-rate", "kbit/s", 2, _mean_application_bit_rate),
        Metric("application-bit-rate-deviation", "kbit/s", 2, _deviation_of_application_bit_rate),
        *(Metric(f"bit-rate-of-class-{name}", "kbit/s", 2, _bit_rate_of_class(at)) for at, name in enumerate("abc")),
        Metric("short-transfer-time", "s", 3, _short_transfer_time("short")),
        *(
            Metric(f"short-transfer-time-of-class-{name}", "s", 3, _short_transfer_time(f"short-{name}"))
            for name in "abc"
        ),
        Metric("long-bit-rate", "kbit/s", 2, _long_bit_rate),
        Metric("one-way-delay", "ms", 1, _delay),
        Metric("received-rate", "kbit/s", 2, _received_rate, ("payload",)),
        Metric("bandwidth-delay-product", "B", 0, _bandwidth_delay_product, ("payload", "segment")),
        Metric("throughput", "kbit/s", 2, _throughput),
        Metric("data-in-flight", "kB", 1, _data_in_flight),
        Metric("transfer-time", "s", 2, _transfer_time),
        Metric("longest-round-trip", "s", 2, _longest_round_trip),
        Metric("late-connect", "s", 2, lambda flows, _: flows[-1]["connect_s"]),
        Metric("late-round-trip", "s", 2, lambda flows, _: flows[-1]["rtt_mean_s"]),
        Metric("late-delay", "ms", 1, lambda flows, _: 1e3 * flows[-1]["delay_mean_s"]),
        Metric("late-throughput", "kbit/s", 2, lambda flows, _: flows[-1]["throughput_bps"] / 1e3),
        Metric("ping-round-trip", "ms", 1, _delay),
        Metric("ping-loss", "%", 2, _probe_loss),
        Metric("datagrams-lost", "1", 1, lambda flows, _: sum(flow["lost"] for flow in flows)),
        Metric("most-lost-in-a-row", "1", 1, _longest("gap_most_lost")),
        Metric("reordered", "1", 1, lambda flows, _: sum(flow["reordered"] for flow in flows)),
        Metric("longest-delay", "s", 2, _longest("delay_max_s")),
        Metric("longest-gap", "s", 2, _longest("gap_max_s")),
        Metric("longest-delay-period", "s", 2, _longest("delay_period_max_s")),
        Metric("longest-inter-arrival", "s", 2, _longest("inter_arrival_max_s")),
        Metric("half-throughput", "kbit/s", 1, _half_throughput),
        Metric("multiplied-throughput", "kbit/s", 2, _multiplied_throughput, ("factor",)),
        Metric("retransmitted", "%", 2, _retransmitted),
        Metric("lost-packets", "%", 2, _lost_packets),
        Metric("throughput-a-slot", "kbit/s", 2, _throughput_a_slot, ("slots",)),
        Metric("retransmit-bit-rate", "kbit/s", 2, _retransmit_bit_rate, ("bler",)),
        Metric("timeouts", "1", 2, lambda flows, _: sum(flow["timeouts"] for flow in flows)),
        Metric("fast-retransmits", "1", 2, lambda flows, _: sum(flow["fast_retransmits"] for flow in flows)),
        Metric("ftp-throughput", "kbyte/s", 3, _ftp_throughput),
        *(
            Metric(f"ftp-throughput-of-{size}-kbyte", "kbyte/s", 3, _ftp_throughput_of(size))
            for size in (100, 300, 500, 700, 900, 1800)
        ),
        Metric("share-of-header-arithmetic", "%", 1, _share_of_header_arithmetic, ("header_limit_bps",)),
        Metric("completed", "%", 1, _completed_share),
        Metric("transaction-rate", "1/s", 3, _transaction_rate, ("seconds",)),
        Metric("page-time", "s", 2, lambda flows, _: flows[0]["duration_s"]),
        Metric("page-rate", "kbit/s", 2, _page_rate, ("page",)),
        Metric("page-connections", "1", 1, lambda flows, _: flows[0]["opened"]),
        Metric("pipelining-efficiency", "%", 1, _pipelining_efficiency),
        Metric("pipeline-factor", "1", 2, _pipeline_factor),
        Metric("saved-page-time", "%", 1, _saved_page_time),
    )
}
"""The metrics by name.

Rates are means over the users of a case, deviations are sample deviations over the users. `late-…`
is a figure of the last flow, `short-…` and `long-…` of the flows whose names begin with these
words."""
