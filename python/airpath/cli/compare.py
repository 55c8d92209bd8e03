"""`airpath compare`: compares results, and fails on a change for the worse."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from airpath.cli.messages import ExitCode, Problem, check_outputs, explained, note, problem_of, writing


def compare(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="BASE NEW...", help="Result folders, sweeps or captures; the others against the first."),
    ],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Fail on a change, as in 'duration_s p95 > 5 %'; may be given many times."),
    ] = None,
    rules: Annotated[Path | None, typer.Option(metavar="FILE", help="A TOML file with the list `fail-if`.")] = None,
    fail_undecided: Annotated[
        bool, typer.Option("--fail-undecided", help="Fail also if there are too few repetitions.")
    ] = False,
    fail_unmatched: Annotated[
        bool, typer.Option("--fail-unmatched", help="Fail also if only one side has a flow, page or repetition.")
    ] = False,
    flow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|N",
            help="Compare this flow, or flows of this group or mobile; of captures as in `airpath trace`; repeatable.",
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Compare this column; may be given many times."),
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the rules as JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown.")] = None,
    format: Annotated[
        Literal["text", "json", "markdown"], typer.Option(help="On standard output: tables, JSON or Markdown.")
    ] = "text",
) -> None:
    """Compare results with a base: differences with intervals, and rules for a CI.

    \b
    Examples:
      airpath compare runs/before runs/after
      airpath compare runs/before runs/after --fail-if 'duration_s p95 > 5 %'
      airpath compare runs/before runs/after --flow download --flow ping
      airpath compare base.pcap new.pcap --figure duration_s
      airpath compare sweeps/main sweeps/branch --rules limits.toml --junit compare.xml

    \b
    Exit codes:
      0    no rule failed
      1    a rule failed, or with --fail-unmatched the sides have different flows or repetitions
      2    bad usage, a result that cannot be read, or results without a flow in common
      3    an output could not be written
    """
    from airpath.cli.output import console
    from airpath.compare import Comparison, compare, output, read_rules
    from airpath.files import write_text

    _check_results(results, rules)
    if fail_undecided and not (fail_if or rules):
        raise Problem("--fail-undecided needs a rule", next_step="add --fail-if RULE or --rules FILE, or remove it")
    check_outputs(junit, markdown)
    with explained(), _explained_here():
        wanted = [*(read_rules(rules) if rules else []), *(fail_if or [])]
        comparison: Comparison = compare(results[0], *results[1:], flows=flow, figures=figure, fail_if=wanted)
        outcomes = comparison.outcomes
    for path, text in ((junit, output.to_junit), (markdown, output.to_markdown)):
        if path is not None:
            with writing(path):
                write_text(path, text(comparison))
    match format:
        case "json":
            typer.echo(output.to_json(comparison))
        case "markdown":
            typer.echo(output.to_markdown(comparison), nl=False)
        case _:
            output.print_text(comparison, console())
    is_failed = any(each.state == "failed" or (fail_undecided and each.state == "undecided") for each in outcomes)
    if comparison.unmatched:
        first, *others = comparison.unmatched
        more = f", and {len(others)} more" if others else ""
        is_failed |= fail_unmatched
        note(f"not compared: {first}{more}" + ("" if fail_unmatched else "; --fail-unmatched makes this an error"))
    raise typer.Exit(ExitCode.FAILED if is_failed else ExitCode.OK)


def _check_results(results: list[Path], rules: Path | None) -> None:
    """Refuse a comparison without a base, and a file of rules in place of a result.

    Raises:
        Problem: The command line is one of these.
    """
    from airpath.compare import RuleError, read_rules

    for each in results:
        if each.suffix == ".toml" and each.is_file():
            try:
                read_rules(each)
            except RuleError:
                continue  # reading it as a result reports what it is
            raise Problem(f"{each} is a file of rules, not a result", next_step=f"name it as --rules {each}")
    if len(results) < 2:
        limits = "; a rule without % is for NEW alone, and needs a base all the same" if rules else ""
        raise Problem(
            f"a comparison needs at least two results, and {results[0]} is the only one",
            next_step=f"name the base before it, as in `airpath compare BASE {results[0]}`{limits}",
        )


@contextmanager
def _explained_here() -> Iterator[None]:
    from airpath.compare import IncomparableError, RuleError
    from airpath.sweep import SweepFolderError

    try:
        yield
    except (IncomparableError, RuleError, SweepFolderError) as error:
        raise problem_of(error) from None
