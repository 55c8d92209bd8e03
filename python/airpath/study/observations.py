"""Observers of a run's event log.

Each adds its observation to the flows, under the observer's name.
"""

from collections.abc import Callable, Sequence
from typing import Any

from airpath.result import Result
from airpath.study import air_interface, arrivals, blocks, cell_groups, delays, mobile, sender, timelines
from airpath.study.air_interface import AIR_METRICS
from airpath.study.arrivals import ARRIVAL_METRICS
from airpath.study.blocks import BLOCK_METRICS
from airpath.study.cell_groups import CELL_GROUP_METRICS
from airpath.study.delays import DELAY_METRICS
from airpath.study.metrics import METRICS
from airpath.study.mobile import MOBILE_METRICS
from airpath.study.sender import SENDER_METRICS
from airpath.study.services import SERVICE_METRICS
from airpath.study.sharing import SHARING_METRICS
from airpath.study.timelines import TIMELINE_METRICS

OBSERVERS: dict[str, Callable[[Result], Sequence[Any]]] = {
    air_interface.KEY: air_interface.observe,
    arrivals.KEY: arrivals.observe,
    blocks.KEY: blocks.observe,
    cell_groups.KEY: cell_groups.observe,
    delays.KEY: delays.observe,
    mobile.KEY: mobile.observe,
    sender.KEY: sender.observe,
    timelines.KEY: timelines.observe,
}
"""By name; each returns one observation per flow of the summary, in its order."""

OBSERVED_METRICS = (
    AIR_METRICS
    | ARRIVAL_METRICS
    | BLOCK_METRICS
    | CELL_GROUP_METRICS
    | DELAY_METRICS
    | MOBILE_METRICS
    | SENDER_METRICS
    | TIMELINE_METRICS
)
"""The metrics that need an observer, by name."""

ALL_METRICS = METRICS | SERVICE_METRICS | SHARING_METRICS | OBSERVED_METRICS
"""All metrics by name."""
