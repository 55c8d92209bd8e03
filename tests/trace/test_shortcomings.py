"""Warnings of incomplete captures: drops, cut options, super-segments, unseen ACKed bytes."""

import struct
from pathlib import Path

import polars as pl

import airpath
from airpath.trace.warnings import file_warnings
from support import Command
from support.needs import shared_capture


def test_a_capture_with_cut_options_is_reported(airpath_command: Command) -> None:
    capture = shared_capture("own/variant_snap60.pcap")
    whole = airpath.trace(shared_capture("own/loss1_snd.pcap"))
    cut = airpath.trace(capture)
    assert file_warnings(whole.reading) == []
    # INDEX.md of the shared captures: 1385 segments have SACK blocks, which extend the headers
    # beyond the 60 captured bytes.
    assert cut.reading["shortcomings"] == {"options_cut": 1385, "super_segments": 0, "unseen_bytes": 0}
    [warning] = file_warnings(cut.reading)
    assert warning.startswith("the options of 1,385 segments are cut off")
    assert warning in airpath_command("trace", capture).err
    assert cut.observations().filter(pl.col("events").str.contains("options_cut")).height == 1385


def test_data_that_a_closed_window_refused_was_not_sent_in_vain() -> None:
    # The server sends 32 segments into a closed window, and again when it is open.
    directions = airpath.trace(shared_capture("zeek__http_206_example_b.pcap")).directions
    server = directions.row(by_predicate=(pl.col("connection") == 1) & (pl.col("from") == "server"), named=True)
    assert (server["retransmissions"], server["spurious"]) == (108, 0)


def test_the_capturing_hosts_own_count_of_drops_is_read(tmp_path: Path) -> None:
    # Interface Statistics Block (pcapng): type, length, interface, time, isb_ifdrop, end of
    # options, length.
    dropped = struct.pack("<HHQHH", 5, 8, 12, 0, 0)
    length = 24 + len(dropped)
    block = struct.pack("<IIIII", 5, length, 0, 0, 0) + dropped + struct.pack("<I", length)
    capture = tmp_path / "dropped.pcapng"
    capture.write_bytes(shared_capture("own/variant_pcapng.pcapng").read_bytes() + block)
    reading = airpath.trace(capture).reading
    assert reading["files"][0]["dropped"] == 12
    [warning] = file_warnings(reading)
    assert "the capturing host dropped 12 packets" in warning


def test_drops_and_super_segments_are_reported() -> None:
    file = {"name": "one.pcapng", "frames": 9, "link_type": 1, "ending": None, "ahead": None, "back": None}
    reading = {"files": [file | {"dropped": 12}], "skipped": {}, "interrupted": False}
    lacks = {"options_cut": 0, "super_segments": 3, "unseen_bytes": 2_896}
    dropped, unseen, longer = file_warnings(reading | {"shortcomings": lacks})
    assert dropped.startswith("one.pcapng: the capturing host dropped 12 packets")
    assert unseen.startswith("2,896 acknowledged bytes are not in the capture")
    assert longer.startswith("3 segments are longer than the peer's MSS")
