"""Rules: which change is a failure, such as `duration_s p95 > 5 %`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airpath.compare.statistics import STATISTICS
from airpath.suggest import suggestion
from airpath.tables import FIGURES, MAIN_PAGE_FIGURES, SUMMARY_TABLES
from airpath.toml_table import Table, TableError

FORMAT = 1
"""Version of the format of a file of rules."""

_FIGURES = {*FIGURES, *SUMMARY_TABLES["pages"], *MAIN_PAGE_FIGURES}
_RULE = re.compile(
    r"(?:(?P<group>.+):\s+)?(?P<figure>\w[\w-]*)(?:\s+(?P<statistic>[a-z]\w*))?\s*(?P<sign>[<>])\s*"
    r"(?P<limit>[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(?P<percent>%)?"
)


class RuleError(TableError):
    """A rule is invalid. The message has the rule, the fault and the next step."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A comparison fails if a statistic of a figure is beyond a limit, beyond chance."""

    text: str
    figure: str
    statistic: str
    is_above: bool
    """Whether it fails above the limit."""
    limit: float
    is_relative: bool
    """Whether the limit is a share of the base's value."""
    group: str | None
    """The flow; `None` for all."""

    def is_beyond(self, value: float) -> bool:
        """Whether a change, or a value, is beyond the limit."""
        return value > self.limit if self.is_above else value < self.limit


def parse_rule(text: str) -> Rule:
    """Parse `[FLOW: ]FIGURE [STATISTIC] > LIMIT[ %]`, or with `<`.

    With `%` the limit is a change against the base, otherwise a value of the new result. The
    statistic is the mean unless it is named.

    Raises:
        RuleError: The text is no rule.
    """
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise _fault(text)
    figure, statistic = match["figure"], match["statistic"] or "mean"
    # Other results have other figures; the comparison reports those that the base does not have.
    if figure not in _FIGURES and (near := suggestion(figure, _FIGURES)):
        raise RuleError(f"'{text}': no figure '{figure}'", next_step=near)
    if statistic not in STATISTICS:
        raise RuleError(f"'{text}': no statistic '{statistic}'", next_step=f"there are {', '.join(STATISTICS)}")
    limit = float(match["limit"]) / (100 if match["percent"] else 1)
    return Rule(text.strip(), figure, statistic, match["sign"] == ">", limit, bool(match["percent"]), match["group"])


_GROUP = re.compile(r"\s*(?:.+:\s+)?")
_PARTS = (
    (re.compile(r"(?P<figure>\w[\w-]*)(?:\s+[a-z]\w*)?\s*"), "the name of a figure"),
    (re.compile(r"[<>]\s*"), "`>` or `<`"),
    (re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?\s*"), "a number"),
    (re.compile(r"%?\s*$"), "`%`, or nothing more,"),
)
"""The parts of a rule in their order, each with what a message expects there."""
_USUAL = ("duration_s", "throughput_bps", "delay_p95_s", "retransmitted_packets", "page_time_s")
"""Figures that a message names."""


def _fault(text: str) -> RuleError:
    """Return the error of a text that is no rule: where the first fault is, and an example."""
    group = _GROUP.match(text)
    position = group.end() if group else 0
    hint = f"figures are {', '.join(each for each in _USUAL if each in _FIGURES)}"
    expected = ""
    for pattern, expected in _PARTS:  # noqa: B007 - the last one is where the text stops to be a rule
        match = pattern.match(text, position)
        if match is None:
            break
        position = match.end()
        name = match.groupdict().get("figure")
        if name is not None:
            hint = "" if name in _FIGURES else suggestion(name, _FIGURES) or hint
    rest = text[position:].strip()
    place = f"at character {position + 1}, '{rest}'" if rest else "at its end"
    example = "write it as in 'duration_s p95 > 5 %' or 'download: duration_s > 8'"
    statistics = f"the statistics are {', '.join(STATISTICS)}" if "`>`" in expected else ""
    next_step = "; ".join(part for part in (hint, example, statistics) if part)
    return RuleError(f"'{text}' is no rule: {expected} is expected {place}", next_step=next_step)


def read_rules(path: str | Path) -> list[Rule]:
    """Read a file of rules: `format = 1` and the list `fail-if`.

    Raises:
        RuleError: It cannot be read, or a rule is invalid. The message has file and line.
    """
    table = Table.read(Path(path), error=RuleError)
    version = table.take("format", int)
    if version != FORMAT:
        raise table.error(f"format is {version}", "format", next_step=f"this version reads {FORMAT}")
    texts: Sequence[object] = table.take("fail-if", list)
    table.finish()
    rules = []
    for text in texts:
        if not isinstance(text, str):
            raise table.error(f"{text!r} is no rule", "fail-if", next_step="write texts such as 'duration_s p95 > 5 %'")
        try:
            rules.append(parse_rule(text))
        except RuleError as error:
            raise table.error(str(error), "fail-if") from None
    return rules
