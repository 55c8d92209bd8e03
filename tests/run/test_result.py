"""`airpath.run`, `Result` and its frames, with each of the common data frame libraries."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import airpath
from airpath.run import override_texts
from airpath.tables import DROP_CAUSES, EVENT_TABLES, SUMMARY_TABLES, flat_rows
from support import DOWNLOAD


@pytest.fixture(scope="module")
def result() -> airpath.Result:
    """One result, in a folder for all tests of the module."""
    change = '\n[[change]]\nat = "1 s"\noutage = "50 ms"\n'
    return airpath.run(DOWNLOAD + change, repeat=2, capture=True)


def test_a_run_without_a_folder_lasts_as_long_as_its_result() -> None:
    result = airpath.run(DOWNLOAD)
    folder = result.path
    assert (folder / "summary.json").is_file()
    del result
    assert not folder.exists()


def test_a_scenario_is_a_file_a_text_or_a_dictionary(scenario: Callable[..., Path]) -> None:
    summaries = [airpath.run(each).summary for each in (scenario(), DOWNLOAD, tomllib.loads(DOWNLOAD))]
    assert summaries[0] == summaries[1] == summaries[2]


def test_overrides_are_values_of_python() -> None:
    result = airpath.run(DOWNLOAD, set={"fixed.loss": 0, "flow.0.bytes": "10 kB", "log.tcp": False}, seed=8)
    resolved = tomllib.loads(result.scenario)
    assert (resolved["seed"], resolved["log"]["tcp"]) == (8, False)
    assert result.flows["bytes"].to_list() == [10_000]


PLAIN = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(PLAIN | st.lists(PLAIN | TEXT) | st.dictionaries(TEXT, PLAIN | TEXT | st.lists(TEXT)))
def test_an_override_reads_back_as_it_was(value: Any) -> None:
    [(key, text)] = override_texts({"some.key": value})
    assert key == "some.key"
    assert tomllib.loads(f"value = {text}")["value"] == value


@given(TEXT)
def test_an_override_that_is_text_stays_as_it_is(text: str) -> None:
    assert override_texts({"fixed.delay": text}) == [("fixed.delay", text)]


def test_a_wrong_scenario_raises_with_its_place() -> None:
    with pytest.raises(airpath.ScenarioError) as caught:
        airpath.run(DOWNLOAD.replace("rate =", "rte ="))
    assert (caught.value.line, caught.value.field, caught.value.message) == (6, "fixed.rte", "unknown key")
    assert "did you mean `rate`?" in str(caught.value)


def test_progress_is_reported(scenario: Callable[..., Path]) -> None:
    calls: list[tuple[int, int]] = []
    airpath.run(scenario(), repeat=5, progress=lambda done, total: calls.append((done, total)))
    assert all(total == 5 for _, total in calls)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_frames_have_their_columns(result: airpath.Result) -> None:
    for name in EVENT_TABLES:
        frame = getattr(result, name)
        assert frame.columns == list(EVENT_TABLES[name])
        assert [str(kind) for kind in frame.dtypes] == list(EVENT_TABLES[name].values())
        assert frame.height > 0 or name in ("changes", "states", "quic")
        assert frame.select("repetition", "time").equals(frame.select("repetition", "time").sort("repetition", "time"))
    frames = {"flows": result.flows, "links": result.links, "radio": result.radio_totals}
    for name, frame in (frames | {"repetitions": result.repetitions}).items():
        assert frame.columns[: len(SUMMARY_TABLES[name])] == list(SUMMARY_TABLES[name])
    assert result.flows.height == 2
    assert not [name for name in result.flows.columns if name.startswith("tcp_")]
    assert set(result.settings["profile"]) == {"linux-6"}
    keys = ["repetition", "flow", "name"]
    assert result.settings.select(keys).equals(result.flows.select(keys))


def test_the_events_add_up_to_the_summary(result: airpath.Result) -> None:
    """Sent, retransmitted and delivered data of each row of `flows` agree with the logs."""
    data = result.packets.filter((pl.col("step") == "sent") & (pl.col("length") > 0))
    sent = data.group_by("repetition").agg(
        packets=pl.len(), bytes=pl.col("length").sum(), again=pl.col("retransmission").sum()
    )
    for repetition, packets, bytes_, again in sent.sort("repetition").iter_rows():
        flow = result.flows.row(by_predicate=pl.col("repetition") == repetition, named=True)
        assert (packets, bytes_) == (flow["data_packets"], flow["data_bytes"])
        assert again == flow["retransmitted_packets"]
        finished = result.app.filter((pl.col("repetition") == repetition) & (pl.col("step") == "finished"))
        assert finished["delivered"].to_list() == [flow["delivered_bytes"]]
        assert finished["time"][0] / 1e9 - flow["start_s"] == pytest.approx(flow["duration_s"], abs=1e-8)


def test_links_conserve(result: airpath.Result) -> None:
    for unit in ("packets", "bytes"):
        dropped = pl.sum_horizontal(f"dropped_{cause.replace('-', '_')}_{unit}" for cause in DROP_CAUSES)
        kept = pl.col(f"delivered_{unit}") + pl.col(f"queued_{unit}") + dropped
        assert result.links.select((pl.col(f"offered_{unit}") == kept).all()).item()


def test_pandas_reads_the_frames(result: airpath.Result) -> None:
    packets = result.packets.to_pandas()
    assert len(packets) == result.packets.height
    assert list(packets.columns) == list(EVENT_TABLES["packets"])
    assert result.flows.to_pandas()["delivered_bytes"].tolist() == [200_000, 200_000]


def test_duckdb_reads_the_files_and_the_frames(result: airpath.Result) -> None:
    files = str(result.path / "events" / "packets" / "*.parquet")
    query = "select count(*) from read_parquet(?) where step = 'sent' and length > 0"
    [[from_files]] = duckdb.execute(query, [files]).fetchall()
    packets = result.packets
    [[from_frame]] = duckdb.execute("select count(*) from packets where step = 'sent' and length > 0").fetchall()
    assert from_files == from_frame == result.flows["data_packets"].sum()
    assert packets.height > from_files


def test_scanning_reads_only_what_is_queried(result: airpath.Result) -> None:
    scanned = result.scan("packets").filter(pl.col("step") == "dropped").select(pl.len()).collect().item()
    assert scanned == result.packets.filter(pl.col("step") == "dropped").height
    with pytest.raises(KeyError, match="no event table 'packet'"):
        result.scan("packet")


def test_a_table_that_was_not_logged_is_reported() -> None:
    unlogged = airpath.run(DOWNLOAD, log=False)
    with pytest.raises(airpath.NotLoggedError, match="the run did not log it"):
        _ = unlogged.packets
    partly = airpath.run(DOWNLOAD, set={"log.packets": False})
    assert partly.tcp.height > 0
    with pytest.raises(airpath.NotLoggedError, match="'packets'"):
        _ = partly.packets


def test_a_table_in_which_nothing_happened_is_empty() -> None:
    wired = airpath.run(DOWNLOAD, set={"bearer": {"preset": "wired"}})
    assert wired.radio.height == 0
    assert wired.radio.columns == list(EVENT_TABLES["radio"])


def test_a_result_shows_itself(result: airpath.Result) -> None:
    assert "small" in repr(result)
    html = result._repr_html_()
    assert "<table>" in html
    assert "finished" in html


def test_loading_refuses_what_it_cannot_read(tmp_path: Path, result: airpath.Result) -> None:
    with pytest.raises(airpath.UnreadableResultError, match="no such result folder"):
        airpath.load(tmp_path / "nowhere")
    with pytest.raises(airpath.UnreadableResultError, match="it has no summary"):
        airpath.load(tmp_path)
    for summary, words in (
        ({"schema": 3, "airpath": "9.0"}, "has schema 3, written by airpath 9.0; this version reads schema 2: upgrade"),
        ({"schema": 1, "airpath": "0.1.0"}, "has schema 1, .* reads schema 2: run the scenario beside it again"),
        ({}, "damaged: it has no schema number"),
        ({"schema": 2}, "damaged: it has no 'airpath'"),
        ({name: each for name, each in result.summary.items() if name != "flows"}, "damaged: it has no 'flows'"),
    ):
        (tmp_path / "summary.json").write_text(json.dumps(summary))
        with pytest.raises(airpath.UnreadableResultError, match=words):
            airpath.load(tmp_path)


def test_presets_are_objects() -> None:
    assert "hs-dsch-384" in [each.name for each in airpath.presets()]
    preset = airpath.preset("hs-dsch-384")
    assert airpath.Preset.from_dict(preset.to_dict()) == preset


def test_flat_rows_have_one_set_of_columns() -> None:
    rows = flat_rows("links", [{"component": "a", "dropped": {"loss": {"packets": 1, "bytes": 2}}}, {"component": "b"}])
    assert rows[0].keys() == rows[1].keys() == SUMMARY_TABLES["links"].keys()
    assert (rows[0]["dropped_loss_bytes"], rows[1]["dropped_loss_bytes"]) == (2, 0)
