"""The set-ups of the papers, and the figures that they published.

docs/recorded-links.md states the source of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Controller:
    """A congestion control, and whether CoDel manages the queue of the link."""

    name: str
    congestion: str
    codel: bool = False


CUBIC = Controller("CUBIC", "cubic")
CODEL = Controller("CUBIC over CoDel", "cubic", codel=True)
BBR = Controller("BBR", "bbr")
BBR3 = Controller("BBRv3", "bbr3")
VEGAS = Controller("Vegas", "vegas")
CONTROLLERS = (
    CUBIC,
    CODEL,
    BBR,
    BBR3,
    Controller("Copa", "copa"),
    VEGAS,
    Controller("LEDBAT++", "ledbat++"),
    Controller("Westwood+", "westwood+"),
)


@dataclass(frozen=True, slots=True)
class Published:
    """What a paper has of a controller; the delay is the one that the paper uses."""

    delay_ms: float
    utilisation: float | None = None
    """In per cent."""
    rate_kbps: float | None = None


@dataclass(frozen=True, slots=True)
class SetUp:
    """An experiment of a paper: its links, its path, its measured time."""

    name: str
    links: tuple[str, ...]
    """Files that carry the data."""
    delay_ms: int
    """Of the network in each direction."""
    seconds: int
    skipped: int
    """Seconds at the start that are not measured."""
    queue: Mapping[str, Any]
    codel: Mapping[str, Any]
    queues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Other queues, by the name of the controller."""
    acks: int | None = None
    """Opportunities in each millisecond of the link of the ACKs, which has a queue without a limit.
    Without it that link is the other file of the pair, and has the same queue as this one."""
    receive_buffer: str | None = None
    """Without it that of the profile `linux-6`."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of `tcp.congestion`."""
    controllers: tuple[Controller, ...] = CONTROLLERS


def pairs(*names: str) -> tuple[str, ...]:
    """Return the files of both directions."""
    return tuple(f"{name}.{direction}" for name in names for direction in ("down", "up"))


SPROUT = SetUp(
    name="sprout",
    links=pairs("Verizon-LTE-short", "Verizon-EVDO-driving", "ATT-LTE-driving", "TMobile-UMTS-driving"),
    delay_ms=20,
    seconds=1020,
    skipped=60,
    queue={},
    codel={"discipline": "codel", "target": "5 ms", "interval": "100 ms"},
)
SPROUT_PUBLISHED = {
    "CUBIC": Published(25164, 61.7),
    "CUBIC over CoDel": Published(497.4, 61.1),
    "Vegas": Published(666),
    "LEDBAT++": Published(888),
}
SPROUT_LINKS = {
    "Verizon-LTE-short.down": {"CUBIC": Published(7568, rate_kbps=5719), "Vegas": Published(215, rate_kbps=2773)},
    "Verizon-LTE-short.up": {"CUBIC": Published(13059, rate_kbps=4362), "Vegas": Published(725, rate_kbps=2638)},
    "Verizon-EVDO-driving.down": {"CUBIC": Published(97631, rate_kbps=521), "Vegas": Published(1771, rate_kbps=300)},
    "Verizon-EVDO-driving.up": {"CUBIC": Published(12379, rate_kbps=166), "Vegas": Published(994, rate_kbps=311)},
    "ATT-LTE-driving.down": {"CUBIC": Published(5426, rate_kbps=1208), "Vegas": Published(197, rate_kbps=1025)},
    "ATT-LTE-driving.up": {"CUBIC": Published(24262, rate_kbps=841), "Vegas": Published(374, rate_kbps=693)},
    "TMobile-UMTS-driving.down": {"CUBIC": Published(8350, rate_kbps=668), "Vegas": Published(499, rate_kbps=762)},
    "TMobile-UMTS-driving.up": {"CUBIC": Published(32640, rate_kbps=971), "Vegas": Published(551, rate_kbps=693)},
}
"""The networks are the same; whether the recordings are, the page discusses."""

SILENT_ACKS = "ATT-LTE-driving.down"
"""The link of its ACKs carries nothing for 78 s."""

ABC_FILES = pairs("Verizon-LTE-short", "ATT-LTE-driving-2016")
"""The files of the paper that mahimahi ships, too."""

ABC = SetUp(
    name="abc",
    links=(*ABC_FILES, *pairs("ATT-LTE-driving", "TMobile-LTE-short")),
    delay_ms=50,
    seconds=140,
    skipped=0,
    queue={"packets": 250},
    codel={"discipline": "codel", "packets": 250, "target": "50 ms", "interval": "100 ms"},
    acks=1,
    receive_buffer="16 MB",
)
ABC_PUBLISHED = {
    name: Published(242 * delay, 78 * rate)
    for name, rate, delay in (
        ("CUBIC", 1.18, 4.78),
        ("CUBIC over CoDel", 0.67, 0.84),
        ("BBR", 0.96, 2.83),
        ("Copa", 0.66, 0.85),
    )
}

HOTNETS = SetUp(
    name="hotnets",
    links=("Verizon-LTE-short.up", "Verizon-LTE-short.down"),
    delay_ms=50,
    seconds=140,
    skipped=0,
    queue={"packets": 100},
    codel={"discipline": "codel", "packets": 100, "target": "50 ms", "interval": "100 ms"},
    queues={"Vegas": {"packets": 250}},
    acks=4,
    receive_buffer="16 MB",
    controllers=(CUBIC, CODEL, BBR, VEGAS),
)
HOTNETS_PUBLISHED = {
    ("Verizon-LTE-short.up", "CUBIC"): Published(446, 98.0),
    ("Verizon-LTE-short.up", "CUBIC over CoDel"): Published(178, 61.9),
    ("Verizon-LTE-short.up", "BBR"): Published(487, 94.0),
    ("Verizon-LTE-short.up", "Vegas"): Published(342, 91.1),
    ("Verizon-LTE-short.down", "CUBIC"): Published(557, 97.4),
    ("Verizon-LTE-short.down", "CUBIC over CoDel"): Published(208, 62.1),
    ("Verizon-LTE-short.down", "BBR"): Published(580, 93.2),
    ("Verizon-LTE-short.down", "Vegas"): Published(592, 93.0),
}

CHECKS = (
    ("Sprout", SPROUT, CODEL, SILENT_ACKS),
    ("Sprout, ACKs over a constant link of 12 Mbit/s", replace(SPROUT, acks=1), CODEL, SILENT_ACKS),
    ("Sprout", SPROUT, CODEL, "TMobile-UMTS-driving.down"),
    (
        "Sprout, `reno_friendly = false`",
        replace(SPROUT, keys={"reno_friendly": False}),
        CODEL,
        "TMobile-UMTS-driving.down",
    ),
    ("Sprout", SPROUT, CUBIC, "Verizon-LTE-short.down"),
    ("Sprout, receive buffer of 1 MB", replace(SPROUT, receive_buffer="1 MB"), CUBIC, "Verizon-LTE-short.down"),
    ("Sprout", SPROUT, BBR, "Verizon-LTE-short.down"),
    ("Sprout", SPROUT, BBR3, "Verizon-LTE-short.down"),
    ("Sprout, queue of 250 packets", replace(SPROUT, queue={"packets": 250}), BBR3, "Verizon-LTE-short.down"),
    ("first ABC, 48 ms each way", replace(HOTNETS, delay_ms=48), VEGAS, "Verizon-LTE-short.down"),
    ("first ABC, 54 ms each way", replace(HOTNETS, delay_ms=54), VEGAS, "Verizon-LTE-short.down"),
)
"""Runs that explain differences: the set-up, in words and as it is, the controller, the link."""
