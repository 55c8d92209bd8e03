"""Figures of results, for notebooks and for the report.

Each takes one result or several, and overlays several. A path is that of a result folder.

    from airpath import plot

    plot.time_sequence(result)                 # a plotly Figure
    plot.throughput([result, "runs/other"])
    plot.compare([result, other], "duration_s")

| function | figure |
| --- | --- |
| `time_sequence` | stream offset over time, with retransmissions and losses |
| `window` | congestion window, threshold, the receiver's window and the outstanding data |
| `outstanding` | the outstanding data of several transfers |
| `round_trip`, `round_trip_share` | round trips over time, and their distribution |
| `queue` | queued bytes in front of links and bearers |
| `throughput` | received rate, by direction or flow |
| `tracks` | the radio log: mode, cell, C/I, scheme, slots and link states of each mobile |
| `proxy_tracks` | budget, outstanding bytes and queue of each mobile at a proxy |
| `radio` | air time by user, share of repeated PDUs, C/I level |
| `losses` | lost packets by place and cause |
| `hops` | where the time goes: the delay of each hop |
| `waterfall` | a view of a web page: objects, connections, radio and queue |
| `connections` | the connections of a view of a web page, with their requests |
| `mark_changes` | marks outages, handovers and new conditions in any figure over time |
| `playback` | playout buffer and stalls of videos |
| `quality` | quality of the segments of videos over HTTP |
| `latency`, `latency_share` | how long responses of terminals, mail and transactions took, and their distribution |
| `compare` | a figure over all repetitions or flows, with the mean and its interval |
"""

from airpath.plot.changes import mark_changes
from airpath.plot.distribution import ENOUGH, compare
from airpath.plot.hops import hops
from airpath.plot.latency import latency, latency_share
from airpath.plot.losses import losses
from airpath.plot.playback import playback
from airpath.plot.quality import quality
from airpath.plot.queue import queue
from airpath.plot.radio import radio
from airpath.plot.round_trip import round_trip, round_trip_share
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import TEMPLATE, Caption, caption_of
from airpath.plot.throughput import throughput
from airpath.plot.time_sequence import time_sequence
from airpath.plot.tracks import proxy_tracks, tracks
from airpath.plot.waterfall import connections, waterfall
from airpath.plot.window import outstanding, window

__all__ = [
    "ENOUGH",
    "TEMPLATE",
    "Caption",
    "NothingToDrawError",
    "caption_of",
    "compare",
    "connections",
    "hops",
    "latency",
    "latency_share",
    "losses",
    "mark_changes",
    "outstanding",
    "playback",
    "proxy_tracks",
    "quality",
    "queue",
    "radio",
    "round_trip",
    "round_trip_share",
    "throughput",
    "time_sequence",
    "tracks",
    "waterfall",
    "window",
]
