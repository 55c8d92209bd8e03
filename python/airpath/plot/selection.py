"""Selects what is drawn of a result: the repetition, the flows, their labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from airpath import theme
from airpath.result import Result, load
from airpath.tables import TRANSFERS, direction_of, is_steering_probe

MOST_FLOWS = 6
"""A figure draws at most this number of flows; of more, the slowest, the median and the fastest."""


class NothingToDrawError(LookupError):
    """The result has no events for a figure: no packet was lost, or there is no radio.

    The message has the reason.
    """


Results: TypeAlias = Result | str | Path | Sequence[Result | str | Path]
"""One result or several: as of `airpath.run`, or the paths of their folders."""


def loaded(result: Result | str | Path) -> Result:
    """Return a result; a path is that of its folder.

    Raises:
        TypeError: It is neither.
        UnreadableResultError: The folder is no result, is damaged, or was written by another
            version.
    """
    if isinstance(result, Result):
        return result
    if isinstance(result, str | Path):
        return load(result)
    raise TypeError(f"a {type(result).__name__} is no result; give one of airpath.run, or the path of its folder")


@dataclass(frozen=True)
class Line:
    """One line of a figure: a run, or a flow of the only run."""

    run: "Drawn"
    flow: dict[str, Any]
    label: str
    index: int

    @property
    def colour(self) -> str:
        """Its colour, light."""
        return theme.series(self.index).light

    @property
    def dash(self) -> str:
        """Its dash, which distinguishes it without colour."""
        return theme.dash(self.index)

    @property
    def direction(self) -> str:
        """The direction of its data."""
        return direction_of(self.flow)

    def of_flow(self, table: str) -> pl.LazyFrame:
        """Return the events of its flow, with `t` in seconds."""
        return self.run.events(table).filter(pl.col("flow") == self.flow["flow"])

    def sender_states(self) -> pl.LazyFrame:
        """Return the states of the TCP sender of its data, with `t` in seconds."""
        states = self.run.of_repetition(self.run.result.scan_radio_senders())
        return states.filter((pl.col("flow") == self.flow["flow"]) & (pl.col("direction") == self.direction))


@dataclass(frozen=True)
class Drawn:
    """A run as the figures show it: one of its repetitions, with a unique label."""

    result: Result
    label: str
    index: int
    repetition: int

    def events(self, table: str) -> pl.LazyFrame:
        """Return the events of the repetition, with `t` in seconds.

        Raises:
            NotLoggedError: The run did not keep that table.
        """
        return self.of_repetition(self.result.scan(table))

    def of_repetition(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Return the events of the repetition, with `t` in seconds."""
        return events.filter(pl.col("repetition") == self.repetition).with_columns(t=pl.col("time") / 1e9)

    @cached_property
    def flows(self) -> list[dict[str, Any]]:
        """The flows of the repetition."""
        return [flow for flow in self.result.summary["flows"] if flow["repetition"] == self.repetition]

    @cached_property
    def transfers(self) -> list[dict[str, Any]]:
        """The flows that carry data over TCP, without connections that carried none."""
        return [flow for flow in self.flows if flow["kind"] in TRANSFERS and flow["bytes"] > 0]

    @cached_property
    def span(self) -> float:
        """Simulated seconds of the repetition."""
        rows = self.result.summary["repetitions"]
        return next((row["simulated_s"] for row in rows if row["repetition"] == self.repetition), 0.0)

    @cached_property
    def users(self) -> list[str]:
        """Names of the mobiles by user number: the last components, in this order."""
        names = [component["name"] for component in self.result.summary["components"]]
        return names[names.index("server") + 1 :] if "server" in names else []

    def user(self, number: int) -> str:
        """Return the name of a user's mobile."""
        return self.users[number] if number < len(self.users) else f"user {number}"

    def transfer(self, flow: int | None = None) -> dict[str, Any] | None:
        """Return the transfer of that number, or the one of median throughput.

        `None` if there is none.
        """
        transfers = sorted(self.transfers, key=_speed)
        if flow is not None:
            return next((each for each in transfers if each["flow"] == flow), None)
        return transfers[(len(transfers) - 1) // 2] if transfers else None


def drawn(results: Results, repetition: int | None = None) -> list[Drawn]:
    """Return the runs as figures show them.

    Args:
        results: One result, or several that are to be compared; paths are those of result folders.
        repetition: The repetition to draw; by default each run's median one, by the throughput of
            its flows. Then the interrupted repetitions of a result are left out.
    """
    if isinstance(results, Result | str | Path) or not isinstance(results, Iterable):
        results = [results]
    several = [loaded(each) for each in results]
    names = labels(several)
    if repetition is None:
        several = [each.complete_part for each in several]
    return [
        Drawn(each, name, index, median_repetition(each) if repetition is None else repetition)
        for index, (each, name) in enumerate(zip(several, names, strict=True))
    ]


def left_out(result: Result) -> str:
    """Return how many interrupted repetitions the complete part of a result lacks; or nothing."""
    count = len(result.left_out)
    return f"without {count} interrupted repetition{'s' if count > 1 else ''}" if count else ""


def labels(results: Sequence[Result]) -> list[str]:
    """Return a unique name for each result: its own or its scenario's, if needed with folder."""
    names = [each.label or str(each.summary["scenario"]) for each in results]
    if len(set(names)) < len(names):
        names = [f"{name} ({each.path.name})" for name, each in zip(names, results, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{name}, {number}" for number, name in enumerate(names, 1)]
    return names


def median_repetition(result: Result) -> int:
    """Return the representative repetition: the lower median by the mean rate of its flows."""
    summary = result.complete_part.summary
    speeds: dict[int, list[float]] = {row["repetition"]: [] for row in summary["repetitions"]}
    for flow in summary["flows"]:
        if is_steering_probe(flow):
            continue
        speeds.setdefault(flow["repetition"], []).append(_speed(flow))
    ordered = sorted(speeds, key=lambda number: sum(speeds[number]) / max(len(speeds[number]), 1))
    return ordered[(len(ordered) - 1) // 2] if ordered else 0


def lines(runs: Sequence[Drawn], flow: int | None) -> tuple[list[Line], list[str]]:
    """Return a line for each transfer that a figure shows, and notes about omitted ones.

    One run shows all its transfers, or three of them if they are many; of several runs each shows
    one.

    Raises:
        NothingToDrawError: There is no such transfer.
    """
    if len(runs) == 1 and flow is None:
        return _lines_of_one(runs[0])
    found = [(run, run.transfer(flow)) for run in runs]
    lines = [Line(run, each, run.label, run.index) for run, each in found if each is not None]
    if not lines:
        raise NothingToDrawError("the run has no transfer over TCP" if flow is None else f"flow {flow} is no transfer")
    notes = []
    crowded = [run.label for run in runs if len(run.transfers) > 1]
    if flow is None and crowded:
        notes.append("Of several flows, the one of median throughput is drawn.")
    missing = [run.label for run, each in found if each is None]
    if missing:
        notes.append(f"No such transfer in: {', '.join(missing)}.")
    return lines, notes


def flows_of(
    runs: Sequence[Drawn], kinds: tuple[str, ...], most: int = MOST_FLOWS
) -> tuple[list[tuple[Drawn, dict[str, Any], str]], list[str]]:
    """Return the flows of these kinds to draw, with labels and notes: of several runs one each."""
    chosen, notes = [], []
    for run in runs:
        flows = [flow for flow in run.flows if flow["kind"] in kinds]
        limit = most if len(runs) == 1 else 1
        if len(flows) > limit:
            notes.append(f"Of {len(flows):,} flows{f' of {run.label}' if len(runs) > 1 else ''}, {limit} drawn.")
        chosen += [(run, flow, run.label if len(runs) > 1 else flow["name"]) for flow in flows[:limit]]
    return chosen, notes


def _lines_of_one(run: Drawn) -> tuple[list[Line], list[str]]:
    transfers = run.transfers
    if not transfers:
        raise NothingToDrawError("the run has no transfer over TCP")
    notes = []
    if len(transfers) > MOST_FLOWS:
        notes.append(f"Of {len(transfers)} flows, the fastest, the median and the slowest are drawn.")
        ordered = sorted(transfers, key=_speed, reverse=True)
        transfers = [ordered[0], ordered[len(ordered) // 2], ordered[-1]]
    return [Line(run, each, each["name"], index) for index, each in enumerate(transfers)], notes


def _speed(flow: dict[str, Any]) -> float:
    """Return the sort key of a flow: its throughput, for probes the negative delay."""
    speed = flow.get("throughput_bps")
    if speed is None:
        delay = flow.get("delay_mean_s")
        return -delay if delay is not None else 0.0
    return speed
