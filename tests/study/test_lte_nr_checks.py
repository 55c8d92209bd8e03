"""What the README of the study of LTE and NR computes from its table of agreement."""

import re
from statistics import correlation

import pytest

from airpath.study.metrics import METRICS
from support import ROOT

FOLDER = ROOT / "studies" / "lte-nr-checks"
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
TABLE = (FOLDER / "agreement.md").read_text(encoding="utf-8")


def _rates_by_cqi() -> list[float]:
    section = TABLE.partition("\n## rate-by-cqi\n")[2].partition("\n## ")[0]
    return [
        float(rate) for rate in re.findall(r"^\| \d+ \| received-rate[^|]+\| predict \| ([\d.]+) \|", section, re.M)
    ]


def _rank_correlation(some: list[float], others: list[float]) -> float:
    """Return Spearman's coefficient of values without ties."""
    assert len(set(some)) == len(some) and len(set(others)) == len(others)
    return correlation(*([sorted(values).index(each) for each in values] for values in (some, others)))


def test_the_rank_correlation_of_the_rates_by_cqi_is_that_of_the_readme() -> None:
    listed = re.search(r"measured medians are ([\d., and]+) Mbit/s", README)
    stated = re.search(r"rank correlation of the rates with them is ([\d.]+\d)", README)
    rising = re.search(r"It would be ([\d.]+\d) with a rate that rises", README)
    assert listed and stated and rising
    medians = [float(each) for each in re.findall(r"\d+\.\d+", listed[1])]
    rates = _rates_by_cqi()
    assert len(medians) == len(rates) == 12
    computed = _rank_correlation(rates, medians)
    assert computed >= 0.9
    assert computed == pytest.approx(float(stated[1]), abs=5e-4)
    assert _rank_correlation(sorted(rates), medians) == pytest.approx(float(rising[1]), abs=5e-4)


def test_the_counts_of_the_readme_are_those_of_the_table() -> None:
    found = re.search(r"(\d+) of (\d+) published figures agree", TABLE)
    stated = re.search(r"(\d+) of (\d+) figures agree, and (\d+) of (\d+) findings hold", README)
    overview = " ".join((ROOT / "studies/README.md").read_text(encoding="utf-8").split())
    assert found and stated
    findings = TABLE.partition("\n## Findings\n")[2]
    holding, failing = findings.count("| yes |"), findings.count("| **no** |")
    assert stated.groups() == (*found.groups(), str(holding), str(holding + failing))
    assert stated[0] in overview


def test_data_in_flight_is_the_rate_times_the_round_trip() -> None:
    flows = [{"throughput_bps": 800e6, "rtt_mean_s": 0.04}]
    assert METRICS["data-in-flight"].compute(flows, {}) == pytest.approx(4000)


def test_the_late_delay_is_that_of_the_last_flow() -> None:
    flows = [{"delay_mean_s": 0.9}, {"delay_mean_s": 0.024}]
    assert METRICS["late-delay"].compute(flows, {}) == pytest.approx(24)
