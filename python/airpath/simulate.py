"""`airpath.run`: runs a scenario, or varies it."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from airpath.result import Result
from airpath.result_folder import written_to
from airpath.run import checked, execute

if TYPE_CHECKING:
    from airpath.sweep import Plan, Progress, SweepResult
    from airpath.sweep.driver import OnRows


@overload
def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    vary: None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    out: str | Path | None = None,
    capture: bool = False,
    log: bool = True,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result: ...


@overload
def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    vary: Mapping[str, Iterable[Any]],
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    out: str | Path | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> "SweepResult": ...


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    vary: Mapping[str, Iterable[Any]] | None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    out: str | Path | None = None,
    capture: bool = False,
    log: bool = True,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> "Result | SweepResult":
    """Run a scenario in virtual time and return its result.

    Args:
        scenario: A file's path, the TOML text itself (recognised by its line breaks), the same as
            a dictionary, the name of a bearer's preset: a download of 100 kB over it; or a result
            folder, whose run is repeated.
        vary: Values by dotted path, as in `{"tcp.congestion": ["reno", "cubic"]}`: lists, or
            arrays of NumPy. All their combinations are run, as a sweep of one scenario: `flows` of
            the result has a column for each path, and for quantities one of numbers with the unit
            in its name (`fixed.delay_s`). It has no event tables and no captures.
        set: Overrides by dotted path, as in `{"bearer.downlink.bler": 0.1, "fixed.delay": "80
            ms"}`.
        seed: The seed, in place of the scenario's. The same scenario and seed give the same result
            on any machine.
        repeat: The number of repetitions, each with its own random streams; by default 1, with a
            result folder as many as it has.
        out: The result folder. An earlier result of the same scenario and seed is replaced if the
            new one has at least as many repetitions; another one, and a folder with other files,
            is an error. Without it the result lies in a temporary folder that lasts as long as the
            returned object.
        capture: Whether to write pcapng captures of both ends.
        log: Whether to write the event tables (`packets`, `tcp`, `radio`, `app`) that the scenario
            enables.
        threads: The number of parallel repetitions; by default the number of cores.
        progress: Called with the repetitions that are done and the total.

    Returns:
        The result; with `vary` that of the sweep. After Ctrl-C it is partial, and its `complete` is
        false; a sweep raises `KeyboardInterrupt`, and keeps what is finished in `out`.

    Raises:
        ScenarioError: The scenario is invalid; nothing was run.
        ResultError: The result could not be written in full; the written part is kept.
        FileNotFoundError: There is no such scenario file and no such preset.
        FileExistsError: `out` has a file that is not of a result, or a result that would be lost.
        NotTextError: The scenario file is not UTF-8 text.
        PlanError: A path or value of `vary` is invalid; nothing was run.
        ValueError: `repeat` or `seed` is out of range, or `vary` and `capture` are given.
    """
    if vary is not None:
        seed, repeat, threads = checked(scenario, seed, repeat, threads, capture=capture, log=log)
        if capture:
            raise ValueError("vary keeps rows only; run one case with capture")
        from airpath.sweep import make_plan

        plan = make_plan(scenario, vary, set=set, seed=seed, repeat=repeat)
        report = progress and (lambda now: progress(now.runs, now.total))
        return run_plan(plan, out=out, threads=threads, progress=report)
    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="airpath-")
        out = temporary.name
    execute(
        scenario,
        set=set,
        seed=seed,
        repeat=repeat,
        out=Path(out),
        capture=capture,
        log=log,
        threads=threads,
        progress=progress,
    )
    return Result(written_to(Path(out)), _temporary=temporary)


def run_plan(
    plan: "Plan",
    *,
    out: str | Path | None,
    threads: int | None,
    progress: "Callable[[Progress], None] | bool | None",
    on_rows: "OnRows | None" = None,
) -> "SweepResult":
    """Run a plan in threads of this process; see `airpath.sweep.sweep`.

    Processes would import the script that calls this, or fail if it is standard input.
    """
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event

    from airpath.sweep import sweep
    from airpath.sweep.pool import cores
    from airpath.sweep.stopping import set_check

    threads = threads or cores(plan)
    over = Event()

    def check(*_: object) -> None:
        if over.is_set():
            raise KeyboardInterrupt

    executor = ThreadPoolExecutor(threads, initializer=set_check, initargs=(check,))
    try:
        return sweep(plan, out=out, executor=executor, workers=threads, progress=progress, on_rows=on_rows)
    finally:
        # After Ctrl-C and errors, tasks still run.
        over.set()
        executor.shutdown(cancel_futures=True)
