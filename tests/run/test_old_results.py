"""Results of released schemas stay readable, and their scenarios runnable."""

import json
import shutil
from pathlib import Path

import pytest

import airpath
from airpath.result import SCHEMA
from airpath.tables import EVENT_TABLES
from support import ROOT, Command

RESULTS = sorted((ROOT / "tests" / "results").glob("schema-*"))


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_an_old_result_is_read(folder: Path) -> None:
    result = airpath.load(folder)
    assert result.complete
    assert result.flows["name"].to_list() == ["download", "ping"]
    assert result.flows["delivered_bytes"].to_list() == [30_000, None]
    assert result.flows["received"].to_list() == [None, 3]
    # The scenario has no changes and no QUIC, and its bearer reports no states.
    for table in EVENT_TABLES.keys() - {"changes", "states", "quic"}:
        assert getattr(result, table).height > 0, table
    assert result.changes.columns == list(EVENT_TABLES["changes"])
    assert result.states.columns == list(EVENT_TABLES["states"])
    assert result.links.height > 0
    assert result.radio_totals["ttis"].sum() > 0


def test_a_result_of_the_current_schema_is_there() -> None:
    assert f"schema-{SCHEMA}" in [folder.name for folder in RESULTS]


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_an_old_result_is_drawn_and_run_again(airpath_command: Command, folder: Path) -> None:
    assert airpath_command("report", folder, "-o", "report.html").code == 0
    again = airpath_command("run", folder / "scenario.toml", "--format", "json")
    assert again.code == 0, again.err
    assert [flow["outcome"] for flow in again.json["flows"]] == ["finished", "finished"]


def test_columns_that_an_earlier_version_did_not_write_are_null(airpath_command: Command) -> None:
    folder = airpath_command.folder / "earlier"
    shutil.copytree(ROOT / "tests" / "results" / f"schema-{SCHEMA}", folder)
    summary = json.loads((folder / "summary.json").read_text())
    for row in summary["flows"]:
        for name in ("marked_packets", "ecn_reductions", "undone"):
            row.pop(name, None)
        row["of_a_later_version"] = 1
    (folder / "summary.json").write_text(json.dumps(summary))
    flows = airpath.load(folder).flows
    assert flows["marked_packets"].to_list() == flows["undone"].to_list() == [None, None]
    assert airpath_command("report", folder, "-o", "report.html").code == 0
    assert airpath_command("compare", folder, folder).code == 0
