"""Every numeric column has its unit in its name, or is a number of what it names.

The figures of `directions` of a trace have their units in docs/trace-figures.md instead.
"""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import airpath
from airpath.columns import event_columns
from airpath.tables import EVENT_TABLES, SUMMARY_TABLES
from airpath.trace.tables import TABLES
from support import ROOT

UNIT = re.compile(r"(_|^)(s|bps|bytes|bytes_per_s|per_s|share|packets|pdus|frames?|segments|datagrams)$")

FIGURES = {f"result-{name}": table for name, table in SUMMARY_TABLES.items()} | {
    "trace-connections": TABLES["connections"]
}
"""Tables of figures, which are printed and compared."""

ROWS = {f"log-{name}": table for name, table in EVENT_TABLES.items()} | {
    f"trace-{name}": table for name, table in TABLES.items() if name not in ("connections", "directions")
}
"""Tables with a row for each event, segment or interval."""

IDENTITIES = {
    "first",
    "client_port",
    "connection",
    "quic",
    "duplicate_of",
    "ecn",
    "exchange",
    "flags",
    "flow",
    "frame_after",
    "frame_before",
    "level",
    "object",
    "packet",
    "packet_number",
    "peer_connection",
    "repetition",
    "retransmission_of",
    "round_trip_of",
    "echo_round_trip_of",
    "sequence",
    "server_port",
    "status",
    "tls_version",
    "user",
    "version",
    "view",
    "window_scale",
}
"""Numbers that name something, and codes."""

RATIOS = {
    "frame_loss",
    "mos",
    "r",
    "efficiency",
    "efficiency_of_reused",
    "most_pipeline_factor",
    "pacing_gain",
    "pipeline_factor",
    "pipelining_efficiency",
    "pipelining_efficiency_of_reused",
}

COUNTS = {
    "ack_lost_segment",
    "acknowledged_retransmission",
    "acknowledgement_pairs",
    "acknowledgements",
    "acknowledgements_after_loss",
    "address_changes",
    "ambiguous_acknowledgements",
    "bad_checksum",
    "bunched_acknowledgements",
    "bursts",
    "cached",
    "closed_windows",
    "compressed_pairs",
    "congestion_experienced",
    "connections",
    "control",
    "count",
    "cumulatively_acknowledged",
    "delay_periods",
    "dsacks",
    "duplicate_acknowledgements",
    "discarded",
    "duplicates",
    "early_timer_retransmissions",
    "echo_round_trips",
    "ecn_reductions",
    "errored",
    "events",
    "fast_retransmissions",
    "fast_retransmits",
    "fins",
    "frames_complete",
    "frames_decodable",
    "full_size_round_trips",
    "gap_most_lost",
    "gaps",
    "hardware_duplicates",
    "keep_alive",
    "keep_alive_ack",
    "largest_bunch",
    "late",
    "look_ups",
    "lost",
    "lost_before_capture",
    "lost_segment",
    "most_blocks",
    "most_retransmissions",
    "objects",
    "opened",
    "options_cut",
    "out_of_order",
    "paired_acknowledgements",
    "pure_acknowledgements",
    "quality",
    "received",
    "reordered",
    "repaired",
    "repeated",
    "reports",
    "requests",
    "resets",
    "responses",
    "retransmissions",
    "reused_ports",
    "round_trips",
    "rtt_samples",
    "segment",
    "segments_received",
    "selective_acknowledgements",
    "sent",
    "shows_spurious",
    "spurious",
    "spurious_acknowledged",
    "spurious_dsack",
    "spurious_extra_acknowledgement",
    "spurious_forward_acknowledgement",
    "spurious_other_end",
    "spurious_timestamp",
    "spurious_too_soon",
    "stalls",
    "switches",
    "syns",
    "tail_probes",
    "tfo_ack",
    "tfo_ignored",
    "tfo_syn",
    "timeouts",
    "triple_duplicates",
    "ttis",
    "handovers",
    "connection_setups",
    "link_failures",
    "undone",
    "unexplained_retransmissions",
    "unknown",
    "value",
    "window_full",
    "window_probes",
    "window_update",
    "zero_window_probe_ack",
    "zero_windows",
}

NANOSECONDS = {
    "accepted",
    "answered",
    "arrival",
    "client_hello",
    "closed",
    "delay",
    "due",
    "duration",
    "end",
    "established",
    "first",
    "last",
    "opened",
    "request_first",
    "request_last",
    "response_acknowledged",
    "response_first",
    "response_last",
    "retransmission_timeout",
    "round_trip",
    "server_hello",
    "smoothed_round_trip",
    "start",
    "time",
    "tls_established",
}
"""Times of rows: integers, as in captures. Other columns of nanoseconds end with `_ns`."""

BYTES = {
    "ack",
    "acknowledged",
    "congestion_window",
    "delivered",
    "duplicate",
    "in_flight",
    "left",
    "length",
    "offset",
    "outstanding",
    "peer_window",
    "right",
    "size",
    "slow_start_threshold",
    "spurious",
    "window",
}
"""Positions and lengths of a byte stream."""

OTHER = {"number", "pacing_rate"}
"""The value of a state, whose unit depends on its aspect, and bit/s: docs/result-folder.md."""


def _numeric(table: dict[str, str]) -> set[str]:
    return {name for name, kind in table.items() if kind.startswith(("Int", "Float"))}


@pytest.mark.parametrize("table", FIGURES.values(), ids=FIGURES)
def test_a_figure_has_its_unit_in_its_name(table: dict[str, str]) -> None:
    bare = {name for name in _numeric(table) if not UNIT.search(name)} - {"start"}  # of a connection: a time of a row
    assert bare <= IDENTITIES | RATIOS | COUNTS


@pytest.mark.parametrize("table", ROWS.values(), ids=ROWS)
def test_a_row_has_nanoseconds_and_bytes(table: dict[str, str]) -> None:
    bare = {name for name in _numeric(table) if not UNIT.search(name) and not name.endswith("_ns")}
    assert bare <= IDENTITIES | RATIOS | COUNTS | NANOSECONDS | BYTES | OTHER
    floats = {name for name in bare if table[name].startswith("Float")}
    assert not floats & (NANOSECONDS | BYTES)


def test_the_lists_have_only_columns_that_exist() -> None:
    known = {name for table in (*FIGURES.values(), *ROWS.values(), TABLES["directions"]) for name in table}
    assert known >= IDENTITIES | RATIOS | COUNTS | NANOSECONDS | BYTES | OTHER


@pytest.mark.parametrize("table", EVENT_TABLES)
def test_the_columns_of_events_are_documented(table: str) -> None:
    """The page has each column with its type, unit and meaning, as in the metadata of the files."""
    text = (ROOT / "docs" / "result-folder.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {table}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \| (\w+)(?:, null)? \| (\S*) ?\| (.*) \|$", section, re.MULTILINE)
    types = {"Boolean": "bool"}
    expected = [
        (name, types.get(EVENT_TABLES[table][name], EVENT_TABLES[table][name].lower()), unit or "", meaning)
        for name, (unit, meaning) in event_columns(table).items()
    ]
    assert found[: len(expected)] == expected
    assert [name for name, *_ in expected] == list(EVENT_TABLES[table])


@pytest.mark.parametrize("table", SUMMARY_TABLES)
def test_the_columns_of_summaries_are_documented(table: str) -> None:
    text = (ROOT / "docs" / "result-folder.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", text))
    assert {name for name in SUMMARY_TABLES[table] if name not in named and not _is_composed(name)} == set()


def _is_composed(name: str) -> bool:
    """Return whether a name is one of those that the page describes by their parts."""
    return bool(re.match(r"(dropped|offered|delivered|queued|down|up|exchange)_", name))


@pytest.mark.parametrize("table", EVENT_TABLES)
def test_units_of_events_agree_with_the_lists(table: str) -> None:
    units = {name: unit for name, (unit, _) in event_columns(table).items()}
    numeric = _numeric(EVENT_TABLES[table])
    assert {name for name, unit in units.items() if unit == "ns"} == numeric & NANOSECONDS
    sizes = {name for name in numeric if name in BYTES or name == "bytes" or name.endswith("_bytes")}
    assert {name for name, unit in units.items() if unit == "B"} == sizes
    assert {name for name, unit in units.items() if unit not in (None, "ns", "B")} <= OTHER


def test_files_have_the_units_in_their_metadata(tmp_path: Path) -> None:
    result = airpath.run("gprs", out=tmp_path / "run")
    for table in EVENT_TABLES:
        for file in (result.path / "events" / table).glob("*.parquet"):
            metadata = json.loads(pl.read_parquet_metadata(file)["airpath.columns"])
            assert {name: (each["unit"], each["description"]) for name, each in metadata.items()} == event_columns(
                table
            )
            assert pl.read_parquet_schema(file).keys() == metadata.keys()
    columns = result.columns("tcp")
    assert columns.columns == ["column", "type", "unit", "description"]
    assert columns.filter(column="pacing_rate")["unit"].to_list() == ["bit/s"]
    assert result.columns("flows").filter(column="throughput_bps")["unit"].to_list() == ["bit/s"]
    with pytest.raises(KeyError, match="there are flows, "):
        result.columns("flow")


def test_the_units_are_documented() -> None:
    for page, words in (("trace.md", ("nanoseconds", "`_s`")), ("result-folder.md", ("nanoseconds",))):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for each in words:
            assert each in text
