"""`airpath link --repeat`: the same command on several links, one after the other."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import typer

from airpath.cli.messages import ExitCode, cleanly_ended, explained, note, problem_of, write_message
from airpath.cli.options import is_given
from airpath.quantities import seconds
from airpath.statistics import mean_interval

if TYPE_CHECKING:
    from airpath.result_folder import NewResult

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_MOST_NAMED = 5
"""Failed repetitions that a message names."""
_NOT_RUN = (ExitCode.LINK_FAILED, ExitCode.NOT_EXECUTABLE, ExitCode.NOT_FOUND)
"""The exit codes without a time: further repetitions would fail, too."""


def repeat_link(
    repeat: int, first: "NewResult", arguments: Sequence[str], *, out: Path | None, record: Path | None = None
) -> tuple[int, list[float]]:
    """Run `airpath link` with these arguments `repeat` times, and print the times of its command.

    Each link is a process of its own, as it cannot leave its namespaces. Repetition `n` has the
    seed of the first plus `n`, so that each has other losses, its result in the folder `n` of
    `out`, and its recorded links at `record` with `.n`.

    Returns:
        The exit code of the first command that failed, 0 without one; and the ends of the links in
        seconds.
    """
    from airpath.result_folder import clear_result_folder

    times: list[float] = []
    ends: list[float] = []
    failures: dict[int, int] = {}
    failed = 0
    seed = first.scenario["seed"]
    replaces = _check_earlier(out, repeat, first)
    with (
        # A file without a name, which ends with this process.
        os.fdopen(os.memfd_create("airpath-end"), "r+", encoding="utf-8") as report,
        cleanly_ended(),
        _interruptible() as is_interrupted,
    ):
        for number in range(repeat):
            options = ["--seed", str(seed + number), "--end-fd", str(report.fileno()), "--no-scenario-note"]
            options += [] if out is None else ["--out", str(out / str(number))]
            options += [] if record is None else ["--record", f"{record}.{number}"]
            link = [sys.executable, "-m", "airpath", "link", *options, *arguments]
            report.seek(0)
            report.truncate()
            done = subprocess.run(link, check=False, preexec_fn=_ending_with_parent(), pass_fds=[report.fileno()])
            failed = failed or done.returncode
            if done.returncode in _NOT_RUN:
                break
            report.seek(0)
            # Nothing if it was killed.
            end = json.loads(report.read() or "null")
            if end is not None:
                ends += end["ends_s"]
            if out is not None and replaces and end is not None:
                clear_result_folder(out)
                note(f"the earlier result in {out} was replaced")
                replaces = False
            if done.returncode:
                failures[number] = done.returncode
            elif end is not None and end["complete"]:
                times.append(end["command_s"])
            if done.returncode < 0 or is_interrupted():
                break
    # Also with --quiet: they are the result.
    if times:
        write_message(times_text(times, repeat))
    if failures:
        write_message(failures_text(failures, repeat))
    return failed if failed >= 0 else 128 - failed, ends


def _ending_with_parent() -> Callable[[], None]:
    """Return what a new process calls so that the kernel kills it when this process ends.

    The signal is SIGKILL: a command may ignore SIGTERM, which a link passes on.
    """
    import ctypes

    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(ExitCode.LINK_FAILED)

    return prepare


def _check_earlier(out: Path | None, repeat: int, first: "NewResult") -> bool:
    """Return whether a folder has the result of a single earlier run, which the first one replaces.

    Each repetition replaces its own earlier result.

    Raises:
        Problem: The folder has another result, or more repetitions.
    """
    from airpath.result import is_result
    from airpath.result_folder import check_result_folder, refusal

    if out is None or not out.is_dir():
        return False
    numbers = [int(each.name) for each in out.iterdir() if each.name.isdecimal() and is_result(each)]
    fault = None
    if is_result(out) and numbers:
        fault = "a result and those of repetitions"
    elif max(numbers, default=0) >= repeat:
        fault = f"{len(numbers)} repetitions, and this run has {repeat}"
    if fault is not None:
        raise problem_of(refusal(out, fault))
    if not is_result(out):
        return False
    with explained():
        check_result_folder(out, first)
    return True


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Leave Ctrl-C to the command; yield whether it came."""
    came: list[int] = []
    earlier = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGINT, earlier)


def times_text(times: list[float], repeat: int) -> str:
    """Return median, mean and interval of the command's time."""
    of = f"{len(times)} of {repeat}" if len(times) < repeat else str(repeat)
    if len(times) == 1:
        return f"time of the command: {seconds(times[0])} in {of} runs"
    interval = mean_interval(times)
    low, high = seconds(max(0.0, interval.low)), seconds(interval.high)
    return (
        f"time of the command in {of} runs: median {seconds(median(times))}, from {seconds(min(times))} to "
        f"{seconds(max(times))}; mean {seconds(interval.mean)}, 95 % interval {low} to {high}"
    )


def failures_text(failures: Mapping[int, int], repeat: int) -> str:
    """Return which repetitions of the command failed, and how.

    Args:
        failures: The exit code of the command by repetition; negative is a signal.
        repeat: The number of repetitions.
    """
    runs = ", ".join(
        f"{number} ({f'signal {-code}' if code < 0 else f'exit code {code}'})"
        for number, code in list(failures.items())[:_MOST_NAMED]
    )
    more = f" and {len(failures) - _MOST_NAMED} more" if len(failures) > _MOST_NAMED else ""
    return f"the command failed in {len(failures)} of {repeat} runs, whose times do not count: repetition {runs}{more}"


def command_line(context: typer.Context) -> list[str]:
    """Return the arguments of `airpath link` that all repetitions have, as parsed."""
    options: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in _OF_A_REPETITION or not parameter.opts[0].startswith("-") or not is_given(context, name):
            continue
        option, value = max(parameter.opts, key=len), context.params[name]
        if isinstance(value, bool):
            options.append(option if value else parameter.secondary_opts[0])
        else:
            options += [f"{option}={each}" for each in (value if isinstance(value, list | tuple) else [value])]
    return [*options, context.params["scenario"], "--", *context.params["command"]]


_OF_A_REPETITION = ("repeat", "seed", "out", "record")


def report_end(descriptor: int, summary: Mapping[str, Any]) -> None:
    """Write how a repetition ended to the descriptor that `repeat_link` reads."""
    ends = [row["simulated_s"] for row in summary["repetitions"]]
    end = {"complete": summary["complete"], "command_s": summary["emulation"]["command_s"], "ends_s": ends}
    os.write(descriptor, json.dumps(end).encode())
