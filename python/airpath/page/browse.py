"""Loads a page in Chromium, at the mobile of a link.

`python -m airpath.page.browse PLAN.json FOLDER` is the command of the link.

`FOLDER/views.json` is written after each view, so that earlier views stay if a later one fails.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from airpath.page.devtools import BrowserError, Chromium
from airpath.page.origins import addresses, is_name
from airpath.page.resolver import forward
from airpath.page.view import Tab

_ANSWER = 10.0
"""Seconds in which a browser whose page is loaded, or not in time, still answers."""


def main() -> int:
    """Load the page; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("plan", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    plan = json.loads(arguments.plan.read_text(encoding="utf-8"))
    options = [*plan["options"]]
    if plan["closed"]:
        reachable = addresses(plan["hosts"]) | {"server": os.environ["AIRPATH_SERVER"]}
        looked_up = [host for host in plan["hosts"] if plan["dns"] and is_name(host)]
        if looked_up:
            forward(os.environ["AIRPATH_SERVER"])
        known = [f"MAP {host} {address}" for host, address in reachable.items() if host not in looked_up]
        # The browser's own services are not on the link.
        rules = [*known, "MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in looked_up)]
        options.append(f"--host-resolver-rules={','.join(rules)}")
    views: list[dict[str, Any]] = []
    try:
        for run in range(plan["runs"]):
            until = time.monotonic() + plan["timeout"]
            with Chromium(options, until + min(_ANSWER, plan["timeout"]), arguments.folder) as browser:
                tab = Tab(browser, until, may_be_incomplete=plan["may_be_incomplete"])
                await_server(plan["ready"], until)
                if plan["throttle"] is not None:
                    tab.call("Network.emulateNetworkConditions", offline=False, **plan["throttle"])
                for view in range(plan["views"]):
                    film = arguments.folder / "filmstrip" / f"{run}-{view}"
                    views.append({"run": run, "view": view, **tab.load(plan["url"], film)})
                    draft = arguments.folder / "views.draft"
                    draft.write_text(json.dumps(views), encoding="utf-8")
                    draft.rename(arguments.folder / "views.json")
    except BrowserError as error:
        reason = {"message": f"run {len(views) // plan['views'] + 1}: {error.message}", "next_step": error.next_step}
        (arguments.folder / "error").write_text(json.dumps(reason), encoding="utf-8")
        return 1
    return 0


def await_server(ready: str | None, until: float) -> None:
    """Wait until the servers of the page listen, which start with the browser."""
    while ready is not None and not Path(ready).is_file():
        if time.monotonic() > until:
            raise BrowserError("the server did not start in time")
        time.sleep(0.005)
    if ready is not None and (reason := Path(ready).read_text(encoding="utf-8")):
        raise BrowserError(f"the server did not start: {reason}")


if __name__ == "__main__":
    sys.exit(main())
