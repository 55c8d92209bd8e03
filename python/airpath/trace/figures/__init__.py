"""What is drawn of a captured connection. Each function takes a `FlowView`; all share its axis of time.

| function | what it draws |
| --- | --- |
| `cause_bar` | where the time went, and when |
| `time_sequence` | stream offset over time: segments, acknowledgements, the window, SACK, what was sent again and why |
| `outstanding` | the data on the way, and the receiver's window |
| `round_trip` | what acknowledgements measure |
| `one_way` | one-way delays and losses, with a capture of the other end |
| `throughput` | payload per second |
| `radio_lanes` | the radio log of the run that was captured |
| `page_timeline` | connections and objects of a page, of a `PageView`, on an axis of its own |

Several connections are compared by `cause_bars`, `sequences`, `throughputs` and `round_trips`, which take them as
`Shown`, on one axis of the time since the start of each.
"""

from airpath.trace.figures.causes import cause_bar
from airpath.trace.figures.compared import Shown, cause_bars, round_trips, sequences, throughputs
from airpath.trace.figures.one_way import one_way
from airpath.trace.figures.outstanding import outstanding
from airpath.trace.figures.page import PageView, page_timeline
from airpath.trace.figures.radio import radio_lanes
from airpath.trace.figures.round_trip import round_trip
from airpath.trace.figures.throughput import throughput
from airpath.trace.figures.time_sequence import time_sequence
from airpath.trace.figures.view import FlowView

__all__ = [
    "FlowView",
    "PageView",
    "Shown",
    "cause_bar",
    "cause_bars",
    "one_way",
    "outstanding",
    "page_timeline",
    "radio_lanes",
    "round_trip",
    "round_trips",
    "sequences",
    "throughput",
    "throughputs",
    "time_sequence",
]
