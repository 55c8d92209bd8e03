"""What a study's run gave: as data, as a table for people, as the table of its README, as a report."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.study.definition import Study
from airpath.study.interval import mean_interval
from airpath.study.rows import Row
from airpath.study.tolerance import Range, Spread, middle_of
from airpath.theme import ALERT, GOOD

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of the study, and whether our rows bear it out."""

    id: str
    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class StudyResult:
    """The rows and findings of a run."""

    study: Study
    seed: int
    rows: list[Row]
    findings: list[Finding]

    @property
    def exit_code(self) -> int:
        """0 if every finding holds, else 1."""
        return 0 if all(finding.holds for finding in self.findings) else 1

    @property
    def is_real(self) -> bool:
        """Whether it was run under the real clock as well."""
        return any(row.real is not None for row in self.rows)

    @property
    def late(self) -> str:
        """What is to be said of links that were too late, if any was."""
        late = [row.real.late_s for row in self.rows if row.real is not None and not row.real.valid]
        if not late:
            return ""
        return (
            f"Invalid: in {len(late)} rows 1 % of the packets left the link up to {1e3 * max(late):.1f} ms late; "
            "the host was too busy."
        )

    @property
    def _heads(self) -> tuple[str, ...]:
        if self.is_real:
            return ("published", "simulated", "with linux-6", "real", "95 % interval", "n", "linux-6 to real")
        return ("published", "ours", "95 % interval", "n")

    @property
    def agreement(self) -> tuple[int, int]:
        """How many rows agree with print, and how many were printed."""
        published = [row for row in self.rows if row.agrees is not None]
        return sum(row.agrees is True for row in published), len(published)

    @property
    def summary(self) -> str:
        """The sentence that says how many rows agree with print; empty if none was printed."""
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
        from airpath import __version__

        rows = [
            {
                "experiment": row.experiment,
                "case": dict(row.case),
                "metric": row.metric,
                "unit": row.kind.unit,
                **_published(row),
                "ours": row.interval.mean,
                "low": row.interval.low,
                "high": row.interval.high,
                "n": row.interval.n,
                **_real(row),
            }
            for row in self.rows
        ]
        findings = [{"id": each.id, "text": each.text, "holds": each.holds} for each in self.findings]
        return {"study": self.study.id, "seed": self.seed, "version": __version__, "rows": rows, "findings": findings}

    def render_text(self, console: "Console") -> None:
        """Print a table an experiment, then the findings."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        good, bad = GOOD.terminal, ALERT.terminal
        console.print(f"{self.study.title} ({self.study.id}, seed {self.seed})")
        for experiment in self.study.tables:
            rows = self._rows_of(experiment.name)
            if not rows:
                continue
            console.print(f"\n{experiment.name}: {experiment.text}")
            table = Table(*rows[0].case, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
            table.add_column("figure")
            for head in self._heads:
                table.add_column(head, justify="right")
            table.add_column("")
            for row in rows:
                mark = {None: Text(""), True: Text("✓ agrees", good), False: Text("✗ differs", bad)}[row.agrees]
                table.add_row(*row.case.values(), f"{row.metric} ({row.kind.unit})", *_figures(row), mark)
            console.print(table)
        if self.late:
            console.print(f"\n{self.late}")
        if self.summary:
            console.print(f"\n{self.summary}")
        for finding in self.findings:
            mark = Text("✓ holds", good) if finding.holds else Text("✗ does not hold", bad)
            console.print(Text.assemble(mark, f"  {finding.text}"))

    def render_markdown(self) -> str:
        """Return the tables and findings as Markdown, for the study's README."""
        real = " --clock real" if self.is_real else ""
        lines = [
            f"# {self.study.id}: published beside ours",
            "",
            f"Made by `airpath study run {self.study.id} --seed {self.seed}{real} --format markdown`; "
            "intervals are the 95 % interval of the mean.",
            "",
            *([self.late, ""] if self.late else []),
        ]
        for experiment in self.study.tables:
            rows = self._rows_of(experiment.name)
            if not rows:
                continue
            lines += [f"## {experiment.name}", "", experiment.text, ""]
            lines += [*self.markdown_table(experiment.name), ""]
        lines += ["## In all", "", self.summary or "The study printed none of these figures.", "", "## Findings", ""]
        lines += [_line(["finding", "holds"]), _line(["---"] * 2)]
        lines += [_line([each.text, "yes" if each.holds else "**no**"]) for each in self.findings]
        return "\n".join(lines) + "\n"

    def markdown_table(self, experiment: str) -> list[str]:
        """Return the lines of the table of an experiment that was run, in Markdown."""
        rows = self._rows_of(experiment)
        head = [*rows[0].case, "figure", *self._heads, "simulated to print" if self.is_real else ""]
        lines = [_line(head), _line(["---"] * len(head))]
        for row in rows:
            mark = {None: "", True: "agrees", False: "**differs**"}[row.agrees]
            lines.append(_line([*row.case.values(), f"{row.metric} ({row.kind.unit})", *_figures(row), mark]))
        return lines

    def report(self, path: Path) -> None:
        """Draw the rows and findings as one HTML file.

        Raises:
            OSError: The file cannot be written.
        """
        from airpath.report import write_study

        write_study(self, path)

    def _rows_of(self, experiment: str) -> list[Row]:
        return [row for row in self.rows if row.experiment == experiment]


def _figures(row: Row) -> list[str]:
    """Return what stands in the columns of figures."""

    def number(value: float) -> str:
        return f"{value:.{row.kind.decimals}f}"

    match row.published:
        case None:
            published = "predict"
        case Range() | Spread():
            published = str(row.published)
        case _:
            published = f"{row.published:g}"
    shown = row.interval if row.real is None else row.real.interval
    interval = f"{number(shown.low)} to {number(shown.high)}"
    if row.difference is None:
        return [published, number(shown.mean), interval, str(shown.n)]
    simulated = [number(row.interval.mean), number(mean_interval(row.alike).mean)]
    difference = f"{100 * row.difference:+.1f} %".replace("-", "−")
    return [published, *simulated, number(shown.mean), interval, str(shown.n), difference]


def _published(row: Row) -> dict[str, Any]:
    """Return what was printed; of a range its middle, and the range beside it; of a mean with its spread both."""
    match row.published:
        case None:
            return {"published": None}
        case Range(low=low, high=high):
            return {"published": middle_of(row.published), "published_range": [low, high]}
        case Spread(mean=mean, deviation=deviation):
            return {"published": mean, "published_deviation": deviation}
        case number:
            return {"published": number}


def _real(row: Row) -> dict[str, Any]:
    """Return what is added to a row's data under the real clock."""
    if row.real is None:
        return {}
    interval = row.real.interval
    figures = {"ours": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}
    figures["simulated_alike"] = mean_interval(row.alike).mean
    return {"real": figures | {"late_s": row.real.late_s, "valid": row.real.valid}}


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
