"""`airpath doctor` finds out what the host allows, whatever that is."""

import pytest

from support import Command


def test_every_check_says_how_it_stands_and_what_to_do(airpath_command: Command) -> None:
    done = airpath_command("doctor", "--format", "json")
    findings = done.json
    assert done.code == (0 if findings["laboratory"] else 1)
    names = [check["name"] for check in findings["checks"]]
    assert len(names) == len(set(names)) >= 10
    for check in findings["checks"]:
        assert check["status"] in {"ok", "limited", "missing"}
        assert check["finding"]
        if check["status"] != "ok":
            assert check["next_step"], f"{check['name']} does not say what to do"


def test_what_it_promises_holds(airpath_command: Command) -> None:
    if not airpath_command("doctor", "--format", "json").json["laboratory"]:
        pytest.skip("NOT TESTED: this host allows no links at all")
    done = airpath_command("link", "wired", "--serve", "exec python3 -m http.server 80", "--", "true")
    assert done.code == 0, done.err


def test_the_text_ends_with_what_works(airpath_command: Command) -> None:
    done = airpath_command("doctor")
    assert "links with --serve, both ends inside: " in done.out
    assert done.err == ""
