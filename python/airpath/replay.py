"""Replaying a result: what entered the network once, put on it again."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.result import Result, UnreadableResultError
from airpath.run import clear_result_folder, override_texts

if TYPE_CHECKING:
    import polars as pl


def replay(
    result: Result | str | Path,
    *,
    set: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    log: bool = True,
) -> Result:
    """Put the packets of a result on its network again, in virtual time, and return what became of them.

    With the same scenario each packet leaves at the same nanosecond or is lost in the same place, whether the result is
    of a simulation or of an emulated link; with `set` the answer is what would have become of the same packets. Whoever
    sent them sends the same, whatever becomes of them: no TCP reacts, and there are no flows in the new result.

    Args:
        result: A result, or its folder; it must have its `packets` table.
        set: Overrides by dotted path, as for `run`.
        out: The result folder. An earlier result there is replaced. Without it the result lies in a temporary folder
            that lasts as long as the returned object.
        log: Whether to keep the event tables.

    Raises:
        NotLoggedError: The result has no `packets` table.
        UnreadableResultError: It cannot be read, or does not fit the scenario with what was set.
        ScenarioError: The scenario with what was set cannot be used.
        ResultError: The new result could not be written in full.
        FileExistsError: `out` holds something that is not a result, or is the result itself.
    """
    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="airpath-")
        out = temporary.name
    execute(result if isinstance(result, Result) else Result(result), set=set, out=Path(out), log=log)
    return Result(out, _temporary=temporary)


def execute(
    result: Result, *, set: Mapping[str, Any] | None = None, out: Path | None = None, log: bool = True
) -> dict[str, Any]:
    """Replay a result and return the summary alone; without `out` nothing is written to disk. See `replay`."""
    from airpath import _native

    text, name, sets = result.scenario, str(result.path / "scenario.toml"), override_texts(set)
    recordings = _recordings(result)
    if out is not None:
        needed = _native.files(text, name, sets)  # a scenario that cannot be used must not cost an earlier result
        if out.resolve() == result.path.resolve():
            raise FileExistsError(f"{out} is the result that is to be replayed; name another folder")
        clear_result_folder(out, keep=needed)
    try:
        return json.loads(_native.replay(text, name, sets, recordings, None if out is None else str(out), log))
    except ValueError as error:
        raise UnreadableResultError(f"{result.path}: {error}") from None


def _recordings(result: Result) -> list[tuple[int, int, list[Any], list[Any], list[Any]]]:
    """Return what entered in each repetition, as the core takes it."""
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
        )
        for number, end in sorted(ends.items())
    ]


def _arrivals(sent: "pl.DataFrame") -> list[Any]:
    import polars as pl

    up = (pl.col("direction") == "up").alias("up")
    return sent.select("time", up, "packet", "size", "ecn", "flow", "user", "after").rows()


def _headers(sent: "pl.DataFrame") -> list[Any]:
    rows = sent.select("offset", "length", "ack", "window", "flags", "retransmission").iter_rows()
    return [None if row[0] is None else row for row in rows]
