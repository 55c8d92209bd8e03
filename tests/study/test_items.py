"""The list of the items of the studies: names exist, no published row or finding is missing."""

import re
from pathlib import Path

import pytest

from airpath.study.definition import Study, load_study
from support import ROOT

STUDIES = ["gsm-csd", "gprs-la", "gprs-proxy", "umts-live", "hsdpa-sim"]


def _sections(page: Path) -> dict[str, str]:
    """The text of the page below each heading of a study."""
    _, *sections = page.read_text(encoding="utf-8").split("\n## ")
    return {name.strip(): text for name, _, text in (section.partition("\n") for section in sections)}


SECTIONS = _sections(ROOT / "docs/studies.md")


def _rows(study: Study) -> dict[str, bool]:
    """The rows of a study as `experiment/figure`, and whether any has a published value."""
    rows: dict[str, bool] = {}
    for experiment in study.experiments:
        for case in experiment.cases:
            for figure, published in case.published.items():
                name = f"{experiment.name}/{figure}"
                rows[name] = rows.get(name, False) or published is not None
        for derived in (*experiment.aggregates, *experiment.differences):
            values = derived.published.values()
            rows[f"{experiment.name}/{derived.name}"] = any(each is not None for each in values)
    return rows


@pytest.mark.parametrize("name", STUDIES)
def test_each_name_of_the_list_exists_and_nothing_published_is_missing(name: str) -> None:
    study = load_study(name)
    rows, findings = _rows(study), {finding.id for finding in study.findings}
    named = set(re.findall(r"`([a-zA-Z0-9-]+/[a-zA-Z0-9*-]+)`", SECTIONS[name]))
    named_findings = set(re.findall(r"`finding:([a-zA-Z0-9-]+)`", SECTIONS[name]))
    whole = {each.removesuffix("/*") for each in named if each.endswith("/*")}
    assert whole <= set(study.experiment_names)
    single = {each for each in named if not each.endswith("/*")}
    assert single <= rows.keys()
    assert named_findings == findings
    # A published value needs its own name; the experiment's is enough for the others.
    assert {row for row, published in rows.items() if published} <= single
    assert {row for row in rows if row not in single and row.split("/")[0] not in whole} == set()


@pytest.mark.parametrize("name", STUDIES)
def test_each_item_has_a_place_and_a_state(name: str) -> None:
    items = [line for line in SECTIONS[name].splitlines() if line.startswith("| ")][1:]
    assert len(items) > 25
    for item in items:
        place, text, state = (cell.strip() for cell in item.strip("|").split(" | "))
        assert place and text and state, item
        assert _problem(state) is None, f"{item}: {_problem(state)}"


def _differing(table: str) -> list[str]:
    """Return the rows of a table of agreement that differ, as `experiment/figure`."""
    found = []
    for section in table.split("\n## ")[1:]:
        experiment, _, rows = section.partition("\n")
        lines = [line for line in rows.splitlines() if line.endswith("| **differs** |")]
        found += [
            f"{experiment}/{name}" for line in lines for name in re.findall(r"\| ([a-z0-9-]+) \([^|]+\) \|", line)
        ]
    return found


def test_each_row_that_differs_has_a_cause() -> None:
    page = (ROOT / "studies/README.md").read_text(encoding="utf-8")
    counts: dict[str, int] = {}
    named: dict[str, set[str]] = {}
    for name, rows, which in re.findall(r"^\| ([a-z0-9-]+) \| (\d+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE):
        counts[name] = counts.get(name, 0) + int(rows)
        named.setdefault(name, set()).update(re.findall(r"`([^`]+)`", which))
    tables = (ROOT / "studies").glob("*/agreement.md")
    differing = {each.parent.name: _differing(each.read_text(encoding="utf-8")) for each in tables}
    assert named == {name: set(rows) for name, rows in differing.items() if rows}
    assert counts == {name: len(rows) for name, rows in differing.items() if rows}


def _problem(state: str) -> str | None:
    """Return what is missing in a state that has an omitted part, or one that is not built yet."""
    for part in re.split(r"(?=\*\*(?:omitted|not built yet)\*\*)", state)[1:]:
        if not re.match(r"\*\*[a-z ]+\*\*(, [^:;]+)?: [^\s;][^;]{5,}", part):
            return "there is no reason"
    others, marker, part = state.partition("**omitted**")
    if marker and others.strip() and not part.startswith(", "):
        return "the omitted part has no name"
    return None


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ("`a/b`, `finding:c`", None),
        ("**omitted**: a drawing", None),
        ("`a/b`; **omitted**, the zones: a drawing", None),
        ("model: `c`; **not built yet**: the zones", None),
        ("**omitted**", "reason"),
        ("`a/b`; **omitted**", "reason"),
        ("`a/b`; **omitted**, the zones", "reason"),
        ("`a/b`; **omitted**, the zones: ", "reason"),
        ("`a/b`; **omitted**: the zones", "name"),
        ("model: `c`; **not built yet**", "reason"),
    ],
)
def test_an_omission_needs_a_name_and_a_reason(state: str, problem: str | None) -> None:
    found = _problem(state)
    assert found is None if problem is None else found is not None and problem in found, found


def _counts(table: str) -> tuple[int, int, int, int, int]:
    """Return agreeing, published and uniformly agreeing figures, holding findings and findings."""
    found = re.search(r"(\d+) of (\d+) published figures agree[^;]*; (\d+) do", table)
    assert found is not None
    findings = table.partition("\n## Findings\n")[2]
    holding = findings.count("| yes |")
    agree, published, uniformly = map(int, found.groups())
    return agree, published, uniformly, holding, holding + findings.count("| **no** |")


def test_the_counts_of_the_studies_are_those_of_their_tables() -> None:
    page = (ROOT / "studies/README.md").read_text(encoding="utf-8")
    shown = {
        name.strip("[]").partition("]")[0]: tuple(map(int, counts))
        for name, *counts in re.findall(
            r"^\| (\[[a-z-]+\]|all)(?:\([^)]+\))? \| (\d+) of (\d+) \| (\d+) \| (\d+) of (\d+) \|", page, re.MULTILINE
        )
    }
    tables = {name: ROOT / "studies" / name / "agreement.md" for name in shown if name != "all"}
    counted = {name: _counts(path.read_text(encoding="utf-8")) for name, path in tables.items()}
    assert len(counted) == 6
    assert shown == counted | {"all": tuple(map(sum, zip(*counted.values(), strict=True)))}
