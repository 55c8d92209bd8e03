"""The result of a study's run.

As data, as text, as the Markdown of the study's `agreement.md`, as a report.
"""

import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.study.definition import Study
from airpath.study.rows import Row
from airpath.study.tolerance import Property, Range, Spread, middle_of, yes_or_no
from airpath.terminal_table import print_table
from airpath.theme import ALERT, GOOD

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Finding:
    """A conclusion of the study, and whether our rows confirm it."""

    id: str
    text: str
    holds: bool


@dataclass(frozen=True, slots=True, repr=False)
class StudyResult:
    """The rows and findings of a run."""

    study: Study
    seed: int
    rows: list[Row]
    findings: list[Finding]
    complete: bool = True
    """Whether all experiments were run; false after Ctrl-C."""
    options: tuple[str, ...] = ()
    """`--only` and `--repeat` of `airpath study run`, if they were given."""

    def __repr__(self) -> str:
        state = "complete" if self.complete else "partial"
        return f"<airpath.study.StudyResult {self.study.id} seed {self.seed}, {len(self.rows)} rows, {state}>"

    @property
    def exit_code(self) -> int:
        """0 if every finding holds, else 1."""
        return 0 if all(finding.holds for finding in self.findings) else 1

    @property
    def is_emulated(self) -> bool:
        """Whether the cases were run under the real clock as well."""
        return any(row.emulated is not None for row in self.rows)

    @property
    def command(self) -> list[str]:
        """The words of the command that runs it again."""
        clock = ["--clock", "real"] if self.is_emulated else []
        return ["airpath", "study", "run", self.study.id, "--seed", str(self.seed), *self.options, *clock]

    @property
    def invalid(self) -> str:
        """A sentence about rows whose emulated link was late or overrun.

        Empty if there are none.
        """
        runs = [row.emulated for row in self.rows if row.emulated is not None and not row.emulated.valid]
        if not runs:
            return ""
        late_ms, overruns = 1e3 * max(run.late_s for run in runs), max(run.overruns for run in runs)
        return (
            f"Invalid: in {len(runs)} rows the host was too busy for the link: 1 % of the packets left up to "
            f"{late_ms:.1f} ms late, and the kernel dropped up to {overruns} packets before the link. Repeat it with "
            "fewer --links, or on an idle host."
        )

    @property
    def _heads(self) -> tuple[str, ...]:
        if self.is_emulated:
            # A study without a profile in `[emulation] set` overrides only options of TCP.
            profile = self.study.emulation.control_overrides.get("tcp.profile")
            control, compared = ("control", "control") if profile is None else (f"with {profile}", profile)
            return ("published", "simulated", control, "real", "95 % interval", "n", f"{compared} to real")
        return ("published", "ours", "95 % interval", "n")

    @property
    def agreement(self) -> tuple[int, int]:
        """The number of rows that agree with their published figure, and of rows that have one."""
        published = [row for row in self.rows if row.agrees is not None]
        return sum(row.agrees is True for row in published), len(published)

    @property
    def summary(self) -> str:
        """A sentence with the number of rows that agree.

        Empty if the study published none of them.
        """
        agree, published = self.agreement
        if not published:
            return ""
        uniformly = sum(row.agrees_uniformly is True for row in self.rows)
        return (
            f"{agree} of {published} published figures agree within the study's tolerances; {uniformly} do by the "
            "measure that all studies share: within 15 %, or in the range or spread that was printed."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, the same every time for the same seed and version."""
        from airpath._native import __version__

        findings = [{"id": each.id, "text": each.text, "holds": each.holds} for each in self.findings]
        return {
            "study": self.study.id,
            "seed": self.seed,
            "version": __version__,
            "complete": self.complete,
            "rows": [record_of(row) for row in self.rows],
            "findings": findings,
        }

    def render_text(self, console: "Console") -> None:
        """Print one table per experiment, then the findings."""
        from rich.text import Text

        good, bad = GOOD.terminal, ALERT.terminal
        console.print(f"{self.study.title} ({self.study.id}, seed {self.seed})")
        for experiment in self.study.experiments:
            rows = self._rows_of(experiment.name)
            if not rows:
                continue
            console.print(f"\n{experiment.name}: {experiment.text}")
            titles, cells = [*rows[0].case, "figure"], []
            for row in rows:
                mark = {None: Text(""), True: Text("✓ agrees", good), False: Text("✗ differs", bad)}[row.agrees]
                cells.append([*row.case.values(), f"{row.metric} ({row.definition.unit})", *_figures(row), mark])
            print_table(console, [*titles, *self._heads, ""], cells, titles=titles, right=self._heads)
        if self.invalid:
            console.print(f"\n{self.invalid}")
        if self.summary:
            console.print(f"\n{self.summary}")
        for finding in self.findings:
            mark = Text("✓ holds", good) if finding.holds else Text("✗ does not hold", bad)
            console.print(Text.assemble(mark, f"  {finding.text}"))

    def render_markdown(self) -> str:
        """Return the tables and findings as Markdown: the text of the study's `agreement.md`."""
        lines = [
            f"# {self.study.id}: published beside ours",
            "",
            f"Made by `{shlex.join(self.command)} --format markdown`; intervals are the 95 % interval of the mean.",
            "",
            *([self.invalid, ""] if self.invalid else []),
        ]
        for experiment in self.study.experiments:
            rows = self._rows_of(experiment.name)
            if not rows:
                continue
            lines += [f"## {experiment.name}", "", *_wrapped(experiment.text), ""]
            lines += [*self.markdown_table(experiment.name), ""]
        lines += ["## In all", "", *_wrapped(self.summary or "The study printed none of these figures.")]
        lines += ["", "## Findings", ""]
        lines += [_line(["finding", "holds"]), _line(["---"] * 2)]
        lines += [_line([each.text, "yes" if each.holds else "**no**"]) for each in self.findings]
        return "\n".join(lines) + "\n"

    def markdown_table(self, experiment: str) -> list[str]:
        """Return the lines of the Markdown table of an experiment that was run."""
        rows = self._rows_of(experiment)
        head = [*rows[0].case, "figure", *self._heads, "simulated to published" if self.is_emulated else ""]
        lines = [_line(head), _line(["---"] * len(head))]
        for row in rows:
            mark = {None: "", True: "agrees", False: "**differs**"}[row.agrees]
            lines.append(_line([*row.case.values(), f"{row.metric} ({row.definition.unit})", *_figures(row), mark]))
        return lines

    def report(self, path: Path) -> None:
        """Write the report: one HTML file with the rows and findings.

        Raises:
            OSError: The file cannot be written.
        """
        from airpath.study.report import Details, write

        texts = {experiment.name: experiment.text for experiment in self.study.experiments}
        agrees = [row.agrees for row in self.rows]
        details = Details(self.study.title, texts, agrees, self.study.figures, self.study.run_figures)
        write(self.to_dict(), path, details=details, command=shlex.join([*self.command, "--report", str(path)]))

    def _rows_of(self, experiment: str) -> list[Row]:
        return [row for row in self.rows if row.experiment == experiment]


def record_of(row: Row) -> dict[str, Any]:
    """Return a row as plain data."""
    return {
        "experiment": row.experiment,
        "case": dict(row.case),
        "metric": row.metric,
        "unit": row.definition.unit,
        **_published(row),
        "ours": row.interval.mean,
        "low": row.interval.low,
        "high": row.interval.high,
        "n": row.interval.n,
        **_emulated(row),
    }


def _figures(row: Row) -> list[str]:
    """Return the cells of the figures' columns."""

    def number(value: float) -> str:
        return f"{value:.{row.definition.decimals}f}"

    match row.published:
        case None:
            published = "predict"
        case Range() | Spread() | Property():
            published = str(row.published)
        case _:
            published = f"{row.published:g}"
    shown = row.interval if row.emulated is None else row.emulated.interval
    interval = f"{number(shown.low)} to {number(shown.high)}"
    if row.difference is None:
        ours = number(shown.mean)
        if isinstance(row.published, Property):
            ours = f"{yes_or_no(row.published.holds(shown.mean))}, {ours}"
        return [published, ours, interval, str(shown.n)]
    simulated = [number(row.interval.mean), number(row.control_interval.mean)]
    difference = f"{100 * row.difference:+.1f} %".replace("-", "−")
    return [published, *simulated, number(shown.mean), interval, str(shown.n), difference]


def _published(row: Row) -> dict[str, Any]:
    """Return the published figure as data.

    Of a range also its bounds, of a mean with a spread also its deviation. Of a property it has the
    published answer, ours and the threshold.
    """
    match row.published:
        case None:
            return {"published": None}
        case Range(low=low, high=high):
            return {"published": middle_of(row.published), "published_range": [low, high]}
        case Spread(mean=mean, deviation=deviation):
            return {"published": mean, "published_deviation": deviation}
        case Property(published=published, threshold=threshold):
            answers = {"published_property": published, "property": row.published.holds(row.interval.mean)}
            return {"published": None, **answers, "threshold": threshold}
        case number:
            return {"published": number}


def _emulated(row: Row) -> dict[str, Any]:
    """Return what the real clock adds to a row's data."""
    if row.emulated is None:
        return {}
    run, interval = row.emulated, row.emulated.interval
    figures = {"ours": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}
    figures["control"] = row.control_interval.mean
    return {"emulated": figures | {"late_s": run.late_s, "overruns": run.overruns, "valid": run.valid}}


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
