"""The input of a trace: captures or a result folder, and the radio log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from airpath.result import UnreadableResultError
from airpath.trace.errors import TraceInputError
from airpath.trace.event_log import Log as EventLog
from airpath.trace.folder import Captured, chosen, has_proxy, recorded
from airpath.trace.radio_log import Log, of_file, of_result

Source = str | Path


@dataclass(frozen=True)
class Sources:
    """The input of a trace."""

    files: tuple[Path, ...]
    log: EventLog | None = None
    """The event log that replaces files, with both ends."""
    peer: Path | None = None
    one_clock: bool = False
    """Whether one clock made the captures of both ends."""
    clients: Path | None = None
    """The capture at the clients' end by the same clock, if `files` are from the servers' end."""
    radio: tuple["Log", ...] = ()
    radio_name: str | None = None
    """The radio log that the caller named."""
    run: Path | None = None
    """The result folder with the radio log."""
    repetition: int = 0
    """Its repetition."""
    note: str | None = None
    """A warning about the choice of the input."""
    arguments: tuple[str, ...] = ()
    """The arguments of `airpath trace` that select this input."""
    inputs: tuple[Path, ...] = ()
    """All files and folders that the caller named."""


def sources_of(
    path: Source | Sequence[Source],
    peer: Source | None,
    radio: Source | None,
    columns: Mapping[str, str],
    repetition: int | None,
) -> Sources:
    """Return the input: captures, or the captures or event log of a result folder."""
    files = [Path(each) for each in ([path] if isinstance(path, str | Path) else path)]
    peer = None if peer is None else Path(peer)
    _check_used(files, radio, columns, repetition)
    if len(files) > 1 and (folder := next((each for each in files if each.is_dir()), None)):
        raise TraceInputError(
            f"{folder} is a folder, and a result folder is analysed alone",
            next_step="`airpath trace compare` compares it with captures",
        )
    if peer is not None and any(each.exists() and peer.exists() and each.samefile(peer) for each in files):
        raise TraceInputError(
            f"{peer} is given as FILE and as --peer", next_step="name the capture of the other end as --peer"
        )
    arguments = tuple(map(str, files))
    sources = Sources(tuple(files), peer=peer)
    if len(files) == 1 and files[0].is_dir():
        sources = _of_run(files[0], peer, chosen(files[0], repetition))
    elif peer is not None:
        arguments += ("--peer", str(peer))
    if radio is not None:
        run = Path(radio) if Path(radio).is_dir() else None
        number = 0 if run is None else chosen(run, repetition)
        logs = of_file(Path(radio), columns) if run is None else of_result(run, number)
        sources = replace(sources, radio=tuple(logs), radio_name=str(radio), run=run, repetition=number)
        arguments += ("--radio", str(radio))
        if columns:
            arguments += ("--radio-columns", ",".join(f"{key}={value}" for key, value in columns.items()))
    if repetition is not None:
        arguments += ("--repetition", str(repetition))
    inputs = [*files, *(Path(each) for each in (peer, radio) if each is not None)]
    return replace(sources, arguments=arguments, inputs=tuple(inputs))


def _check_used(
    files: Sequence[Path], radio: Source | None, columns: Mapping[str, str], repetition: int | None
) -> None:
    """Check that the arguments that select a part of the input have an input.

    Raises:
        TraceError: One would have no effect.
    """
    if columns and (radio is None or Path(radio).is_dir()):
        raise TraceInputError(
            "radio_columns is given without a CSV file", next_step="name it as radio, or leave the columns out"
        )
    folders = [*files, *([] if radio is None else [Path(radio)])]
    if repetition is not None and not any(each.is_dir() for each in folders):
        raise TraceInputError("repetition is given without a result folder", next_step="name one, or leave it out")


def _of_run(run: Path, peer: Path | None, repetition: int) -> Sources:
    """Return the input in a result folder."""
    inside = recorded(run, repetition)
    logs = tuple(of_result(run, repetition))
    if not isinstance(inside, Captured):
        if peer is not None:
            raise UnreadableResultError(
                f"{run}: has no captures for the peer {peer}",
                next_step="run it again with `--capture`, or omit the peer: the event log has both ends",
            )
        return Sources((), inside, radio=logs, run=run, repetition=repetition)
    if peer is not None:
        return Sources((inside.near,), peer=peer, radio=logs, run=run, repetition=repetition)
    if has_proxy(run):
        # The connections at the servers' end do not reach the radio.
        at_mobiles = inside.near.name.endswith("-mobile.pcapng")
        note = (
            f"{run}: a proxy ends the connections between the two captures, so they cannot be joined: this is "
            f"{inside.near.name} alone; for the other side: airpath trace {inside.far}"
        )
        radio = logs if at_mobiles else ()
        return Sources((inside.near,), radio=radio, run=run, repetition=repetition, note=note)
    return Sources(
        (inside.near,),
        peer=inside.far,
        one_clock=True,
        clients=inside.far if inside.far.name.endswith("-mobile.pcapng") else None,
        radio=logs,
        run=run,
        repetition=repetition,
    )
