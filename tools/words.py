#!/usr/bin/env python3
"""Check the words and line lengths of code comments, messages, names and Markdown.

    tools/words.py [PATH…]            findings in all tracked files, or in those below these paths
    tools/words.py --count [PATH…]    number of findings of each file, then by word

The exit status is 1 with any finding. A finding is allowed by a marker with a reason, in a
comment on the same line or the line before: `words: allow said (quotation of the study)`; the word is
`long` for a line that is too long.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

WORDS = {
    # Verbs of speech and of persons.
    "told|tell|tells|telling": "report, emit, return, notify",
    "say|says|said|saying": "state, specify, report; application data",
    "ask|asks|asked|asking": "request, query, poll",
    "know|knows|knew": "has, holds, is given, detects",
    "wish|wishes|wished": "request",
    "news": "event, new data, an acknowledgement of new data",
    "whoever": "the caller, the reader, any process that",
    "those who|one who|anybody|somebody|everybody|nobody": "name the party: the caller, no receiver",
    "look after|looks after|looked after": "process, own, maintain",
    "see to|sees to": "ensure, handle",
    "put down to|puts down to": "attribute to",
    "hold against|holds against|held against": "compare with, validate against",
    "pass over|passes over|passed over": "skip",
    "goes by|go by|going by": "use, follow, elapse",
    # Relative clauses that hide the subject, and numbers without a name.
    "so many|so-many-th": "name the number",
    "of which|of whom|of whose": "split the sentence",
    "is of|are of|was of|were of": "has, belongs to",
    "made anew|anew": "again, re-created",
    "on its way|on their way|on the way": "in flight, in transit",
    "in print|with print|beside print|than print": "published",
    # Private names.
    "household": "Supervisor, process group",
    "laboratory": "Testbed",
    "agenda": "EventQueue",
    "desk|desks": "WorkQueue, Sessions",
    "parcel|parcels": "Batch",
    "needless|needlessly": "spurious",
    "goes first": "realtime_priority",
    "asker|askers|answerer|answerers": "client, server",
    "succession|successions": "header context",
    "surroundings": "environment",
    "vantage": "capture point",
    "tally|tallies": "counters",
    "refusals": "drop counters",
    "lane|lanes": "track",
    "leg|legs": "radio link",
    "scene|scenes": "environment",
    "sheet|sheets": "TableBuilder",
    "may fail": "allow_incomplete",
}
# Names as written in code.
NAMES = {"Cx": "Context", "Way": "Path", "World": "Network", "Pump": "Forwarder", "two_ends": "two_point"}

# Texts that are not checked, each with its reason.
EXEMPT = {
    "tools/words.py": "the list itself",
    "Cargo.lock": "generated",
    "fuzz/Cargo.lock": "generated",
    "tests/captures/": "recorded traffic",
    "studies/gprs-la/agreement.md": "generated; its texts are those of study.toml",
    "studies/gprs-proxy/agreement.md": "generated",
    "studies/gsm-csd/agreement.md": "generated",
    "studies/hsdpa-sim/agreement.md": "generated",
    "studies/lte-nr-checks/agreement.md": "generated",
    "studies/proposals/agreement.md": "generated",
    "studies/transports-on-cellular/agreement.md": "generated",
    "studies/umts-live/agreement.md": "generated",
}
SUFFIXES = {".rs", ".py", ".pyi", ".md", ".toml", ".sh", ".j2", ".js", ".ipynb", ""}
COMMENT_COLUMNS = 100
MARKDOWN_COLUMNS = 120
# Between the words of a phrase: spaces, a name's underscores, a line break with a comment's leader.
GAP = r"(?:[ \t]+|_|-|[ \t]*\n[ \t]*(?://[/!]?|#+|\*|>)?[ \t]*)"


def plain(words: str) -> re.Pattern[str]:
    """Return what matches a word, or a phrase also across a line break or in a snake_case name.

    The name of a page file is not a word: a document's commands name such files, and have no markers.
    """
    return re.compile(rf"(?<![A-Za-z'’])(?i:{words.replace(' ', GAP)})(?![a-z'’]|\.page\b)")


def camel(words: str) -> re.Pattern[str]:
    """Return what matches the words as the later part of a CamelCase name."""
    return re.compile(rf"(?<=[a-z0-9]){words.title().replace(' ', '')}(?![a-z])")


# For each word: its first word in small letters, by which candidates are found, and what they must match.
CANDIDATES = [
    (words.split(" ")[0].split("-")[0], pattern, better)
    for group, better in WORDS.items()
    for words in group.split("|")
    for pattern in (plain(words), camel(words))
] + [(name.lower(), re.compile(rf"(?<!\w){name}(?!\w)"), better) for name, better in NAMES.items()]
ALLOW = re.compile(r"words: allow ([^(]+)\(([^)]+)\)")


class Finding:
    """One word or line that breaks the rules: where, what, and what to write instead."""

    def __init__(self, path: str, line: int, word: str, better: str) -> None:
        self.path, self.line, self.word, self.better = path, line, word, better

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}: {self.better}"


def words_of(path: str, text: str) -> list[Finding]:
    """Return the words of the list that `text` has."""
    lower = text.lower()
    found = []
    for first, pattern, better in CANDIDATES:
        at = lower.find(first)
        while at >= 0:
            if match := pattern.match(text, at):
                word = re.sub(r"[\s_/!#*>-]+", " ", match.group()).lower()
                found.append(Finding(path, text.count("\n", 0, at) + 1, word, better))
            at = lower.find(first, at + 1)
    return found


def is_prose(line: str) -> bool:
    """Return whether `line` can be wrapped: neither a table row nor a line with a link."""
    return not line.lstrip("/!#* \t").startswith("|") and "http" not in line


def long_comments(path: str, text: str, leader: str) -> list[Finding]:
    """Return comment lines, and lines of docstrings, that are too long."""
    found = []
    inside = docstring = fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        quotes = stripped.count('"""') if leader == "#" else 0
        comment = stripped.startswith((leader, '"""')) or docstring
        if quotes == 1:
            inside = not inside
            docstring = inside and stripped.startswith('"""')
        if comment and stripped.lstrip("/!# ").startswith("```"):
            fenced = not fenced
        if comment and not fenced and len(line) > COMMENT_COLUMNS and is_prose(line):
            found.append(Finding(path, number, "long", f"{len(line)} columns, at most {COMMENT_COLUMNS}"))
    return found


def long_markdown(path: str, text: str) -> list[Finding]:
    """Return lines of Markdown that are too long, without tables, code and the targets of links."""
    found = []
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        columns = len(re.sub(r"\]\([^)]*\)|https?://\S+", "", line))
        if not fenced and columns > MARKDOWN_COLUMNS and not line.lstrip().startswith("|"):
            found.append(Finding(path, number, "long", f"{columns} columns, at most {MARKDOWN_COLUMNS}"))
    return found


def check(path: str) -> list[Finding]:
    """Return the findings of a file, without those that a marker allows."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (UnicodeDecodeError, IsADirectoryError, FileNotFoundError):
        return []
    found = words_of(path, text)
    suffix = Path(path).suffix
    if suffix == ".md":
        found += long_markdown(path, text)
    elif suffix == ".rs":
        found += long_comments(path, text, "//")
    elif suffix in {".py", ".pyi", ".toml", ".sh", ""}:
        found += long_comments(path, text, "#")
    lines = ["", *text.split("\n")]

    def allowed(finding: Finding) -> bool:
        markers = (ALLOW.search(lines[line]) for line in (finding.line, finding.line - 1))
        return any(marker and finding.word in marker[1] for marker in markers)

    return sorted((finding for finding in found if not allowed(finding)), key=lambda each: each.line)


def tracked(paths: list[str]) -> list[str]:
    """Return the text files of the repository below `paths`, relative to the working folder."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    return [
        path
        for path in listed
        if path and not path.startswith(tuple(EXEMPT)) and "LICENSE" not in path and Path(path).suffix in SUFFIXES
    ]


def main() -> int:
    """Check, print and return the exit status."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    arguments.add_argument("--count", action="store_true", help="print the numbers of findings")
    arguments.add_argument("paths", nargs="*", metavar="PATH")
    options = arguments.parse_args()
    paths = tracked(options.paths)
    found = [finding for path in paths for finding in check(path)]
    if options.count:
        for path, count in Counter(finding.path for finding in found).most_common():
            print(f"{count:6}  {path}")
        print(", ".join(f"{word} {count}" for word, count in Counter(each.word for each in found).most_common()))
        print(f"{len(found)} findings in {len(paths)} files")
        return 0
    for finding in found:
        print(finding)
    if found:
        print(f"{len(found)} words or lines; how to allow one: the first lines of tools/words.py", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
