"""Plots of a captured connection. Each function takes a `FlowView`; all share its time axis.

| function | figure |
| --- | --- |
| `cause_bar` | where the time went, and when |
| `time_sequence` | stream offset over time: segments, acknowledgements, window, SACK, retransmissions by trigger |
| `outstanding` | outstanding data, and the receiver's window |
| `round_trip` | round trips that acknowledgements measure |
| `one_way` | one-way delays and losses, with a capture of the other end |
| `throughput` | payload per second |
| `radio_tracks` | the radio log of the run that was captured |
| `page_timeline` | connections and objects of a page, of a `PageView`, on an axis of its own |

`airpath.trace.compare.figures` draws several connections in one figure.
"""

from airpath.trace.figures.causes import cause_bar
from airpath.trace.figures.one_way import one_way
from airpath.trace.figures.outstanding import outstanding
from airpath.trace.figures.page import PageView, page_timeline
from airpath.trace.figures.radio import radio_tracks
from airpath.trace.figures.round_trip import round_trip
from airpath.trace.figures.throughput import throughput
from airpath.trace.figures.time_sequence import time_sequence
from airpath.trace.figures.view import FlowView

__all__ = [
    "FlowView",
    "PageView",
    "cause_bar",
    "one_way",
    "outstanding",
    "page_timeline",
    "radio_tracks",
    "round_trip",
    "throughput",
    "time_sequence",
]
