"""The scenarios of the ground truth: bearers × outages × loss × windows × applications.

Each scenario comes twice: as written here, to develop the analyser, and held out, with another seed
and with other rates, delays, sizes, queues and times of all changes. The results of the held-out
scenarios show how the analyser performs on unknown data, within the same kinds of path and fault.
"""

import random
import re
from dataclasses import dataclass, field
from typing import Any

FIXED = {"rate": "10 Mbit/s", "delay": "40 ms"}
"""The network before a radio bearer."""


@dataclass(frozen=True)
class Case:
    """A scenario, and which half it belongs to."""

    name: str
    scenario: dict[str, Any]
    held_out: bool = field(default=False)


def link(rate: str, delay: str, packets: int, loss: float = 0.0) -> dict[str, Any]:
    """A bearer that is a plain link, the same delay both ways."""
    down = {"rate": rate, "delay": delay, "queue": {"packets": packets}, "loss": loss}
    up = {"rate": rate, "delay": delay, "queue": {"packets": 1000}, "loss": 0}
    return {"model": "wired", "downlink": down, "uplink": up}


def preset(name: str, **changes: Any) -> dict[str, Any]:
    """A bearer of the presets, with single values replaced."""
    return {"preset": name, **changes}


def download(size: str, **keys: Any) -> dict[str, Any]:
    """A download that the mobile requests."""
    return {"kind": "download", "bytes": size, "request": "200 B", **keys}


def upload(size: str, **keys: Any) -> dict[str, Any]:
    """An upload."""
    return {"kind": "upload", "bytes": size, **keys}


def transactions(response: str, number: int, think: str, **keys: Any) -> dict[str, Any]:
    """Requests and responses on one connection."""
    return {"kind": "transactions", "response": response, "transactions": number, "think": think, **keys}


def outage(at: str, lasts: str, **keys: Any) -> dict[str, Any]:
    """Nothing is sent for a time."""
    return {"at": at, "outage": lasts, **keys}


def handover(at: str, lasts: str, buffer: str = "discard") -> dict[str, Any]:
    """Nothing is sent for a time, and what waited may be lost."""
    return {"at": at, "handover": lasts, "buffer": buffer}


def change(at: str, **keys: Any) -> dict[str, Any]:
    """Any other change of conditions."""
    return {"at": at, **keys}


def cases() -> list[Case]:
    """All of them: those to develop with, then those held out."""
    known = _cases()
    return known + [_varied(case, index) for index, case in enumerate(known)]


def _varied(case: Case, index: int) -> Case:
    chance = random.Random(f"held out {index}")

    def number(value: float) -> int:
        return max(1, round(value * chance.uniform(0.7, 1.5)))

    def vary(value: Any, key: str = "") -> Any:
        """The value, or one near it that keeps the character of the scenario."""
        varied: Any = value
        quantity = re.fullmatch(r"(\d+) (\S+)", value) if isinstance(value, str) else None
        if isinstance(value, dict) and key == "receive_buffer":
            size = f"{number(int(value['initial'].split()[0]))} kB"
            varied = {"initial": size, "maximum": size}
        elif isinstance(value, dict):
            varied = {name: vary(each, name) for name, each in value.items()}
        elif isinstance(value, list):
            varied = [vary(each, key) for each in value]
        elif quantity and key not in {"duration", "request"} and int(quantity[1]) > 0:
            varied = f"{number(int(quantity[1]))} {quantity[2]}"
        elif isinstance(value, int) and key in {"packets", "window_limit"}:
            varied = max(4, number(value))
        elif isinstance(value, float) and 0 < value < 1:
            varied = value * chance.uniform(0.6, 1.5)
        return varied

    scenario = vary(case.scenario)
    name = f"{case.name}-held-out"
    return Case(name, {**scenario, "name": name, "seed": case.scenario["seed"] + 1000}, held_out=True)


def _cases() -> list[Case]:
    dch, hs, gprs, states = "umts-dch-384", "hs-dsch-384", "gprs-3+1", "umts-r99-states"
    small_buffer = {"receive_buffer": {"initial": "12 kB", "maximum": "12 kB"}}
    # Name, bearer, flow, TCP, changes, network before the bearer.
    rows: list[tuple[str, dict[str, Any], dict[str, Any], Any, list[dict[str, Any]], dict[str, Any]]] = [
        ("link-bulk", link("2 Mbit/s", "50 ms", 40), download("2 MB"), "linux-6", [], {}),
        ("link-bulk-slow", link("512 kbit/s", "150 ms", 25), download("600 kB"), "linux-6", [], {}),
        ("link-deep-queue", link("1 Mbit/s", "40 ms", 400), download("1500 kB"), "linux-6", [], {}),
        ("link-deep-queue-reno", link("384 kbit/s", "80 ms", 300), download("700 kB"), "windows-xp", [], {}),
        ("link-loss1", link("4 Mbit/s", "60 ms", 100, 0.01), download("2 MB"), "linux-6", [], {}),
        ("link-loss2-reno", link("3 Mbit/s", "100 ms", 100, 0.02), download("1 MB"), "linux-2.4", [], {}),
        ("link-receive-window", link("8 Mbit/s", "80 ms", 100), download("1 MB"), small_buffer, [], {}),
        ("link-receive-window-xp", link("10 Mbit/s", "150 ms", 200), download("700 kB"), "windows-xp", [], {}),
        ("link-clamped", link("8 Mbit/s", "80 ms", 100), download("1 MB"), {"window_limit": 10}, [], {}),
        ("link-clamped-long", link("5 Mbit/s", "200 ms", 100), download("1 MB"), {"window_limit": 24}, [], {}),
        ("link-outage3", link("1 Mbit/s", "60 ms", 60), download("1 MB"), "linux-6", [outage("3 s", "3 s")], {}),
        ("link-outage6", link("384 kbit/s", "100 ms", 50), download("700 kB"), "linux-6", [outage("6 s", "6 s")], {}),
        ("link-handover", link("1 Mbit/s", "60 ms", 60), download("1 MB"), "linux-6", [handover("3 s", "350 ms")], {}),
        (
            "link-handover-long",
            link("768 kbit/s", "90 ms", 40),
            download("900 kB"),
            "linux-2.4",
            [handover("4 s", "2500 ms")],
            {},
        ),
        ("link-think", link("2 Mbit/s", "50 ms", 60), transactions("60 kB", 8, "1500 ms"), "linux-6", [], {}),
        ("link-think-long", link("1 Mbit/s", "120 ms", 60), transactions("25 kB", 10, "3 s"), "windows-xp", [], {}),
        (
            "link-rate-drop",
            link("2 Mbit/s", "50 ms", 50),
            download("1500 kB"),
            "linux-6",
            [change("4 s", rate="500 kbit/s")],
            {},
        ),
        (
            "link-rate-rise",
            link("400 kbit/s", "80 ms", 50),
            download("900 kB"),
            "linux-6",
            [change("5 s", rate="2 Mbit/s")],
            {},
        ),
        ("dch-bulk", preset(dch), download("600 kB"), "linux-6", [], FIXED),
        ("dch-bulk-bler10", preset(dch, downlink={"bler": 0.1}), download("500 kB"), "linux-6", [], FIXED),
        ("dch-outage2", preset(dch), download("700 kB"), "linux-6", [outage("5 s", "2 s")], FIXED),
        ("dch-outage5", preset(dch), download("500 kB"), "linux-2.4", [outage("4 s", "5 s")], FIXED),
        ("dch-handover", preset(dch), download("600 kB"), "linux-2.4", [handover("5 s", "400 ms")], FIXED),
        (
            "dch-two-handovers",
            preset(dch),
            download("700 kB"),
            "linux-6",
            [handover("4 s", "600 ms"), handover("10 s", "1500 ms")],
            FIXED,
        ),
        ("dch-loss", preset(dch), download("500 kB"), "linux-6", [], {**FIXED, "down": {"loss": 0.02}}),
        (
            "dch-loss-bursts",
            preset(dch),
            download("600 kB"),
            "linux-6",
            [],
            {
                **FIXED,
                "down": {"loss": {"good_to_bad": 0.004, "bad_to_good": 0.25, "loss_in_bad": 1, "loss_in_good": 0}},
            },
        ),
        ("dch-upload", preset(dch), upload("80 kB"), "linux-6", [], FIXED),
        ("dch-upload-outage", preset(dch), upload("100 kB"), "windows-xp", [outage("5 s", "3 s")], FIXED),
        ("hs-bulk", preset(hs), download("700 kB"), "linux-6", [], FIXED),
        ("hs-bulk-far", preset(hs), download("600 kB"), "windows-xp", [], {"rate": "10 Mbit/s", "delay": "150 ms"}),
        ("hs-think", preset(hs), transactions("30 kB", 8, "2 s"), "linux-6", [], FIXED),
        ("hs-think-outage", preset(hs), transactions("50 kB", 8, "1 s"), "linux-6", [outage("6 s", "4 s")], FIXED),
        (
            "hs-receive-window",
            preset(hs),
            download("500 kB"),
            {"receive_buffer": {"initial": "6 kB", "maximum": "6 kB"}},
            [],
            {"rate": "10 Mbit/s", "delay": "150 ms"},
        ),
        ("hs-short", preset(hs), transactions("6 kB", 12, "500 ms"), "linux-6", [], FIXED),
        (
            "hs-two-outages",
            preset(hs),
            download("800 kB"),
            "linux-6",
            [outage("4 s", "1500 ms"), outage("11 s", "3 s")],
            FIXED,
        ),
        ("hs-outage-up", preset(hs), download("700 kB"), "linux-6", [outage("6 s", "2500 ms", direction="up")], FIXED),
        ("gprs-bulk", preset(gprs), download("100 kB"), "linux-2.4", [], FIXED),
        ("gprs-bulk-linux6", preset(gprs), download("80 kB"), "linux-6", [], FIXED),
        ("gprs-outage", preset(gprs), download("100 kB"), "linux-2.4", [outage("12 s", "6 s")], FIXED),
        ("gprs-reselection", preset(gprs), download("90 kB"), "linux-6", [outage("10 s", "4 s")], FIXED),
        ("gprs-think", preset(gprs), transactions("8 kB", 6, "4 s"), "linux-2.4", [], FIXED),
        ("gprs-think-short", preset(gprs), transactions("12 kB", 6, "8 s"), "linux-6", [], FIXED),
        ("states-bulk", preset(states), download("400 kB"), "linux-6", [], FIXED),
        ("states-think", preset(states), transactions("20 kB", 5, "7 s"), "linux-6", [], FIXED),
        ("states-outage", preset(states), download("500 kB"), "linux-6", [outage("9 s", "2 s")], FIXED),
        ("csd-bulk", preset("gsm-csd-14400"), download("60 kB"), "linux-2.4", [], FIXED),
        ("csd-outage", preset("gsm-csd-9600"), download("40 kB"), "linux-2.4", [outage("15 s", "5 s")], FIXED),
        ("csd-think", preset("gsm-csd-14400"), transactions("6 kB", 5, "5 s"), "windows-xp", [], FIXED),
    ]
    return [
        Case(name, _scenario(name, index, bearer, flow, tcp, changes, fixed))
        for index, (name, bearer, flow, tcp, changes, fixed) in enumerate(rows)
    ]


def _scenario(
    name: str,
    index: int,
    bearer: dict[str, Any],
    flow: dict[str, Any],
    tcp: Any,
    changes: list[dict[str, Any]],
    fixed: dict[str, Any],
) -> dict[str, Any]:
    settings = {"profile": tcp} if isinstance(tcp, str) else {"profile": "linux-6", **tcp}
    return {
        "format": 1,
        "name": name,
        "seed": 100 + index,
        "duration": "300 s",
        "fixed": fixed or {"rate": "100 Mbit/s", "delay": "5 ms"},
        "bearer": bearer,
        "tcp": settings,
        "flow": [flow],
        **({"change": changes} if changes else {}),
    }
