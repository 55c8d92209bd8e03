"""Spurious retransmissions without SACK: detection in the sender's capture against both ends."""

from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

import airpath

PLAIN: dict[str, Any] = {"profile": "linux-6", "selective_acknowledgement": False, "timestamps": False}
"""Neither selective acknowledgements nor timestamps."""

HASTY = {"recovery": {"forward_rto": False, "eifel": False}}
"""A sender that undoes no time-out: it sends everything again."""

SENDERS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "hasty": PLAIN | HASTY,
    "hasty with timestamps": PLAIN | HASTY | {"timestamps": True},
    "linux 2.4": {"profile": "linux-2.4", "selective_acknowledgement": False, "timestamps": False},
    "windows xp": {"profile": "windows-xp", "selective_acknowledgement": False, "timestamps": False},
}

JITTER = {"distribution": "normal", "mean": "50 ms", "deviation": "6 ms", "reorder": True}
"""A delay by which packets overtake each other."""

PATHS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "loss": ({"downlink": {"loss": 0.03}}, []),
    "loss of acknowledgements": ({"downlink": {"loss": 0.02}, "uplink": {"loss": 0.05}}, []),
    "outage": ({}, [{"at": "3 s", "outage": "3 s"}]),
    "spikes": ({"downlink": {"loss": 0.005}}, [{"at": f"{at} s", "outage": "700 ms"} for at in (1, 3, 5)]),
    "reordering": ({"downlink": {"delay": JITTER, "loss": 0.01}, "uplink": {"delay": JITTER}}, []),
    "silent uplink": ({}, [{"at": "2 s", "outage": "1500 ms", "direction": "up"}]),
}


def _run(path: str, sender: str, folder: Path) -> None:
    """Run a download over a link, with captures of both ends."""
    changed, events = PATHS[path]
    link = {"rate": "2 Mbit/s", "delay": "50 ms", "queue": {"packets": 80}}
    ends = {end: link | changed.get(end, {}) for end in ("downlink", "uplink")}
    scenario = {
        "format": 1,
        "seed": 11,
        "duration": "120 s",
        "fixed": {"rate": "100 Mbit/s", "delay": "5 ms"},
        "bearer": {"model": "wired", **ends},
        "tcp": SENDERS[sender],
        "flow": [{"kind": "download", "bytes": "1 MB", "request": "200 B"}],
        "change": events,
    }
    airpath.run(scenario, out=folder, capture=True)


def test_none_is_called_spurious_that_was_needed_and_most_are_found(tmp_path: Path) -> None:
    known = found = 0
    for path, sender in product(PATHS, SENDERS):
        folder = tmp_path / path / sender
        _run(path, sender, folder)
        capture, peer = (folder / "captures" / f"0000-{end}.pcapng" for end in ("server", "mobile"))
        truth = airpath.trace(capture, peer=peer).transits.filter("spurious")["frame"].to_list()
        alone = airpath.trace(capture)
        # An acknowledgement that shows several names the last.
        shown = alone.observations(1).filter(pl.col("spurious").is_not_null(), pl.col("spurious_by") != "acknowledged")
        assert set(shown["spurious"]) <= set(truth), f"{path}, {sender}: it was needed"
        server = alone.directions.row(by_predicate=pl.col("from") == "server", named=True)
        assert server["spurious"] <= len(truth), f"{path}, {sender}"
        if path != "reordering":
            known += len(truth)
            found += server["spurious"]
    assert known > 500, "too few were spurious for the test to show anything"
    assert found >= 0.9 * known, f"{found} of {known}"
