"""Queue disciplines of a link that two mobiles share: shares of the rate, and delays."""

import pytest

import airpath
from support import ROOT

SCENARIO = (ROOT / "examples" / "two-mobiles.toml").read_text(encoding="utf-8")


def run(queue: str) -> airpath.Result:
    return airpath.run(SCENARIO, set={"fixed.down.queue": queue})


@pytest.fixture(scope="module")
def results() -> dict[str, airpath.Result]:
    # At a target of 5 ms one CUBIC flow over 40 ms does not fill half of the link.
    target = 'target = "20 ms", packets = 1000'
    return {
        "drop-tail": run("{ packets = 200 }"),
        "fq-codel": run(f'{{ discipline = "fq-codel", {target} }}'),
        "cake": run(f'{{ discipline = "cake", {target} }}'),
        "cake, flows": run(f'{{ discipline = "cake", isolation = "flows", {target} }}'),
    }


def ratio(result: airpath.Result) -> float:
    """The bytes of the mobile with eight downloads, divided by those of the mobile with one."""
    downloads = result.flows.filter(kind="download")
    many, one = (float(downloads.filter(mobile=name)["delivered_bytes"].sum()) for name in ("many", "one"))
    assert many + one > 0.9 * 20 * 10e6 / 8, "the link is used"
    return many / one


def test_cake_shares_between_mobiles_or_flows(results: dict[str, airpath.Result]) -> None:
    assert ratio(results["drop-tail"]) > 4
    assert ratio(results["fq-codel"]) == pytest.approx(8, rel=0.1)
    assert ratio(results["cake, flows"]) == pytest.approx(8, rel=0.1)
    assert ratio(results["cake"]) == pytest.approx(1, rel=0.05)


def test_sparse_flows_do_not_wait_for_others(results: dict[str, airpath.Result]) -> None:
    pings = {name: result.flows.filter(kind="ping").row(0, named=True) for name, result in results.items()}
    assert all(ping["received"] == 150 for name, ping in pings.items() if name != "drop-tail")
    # 40 ms without queue, 1.2 ms for a packet in transmission. A queue of 200 packets is 240 ms.
    assert pings["drop-tail"]["delay_mean_s"] > 0.15
    for name in ("fq-codel", "cake", "cake, flows"):
        assert pings[name]["delay_mean_s"] < 0.044, name
        assert pings[name]["delay_max_s"] < 0.055, name


def test_cake_limits_a_flow_that_does_not_respond() -> None:
    """Datagrams at twice the rate beside a download, which has its share with CAKE."""
    datagrams = """
        [[flow]]
        kind = "datagrams"
        direction = "down"
        mobile = "many"
        rate = "20 Mbit/s"
        duration = "20 s"
    """
    text = SCENARIO[: SCENARIO.index("[[flow]]")] + datagrams + SCENARIO[SCENARIO.index('[[flow]]\nname = "single"') :]
    shares = {
        name: airpath.run(text, set={"fixed.down.queue": queue}).flows.filter(kind="download")["delivered_bytes"].sum()
        for name, queue in (("drop-tail", "{ packets = 200 }"), ("cake", '{ discipline = "cake", packets = 200 }'))
    }
    assert shares["drop-tail"] < 0.1 * 20 * 10e6 / 8
    assert shares["cake"] > 0.4 * 20 * 10e6 / 8


@pytest.mark.parametrize("accurate", [False, True])
def test_a_path_that_clears_the_ecn_field_has_drops_in_place_of_marks(accurate: bool) -> None:
    scenario = f"""
        format = 1
        [bearer]
        preset = "wired"
        downlink = {{ rate = "5 Mbit/s", delay = "20 ms", queue = {{ discipline = "codel", ecn = true }} }}
        [tcp]
        ecn = true
        accurate_ecn = {str(accurate).lower()}
        [[flow]]
        kind = "download"
        bytes = "5 MB"
    """
    marking = airpath.run(scenario)
    clearing = airpath.run(scenario, set={"middlebox.kind": "clear-ecn"})
    for result, has_drops in ((marking, False), (clearing, True)):
        queue = result.links.filter(direction="down", component="bearer-mobile").row(0, named=True)
        assert (queue["dropped_queue_management_packets"] > 0) is has_drops
        assert result.flows["outcome"].to_list() == ["finished"]
