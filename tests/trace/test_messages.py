"""Sentences about connections."""

from typing import Any

from airpath.trace import messages, text
from airpath.trace.causes import CAUSES
from airpath.trace.verdict import verdict


def connection(number: int, start: float, duration: float, **causes: float) -> dict[str, Any]:
    row = {"connection": number, "start": int(start * 1e9), "duration_s": duration, "reset": False, "ending": "closed"}
    return row | {"client_address": "192.0.2.1"} | {cause.column: 0.0 for cause in CAUSES} | causes


def test_a_full_link_is_not_avoidable_time() -> None:
    bulk = connection(1, 0, 20, queueing_s=15.0, path_rate_s=3.0, sharing_s=1.5, set_up_s=0.5)
    stalled = connection(2, 0, 5, radio_s=3.0, application_s=2.0)
    assert messages.avoidable(bulk) == 0.5
    assert messages.worst_first([bulk, stalled]) == [stalled, bulk]


def test_the_connections_that_share_the_path_are_named() -> None:
    waiting = connection(1, 10, 5, sharing_s=1.0)
    beside, before = connection(2, 12, 10), connection(3, 0, 5)
    other = connection(4, 10, 5) | {"client_address": "192.0.2.9"}
    every = [waiting, beside, before, other]
    assert messages.behind(waiting, every) == "It shared the path with connection 2 of 192.0.2.1."
    assert messages.behind(beside, every) == "", "without time of this cause nothing is named"
    assert messages.behind(waiting, [waiting]) == ""


def test_clients_with_a_shared_path_have_a_sentence() -> None:
    busy = [connection(1, 10, 5, sharing_s=1.0), connection(2, 12, 8, sharing_s=2.5)]
    alone = connection(3, 0, 5, sharing_s=1.0) | {"client_address": "192.0.2.9"}
    free = [connection(number, 0, 5) | {"client_address": "192.0.2.8"} for number in (4, 5)]
    sent = [{"connection": number, "from": "server", "unique_bytes": 500_000} for number in (1, 2)]
    sent += [{"connection": 1, "from": "client", "unique_bytes": 7}, {"connection": 3, "from": "server"}]
    rows = [row | {"unique_bytes": row.get("unique_bytes")} for row in sent]
    assert messages.together([*busy, alone, *free], rows) == [
        "The 2 connections of 192.0.2.1 shared its path: of their 13 s in sum, 3.5 s are waits for each other's "
        "packets (sharing). Together they received 1 MB in 10 s, 800 kbit/s."
    ]
    assert messages.together([alone], []) == []


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
        "and the radio carried nothing (20 %), and the handshake took its round trips (10 %)."
    )
    mixed = connection(1, 0, 10, application_s=4.0, radio_s=3.0, recovery_s=3.0)
    assert verdict(mixed, unsure).startswith("Probably limited by the network: ")
    assert "; and by the applications: they had no data to send (40" in verdict(mixed, unsure)
    hidden = verdict(full | {"captured_end": "client"}, sure)
    assert hidden == "The causes are unknown: only segments from the client are in the capture."


def test_the_clock_of_the_other_end_is_reported() -> None:
    estimated = {"offset_s": 3600.0, "skew": 12e-6, "uncertainty_s": 0.085}
    text = messages.clock({"clock": estimated})
    assert text.startswith("The clock of the other end is 3,600.0 s ahead of that of the first capture, ± 85 ms")
    assert "a skew of +12.0 parts per million" in text
    assert "behind" in messages.clock({"clock": estimated | {"offset_s": -1.0, "skew": 0.0}})
    assert messages.clock({"clock": estimated | {"uncertainty_s": None}}) == messages.clock({"clock": None}) == ""
