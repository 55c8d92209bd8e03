"""What a study's run gave: as data, as a table for people, as the table of its README, as a report."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.study.definition import Study
from airpath.study.rows import Row
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
    def agreement(self) -> tuple[int, int]:
        """How many rows agree with print, and how many were printed."""
        published = [row for row in self.rows if row.agrees is not None]
        return sum(row.agrees is True for row in published), len(published)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, the same every time for the same seed and version."""
        from airpath import __version__

        rows = [
            {
                "experiment": row.experiment,
                "case": dict(row.case),
                "metric": row.metric,
                "unit": row.kind.unit,
                "published": row.published,
                "ours": row.interval.mean,
                "low": row.interval.low,
                "high": row.interval.high,
                "n": row.interval.n,
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
            for head in ("published", "ours", "95 % interval", "n"):
                table.add_column(head, justify="right")
            table.add_column("")
            for row in rows:
                mark = {None: Text(""), True: Text("✓ agrees", good), False: Text("✗ differs", bad)}[row.agrees]
                table.add_row(*row.case.values(), f"{row.metric} ({row.kind.unit})", *_figures(row), mark)
            console.print(table)
        agree, published = self.agreement
        if published:
            console.print(f"\n{agree} of {published} published figures agree within tolerance.")
        for finding in self.findings:
            mark = Text("✓ holds", good) if finding.holds else Text("✗ does not hold", bad)
            console.print(Text.assemble(mark, f"  {finding.text}"))

    def render_markdown(self) -> str:
        """Return the tables and findings as Markdown, for the study's README."""
        lines = [
            f"# {self.study.id}: published beside ours",
            "",
            f"Made by `airpath study run {self.study.id} --seed {self.seed} --format markdown`; "
            "intervals are the 95 % interval of the mean.",
            "",
        ]
        for experiment in self.study.tables:
            rows = self._rows_of(experiment.name)
            if not rows:
                continue
            lines += [f"## {experiment.name}", "", experiment.text, ""]
            head = [*rows[0].case, "figure", "published", "ours", "95 % interval", "n", ""]
            lines += [_line(head), _line(["---"] * len(head))]
            for row in rows:
                mark = {None: "", True: "agrees", False: "**differs**"}[row.agrees]
                lines.append(_line([*row.case.values(), f"{row.metric} ({row.kind.unit})", *_figures(row), mark]))
            lines.append("")
        agree, published = self.agreement
        lines += [
            "## In all",
            "",
            f"{agree} of {published} published figures agree within tolerance.",
            "",
            "## Findings",
            "",
        ]
        lines += [_line(["finding", "holds"]), _line(["---"] * 2)]
        lines += [_line([each.text, "yes" if each.holds else "**no**"]) for each in self.findings]
        return "\n".join(lines) + "\n"

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
    """Return what stands in the columns published, ours, interval and n."""

    def number(value: float) -> str:
        return f"{value:.{row.kind.decimals}f}"

    published = "predict" if row.published is None else f"{row.published:g}"
    interval = f"{number(row.interval.low)} to {number(row.interval.high)}"
    return [published, number(row.interval.mean), interval, str(row.interval.n)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
