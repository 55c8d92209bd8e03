"""Captures that mislead: one direction, two ends as a sequence, copies; outputs over captures."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

import airpath
from airpath.trace.connection_rows import one_direction
from airpath.trace.warnings import _radio, warnings_of
from support import DOWNLOAD, Command


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """A captured download."""
    return airpath.run(DOWNLOAD, out=tmp_path_factory.mktemp("doubtful") / "run", capture=True)


@pytest.fixture(scope="module")
def ends(run: airpath.Result) -> dict[str, Path]:
    """The captures of the run at its two ends."""
    return {end: next(path for path in run.captures() if path.stem.endswith(end)) for end in ("mobile", "server")}


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


Frame = tuple[float, bytes]


def frames(capture: Path) -> list[Frame]:
    """Return the packets of a pcapng file of a run: seconds, and the IP packet."""
    data, found, at = capture.read_bytes(), [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            high, low, size = struct.unpack_from("<III", data, at + 12)
            found.append((((high << 32) | low) / 1e9, data[at + 28 : at + 28 + size]))
        at += length
    return found


def write(path: Path, packets: list[Frame]) -> Path:
    """Write IP packets as pcap with nanoseconds."""
    data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
    for time, packet in packets:
        length = struct.unpack_from(">H", packet, 2)[0]
        seconds = int(time)
        data += struct.pack("<IIII", seconds, round((time - seconds) * 1e9), len(packet), length) + packet
    path.write_bytes(data)
    return path


def from_port(port: int) -> Callable[[Frame], bool]:
    return lambda frame: struct.unpack_from(">H", frame[1], 20)[0] == port


@pytest.mark.parametrize("option", ["-o", "--har", "--perfetto"])
def test_no_output_replaces_a_capture(option: str, ends: dict[str, Path], command: Command) -> None:
    own, other = command.folder / "own.pcapng", command.folder / "other.pcapng"
    shutil.copy(ends["mobile"], own)
    shutil.copy(ends["server"], other)
    before = own.read_bytes(), other.read_bytes()
    (command.folder / "link.html").symlink_to(own)
    for arguments, message in (
        (["own.pcapng", option, "own.pcapng"], "own.pcapng is an input"),
        (["own.pcapng", option, "link.html"], "link.html is an input"),
        (["own.pcapng", "--peer", "other.pcapng", option, "other.pcapng"], "other.pcapng is an input"),
        (["own.pcapng", option, "other.pcapng"], "other.pcapng is a capture"),
    ):
        done = command("trace", *arguments)
        assert done.code == 2
        assert message in done.err
        assert "next: name another file" in done.err
    assert (own.read_bytes(), other.read_bytes()) == before


def test_no_output_replaces_a_radio_log_or_another_output(ends: dict[str, Path], command: Command) -> None:
    log = command.folder / "radio.csv"
    log.write_text("begin,end,direction,name\n", encoding="utf-8")
    done = command("trace", ends["mobile"], "--radio", log, "--har", log)
    assert (done.code, "is an input" in done.err) == (2, True)
    done = command("trace", ends["mobile"], "--perfetto", "one.json", "--har", "one.json")
    assert (done.code, "name one file: one.json" in done.err) == (2, True)
    done = command("trace", "compare", ends["mobile"], ends["server"], "-o", ends["server"])
    assert (done.code, "is an input" in done.err) == (2, True)


def test_the_python_interface_replaces_no_capture_either(ends: dict[str, Path], tmp_path: Path) -> None:
    own = shutil.copy(ends["mobile"], tmp_path / "own.pcapng")
    trace = airpath.trace(own)
    for write_output in (trace.report, trace.har, trace.perfetto):
        with pytest.raises(airpath.TraceError, match="is an input"):
            write_output(own)


@pytest.mark.parametrize("end", ["client", "server"])
def test_one_direction_has_no_causes(end: str, ends: dict[str, Path], command: Command) -> None:
    port = 80 if end == "server" else 49152
    capture = write(command.folder / "one.pcap", list(filter(from_port(port), frames(ends["mobile"]))))
    trace = airpath.trace(capture)
    assert one_direction(trace) == {1: end}
    assert set(trace.causes["confidence"]) == {"low"}
    done = command("trace", capture, "-o", "report.html")
    assert done.code == 0
    assert done.err.startswith(f"note: connection 1: only segments from the {end} are in the capture")
    assert "of unknown causes" in done.out
    assert "bytes are not in the capture" not in done.err, "the other reasons for it do not hold"
    page = (command.folder / "report.html").read_text(encoding="utf-8")
    assert f"only segments from the {end} are in the capture" in page


@pytest.mark.parametrize("end", ["server", "mobile"])
def test_a_window_of_unknown_scale_is_no_cause(end: str, ends: dict[str, Path], command: Command) -> None:
    for skipped, is_unknown in ((0, False), (10, True)):
        capture = write(command.folder / "part.pcap", frames(ends[end])[skipped:])
        trace = airpath.trace(capture)
        # Before the first flight that exceeds it, the window may be what it seems.
        limited, duration = trace.connections.select("receive_window_s", "duration_s").row(0)
        assert limited <= (0.02 * duration if is_unknown else 0)
        assert ("unknown scale" in command("trace", capture).out) == is_unknown


def test_a_connection_without_an_answer_is_not_one_direction(ends: dict[str, Path], tmp_path: Path) -> None:
    (syn, *_) = frames(ends["mobile"])
    assert one_direction(airpath.trace(write(tmp_path / "syn.pcap", [syn, (syn[0] + 1, syn[1])]))) == {}
    assert one_direction(airpath.trace(ends["mobile"])) == {}


@pytest.mark.parametrize("delay", [0.0001, 0.003, 0.02])
@pytest.mark.parametrize("end", ["server", "mobile"])
def test_copies_behind_a_router_change_no_cause(end: str, delay: float, ends: dict[str, Path], tmp_path: Path) -> None:
    packets = frames(ends[end])
    # Byte 8 is the time to live of IPv4.
    copies = [(time + delay, each[:8] + bytes([each[8] - 1]) + each[9:]) for time, each in packets]
    once = airpath.trace(write(tmp_path / "once.pcap", packets))
    twice = airpath.trace(write(tmp_path / "twice.pcap", sorted(packets + copies, key=lambda frame: frame[0])))
    assert twice.directions["hardware_duplicates"].sum() == len(copies)
    assert twice.directions["retransmissions"].to_list() == once.directions["retransmissions"].to_list()
    seconds = [column for column in once.connections.columns if column.endswith("_s")]
    (expected,), (found,) = (trace.connections.select(seconds).rows() for trace in (once, twice))
    # The last copy prolongs the capture.
    assert found == pytest.approx(expected, abs=1.1 * delay)


def test_two_ends_in_a_sequence_are_noticed(ends: dict[str, Path], command: Command) -> None:
    done = command("trace", ends["server"], ends["mobile"])
    assert done.code == 0
    assert "are in the files a second time" in done.err
    assert f"airpath trace {ends['server']} --peer {ends['mobile']}" in done.err


def test_a_sequence_in_order_has_no_warning(ends: dict[str, Path], tmp_path: Path) -> None:
    packets = frames(ends["server"])
    parts = [packets[: len(packets) // 2], packets[len(packets) // 2 :]]
    files = [write(tmp_path / f"{number}.pcap", part) for number, part in enumerate(parts)]
    assert warnings_of(airpath.trace(files)) == []
    (warning,) = [text for text in warnings_of(airpath.trace(files[::-1])) if "begins" in text]
    assert "give files in the order of their times" in warning


def test_a_peer_that_is_the_same_capture_is_noticed(ends: dict[str, Path], command: Command) -> None:
    done = command("trace", ends["mobile"], "--peer", ends["mobile"])
    assert (done.code, "is given as FILE and as --peer" in done.err) == (2, True)
    shutil.copy(ends["mobile"], command.folder / "copy.pcapng")
    assert "seems to be a copy" in command("trace", ends["mobile"], "--peer", "copy.pcapng").err
    done = command("trace", ends["mobile"], "--peer", ends["server"], "--peer", ends["server"])
    assert (done.code, "--peer: given twice" in done.err) == (2, True)


def test_a_comparison_of_two_ends_suggests_peer(ends: dict[str, Path], command: Command) -> None:
    done = command("trace", "compare", ends["mobile"], ends["server"])
    assert done.code == 0
    assert f"airpath trace {ends['mobile']} --peer {ends['server']}" in done.err
    shutil.copy(ends["mobile"], command.folder / "again.pcapng")
    assert command("trace", "compare", ends["mobile"], "again.pcapng").err == ""


@pytest.mark.parametrize(
    ("arguments", "message", "advice"),
    [
        (["{capture}", "-o", "r.pdf"], "r.pdf: a report is HTML", "name it r.html"),
        (["{capture}", "report.html"], "report.html: No such file", "add -o report.html"),
        (["{capture}", "--radio", "nosuch.csv"], "--radio nosuch.csv: no such file", "check the path"),
        (["-r", "{capture}"], "-r is an option of tcpdump and tshark", "airpath trace FILE"),
        (["{capture}", "--peer", "nosuch.pcap"], "--peer nosuch.pcap: no such file", "check the path"),
    ],
)
def test_wrong_files_are_reported(
    arguments: list[str], message: str, advice: str, ends: dict[str, Path], command: Command
) -> None:
    done = command("trace", *(each.format(capture=ends["mobile"]) for each in arguments))
    assert done.code == 2
    assert message in done.err
    assert advice in done.err.splitlines()[1]


def test_the_clock_of_the_other_end_is_found_with_its_sign(ends: dict[str, Path], command: Command) -> None:
    ahead = write(command.folder / "ahead.pcap", [(time + 3600, packet) for time, packet in frames(ends["server"])])
    done = command("trace", ends["mobile"], "--peer", ahead)
    assert "The clock of the other end is 3,600.0 s ahead of that of the first capture, ± " in done.out


def test_several_connections_have_a_verdict_together(run: airpath.Result, command: Command) -> None:
    two = airpath.run(
        DOWNLOAD + '\n[[flow]]\nkind = "upload"\nbytes = "20 kB"\n', out=command.folder / "two", capture=True
    )
    done = command("trace", two.path, "-o", "report.html")
    lines = done.out.splitlines()
    client = airpath.trace(two.path).connections["client_address"][0]
    assert lines[1].startswith(f"All 2 connections of {client}, ")
    assert "imited by the " in lines[1]
    assert lines[2].startswith("The elapsed time, each moment once, ")
    assert "Avoidable: " in lines[2]
    assert f"All 2 connections of {client}, " in (command.folder / "report.html").read_text(encoding="utf-8")


def test_the_figures_name_the_end_of_a_round_trip_and_share_the_width(ends: dict[str, Path], command: Command) -> None:
    done = command("trace", ends["server"], COLUMNS="80")
    table = done.out[done.out.index("round trip from the capture") :]
    assert "to the client:" in table.splitlines()[0]
    heading = next(line for line in done.out.splitlines() if "from the client" in line)
    assert "from the server" in heading, "neither column is so narrow that its title is wrapped"


def test_a_capture_that_begins_in_the_middle_has_its_server(ends: dict[str, Path], command: Command) -> None:
    packets = frames(ends["server"])
    first = next(index for index, each in enumerate(packets) if index > 20 and from_port(80)(each))
    capture = write(command.folder / "middle.pcap", packets[first:])
    done = command("trace", capture)
    assert "Connection 1: 10.0.0.2:49152 → 192.0.2.1:80" in done.out
    assert "The capture begins after the handshake; the ports show which end is the server." in done.out


@pytest.mark.parametrize(
    ("contents", "message", "advice"),
    [
        (b"hello, world", "it is a text file, which begins with 'hell'", "known are pcap"),
        (b"PK\x03\x04 and more", "it is a ZIP archive", "unpack it"),
        (b"", "the file is empty", "copy it again"),
        (
            struct.pack("<IHHiIIIIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 105, 1, 0, 4, 4) + bytes(4),
            "1 of unsupported link type 105 (IEEE 802.11)",
            "docs/trace.md has the supported link types",
        ),
    ],
    ids=["text", "zip", "empty", "wlan"],
)
def test_files_without_tcp_are_named(contents: bytes, message: str, advice: str, command: Command) -> None:
    (command.folder / "file.pcap").write_bytes(contents)
    done = command("trace", "file.pcap")
    assert done.code == 2
    assert message in done.err
    assert advice in done.err.splitlines()[1]


def test_a_port_without_a_colon_is_explained(ends: dict[str, Path], command: Command) -> None:
    assert "for a port write :80" in command("trace", ends["mobile"], "--flow", "80").err
    assert "one of these alone" in command("trace", ends["mobile"], "--flow", "1,2").err


def test_a_radio_log_that_explains_nothing_has_a_note() -> None:
    def notes(*logs: tuple[str | None, str, dict[str, str]], name: str | None = "runs/one") -> list[str]:
        trace = SimpleNamespace(
            sources=SimpleNamespace(radio=logs, radio_name=name, run=Path("runs/one")),
            connections=pl.DataFrame({"client_address": ["192.0.2.1"], "server_address": ["192.0.2.2"]}),
            reading={"files": [{"first": 1_000_000_000, "last": 5_000_000_000}]},
        )
        return _radio(cast("Any", trace))

    (empty,) = notes()
    assert empty.startswith("runs/one: the log has no time in which the radio carried nothing")
    assert notes(name=None) == [], "the log of a result folder that is analysed itself"
    rows = "begin,end,direction,name\n2000000000,3000000000,,outage"
    assert notes((None, rows, {})) == notes(("192.0.2.1", rows, {})) == []
    (other,) = notes(("10.0.0.2", rows, {}))
    assert "the log belongs to 10.0.0.2, which the capture does not have" in other
    (later,) = notes((None, "begin,end,direction,name\n61000000000,62000000000,,outage", {}))
    assert "no time of the log is in the capture; it begins 60 s after the capture" in later
