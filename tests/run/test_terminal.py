"""The figures of a run on terminals of any width."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import airpath
from airpath.cli.text import render
from airpath.quantities import seconds
from airpath.run import execute
from support import DOWNLOAD, ROOT


def printed(
    scenario: Path | dict[str, object], width: int, repeat: int = 1, settings: dict[str, str] | None = None
) -> str:
    text = io.StringIO()
    render(execute(scenario, repeat=repeat, set=settings), Console(file=text, width=width))
    return text.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_name_and_no_figure_is_cut(width: int) -> None:
    text = printed(ROOT / "examples" / "shared-cell.toml", width, repeat=3)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    for name in ("download-0", "download-1", "download-2", "far", "middle", "near", "throughput"):
        assert any(word.strip(",") == name for word in words), name
    assert "…" not in text
    wide = printed(ROOT / "examples" / "shared-cell.toml", 300, repeat=3)
    row = next(line for line in wide.splitlines() if line.startswith("download-0"))
    figures = set(row.split()) - {"0"}  # a narrow table omits time-outs if there are none
    assert all(any(word.strip(",") == figure for word in words) for figure in figures)


def test_a_narrow_table_omits_columns_without_information() -> None:
    download = {"format": 1, "bearer": {"preset": "gprs"}, "flow": [{"kind": "download", "bytes": "100 kB"}]}
    assert "finished" in printed(download, 120)
    narrow = printed(download, 80)
    assert "finished" not in narrow
    assert "throughput" in narrow


def test_settings_of_tcp_are_those_that_differ_from_the_profile() -> None:
    download = {"format": 1, "bearer": {"preset": "wired"}, "flow": [{"kind": "download", "bytes": "100 kB"}]}
    line = next(line for line in printed(download, 200).splitlines() if line.startswith("TCP"))
    assert line == "TCP linux-6: cubic, initial window 10, segments of 1448 B, time-out from 200 ms."
    changed = printed(download, 200, settings={"tcp.recovery.rack": "false", "tcp.congestion.algorithm": "reno"})
    assert "TCP linux-6: new-reno" in changed
    assert "recovery.rack = false" in changed


def test_many_flows_have_percentiles_by_nearest_rank() -> None:
    download = {"format": 1, "bearer": {"preset": "umts"}, "flow": [{"kind": "download", "bytes": "20 kB"}]}
    times = sorted(flow["duration_s"] for flow in execute(download, repeat=20)["flows"])
    line = next(line for line in printed(download, 200, repeat=20).splitlines() if line.startswith("all flows"))
    quantiles = ", ".join(f"p{share} {seconds(times[rank - 1])}" for share, rank in ((50, 10), (95, 19), (99, 20)))
    assert line == f"all flows: 20 finished; time {quantiles}"
    assert "all flows" not in printed(download, 200, repeat=9)


def test_the_line_of_a_table_names_its_flows_if_there_are_others() -> None:
    flows = [{"kind": "download", "bytes": "1 MB"}, {"kind": "ping", "requests": 2}]
    mobiles = [{"name": "m", "count": 10}]
    mixed = {"format": 1, "duration": "5 s", "bearer": {"preset": "umts"}, "mobile": mobiles, "flow": flows}
    text = printed(mixed, 200)
    assert "10 flows (download): 10 unfinished" in text
    assert "10 flows (ping): 10 finished" in text
    assert "all flows" not in text


def test_interrupted_repetitions_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(DOWNLOAD)
    summary = execute(path, repeat=3, out=tmp_path / "run")
    summary["repetitions"][1] |= {"ended": "interrupted", "simulated_s": 0.0}
    cut = next(flow for flow in summary["flows"] if flow["repetition"] == 1)
    cut["duration_s"] = 1e6
    text = io.StringIO()
    render(summary, Console(file=text, width=120))
    assert "2 repetitions (mean ± standard deviation); without 1 that were interrupted" in text.getvalue()
    (tmp_path / "run" / "summary.json").write_text(json.dumps(summary))
    (mean,) = airpath.load(tmp_path / "run").means("duration_s").iter_rows(named=True)
    assert (mean["n"], mean["mean"] < 1e3) == (2, True)
    for each in summary["repetitions"]:
        each["ended"] = "interrupted"
    render(summary, Console(file=text, width=120))
    assert "3 repetitions" in text.getvalue()
