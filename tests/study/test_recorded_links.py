"""Controllers over recorded cellular links: the measures and a part of docs/recorded-links.md."""

import markdown_table
import numpy as np
import pytest
import recorded
from setups import BBR, CODEL, CUBIC, HOTNETS, HOTNETS_PUBLISHED, SPROUT, VEGAS

from support import ROOT
from support.needs import shared_links


def test_the_end_to_end_delay_rises_until_the_next_packet_arrives() -> None:
    """10 packets, 100 ms apart, each 10 ms late: from 10 to 110 ms, all equally often."""
    arrived = np.arange(0.0, 1000.0, 100.0)
    measured = recorded.end_to_end_delay(arrived, arrived - 10, 0, 1000)
    assert measured == pytest.approx(10 + 95, abs=0.01)


def test_a_retransmission_that_was_sent_earlier_does_not_count() -> None:
    """The packet at 500 ms was sent first, so the delay rises further."""
    arrived, sent = np.array([0.0, 500.0]), np.array([-10.0, -300.0])
    assert recorded.end_to_end_delay(arrived, sent, 0, 1000, share=1) == pytest.approx(1010, abs=0.01)


def test_what_is_before_the_measured_time_does_not_count() -> None:
    arrived, sent = np.array([0.0, 900.0]), np.array([-900.0, 890.0])
    assert recorded.end_to_end_delay(arrived, sent, 900, 1000, share=1) == pytest.approx(110, abs=0.01)


def test_the_page_has_a_place_for_each_table() -> None:
    for name in ("hotnets", "abc", "abc-ratios", "sprout", "sprout-links", "checks"):
        assert markdown_table.rows_of(ROOT / "docs" / "recorded-links.md", name), name


@pytest.mark.slow
def test_codel_shortens_the_delay_of_cubic_as_published() -> None:
    """The file and the set-up of the paper: its utilisation within 10 %, its delay within 12 %."""
    folder, link = shared_links(), "Verizon-LTE-short.up"
    delays = {}
    for controller in (CUBIC, CODEL, VEGAS):
        figures = recorded.run(HOTNETS, controller, link, folder)
        published = HOTNETS_PUBLISHED[link, controller.name]
        assert figures.utilisation == pytest.approx(published.utilisation, rel=0.1), controller.name
        # Vegas is in the tables of docs/recorded-links.md, and differs.
        if controller is not VEGAS:
            assert figures.path_delay_ms == pytest.approx(published.delay_ms, rel=0.12), controller.name
        delays[controller.name] = figures.path_delay_ms
    assert delays["CUBIC over CoDel"] < delays["Vegas"] < delays["CUBIC"]


@pytest.mark.slow
def test_bbr_has_the_rate_of_cubic_with_less_delay() -> None:
    """Li et al., PAM 2018: similar rates, and far less self-inflicted delay with BBR."""
    folder, link = shared_links(), "TMobile-UMTS-driving.up"
    bbr, cubic = (recorded.run(SPROUT, controller, link, folder) for controller in (BBR, CUBIC))
    assert bbr.rate_kbps > 0.9 * cubic.rate_kbps
    assert bbr.self_inflicted_ms < 0.1 * cubic.self_inflicted_ms
