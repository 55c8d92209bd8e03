"""Replays a result: sends the packets that entered its network through it again."""

import json
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.result import Result, UnreadableResultError
from airpath.result_folder import FolderInUseError, NewResult, new_result, written_to
from airpath.run import override_texts

if TYPE_CHECKING:
    import polars as pl


def replay(
    result: Result | str | Path,
    *,
    set: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    log: bool = True,
) -> Result:
    """Send the packets of a result through its network again; return the new result.

    With the same scenario each packet leaves at the same nanosecond or is lost in the same place,
    for results of simulations and of emulated links. With `set` it shows the fate of the same
    packets on a changed network. The senders do not react, so that the new result has no flows.

    Args:
        result: A result, or its folder; it must have its `packets` table.
        set: Overrides by dotted path, as for `run`.
        out: The result folder. An earlier replay with the same scenario is replaced if the new one
            has as much; other results are not. Without it the result is in a temporary folder,
            which exists as long as the returned object.
        log: Whether to write the event tables.

    Raises:
        NotLoggedError: The result has no `packets` table.
        UnreadableResultError: The result is unreadable, or does not match the scenario with the
            overrides.
        ScenarioError: The scenario with the overrides is invalid.
        ResultError: The new result could not be written in full.
        FileExistsError: `out` has another result or a file that is not of a result, or is the
            result itself.
    """
    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="airpath-")
        out = temporary.name
    execute(result if isinstance(result, Result) else Result(result), set=set, out=Path(out), log=log)
    return Result(written_to(Path(out)), _temporary=temporary)


def execute(
    result: Result, *, set: Mapping[str, Any] | None = None, out: Path | None = None, log: bool = True
) -> dict[str, Any]:
    """Replay a result and return the summary alone; without `out` nothing is written to disk.

    See `replay`.
    """
    from airpath import _native

    _check_overrides(set or {})
    text, name, sets = result.scenario, str(result.path / "scenario.toml"), override_texts(set)
    recordings = _recordings(result)
    place = nullcontext()
    if out is not None:
        if out.resolve() == result.path.resolve():
            raise FolderInUseError(f"{out} is the result that is to be replayed", next_step="name another folder")
        new = NewResult("replay", tomllib.loads(_native.resolve(text, name, sets)), repeat=len(recordings), log=log)
        place = new_result(out, new)
    try:
        with place as folder:
            return json.loads(
                _native.replay(text, name, sets, recordings, None if folder is None else str(folder), log)
            )
    except ValueError as error:
        raise UnreadableResultError(f"{result.path}: {error}") from None


_OF_SENDERS = ("tcp", "quic", "flow", "duration")
"""Keys of a scenario that do not change a replay: its packets are given."""


def _check_overrides(overrides: Mapping[str, Any]) -> None:
    for key in overrides:
        if key.split(".")[0] in _OF_SENDERS:
            raise UnreadableResultError(
                f"'{key}' does not change a replay, which sends the packets of the result",
                next_step="`airpath run` runs the scenario again, with other senders",
            )


def _recordings(result: Result) -> list[tuple[int, int, list[Any], list[Any], list[Any], str | None]]:
    """Return the packets that entered the network in each repetition, in the form of the core."""
    import polars as pl

    packets = result.scan("packets").sort("repetition", "time", maintain_order=True)
    ends = dict(packets.group_by("repetition").agg(pl.col("time").max()).sort("repetition").collect().iter_rows())
    for row in result.summary["repetitions"]:
        ends[row["repetition"]] = round(row["simulated_s"] * 1e9)
    steps = packets.filter(pl.col("step").is_in(["sent", "received"]))
    received = (pl.col("step") == "received").cast(pl.UInt32).cum_sum().over("repetition", "time")
    sent = steps.with_columns(after=received).filter(pl.col("step") == "sent").collect()
    changes = result.changes
    return [
        (
            number,
            end,
            _arrivals(sent.filter(pl.col("repetition") == number)),
            _headers(sent.filter(pl.col("repetition") == number)),
            changes.filter(pl.col("repetition") == number).select("time", "component", "user", "change").rows(),
            _header_file(result, number),
        )
        for number, end in sorted(ends.items())
    ]


def _header_file(result: Result, repetition: int) -> str | None:
    """Return the file of headers, which a run with a proxy or header compression has written."""
    file = result.path / "headers" / f"{repetition:04}.pcapng"
    return str(file) if file.exists() else None


def _arrivals(sent: "pl.DataFrame") -> list[Any]:
    import polars as pl

    up = (pl.col("direction") == "up").alias("up")
    return sent.select("time", up, "packet", "size", "ecn", "flow", "user", "after").rows()


def _headers(sent: "pl.DataFrame") -> list[Any]:
    rows = sent.select("offset", "length", "ack", "window", "flags", "retransmission").iter_rows()
    return [None if row[0] is None else row for row in rows]
