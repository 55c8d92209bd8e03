"""The option that a user may mean by one that a command does not have."""

from collections.abc import Collection
from difflib import get_close_matches

_OTHER_NAMES = {
    "--cc": ["--congestion", "--set tcp.congestion=bbr"],
    "--congestion": ["--set tcp.congestion=bbr"],
    "--csv": ["--format csv"],
    "--executor": ["--dask"],
    "--jobs": ["--threads", "--workers"],
    "--log": ["--out"],
    "--on": ["--link"],
    "--output": ["--out"],
    "--delay": ["--set fixed.delay='50 ms'"],
    "--jitter": ['--set fixed.delay=\'{ distribution = "normal", mean = "50 ms", deviation = "5 ms" }\''],
    "--json": ["--format json"],
    "--latency": ["--set fixed.delay='50 ms'"],
    "--bearer": ["--link"],
    "--loss": ["--set fixed.loss=0.01"],
    "--network": ["--link"],
    "--plr": ["--set fixed.loss=0.01"],
    "--port": ["--host-port", "--flow :80"],
    "--preset": ["--link", "--set bearer.preset=gprs"],
    "--seed": ["--set seed=2"],
    "--rate": ["--set fixed.rate='1 Mbit/s'"],
    "--bandwidth": ["--set fixed.rate='1 Mbit/s'"],
    "--repeat": ["--runs"],
    "--runs": ["--repeat"],
    "-j": ["--threads", "--workers"],
    "-n": ["--repeat", "--runs"],
    "--second": ["--set second_bearer=wifi-n"],
    "--stream": ["--flow"],
    "--bytes": ["--set flow.bytes='1 MB'"],
    "--size": ["--set flow.bytes='1 MB'"],
    "--duration": ["--set duration='60 s'"],
    "--mobiles": ["--set mobile.count=5"],
    "--users": ["--set mobile.count=5"],
    "--quic": ["--set flow.transport=quic-quinn"],
    "--transport": ["--set flow.transport=quic-quinn"],
    "--environment": ["--set bearer.conditions.environment=driving"],
    "--verbose": ["--why"],
}
"""Options by their names in other tools and commands; a command has one of them or none."""

_CUTOFF = 0.7
"""Options are alike from this similarity on; below it the suggestion would mislead."""


def similar_option(option: str, known: Collection[str]) -> str:
    """Return `; did you mean '…'?` with an option of the command, or an empty text."""
    other = next((each for each in _OTHER_NAMES.get(option, []) if each.split()[0] in known), None)
    matches = [other] if other else get_close_matches(option, list(known), n=1, cutoff=_CUTOFF)
    if not matches:
        return ""
    return f"; did you mean `{matches[0]}`?" if "'" in matches[0] else f"; did you mean '{matches[0]}'?"
