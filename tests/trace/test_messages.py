"""Sentences about connections."""

from typing import Any

from airpath.trace import messages, text
from airpath.trace.causes import CAUSES


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
    aborted = [{"from": "client", "resets": 2}, {"from": "server", "resets": 0}]
    assert messages.ending(flow, aborted) == "Reset by the client."


def test_why_combines_short_intervals() -> None:
    def piece(start: int, end: int) -> dict[str, Any]:
        return {"start": start, "end": end}

    pieces = [piece(0, 10**9), *(piece(10**9 + i * 10**6, 10**9 + (i + 1) * 10**6) for i in range(50))]
    runs = text._runs([*pieces, piece(1_050_000_000, 2 * 10**9)], 2.0)
    assert [len(run) for run in runs] == [1, 50, 1]
