"""Sentences about connections."""

from typing import Any

import polars as pl
import pytest

from airpath import _native
from airpath.trace import avoidable, messages, text
from airpath.trace.causes import CAUSES
from airpath.trace.connections import cells
from airpath.trace.elapsed import FULL, elapsed
from airpath.trace.verdict import verdict


def connection(number: int, start: float, duration: float, **causes: float) -> dict[str, Any]:
    row = {"connection": number, "start": int(start * 1e9), "duration_s": duration, "reset": False, "ending": "closed"}
    return row | {"client_address": "192.0.2.1"} | {cause.column: 0.0 for cause in CAUSES} | causes


def test_a_full_link_is_not_avoidable_time() -> None:
    bulk = connection(1, 0, 20, queueing_s=15.0, path_rate_s=3.0, sharing_s=1.5, set_up_s=0.5)
    stalled = connection(2, 0, 5, radio_s=3.0, application_s=2.0)
    assert avoidable.avoidable(bulk) == 0.5
    assert avoidable.worst_first([bulk, stalled]) == [stalled, bulk]


def test_the_causes_and_what_is_avoidable_are_those_of_the_core() -> None:
    assert [name for name, _ in _native.trace_causes()] == [cause.name for cause in CAUSES]
    for name, is_avoidable in _native.trace_causes():
        waiting = connection(1, 0, 5, **{f"{name.replace('-', '_')}_s": 5.0})
        assert avoidable.avoidable(waiting) == (5.0 if is_avoidable else 0.0)


def test_the_connections_that_share_the_path_are_named() -> None:
    waiting = connection(1, 10, 5, sharing_s=1.0)
    beside, before = connection(2, 12, 10), connection(3, 0, 5)
    other = connection(4, 10, 5) | {"client_address": "192.0.2.9"}
    every = [waiting, beside, before, other]
    assert messages.behind(waiting, every) == "It shared the path with connection 2 of 192.0.2.1."
    assert messages.behind(beside, every) == "", "without time of this cause nothing is named"
    assert messages.behind(waiting, [waiting]) == ""


def pieces(*rows: tuple[int, str, float, float, int], full_by: str | None = None) -> pl.DataFrame:
    """Return pieces: connection, cause, begin and end in seconds, bytes from the server."""
    return pl.DataFrame(
        [
            {
                "connection": number,
                "cause": cause,
                "confidence": "medium",
                "full_by": full_by if cause in FULL else None,
                "start": int(begin * 1e9),
                "end": int(end * 1e9),
                "from_client_bytes": 0,
                "from_server_bytes": delivered,
            }
            for number, cause, begin, end, delivered in rows
        ],
        schema_overrides={"full_by": pl.String},
    )


def received(**of: int) -> pl.DataFrame:
    """Return directions with these bytes from the server, by connection."""
    rows = [(int(name[1:]), "server", number) for name, number in of.items()]
    rows += [(number, "client", 7) for number, _, _ in rows]
    return pl.DataFrame(rows, schema=["connection", "from", "unique_bytes"], orient="row")


def test_the_link_of_clients_with_several_connections_has_a_sentence() -> None:
    busy = [connection(1, 10, 5, sharing_s=1.0), connection(2, 12, 8, sharing_s=2.5)]
    alone = connection(3, 0, 5, sharing_s=1.0) | {"client_address": "192.0.2.9"}
    free = [connection(number, 0, 5) | {"client_address": "192.0.2.8"} for number in (4, 5)]
    causes = pieces(
        (1, "application", 10, 13, 0),
        (1, "sharing", 13, 15, 100_000),
        (2, "application", 12, 14, 0),
        (2, "path-rate", 14, 18, 200_000),
        (2, "latency", 18, 20, 50_000),
    )
    directions = received(_1=100_000, _2=250_000, _3=1)
    # The link was full from 13 to 18 s, and carried 300 kB then.
    assert messages.together([*busy, alone, *free], causes, directions) == [
        "The connections of 192.0.2.1 shared its link, which was full for 5 s of 10 s (50\u00a0%), and carried "
        "480 kbit/s of data meanwhile. At this rate the 350 kB that they received take at least 5.833 s."
    ]
    assert messages.together([alone], causes, directions) == []


def test_the_least_time_is_that_of_the_direction_that_was_full() -> None:
    """The acknowledgements of a download fill the uplink: its data has no least time."""
    flows = [connection(1, 0, 4, sharing_s=1.0), connection(2, 0, 4)]
    rows = ((1, "latency", 0, 1, 400_000), (1, "path-rate", 1, 3, 100_000), (1, "sharing", 3, 4, 0))
    directions = received(_1=500_000, _2=0)
    (up,) = messages.together(flows, pieces(*rows, full_by="client").with_columns(from_client_bytes=300), directions)
    assert up.replace("\u00a0", " ") == (
        "The connections of 192.0.2.1 shared its link, whose uplink was full for 3 s of 4 s (75 %), and carried "
        "1.6 kbit/s of data meanwhile, and acknowledgements."
    )
    # Data came faster while the link did not seem full: 267 kbit/s is not its rate.
    (down,) = messages.together(flows, pieces(*rows, full_by="server"), directions)
    assert down.replace("\u00a0", " ").endswith(
        "whose downlink was full for 3 s of 4 s (75 %), and carried 266.7 kbit/s of data meanwhile."
    )
    both = pl.concat([pieces(*rows[:2], full_by="server"), pieces(rows[2], full_by="client")])
    (text,) = messages.together(flows, both, directions)
    assert "whose downlink was full for 2 s" in text
    assert "The other direction, the uplink, was full for 1 s" in text


def test_each_moment_of_a_client_counts_once() -> None:
    flows = [connection(1, 0, 4), connection(2, 1, 5), connection(3, 8, 2)]
    causes = pieces(
        (1, "set-up", 0, 1, 0),
        (1, "application", 1, 4, 0),
        (2, "set-up", 1, 2, 0),
        (2, "radio", 2, 3, 0),
        (2, "queueing", 3, 6, 30_000),
        (3, "radio", 8, 10, 0),
    )
    own = elapsed(flows, causes, received(_1=1, _2=30_000, _3=1))
    assert own.span_s == 10
    assert own.causes == {"set-up": 2.0, "radio": 3.0, "queueing": 3.0, "application": 2.0}
    assert own.rate_bps == pytest.approx(80_000)
    assert avoidable.avoidable_sentence(own.causes) == "Avoidable: 5 s (50\u00a0%)."


def test_little_avoidable_time_does_not_put_a_connection_first() -> None:
    long = connection(1, 0, 100, path_rate_s=96.0, set_up_s=4.0)
    short = connection(2, 0, 5, radio_s=0.5, application_s=4.5)
    longer = connection(3, 0, 200, path_rate_s=199.0, set_up_s=1.0)
    assert avoidable.worst_first([long, short, longer]) == [short, longer, long]


def test_the_order_of_connections_is_stated_as_it_is() -> None:
    much, little = connection(1, 0, 10, timer_s=5.0), connection(2, 0, 100, path_rate_s=96.0, set_up_s=4.0)
    assert avoidable.order([much]) == "Most avoidable first."
    assert avoidable.order([much, little]).endswith("then those with less than 5\u00a0%, the longest first.")
    assert avoidable.order([little]) == "The longest first: none has 5\u00a0% of avoidable time."


def test_the_other_causes_are_listed() -> None:
    totals = {"queueing": 10.0, "set-up": 0.02, "slow-start": 0.05}
    assert messages.sum_sentence(totals, 10.07).endswith("70 ms of other causes (1\u00a0%).")
    assert messages.other_causes(totals, radio=False) == "The other causes: 50 ms slow start, 20 ms connection set-up."
    assert messages.other_causes({"queueing": 10.0, "set-up": 0.02}, radio=False) == ""


def test_latency_of_the_path_is_not_avoidable() -> None:
    assert avoidable.avoidable(connection(1, 0, 5, latency_s=3.0, application_s=2.0)) == 0


def test_spurious_retransmissions_of_a_timer_have_a_cause() -> None:
    flow = connection(1, 0, 10, sharing_s=4.0, radio_s=1.0)
    row = {"from": "client", "early_timer_retransmissions": 2, "timeouts": 0, "tail_probes": 0, "spurious": 2}
    none = row | {"early_timer_retransmissions": 0, "spurious": 0}
    assert messages.spurious_timers(flow, [row, none]) == (
        "2 retransmissions were spurious: the data or its acknowledgement waited in the queue of the full link "
        "(bufferbloat) for longer than the sender's timer."
    )
    silent = connection(1, 0, 10, radio_s=1.0)
    one = row | {"early_timer_retransmissions": 0, "timeouts": 1, "spurious": 1}
    assert "1 retransmission was spurious: the data or its acknowledgement waited on the silent path" in (
        messages.spurious_timers(silent, [one])
    )
    assert messages.spurious_timers(flow, [none]) == ""
    # The table has all that were spurious, also those of an unknown trigger.
    unexplained = row | {"from": "server", "early_timer_retransmissions": 0, "timeouts": 1}
    assert messages.spurious_timers(flow, [row, unexplained]).startswith(
        "4 retransmissions were spurious, at most 3 of them by a timer: the data or its acknowledgement waited"
    )


def test_losses_before_the_capture_have_a_sentence() -> None:
    row = {"from": "server", "lost_before_capture": 12, "retransmissions": 5, "spurious": 2}
    none = row | {"from": "client", "lost_before_capture": 0}
    assert messages.losses([none, row], []) == [
        "From the server: 12 segments were lost before the capture point, and at most 3 after it."
    ]
    assert messages.losses([row], [{"from": "server", "lost": 4}]) == [
        "From the server: 12 segments were lost before the capture point, and 4 after it."
    ]
    one = row | {"lost_before_capture": 1, "retransmissions": 2}
    assert messages.losses([one], [{"from": "client", "lost": 4}]) == [
        "From the server: 1 segment was lost before the capture point, and none after it."
    ]


def test_silence_is_that_of_the_path() -> None:
    """A capture of a wired path has no radio."""
    silent = connection(1, 0, 10, radio_s=10.0) | {"captured_end": None}
    assert verdict(silent, []) == "Limited by the network: the path carried nothing (100\u00a0%)."
    assert messages.sentence(silent) == "10 s: 10 s path silent (100\u00a0%)."
    assert messages.main_cause(silent) == "path silent, 100\u00a0%"
    mobile = silent | {"radio_known": True}
    assert verdict(mobile, []) == "Limited by the network: the radio carried nothing (100\u00a0%)."
    assert messages.sentence(mobile) == "10 s: 10 s waiting for the radio (100\u00a0%)."
    assert messages.main_cause(mobile) == "waiting for the radio, 100\u00a0%"


def test_waits_for_the_radio_are_not_its_silence() -> None:
    def state(name: str, length: float, cause: str = "radio") -> dict[str, Any]:
        return {"cause": cause, "state": name, "start": 0, "end": int(length * 1e9)}

    flow = connection(1, 0, 10, radio_s=10.0) | {"captured_end": None, "radio_known": True}
    states = [state("outage", 4), state("grant", 3), state("harq-repeat", 1), state("grant", 5, "set-up")]
    text = verdict(flow, [], [*states, state("fixed-network-outage", 2)])
    assert text.replace("\u00a0", " ") == (
        "Limited by the network: the radio carried nothing (40 %), and packets waited for uplink grants and HARQ "
        "retransmissions (40 %), and the fixed network had an outage (20 %)."
    )


def test_the_reason_of_a_small_window_is_the_network() -> None:
    flow = connection(1, 0, 10, congestion_window_s=6.0, recovery_s=4.0) | {"captured_end": None}
    assert verdict(flow, [], limit=None).startswith("Limited by the sender: its congestion window was too small")
    policed = verdict(flow, [], limit="policer")
    assert policed.startswith("Limited by the network: a policer dropped packets")
    marked = connection(1, 0, 10, congestion_window_s=6.0, path_rate_s=4.0) | {"captured_end": None}
    assert "the link was used at the rate that congestion marks (ECN) allowed" in verdict(marked, [], limit="ecn")


def test_a_cause_has_one_share_in_text_and_figures() -> None:
    """The causes below 1 % are one part of the sentence, but have entries of their own in a bar."""
    small = {"set_up_s": 0.08, "slow_start_s": 0.06, "timer_s": 0.06, "recovery_s": 0.05}
    flow = connection(1, 0, 16.1, sharing_s=9.711, latency_s=2.382, path_rate_s=3.209, radio_s=0.548, **small)
    flow |= {"captured_end": None, "client": "a", "server": "b", "segments": 1}
    sentence = messages.sentence(flow).replace("\u00a0", " ")
    (bar,) = [cell.parts for cell in cells(flow) if cell.parts]
    of_bar = [(part.words.rsplit(", ", 1)[0], part.words.rsplit(", ", 1)[1].replace("\u00a0", " ")) for part in bar]
    large = [(words, share) for words, share in of_bar if words.split()[-2] not in {"80", "60", "50"}]
    assert len(large) == 4
    for words, share in large:
        name, time = words.rsplit(" ", 2)[0], " ".join(words.rsplit(" ", 2)[1:])
        assert f"{time} {name} ({share})" in sentence
    share = messages.main_cause(flow).rsplit(", ", 1)[1]
    assert f"sharing ({share})".replace("\u00a0", " ") in sentence
    assert f"other connections of the client ({share})" in verdict(flow, [])


def test_delays_between_two_captures_are_in_seconds() -> None:
    delays = {"delay_min_ns": 50_000_000, "delay_max_ns": 2_000_000_000, "delay_p50_ns": 100_000_000}
    row = {"from": "server", "lost": 3, "data_packets": 1000} | delays
    (sentence,) = messages.in_transit([row])
    assert "3 of 1,000 packets" in sentence
    assert "50 ms to 2 s, median 100 ms" in sentence
    assert messages.in_transit([row | {"delay_min_ns": None}]) == []


def test_the_end_of_a_connection() -> None:
    flow = connection(1, 0, 5)
    directions = [{"from": "client", "resets": 0}, {"from": "server", "resets": 0}]
    assert messages.ending(flow, directions) == "Closed by both ends."
    assert messages.ending(flow | {"ending": "open"}, directions) == "Open at the end of the capture."
    closing = [directions[0] | {"fins": 1}, directions[1] | {"fins": 0}]
    assert messages.ending(flow | {"ending": "open"}, closing).startswith("Closed by the client; the capture ends")
    both = [each | {"fins": 1} for each in directions]
    assert messages.ending(flow | {"ending": "open"}, both).startswith("Closed by both ends; the capture ends")
    middle = [each | {"syns": 0} for each in directions]
    assert messages.ending(flow, middle).endswith("after the handshake; the ports show which end is the server.")
    aborted = [{"from": "client", "resets": 2}, {"from": "server", "resets": 0}]
    assert messages.ending(flow, aborted) == "Reset by the client."


def test_the_table_and_the_sentence_agree_on_the_end_of_a_connection() -> None:
    flow = connection(1, 0, 5) | {"ending": "open"}
    words = {ends: messages.ended(flow | {"closing_ends": ends}) for ends in (0, 1, 2)}
    assert words == {0: "open", 1: "half-closed", 2: "closing"}
    assert messages.ended(flow | {"reset": True, "closing_ends": 2}) == "reset"


def test_why_combines_short_intervals() -> None:
    def piece(start: int, end: int) -> dict[str, Any]:
        return {"start": start, "end": end}

    pieces = [piece(0, 10**9), *(piece(10**9 + i * 10**6, 10**9 + (i + 1) * 10**6) for i in range(50))]
    runs = text._runs([*pieces, piece(1_050_000_000, 2 * 10**9)], 2.0)
    assert [len(run) for run in runs] == [1, 50, 1]


def test_the_verdict_names_the_place_with_the_most_time_first() -> None:
    def piece(length: float, confidence: str) -> dict[str, Any]:
        return {"connection": 1, "start": 0, "end": int(length * 1e9), "confidence": confidence}

    sure, unsure = [piece(10, "high")], [piece(4, "high"), piece(6, "low")]
    full = connection(1, 0, 10, path_rate_s=1.0, queueing_s=6.0, radio_s=2.0, set_up_s=1.0)
    assert verdict(full, sure).replace("\u00a0", " ") == (
        "Limited by the network: the link was fully used (70 %, 60 % with a long queue in front of it), "
        "and the path carried nothing (20 %), and the handshake took its round trips (10 %)."
    )
    mixed = connection(1, 0, 10, application_s=4.0, radio_s=3.0, recovery_s=3.0)
    assert verdict(mixed, unsure).startswith("Probably limited by the network: ")
    assert "; and by the applications: they had no data to send (40" in verdict(mixed, unsure)
    hidden = verdict(full | {"captured_end": "client"}, sure)
    assert hidden == "The causes are unknown: only segments from the client are in the capture."


def test_the_direction_of_a_full_link_is_named() -> None:
    def piece(cause: str, full_by: str | None, length: float) -> dict[str, Any]:
        times = {"start": 0, "end": int(length * 1e9), "confidence": "high"}
        return {"connection": 1, "cause": cause, "full_by": full_by} | times

    full = connection(1, 0, 10, path_rate_s=3.0, queueing_s=5.0, sharing_s=2.0)
    up = [piece("path-rate", "client", 3), piece("queueing", "client", 5), piece("sharing", "server", 2)]
    assert verdict(full, up).replace("\u00a0", " ") == (
        "Limited by the network: the uplink was fully used (80 %, 50 % with a long queue in front of it), "
        "and the downlink was full with other connections of the client (20 %)."
    )
    both = [piece("path-rate", "server", 3), piece("queueing", "client", 5), piece("sharing", None, 2)]
    assert verdict(full, both).replace("\u00a0", " ") == (
        "Limited by the network: the uplink was fully used (50 %, with a long queue), "
        "and the downlink was fully used (30 %), and the link was full with other connections of the client (20 %)."
    )
    row = {"from": "server", "early_timer_retransmissions": 0, "timeouts": 1, "tail_probes": 0, "spurious": 1}
    assert "in the queue of the full uplink" in messages.spurious_timers(full, [row], up[:2])
    assert "in the queue of the full link" in messages.spurious_timers(full, [row], up)
    own = elapsed([full], pieces((1, "path-rate", 0, 3, 0), (1, "sharing", 3, 10, 0), full_by="client"), received(_1=0))
    assert own.filled == {"path-rate": {"client": 10.0}}


def test_the_clock_of_the_other_end_is_reported() -> None:
    estimated = {"offset_s": 3600.0, "skew": 12e-6, "uncertainty_s": 0.085}
    text = messages.clock({"clock": estimated})
    assert text.startswith("The clock of the other end is 3,600.0 s ahead of that of the first capture, ± 85 ms")
    assert "a skew of +12.0 parts per million" in text
    assert "behind" in messages.clock({"clock": estimated | {"offset_s": -1.0, "skew": 0.0}})
    assert messages.clock({"clock": estimated | {"uncertainty_s": None}}) == messages.clock({"clock": None}) == ""
