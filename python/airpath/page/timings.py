"""A view of a web page as figures show it: requests with their phases, and connections.

Times are seconds from the start of the view.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PHASES = ("queued", "dns", "connect", "tls", "send", "wait", "receive")
"""The phases of a request, in their order."""

MARKS = {
    "first_byte_s": "first byte",
    "first_contentful_paint_s": "FCP",
    "largest_contentful_paint_s": "LCP",
    "load_event_s": "load",
    "page_time_s": "page time",
}
"""Times of a view, with their names in figures. FCP and LCP: first and largest contentful paint."""


@dataclass(frozen=True)
class Phase:
    """A part of a request."""

    name: str
    """One of `PHASES`."""
    start: float
    end: float


@dataclass(frozen=True)
class Request:
    """An object that the browser requested, or took from its cache."""

    name: str
    """Path of its URL."""
    host: str
    type: str
    """As in page files."""
    source: str
    """`network`, `revalidated` or `cache`."""
    connection: str | None
    """Key of its connection; `None` without one."""
    bytes: int
    """Bytes that arrived."""
    status: str
    """Status of the response, or why there is none."""
    protocol: str
    phases: tuple[Phase, ...]
    """At least one, in the order of time."""

    @property
    def start(self) -> float:
        """When the browser found the object."""
        return self.phases[0].start

    @property
    def end(self) -> float:
        """When its last byte had arrived."""
        return self.phases[-1].end

    def time_of(self, phase: str) -> float | None:
        """Return the start of a phase; `None` if the request does not have it."""
        return next((each.start for each in self.phases if each.name == phase), None)


@dataclass(frozen=True)
class Connection:
    """A connection with at least one request in the view."""

    key: str
    host: str
    opened: float
    """Its SYN; negative for a connection of an earlier view."""
    setup: tuple[Phase, ...]
    """Connect and TLS, as far as they are known."""
    closed: float | None
    """Its last packet, if known."""


def lengths_of(request: Request) -> dict[str, float]:
    """Return the seconds of each phase, 0 of those that a request does not have."""
    lengths: dict[str, float] = dict.fromkeys(PHASES, 0.0)
    for phase in request.phases:
        lengths[phase.name] += phase.end - phase.start
    return lengths


@dataclass(frozen=True)
class View:
    """A view of a page."""

    page: str
    run: int
    """Number of the load or repetition, from 0."""
    number: int
    """Number of the view in its run, from 0."""
    flow: int | None
    """Number of the flow of a simulation."""
    start: float
    """Seconds from the origin of the run."""
    figures: Mapping[str, float | None]
    """Figures by the columns of `pages` or the names of `page.json`."""
    requests: Sequence[Request]
    """In the order of their start."""
    connections: Sequence[Connection]
    """In the order of their opening."""
    frames: Sequence[tuple[float, Path]] = field(default=())
    """Pictures of the page, from each time on."""

    @property
    def marks(self) -> dict[str, float]:
        """The times to be marked, by name."""
        return {name: time for key, name in MARKS.items() if (time := self.figures.get(key)) is not None}

    @property
    def span(self) -> float:
        """When everything was over."""
        return max([0.0, *(each.end for each in self.requests), *self.marks.values()])

    @property
    def repeated(self) -> bool:
        """Whether the browser used its cache."""
        return any(each.source != "network" for each in self.requests)
