"""Figures of results, for notebooks and for the report. Each takes one result or several, and overlays several.

    from airpath import plot

    plot.time_sequence(result)                 # a plotly Figure
    plot.throughput([result, other])
    plot.compare([result, other], "duration_s")

| function | what it draws |
| --- | --- |
| `time_sequence` | stream offset over time, with what was sent again and lost |
| `window` | congestion window, threshold, the receiver's window and the outstanding data |
| `round_trip`, `round_trip_share` | round trips over time, and their distribution |
| `queue` | what waits in front of links and bearers |
| `throughput` | what arrives per second, by direction or flow |
| `lanes` | the radio log: mode, cell, C/I, scheme, slots and link states of each mobile |
| `radio` | who uses the air, what is sent again, which level was in force |
| `losses` | lost packets by place and cause |
| `hops` | where the time goes: the delay of each hop |
| `mark_changes` | outages, handovers and new conditions in any figure over time |
| `compare` | a figure over all repetitions or flows, with the mean and its interval |
| `study` | published figures beside ours |
"""

from airpath.plot.changes import mark_changes
from airpath.plot.distribution import ENOUGH, compare
from airpath.plot.hops import hops
from airpath.plot.lanes import lanes
from airpath.plot.losses import losses
from airpath.plot.queue import queue
from airpath.plot.radio import radio
from airpath.plot.round_trip import round_trip, round_trip_share
from airpath.plot.selection import NothingToDrawError
from airpath.plot.study import study
from airpath.plot.template import TEMPLATE, Caption, caption_of
from airpath.plot.throughput import throughput
from airpath.plot.time_sequence import time_sequence
from airpath.plot.window import window

__all__ = [
    "ENOUGH",
    "TEMPLATE",
    "Caption",
    "NothingToDrawError",
    "caption_of",
    "compare",
    "hops",
    "lanes",
    "losses",
    "mark_changes",
    "queue",
    "radio",
    "round_trip",
    "round_trip_share",
    "study",
    "throughput",
    "time_sequence",
    "window",
]
