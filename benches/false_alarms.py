"""How often `airpath compare` fails without a cause, and how often it sees a change of 5 %.

    python benches/false_alarms.py [--comparisons 1000] [--repetitions 10]

The samples are those of one simulated scenario. Each comparison takes repetitions of its own for
both sides; for the power those of the new side are multiplied by 1.05.
"""

import argparse
from pathlib import Path

from airpath.compare import parse_rule
from airpath.compare.comparison import LEVEL, Comparison
from airpath.compare.samples import Samples
from airpath.run import execute

SCENARIO = Path(__file__).parents[1] / "examples" / "hs-dsch.toml"
FIGURES = ("duration_s", "retransmitted_packets", "rtt_mean_s")


def main() -> None:
    """Print the share of comparisons that fail, by rules and repetitions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=10)
    arguments = parser.parse_args()
    n, count = arguments.repetitions, arguments.comparisons
    flows = execute(SCENARIO, repeat=2 * n * count)["flows"]
    for texts in (["duration_s > 0 %"], ["duration_s p95 > 0 %"], [f"{figure} > 0 %" for figure in FIGURES]):
        rules = [parse_rule(text) for text in texts]
        failed = {1.0: 0, 1.05: 0}
        for factor in failed:
            for comparison in range(count):
                first = flows[2 * n * comparison :][:n]
                second = flows[2 * n * comparison + n :][:n]
                sides = [_samples(first, 1.0), _samples(second, factor)]
                failed[factor] += bool(Comparison(sides[0], [sides[1]], figures=None, rules=rules).failed)
        alarms, power = (each / count for each in failed.values())
        print(
            f"{count} comparisons of {n} and {n} repetitions, {' and '.join(texts)}: "
            f"{alarms:.1%} fail without a change (stated: at most {LEVEL:.0%}), {power:.1%} with one of 5 %"
        )


def _samples(flows: list[dict], factor: float) -> Samples:
    values = {figure: {str(n): flow[figure] * factor for n, flow in enumerate(flows)} for figure in FIGURES}
    return Samples("", {"download": values})


if __name__ == "__main__":
    main()
