"""A comparison as text, JSON, Markdown and JUnit XML."""

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from airpath.compare.comparison import HEAD, Comparison, cells
from airpath.terminal_table import print_table

if TYPE_CHECKING:
    from rich.console import Console


def print_text(comparison: Comparison, console: "Console") -> None:
    """Print the rows as a table, and the rules below it."""
    for new in comparison.others:
        console.print(f"{new.name} against {comparison.base.name}")
        print_table(console, HEAD, [cells(row) for row in comparison.rows if row.new == new.name], titles=HEAD[:2])
    for line in [*notes(comparison), *comparison.unmatched]:
        console.print(line)
    for each in comparison.outcomes:
        console.print(f"{each.state}: {each.rule.text}: {each.group}: {each.message}")


def notes(comparison: Comparison) -> list[str]:
    """Return how the rows were computed, and which results are not complete."""
    if not comparison.rows:
        return ["no figure is on both sides", *comparison.incomplete]
    pairs = [row.pair for row in comparison.rows]
    sizes = sorted({len(pair.base) for pair in pairs} | {len(pair.new) for pair in pairs})
    count = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    paired, unpaired = "Wilcoxon's test of pairs with the same seed", "Mann–Whitney's test"
    method = " or ".join(dict.fromkeys(paired if pair.is_paired else unpaired for pair in pairs))
    text = f"Means of {count} repetitions; {method}; interval of the change by bootstrap."
    if len(pairs) > 1:
        text += (
            f" p has Holm's correction for {len(pairs)} rows, the intervals have none: one may be without zero where "
            "no difference is found."
        )
    return [text, *(f"{each}." for each in (*comparison.partial, *comparison.incomplete))]


def to_json(comparison: Comparison) -> str:
    """Return rows and rules as JSON."""
    outcomes = [
        {
            "rule": each.rule.text,
            "new": each.new,
            "flow": each.group,
            "state": each.state,
            "value": each.value,
            "p": each.p,
            "message": each.message,
        }
        for each in comparison.outcomes
    ]
    rows = comparison.frame.to_dicts()
    made = {"base": comparison.base.name, "rows": rows, "rules": outcomes, "unmatched": comparison.unmatched}
    made |= {"partial": comparison.partial, "incomplete": comparison.incomplete}
    return json.dumps(made, indent=2, ensure_ascii=False)


def to_markdown(comparison: Comparison) -> str:
    """Return the comparison as Markdown, for the comment of a pull request."""
    lines = []
    for new in comparison.others:
        lines += [f"### {new.name} against {comparison.base.name}", "", _line(HEAD), _line(["---"] * len(HEAD))]
        lines += [_line(cells(row)) for row in comparison.rows if row.new == new.name]
        lines.append("")
    lines += [*notes(comparison), "", *(f"- {each}" for each in comparison.unmatched)]
    lines += [f"- **{each.state}** `{each.rule.text}`: {each.group}: {each.message}" for each in comparison.outcomes]
    return "\n".join(lines).rstrip() + "\n"


def _line(texts: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def to_junit(comparison: Comparison) -> str:
    """Return the rules as JUnit XML: a test case for each flow and rule."""
    outcomes = comparison.outcomes
    suite = ElementTree.Element(
        "testsuite",
        name="airpath compare",
        tests=str(len(outcomes)),
        failures=str(len(comparison.failed)),
        skipped=str(len(comparison.undecided)),
    )
    for each in outcomes:
        case = ElementTree.SubElement(suite, "testcase", classname=each.group, name=f"{each.rule.text} ({each.new})")
        if each.state == "failed":
            ElementTree.SubElement(case, "failure", message=each.message)
        elif each.state == "undecided":
            ElementTree.SubElement(case, "skipped", message=each.message)
        else:
            ElementTree.SubElement(case, "system-out").text = each.message
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
