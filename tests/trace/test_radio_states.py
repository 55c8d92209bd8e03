"""The states of the radio in connections, beside the log of states and the packets of the run."""

from pathlib import Path

import polars as pl
import pytest

import airpath
from airpath.quantities import seconds
from support import ROOT, Command

SCENARIO = """
format = 1
duration = "120 s"
fixed.delay = "250 ms"
[bearer]
preset = "{preset}"
{bearer}
[[flow]]
kind = "transactions"
request = "300 B"
response = "{response}"
transactions = 20
think = "3 s"
"""

ERRORS = "downlink.bler = 0.1"
"""A few short transfers do not last until the outer loop has its share of errors."""

CASES = {
    "lte-20mhz": (
        "20 kB",
        f'rrc.inactivity = "2 s"\n{ERRORS}',
        {"promotion", "drx", "scheduling-request", "grant", "harq-repeat"},
    ),
    "lte-tdd-20mhz": ("20 kB", ERRORS, {"drx", "scheduling-request", "grant", "harq-repeat"}),
    "nr-n28-fdd-20mhz": (
        "20 kB",
        f'rrc.inactivity = "2 s"\n{ERRORS}',
        {"promotion", "drx", "scheduling-request", "grant", "harq-repeat"},
    ),
    "lte-cat-m1": ("500 B", "", {"drx", "scheduling-request", "grant"}),
    "nb-iot": ("200 B", "", {"promotion", "random-access"}),
    "hspa-cat10-eul": ("20 kB", "e_dch.bler = 0.3", {"scheduling-request", "grant", "harq-repeat"}),
}
"""Bytes of a response, changes of the bearer, and states that the connection has at least."""

TOLERANCE_NS = 2e6
"""A state that begins or ends with a packet may differ by its transmission."""


def _states(result: airpath.Result) -> pl.DataFrame:
    """Return the states that the truth needs: begin, end, direction, name."""
    rows = result.states.filter(pl.col("name").is_not_null()).sort("time", maintain_order=True)
    last = int(rows["time"].to_list()[-1])
    key = ["aspect", "direction"]
    rows = rows.with_columns(end=pl.col("time").shift(-1).over(key).fill_null(last))
    wanted = {"promotion", "paging", "drx", "scheduling-request", "grant", "random-access", "harq-repeat"}
    sleeps = (pl.col("aspect") == "drx") & pl.col("name").is_in(["active", "short", "long"])
    # A TTI of E-DCH by a grant has its name, too.
    schemes = pl.col("aspect") == "scheme"
    return rows.filter(pl.col("name").is_in(list(wanted)) & ~sleeps & ~schemes).select(
        "time", "end", "direction", "name"
    )


def _in_transit(result: airpath.Result, *, data: bool) -> list[tuple[int, int, str]]:
    """Return when each packet was sent and received, and its direction."""
    packets = result.packets
    sent = packets.filter(pl.col("step") == "sent").select("packet", "direction", "length", sent="time")
    received = packets.filter(pl.col("step") == "received").select("packet", received="time")
    both = sent.join(received, on="packet")
    both = both.filter(pl.col("length") > 0) if data else both
    return list(both.select("sent", "received", "direction").iter_rows())


def _length(intervals: list[tuple[int, int]]) -> int:
    """Return the length of a union of intervals."""
    total, until = 0, 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def _truth(result: airpath.Result, name: str, *, data: bool) -> int:
    """Return how long packets were in transit while the radio was in a state."""
    states = _states(result).filter(name=name).rows()
    return _length(
        [
            (max(begin, sent), min(end, received))
            for begin, end, of, _ in states
            for sent, received, direction in _in_transit(result, data=data)
            if of in (None, direction) and max(begin, sent) < min(end, received)
        ]
    )


@pytest.mark.parametrize("preset", CASES)
def test_the_time_of_each_state_is_that_of_the_packets_in_it(preset: str, tmp_path: Path) -> None:
    response, bearer, least = CASES[preset]
    text = SCENARIO.format(preset=preset, response=response, bearer=bearer)
    result = airpath.run(text, out=tmp_path / "run", seed=7)
    trace = airpath.trace(tmp_path / "run")
    states = trace.radio_states.with_columns(length=pl.col("end") - pl.col("start"))
    found = dict(states.group_by("state").agg(pl.col("length").sum()).iter_rows())
    assert least <= set(found), found
    for name, length in found.items():
        # A pure acknowledgement counts only where the sender waits for it.
        low, high = _truth(result, name, data=True), _truth(result, name, data=False)
        count = states.filter(state=name).height
        assert low - count * TOLERANCE_NS <= length <= high + count * TOLERANCE_NS, (name, low, length, high)


def test_a_state_is_within_a_piece_of_its_cause(tmp_path: Path) -> None:
    text = SCENARIO.format(preset="lte-20mhz", response="20 kB", bearer="")
    airpath.run(text, out=tmp_path / "run", seed=7)
    trace = airpath.trace(tmp_path / "run")
    pieces = trace.causes.select("connection", "cause", begin="start", until="end")
    inside = trace.radio_states.join(pieces, on=["connection", "cause"]).filter(
        pl.col("begin") <= pl.col("start"), pl.col("end") <= pl.col("until")
    )
    assert inside.height == trace.radio_states.height > 0
    ordered = trace.radio_states.sort("connection", "start")
    assert ordered.filter(pl.col("start") < pl.col("end").shift().over("connection")).height == 0, "no overlap"


def test_a_full_link_stays_the_cause(tmp_path: Path) -> None:
    text = """
    format = 1
    bearer.preset = "lte-20mhz"
    fixed.delay = "20 ms"
    [[flow]]
    kind = "download"
    bytes = "60 MB"
    """
    result = airpath.run(text, out=tmp_path / "run", seed=7, capture=True)
    assert result.states.filter(name="harq-repeat").height > 50, "some of the blocks are sent again"
    captures = {path.stem.rpartition("-")[2]: path for path in result.captures()}
    server, mobile = captures["server"], captures["mobile"]
    without = airpath.trace(server, peer=mobile).connections.row(0, named=True)
    with_log = airpath.trace(server, peer=mobile, radio=tmp_path / "run").connections.row(0, named=True)
    for full in ("path_rate_s", "queueing_s"):
        assert with_log[full] == pytest.approx(without[full], abs=0.01 * without["duration_s"])
    # Acknowledgements that wait for requests and grants delay a sender that its window limits.
    assert 0 < with_log["radio_s"] < without["slow_start_s"] + without["congestion_window_s"]


def test_the_text_has_the_states(tmp_path: Path) -> None:
    text = SCENARIO.format(preset="lte-20mhz", response="20 kB", bearer=ERRORS)
    airpath.run(text + '\n[[change]]\nat = "10 s"\nhandover = "60 ms"\n', out=tmp_path / "run", seed=7)
    done = Command(tmp_path)("trace", "run")
    assert done.code == 0
    text = " ".join(done.out.split())
    assert "Waiting for the radio, by state: " in text, text
    for state in ("drx", "scheduling-request", "grant", "harq-repeat", "handover 60"):
        assert f"{state} " in text.replace("\u00a0", " "), (state, text)


def test_arguments_without_an_input_are_refused(tmp_path: Path) -> None:
    capture = ROOT / "tests" / "captures" / "clean-server.pcapng"
    columns = {"begin": "t"}
    for radio in (None, tmp_path):
        with pytest.raises(airpath.TraceError, match="radio_columns is given without a CSV file; name it as radio"):
            airpath.trace(capture, radio=radio, radio_columns=columns)
    with pytest.raises(airpath.TraceError, match="repetition is given without a result folder"):
        airpath.trace(capture, repetition=1)


def test_names_of_another_log_are_kept(tmp_path: Path) -> None:
    text = SCENARIO.format(preset="lte-20mhz", response="20 kB", bearer="")
    result = airpath.run(text, out=tmp_path / "run", seed=7, capture=True)
    first = 1_000_000_000
    log = tmp_path / "phone.csv"
    log.write_text(f"t,what\n{first},ok\n{first + 1},asleep\n{first + 110},ok\n", encoding="utf-8")
    columns = {"begin": "t", "name": "what", "silent": "none", "delays": "asleep"}
    server = next(path for path in result.captures() if path.name.endswith("server.pcapng"))
    trace = airpath.trace(server, radio=log, radio_columns=columns)
    assert set(trace.radio_states["state"]) == {"asleep"}
    assert trace.connections["radio_s"].item() > 0


PROMOTED = """
format = 1
bearer.preset = "lte-10mhz"
[[flow]]
kind = "download"
bytes = "200 kB"
"""


def test_the_promotion_before_a_capture_at_the_server_is_reported(tmp_path: Path, airpath_command: Command) -> None:
    result = airpath.run(PROMOTED, out=tmp_path / "run", capture=True)
    promotion = _states(result).filter(name="promotion")
    [length] = (promotion["end"] - promotion["time"]).to_list()
    syn = _in_transit(result, data=False)[0]
    words = f"promotion {seconds(length / 1e9)}"
    text = airpath_command("trace", str(tmp_path / "run")).out
    assert f"the SYN was in transit for {seconds((syn[1] - syn[0]) / 1e9)}; radio, by state: {words}" in text
    server, mobile = (str(tmp_path / "run" / "captures" / f"0000-{end}.pcapng") for end in ("server", "mobile"))
    alone = airpath_command("trace", server, "--radio", str(tmp_path / "run")).out
    assert f"the SYN waited; radio, by state: {words}" in alone
    # At the mobile it is part of the set-up.
    at_mobile = airpath_command("trace", mobile, "--radio", str(tmp_path / "run")).out
    assert "Before it reached the server" not in at_mobile
    assert f"Connection set-up, by state: {words}" in at_mobile
    assert "Before it reached the server" not in airpath_command("trace", server).out


def test_the_promotion_of_several_connections_is_summed_up(tmp_path: Path, airpath_command: Command) -> None:
    text = PROMOTED.replace("200 kB", "20 kB").replace('kind = "download"', 'kind = "download"\ncount = 2')
    text += '[[flow]]\nkind = "download"\nbytes = "20 kB"\nstart = "5 s"\n'
    airpath.run(text, out=tmp_path / "run")
    printed = " ".join(airpath_command("trace", str(tmp_path / "run")).out.split())
    assert "connections waited for the radio before their SYN reached the server, for up to 2" in printed


def test_a_state_that_lasts_until_the_end_of_the_run_is_the_cause(tmp_path: Path) -> None:
    text = """
    format = 1
    duration = "30 s"
    bearer.preset = "gsm-csd-9600"
    [[change]]
    at = "6 s"
    ci = "-30 dB"
    [[flow]]
    kind = "download"
    bytes = "300 kB"
    """
    result = airpath.run(text, out=tmp_path / "run", capture=True)
    [lost] = result.states.filter(aspect="link", name="disconnected")["time"].to_list()
    assert result.states["time"].max() == lost < 15e9
    trace = airpath.trace(result.path)
    [flow] = trace.connections.rows(named=True)
    [state] = trace.radio_states.filter(state="disconnected").rows(named=True)
    end = flow["start"] + flow["duration_s"] * 1e9
    assert state["end"] == pytest.approx(end)
    assert state["end"] - state["start"] == pytest.approx(end - lost - 1e18, abs=1e9)
