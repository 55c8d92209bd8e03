"""What is read from the event log of a run, by name; it stands in each flow under that name."""

from collections.abc import Callable, Sequence
from typing import Any

from airpath.result import Result
from airpath.study import air_interface, arrivals, delays, sender
from airpath.study.air_interface import AIR_METRICS
from airpath.study.arrivals import ARRIVAL_METRICS
from airpath.study.delays import DELAY_METRICS
from airpath.study.sender import SENDER_METRICS

OBSERVERS: dict[str, Callable[[Result], Sequence[Any]]] = {
    air_interface.KEY: air_interface.observe,
    arrivals.KEY: arrivals.observe,
    delays.KEY: delays.observe,
    sender.KEY: sender.observe,
}
"""Each returns what it reads for every flow of the summary, in its order."""

OBSERVED_METRICS = AIR_METRICS | ARRIVAL_METRICS | DELAY_METRICS | SENDER_METRICS
"""The figures that need them."""
