"""What the columns `slots`, `level` and `repeated` of a radio log mean, by bearer model."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from airpath.plot.selection import Drawn


@dataclass(frozen=True)
class Terms:
    """The terms of a radio access technology."""

    name: str
    level: str = "level"
    """What the column `level` of the radio log counts."""
    resources: str = "slots"
    """What the aspect `slots` counts, short enough for the margin of a figure."""
    resources_read: str = ""
    """The same, explained."""
    repeated: str = "retransmissions of the RLC"


def _ofdma(name: str, tti: str) -> Terms:
    read = f"resource blocks of the mobile's last transport block; the value stays until one of another size ({tti})"
    return Terms(name, "MCS index", "RBs", read, "in HARQ retransmissions")


_UNKNOWN = Terms("")
_BEARER = re.compile(r"(second-)?(cell$|bearer-)")
"""The names of bearers among the components."""
_TERMS = {
    "gprs": Terms("GPRS", "coding scheme", "timeslots", "timeslots assigned"),
    "gsm-csd": Terms("GSM data", resources="timeslots", resources_read="timeslots of the call"),
    "umts": Terms("UMTS", resources="PDUs", resources_read="RLC PDUs that a TTI can carry"),
    "hsdpa": Terms(
        "HSDPA", "CQI ↓, grant step ↑", "codes", "HS-PDSCH codes of the last block", "in HARQ or RLC retransmissions"
    ),
    "hs-dsch-simple": Terms("HS-DSCH", "C/I level"),
    "dch-simple": Terms("DCH", "C/I level"),
    "lte-cell": _ofdma("LTE", "a TTI is 1 ms"),
    "lte-m": _ofdma("LTE-M", "a TTI is 1 ms"),
    "nr-cell": _ofdma("NR", "a TTI is a slot"),
    "en-dc": _ofdma("LTE and NR", "a TTI is a subframe of LTE, a slot of NR"),
    "nb-iot": Terms("NB-IoT", "TBS index", repeated="in HARQ retransmissions"),
    "wifi": Terms("Wi-Fi", "MCS index", repeated="retransmissions of the MAC"),
}


def terms_of(run: Drawn, component: str) -> Terms:
    """Return the terms of a component of a run: that of its bearer, or of its second bearer."""
    key = "second_bearer" if component.startswith("second") else "bearer"
    model = tomllib.loads(run.result.scenario).get(key, {}).get("model")
    return _TERMS.get(model, _UNKNOWN)


def bearer_names(run: Drawn) -> dict[str, str]:
    """Return the components of the bearers with their technology, of a run with two bearers."""
    scenario = tomllib.loads(run.result.scenario)
    if "second_bearer" not in scenario:
        return {}
    found = {}
    for component in run.result.summary["components"]:
        name = component["name"]
        if _BEARER.match(name):
            model = scenario["second_bearer" if name.startswith("second-") else "bearer"].get("model")
            found[name] = f"{name} ({_TERMS[model].name if model in _TERMS else model})"
    return found


def by_technology(terms: Iterable[Terms], texts: dict[str, str]) -> str:
    """Return the texts by the name of a technology; without names if all have the same.

    Args:
        terms: The terms of the technologies that a figure shows.
        texts: The text of each technology, by its name.
    """
    found = {each.name: texts[each.name] for each in terms if texts.get(each.name)}
    different = list(dict.fromkeys(found.values()))
    if len(different) == 1:
        return different[0]
    return ", ".join(f"{text} ({', '.join(n for n, t in found.items() if t == text)})" for text in different)
