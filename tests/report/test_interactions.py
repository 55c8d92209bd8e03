"""Figures of terminals, mail and transactions: what they draw is what the tables have."""

from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import plot, report
from airpath.quantities import seconds
from support import ROOT
from support.report_page import Page

NOTHING = {"format": 1, "bearer": {"preset": "wired"}, "flow": [{"kind": "ping", "requests": 1}]}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, airpath.Result]:
    """Runs of the examples, short."""
    folder = tmp_path_factory.mktemp("media")
    changes: dict[str, dict[str, Any]] = {
        "terminal": {"flow.0.session.rounds": "2", "flow.1.start": '"60 s"'},
        "lte-drive": {"duration": "120 s", "flow.0.duration": "100 s"},
    }
    return {
        name: airpath.run(ROOT / "examples" / f"{name}.toml", out=folder / name, set=change)
        for name, change in changes.items()
    }


def _traces(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data}


def test_interaction_times_are_drawn_by_kind(results: dict[str, airpath.Result]) -> None:
    result = results["terminal"]
    traces = _traces(plot.latency_share(result))
    flow = result.flows.filter(kind="terminal").row(0, named=True)
    names = {name.split(" (")[0] for name in traces}
    assert names == {"key", "scroll", "window", "open", "session", "mailbox", "message"}
    key = traces[f"key ({flow['exchange_key_count']})"]
    scale = 1e3 if max(key.x) > 50 * flow["exchange_key_max_s"] else 1
    assert max(key.x) == pytest.approx(flow["exchange_key_max_s"] * scale, rel=1e-6)
    half = next(x for x, y in zip(key.x, key.y, strict=True) if y >= 50)
    # Drawn to the microsecond.
    assert half == pytest.approx(flow["exchange_key_p50_s"] * scale, abs=1e-6 * scale)


def test_interaction_times_are_drawn_over_time(results: dict[str, airpath.Result]) -> None:
    result = results["lte-drive"]
    (trace,) = _traces(plot.latency(result)).values()
    flow = result.flows.row(0, named=True)
    scale = 1e3 if max(trace.y) > 50 * flow["delay_max_s"] else 1
    assert len(trace.y) == flow["received"]
    assert max(trace.y) == pytest.approx(flow["delay_max_s"] * scale, rel=1e-6)
    assert max(trace.x) <= 120
    share = _traces(plot.latency_share(result))
    assert list(share) == [f"transactions ({flow['received']})"]


def test_several_runs_are_overlaid(results: dict[str, airpath.Result], tmp_path: Path) -> None:
    pair = [results["terminal"], airpath.run(results["terminal"].path / "scenario.toml", seed=9, out=tmp_path / "b")]
    latencies: Any = plot.latency_share(pair)
    assert len(latencies.data) == 2


def test_runs_without_them_have_nothing_to_draw() -> None:
    result = airpath.run(NOTHING)
    for draw in (plot.latency, plot.latency_share):
        with pytest.raises(plot.NothingToDrawError):
            draw(result)


@pytest.mark.parametrize(
    ("name", "figure", "table"),
    [
        ("terminal", "interaction-times", "Interactions"),
        ("lte-drive", "interactions", "Interaction time"),
    ],
)
def test_a_report_has_figure_and_table(
    results: dict[str, airpath.Result], tmp_path: Path, name: str, figure: str, table: str
) -> None:
    html = report.write([results[name]], tmp_path / "report.html").read_text(encoding="utf-8")
    assert f'id="{figure}"' in html or f'"{figure}"' in html
    assert table in html
    assert "exchanges were complete" in html or "transactions were complete" in html


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ({"kind": "terminal", "session": {"rounds": 1}}, "62 of 62 interactions were complete"),
        ({"kind": "ftp", "files": 2}, "2 of 2 files were transferred"),
        ({"kind": "ping", "requests": 3}, "3 of 3 pings came back"),
        (
            {"kind": "datagrams", "direction": "down", "rate": "80 kbit/s", "duration": "1 s"},
            "7 of 7 datagrams arrived",
        ),
    ],
)
def test_the_first_sentence_names_what_arrived(tmp_path: Path, flow: dict[str, Any], words: str) -> None:
    result = airpath.run({"format": 1, "bearer": {"preset": "wired"}, "flow": [flow]}, out=tmp_path / "run")
    assert words in report.write([result], tmp_path / "report.html").read_text(encoding="utf-8")


def test_unlike_flows_have_no_common_mean(tmp_path: Path) -> None:
    flows = [
        {"kind": "download", "bytes": "1 MB"},
        {"kind": "download", "bytes": "10 kB", "start": "2 s", "count": 2},
        {"kind": "ping", "requests": 3},
        {"kind": "datagrams", "direction": "down", "rate": "80 kbit/s", "duration": "1 s"},
    ]
    result = airpath.run({"format": 1, "bearer": {"preset": "wired"}, "flow": flows}, out=tmp_path / "run")
    [large, small, other] = result.flows["duration_s"].drop_nulls().to_list()
    words = Page(report.write([result], tmp_path / "report.html")).words
    assert f"3 of 3 transfers finished: 1 MB in {seconds(large)}" in words
    assert f"10 kB in {seconds((small + other) / 2)} on the mean" in words
    assert "3 of 3 pings came back" in words
    assert "7 of 7 datagrams arrived" in words
    assert f"{seconds(large)} of 1 MB; {seconds((small + other) / 2)} of 10 kB" in words
    again = airpath.run(result.scenario, seed=9, out=tmp_path / "again")
    assert "Of transfers of 1 MB, " in Page(report.write([result, again], tmp_path / "both.html")).words
