"""Each whole study: its findings, and the table of agreement in its folder."""

from typing import Any

import pytest

from airpath import study
from support import ROOT

FAILING = {
    "gprs-la": [
        "half-of-the-time-in-cs-1",
        "minima-are-lower-on-the-move-indoors",
        "minima-are-lower-on-the-move-outdoors",
    ],
    "gprs-proxy": [
        "a-clamp-of-10-kB-does-not-queue",
        "other-clamps-fill-the-link",
        "sack-saves-repetitions",
        "the-clamp-wins-for-short-transfers",
    ],
    "gsm-csd": ["mtu-808-is-best"],
    "hsdpa-sim": [
        "least-attained-service-helps-at-every-place",
        "least-attained-service-keeps-long-transfers",
        "out-of-order-repeats-on-hs-dsch",
        "run2c-shortens-short-transfers",
    ],
    "lte-nr-checks": ["comb-falls-with-first-grant", "rate-rises-with-cqi"],
    "proposals": [],
    "transports-on-cellular": [
        "quic-is-slower-for-short-files",
        "the-proxy-costs-rate-from-hsdpa",
        "the-proxy-empties-queues",
        "videos-stall-behind-cubic",
    ],
    "umts-live": [
        "product-does-best-1460",
        "walking-halves-the-downlink",
        "duplicate-acknowledgements",
        "losses-at-rest",
        "handovers-lead-to-gaps",
        "gaps-of-the-shown-length",
        "gaps-are-longer-in-a-car",
        "gaps-of-the-longest-length",
        "gaps-of-the-longest-length-in-a-car",
        "delay-periods-of-the-shown-length",
        "delay-periods-of-the-longest-length",
        "pipelining-changes-little",
        "ten-connections-save",
        "video-is-continuous",
        "one-to-two-percent-are-repeated",
        "not-all-is-recovered",
    ],
}
"""The findings that need not hold; the README of the study has the reason for each."""


def test_every_study_is_tested() -> None:
    assert {each.id for each in study.studies()} == FAILING.keys()


LONG = {"transports-on-cellular"}
"""Studies that take minutes."""


def _marked(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.soak if name in LONG else pytest.mark.slow)


@pytest.mark.parametrize("name", [_marked(name) for name in sorted(FAILING)])
def test_findings_and_table_are_as_published(name: str) -> None:
    result = study.run(name)
    failing = {finding.id for finding in result.findings if not finding.holds}
    assert failing <= set(FAILING[name]), failing
    if name == "hsdpa-sim":
        agree, published = result.agreement
        assert published == 111
        assert agree >= 95, [row for row in result.rows if row.agrees is False]
    table = (ROOT / "studies" / name / "agreement.md").read_text(encoding="utf-8")
    assert result.render_markdown() == table, (
        f"the table differs: airpath study run {name} --format markdown > studies/{name}/agreement.md"
    )
