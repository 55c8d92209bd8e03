"""Comparisons of results, with statistics that a CI can act on.

    import airpath

    comparison = airpath.compare("runs/before", "runs/after", fail_if=["duration_s p95 > 5 %"])
    comparison.frame
    comparison.failed

| module | what |
| --- | --- |
| `samples` | the samples of a result, by flow, figure and repetition |
| `statistics` | tests, intervals and effect sizes |
| `rules` | which change is a failure |
| `comparison` | rows and rules of a comparison |
| `output` | text, JSON, Markdown and JUnit XML |
"""

from airpath.compare.comparison import Comparison, compare
from airpath.compare.rules import Rule, RuleError, parse_rule, read_rules
from airpath.compare.samples import IncomparableError, Samples, load_samples

__all__ = [
    "Comparison",
    "IncomparableError",
    "Rule",
    "RuleError",
    "Samples",
    "compare",
    "load_samples",
    "parse_rule",
    "read_rules",
]
