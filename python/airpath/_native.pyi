"""The Rust core, as Python sees it. No logic lives there: it parses, simulates, writes.

Every text that goes in or comes out is TOML or JSON; the classes and frames of `airpath` are made from it in Python.
"""

from collections.abc import Callable

__version__: str
"""The version of the Cargo workspace, which is the version of the package."""

class ScenarioError(Exception):
    """A scenario, preset or override that cannot be used. `str()` says what is wrong, where, and what to do next."""

    message: str
    """What is wrong, without the place."""
    help: str | None
    """What to do next, where that is known."""
    file: str | None
    """The name that was given for the text, or a preset; `None` for an override."""
    line: int | None
    """The line in `file`, counted from 1; `None` where no single line is at fault."""
    field: str | None
    """The dotted path of the field, as in `fixed.rate`."""

class ResultError(OSError):
    """A result that could not be written: the disk is full, the folder not writable. The message says what was kept."""

def run(
    text: str,
    name: str,
    sets: list[tuple[str, str]],
    seed: int | None,
    repeat: int,
    out: str | None,
    capture: bool,
    log: bool,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> str:
    """Run a scenario and return the text of its `summary.json`.

    Args:
        text: The scenario, as TOML.
        name: Its file name, for messages; relative paths in the scenario are relative to its folder.
        sets: Overrides, each a dotted path and a value, applied in order.
        seed: The seed, in place of the scenario's.
        repeat: How many repetitions to run; repetition `i` draws from streams of its own.
        out: The result folder, or `None` to write nothing.
        capture: Whether to write pcapng captures of both ends.
        log: Whether to write the event tables that the scenario asks for.
        threads: How many repetitions run at once; `None` for as many as there are cores.
        progress: Called with the repetitions done and the repetitions in all.

    Raises:
        ScenarioError: The scenario cannot be used; nothing was written.
        ResultError: The result could not be written in full; what was written is kept and says that it is partial.

    Ctrl-C ends the run early: the summary then has `complete: false` and `stopped: "interrupted"`.
    """

def resolve(text: str, name: str, sets: list[tuple[str, str]]) -> str:
    """Return the scenario as TOML with the overrides applied and the presets filled in.

    Raises:
        ScenarioError: The scenario cannot be used.
    """

def presets() -> str:
    """Return the presets as a JSON list.

    Each has `name`, `title`, `kind`, `text` and `parameters`; of these each has `key`, `value` (as TOML) and `source`.
    """

def preset(name: str) -> str:
    """Return one preset, by name or by the path of a file, as JSON in the form of `presets`.

    Raises:
        ScenarioError: There is no such preset, or its file cannot be used.
    """
