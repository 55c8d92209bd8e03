"""What a reader of a trace sees first: groups of many connections, QUIC, rates, messages."""

import gzip
import struct
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.trace import groups
from airpath.trace.causes import CAUSES
from airpath.trace.format import figures
from airpath.trace.warnings import file_warnings
from support import DOWNLOAD, Command

TWO = DOWNLOAD + '\n[[flow]]\nkind = "download"\nbytes = "300 kB"\n'


def pcap(path: Path, link_type: int, *packets: bytes) -> Path:
    records = [struct.pack("<IIII", at, 0, len(packet), len(packet)) + packet for at, packet in enumerate(packets)]
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type) + b"".join(records))
    return path


def udp(payload: bytes, source: int, destination: int) -> bytes:
    first, second = bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])
    ends = first + second if destination == 443 else second + first
    header = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 1, 0, 64, 17, 0) + ends
    return header + struct.pack(">HHHH", source, destination, 8 + len(payload), 0) + payload


def test_a_capture_with_only_quic_has_its_table(airpath_command: Command) -> None:
    """RFC 9000 §17.2.2: two Initial packets of version 1, with identifiers of 8 bytes."""
    initial = bytes([0xC3]) + struct.pack(">I", 1) + b"\x08" + b"d" * 8 + b"\x08" + b"s" * 8 + bytes(1178)
    answer = bytes([0xC3]) + struct.pack(">I", 1) + b"\x08" + b"s" * 8 + b"\x08" + b"t" * 8 + bytes(1178)
    capture = pcap(airpath_command.folder / "quic.pcap", 101, udp(initial, 5000, 443), udp(answer, 443, 5000))
    done = airpath_command("trace", capture, "-o", "report.html", COLUMNS="160")
    assert done.code == 0, done.err
    assert "QUIC flow" in done.out
    assert "192.0.2.1:5000 → 192.0.2.2:443" in done.out
    assert "QUIC encrypts" in (airpath_command.folder / "report.html").read_text(encoding="utf-8")


def test_a_capture_without_tcp_names_what_it_has(airpath_command: Command) -> None:
    capture = pcap(airpath_command.folder / "other.pcap", 147, b"nothing", b"known")
    done = airpath_command("trace", capture)
    assert done.code == 2
    assert "no TCP in its 2 frames (2 of unsupported link type 147 (for private use))" in done.err
    # A second file has a supported link type, and no TCP.
    datagram = pcap(airpath_command.folder / "udp.pcap", 101, bytes([0x60]) + bytes(39))
    done = airpath_command("trace", capture, datagram)
    assert "of unsupported link type 147" in done.err
    assert "101, 147" not in done.err


def test_the_end_of_a_cut_file_is_reported_once() -> None:
    file = {"name": "cut.pcap", "frames": 7, "ending": "it ends within a record", "dropped": 0}
    file |= {"ahead": None, "back": None, "link_type": 1}
    lacks = {"options_cut": 0, "super_segments": 0, "unseen_bytes": 0}
    reading = {"files": [file], "interrupted": False, "shortcomings": lacks}
    assert file_warnings(reading | {"skipped": {"cut_record": 1}}) == [
        "cut.pcap: it ends within a record; the 7 frames before are analysed, copy the file again for the rest"
    ]
    assert "skipped: 1 corrupt record" in file_warnings(reading | {"skipped": {"corrupt_record": 1}})


def test_a_capture_without_packets_is_named_and_the_others_are_analysed(
    airpath_command: Command, tmp_path: Path
) -> None:
    whole = airpath.run(DOWNLOAD, out=tmp_path / "run", capture=True).captures()[0]
    files = {"header": pcap(airpath_command.folder / "header.pcap", 1).read_bytes(), "empty": b""}
    files["cut"] = files["header"] + struct.pack("<IIII", 1, 0, 60, 60) + bytes(20)
    files["begun"] = files["header"][:20]
    files["packed"] = gzip.compress(files["header"])[:12]
    messages = {
        "header": ("the capture has no packets", "check the interface and the filter", "it has no packets"),
        "empty": ("the file is empty", "check the program that captured", "it is empty"),
        "cut": ("it ends within a record, so no packet is complete", "copy it again", "it ends within a record"),
        "begun": ("the file header is cut short", "copy the file again", "it ends within its header"),
        "packed": ("the compressed file is cut short", "copy it again", "it ends within its header"),
    }
    for name, (message, next_step, note) in messages.items():
        file = airpath_command.folder / f"{name}.pcap"
        file.write_bytes(files[name])
        alone = airpath_command("trace", file)
        assert (alone.code, f"{file}: {message}" in alone.err, next_step in alone.err) == (2, True, True), alone.err
        both = airpath_command("trace", *((file, whole) if name == "empty" else (whole, file)))
        assert both.code == 0
        assert f"{file}: {note}, so it adds nothing to the analysis" in both.err
        assert "200 kB in" in both.out


def test_a_cut_capture_has_all_frames_before_its_end(airpath_command: Command, tmp_path: Path) -> None:
    whole = airpath.run(DOWNLOAD, out=tmp_path / "run", capture=True).captures()[0]
    frames = airpath.trace(whole).reading["files"][0]["frames"]
    file = airpath_command.folder / "cut.pcapng"
    # The file ends with a block of statistics, or with the last frame.
    for lost in (1, 2, 3, 4):
        file.write_bytes(whole.read_bytes()[:-lost])
        done = airpath_command("trace", file)
        assert "it ends within a record; the " in done.err
        assert airpath.trace(file).reading["files"][0]["frames"] in (frames, frames - 1)


def test_the_rate_is_that_of_delivered_data_and_of_more_than_a_flight(tmp_path: Path) -> None:
    run = airpath.run(DOWNLOAD, out=tmp_path / "run", capture=True)
    trace = airpath.trace(next(path for path in run.captures() if path.name.endswith("server.pcapng")))
    [client, server] = trace.directions.rows(named=True)
    assert server["goodput_bps"] == pytest.approx(server["throughput_bps"])
    texts = dict(figures([client, server]))
    assert texts["throughput"][0] == "–"
    assert texts["throughput"][1] != "–"
    # Half of the data is not acknowledged at the end of the capture.
    aborted = server | {"goodput_bps": server["throughput_bps"] / 2}
    assert dict(figures([client, aborted]))["throughput"][1] != texts["throughput"][1]


def test_many_connections_are_grouped_by_server_application_and_cause() -> None:
    def flow(number: int, server: str, **causes: float) -> dict[str, Any]:
        row = {"connection": number, "server_address": server, "server_port": 443, "duration_s": sum(causes.values())}
        return row | {cause.column: 0.0 for cause in CAUSES} | causes

    class Timelines:
        def iter_rows(self, *, named: bool) -> list[dict[str, Any]]:
            assert named
            return [{"connection": 1, "application": "tls", "server_name": "one.example"}]

    class Trace:
        timelines = Timelines()

    flows = [flow(1, "192.0.2.1", radio_s=2.0)]
    flows += [flow(number, "192.0.2.9", application_s=1.0) for number in range(2, 50)]
    found = groups.groups(Trace(), flows)  # pyright: ignore[reportArgumentType]
    assert [(group.server, group.application, len(group.flows)) for group in found] == [
        ("one.example", "tls", 1),
        ("192.0.2.9", "port 443", 48),
    ]
    assert found[0].avoidable == 2.0


def test_the_two_sides_of_a_proxy_are_not_joined(tmp_path: Path) -> None:
    scenario = DOWNLOAD + '\n[proxy]\npreset = "bearer"\n'
    run = airpath.run(scenario, out=tmp_path / "run", capture=True)
    trace = airpath.trace(run.path)
    assert trace.connections.height == 1
    [note] = [each for each in file_warnings(trace.reading) if "proxy" in each]
    assert "0000-server.pcapng alone" in note
    assert "airpath trace " in note
    assert note.endswith("0000-mobile.pcapng")
    # The radio is not on the path between the server and the proxy.
    assert trace.sources.radio == ()


def test_the_sides_of_a_proxy_are_not_read_from_the_event_log(tmp_path: Path) -> None:
    run = airpath.run(DOWNLOAD + '\n[proxy]\npreset = "bearer"\n', out=tmp_path / "run")
    with pytest.raises(airpath.UnreadableResultError, match="a proxy ends the connections of this run") as raised:
        airpath.trace(run.path)
    assert raised.value.next_step == "run it again with `--capture`"


def test_a_selected_connection_has_the_causes_of_the_whole_run(tmp_path: Path) -> None:
    run = airpath.run(TWO, out=tmp_path / "run", capture=True)
    whole = airpath.trace(run.path)
    for number in (1, 2):
        alone = airpath.trace(run.path, flow=number)
        assert alone.connections.equals(whole.connections.filter(connection=number))
        assert alone.one_way.height > 0
        assert alone.one_way.equals(whole.one_way.filter(connection=number))
