"""The colours of figures, reports and the terminal.

Each colour is a pair, for light and for dark backgrounds. Colours that distinguish data (`DOWN` and
`UP`, `ALERT`, the series) do so under every common colour-vision deficiency and have contrast to
both backgrounds; a test measures it. Down is always blue and up always orange, so no series has
either hue. Each series also has its own dash.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour in both themes, as `#rrggbb`."""

    light: str
    dark: str
    terminal: str = "default"
    """The name of the terminal's colour for it, as in rich."""


PAGE = Colour("#ffffff", "#14171c")
SURFACE = Colour("#f5f7f9", "#1b1f26")
GRID = Colour("#e3e7ec", "#2c323b")
LINE = Colour("#c4cbd4", "#434b57")
MUTED = Colour("#5d6672", "#9aa4b1")
INK = Colour("#1c2128", "#e6e9ed")
LINK = Colour("#1a5fa0", "#7ab8ee")

DOWN = Colour("#1769aa", "#5aa9e6")
UP = Colour("#c96a00", "#f2a541")
ALERT = Colour("#b3123a", "#f0567a", "red")
GOOD = Colour("#2b7a4b", "#5cc48d", "green")

SERIES = (
    Colour("#296a37", "#4fd67a"),
    Colour("#b33293", "#f095ee"),
    Colour("#3a3f47", "#e4e7eb"),
    Colour("#9d8c20", "#9c9e16"),
    Colour("#7e61e6", "#7958da"),
    Colour("#e3649e", "#a35274"),
)
"""Colours of runs, or of flows within a run."""

HOPS = (Colour("#59626d", "#c3cad3"), Colour("#4f8fc4", "#4a8cc4"), Colour("#c4ae45", "#8f7d22"))
"""Colours of the hops of a path, in the order of the hops."""

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Dashes that go with the series, by Plotly's names."""

AIRTIME_RAMP = (Colour("#e9f0f7", "#1f2a36"), Colour("#8db8dc", "#33648f"), Colour("#165f9b", "#62b0ec"))
"""From nothing to all of the air time, in the hue of down."""
AIRTIME_UP_RAMP = (Colour("#faf0e4", "#33291c"), Colour("#e6ab66", "#94662a"), Colour("#bb6300", "#f4ab4a"))
"""The same in the hue of up."""
REPAIR_RAMP = (Colour("#f8ecef", "#2f2127"), Colour("#dc8aa0", "#8a3a51"), Colour("#a81138", "#f25f82"))
"""From nothing repeated to all, in the hue of alerts."""
LEVEL_RAMP = (Colour("#eceaf3", "#28263a"), Colour("#a79ccf", "#5f549c"), Colour("#4b3a94", "#ad9ff0"))
"""From the lowest C/I level to the highest."""

STATES = (
    Colour("#cfe3f5", "#25445f"),
    Colour("#f6e2b8", "#5e4a1e"),
    Colour("#d3ecd4", "#27502f"),
    Colour("#ecd6f2", "#523760"),
    Colour("#fbd9cf", "#663627"),
    Colour("#cdeceb", "#1f5152"),
)
"""Colours of named states: pale, as a background for names."""

BRIEF_STATES = (
    Colour("#3f86c6", "#7fb9ec"),
    Colour("#b5791a", "#e3b04b"),
    Colour("#3f8f45", "#74c47c"),
    Colour("#9050a5", "#c58fd8"),
    Colour("#cb5636", "#f0906f"),
    Colour("#2c8f8d", "#63c7c4"),
)
"""The same hues, for states too brief for an area."""

CAUSES = (
    Colour("#5b616e", "#a5a9b2"),
    Colour("#c1bb34", "#efcf28"),
    Colour("#3c167c", "#6c35a7"),
    Colour("#229940", "#b4edce"),
    Colour("#6f112a", "#911634"),
    Colour("#eb78ac", "#ad6173"),
)
"""Colours of the causes of elapsed time, by family: waiting for the ends, start-up, windows, path
in use, radio idle, loss recovery. Hatchings distinguish the causes of a family."""

OBJECTS = {
    "document": CAUSES[2],
    "style": CAUSES[3],
    "script": CAUSES[1],
    "font": CAUSES[4],
    "image": CAUSES[5],
    "media": CAUSES[5],
    "data": CAUSES[0],
}
"""Colours of the types of objects in web pages. Media are hatched."""

SETUP = {
    "dns": Colour("#a15acf", "#7b69c6"),
    "connect": Colour("#47b5fa", "#699ef5"),
    "tls": Colour("#91450d", "#e28247"),
}
"""Colours of the phases before a request, drawn as thin bars beside those of `OBJECTS`."""

NAMED = {
    "page": PAGE,
    "surface": SURFACE,
    "grid": GRID,
    "line": LINE,
    "muted": MUTED,
    "ink": INK,
    "link": LINK,
    "down": DOWN,
    "up": UP,
    "alert": ALERT,
    "good": GOOD,
}
"""The colours with a name in CSS."""


def direction(name: str) -> Colour:
    """Return the hue of a direction, `down` or `up`."""
    return DOWN if name == "down" else UP


def series(index: int) -> Colour:
    """Return the colour of a run or flow by its number; colours repeat, dashes then differ."""
    return SERIES[index % len(SERIES)]


def hop(index: int) -> Colour:
    """Return the colour of the hop of that number."""
    return HOPS[index % len(HOPS)]


def state(index: int) -> Colour:
    """Return the colour of the named state of that number."""
    return STATES[index % len(STATES)]


def brief_state(colour: str) -> str:
    """Return the light colour of brief states for that of an area; others stay as they are."""
    return next((brief.light for area, brief in zip(STATES, BRIEF_STATES, strict=True) if area.light == colour), colour)


def dash(index: int) -> str:
    """Return the dash of a run or flow by its number.

    Each repetition of the colours shifts the dashes by one.
    """
    return DASHES[(index + index // len(SERIES)) % len(DASHES)]


def every_colour() -> list[Colour]:
    """Return all colours of the theme."""
    ramps = (AIRTIME_RAMP, AIRTIME_UP_RAMP, REPAIR_RAMP, LEVEL_RAMP)
    lists = (NAMED.values(), SERIES, HOPS, STATES, BRIEF_STATES, CAUSES, SETUP.values(), *ramps)
    return [colour for each in lists for colour in each]


def dark_of() -> dict[str, str]:
    """Return the dark colour of each light one, for the dark mode of figures."""
    return {colour.light: colour.dark for colour in every_colour()}
