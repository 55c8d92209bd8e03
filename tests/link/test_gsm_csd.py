"""GSM data: a real curl over an emulated call takes as long as in the simulator."""

import json
import shlex
import sys
from collections.abc import Callable

import airpath
from support.link import LinkCommand

FILE = 5_000
"""Bytes of the file: some seconds at 1 kB/s."""
RESPONSE_HEADERS = 190
"""Bytes of the headers of Python's web server, within a few."""
REQUEST = 80
"""Bytes of curl's request, within a few."""


def test_curl_takes_as_long_as_simulated(link: LinkCommand, need: Callable[..., str]) -> None:
    web = link.folder / "web"
    web.mkdir()
    (web / "file").write_bytes(bytes(range(256)) * (FILE // 256 + 1))
    (web / "file").write_bytes((web / "file").read_bytes()[:FILE])
    serve = shlex.join([sys.executable, "-m", "http.server", "-d", str(web), "8000"])
    report = '{"total": %{time_total}, "bytes": %{size_download}}'
    # Without errors: their retransmissions are random.
    options = "--set bearer.conditions.ci=60dB"
    done = link(
        *(need("curl"), "-sS", "-o", "got", "-w", report, "http://server:8000/file"),
        link="gsm-csd-9600",
        serve=serve,
        options=options,
    )
    real = json.loads(done.out)
    assert real["bytes"] == FILE
    flow = {"kind": "download", "bytes": f"{FILE + RESPONSE_HEADERS} B", "request": f"{REQUEST} B"}
    scenario = {"format": 1, "name": "curl", "bearer": {"preset": "gsm-csd-9600"}, "flow": [flow]}
    simulated = airpath.run(scenario, set={"bearer.conditions.ci": "60 dB"}).summary["flows"][0]["duration_s"]
    assert 3 < simulated < 20
    assert abs(real["total"] / simulated - 1) < 0.1, f"{real['total']} s, simulated {simulated} s"
