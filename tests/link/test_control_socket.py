"""`airpath ctl` finds the link that runs."""

import pytest

from airpath import control
from support import Command
from support.link import LinkCommand, words_of


def test_a_link_is_found_by_a_folder_with_an_earlier_result(link: LinkCommand) -> None:
    command, options = ("sh", "-c", "echo ready; [ ! -e stays ] || exec sleep 100"), "--out kept --no-log"
    link(*command, options=options)
    (link.folder / "stays").touch()
    with link.started(*command, options=options) as process:
        words_of(process.stdout, "ready")
        assert control.find(link.folder / "kept") == process.pid
        done = Command(link.folder)("ctl", "--link", "kept", "outage=1s")
        assert done.out.startswith("done at "), done.err


def test_several_links_are_listed_with_their_commands(link: LinkCommand) -> None:
    script = "echo ready; exec sleep 100"
    with link.started("sh", "-c", script) as one, link.started("sh", "-c", script, link="gprs") as two:
        for process in (one, two):
            words_of(process.stdout, "ready")
        with pytest.raises(control.NoLinkError, match="links run:") as found:
            control.find()
        assert found.value.next_step == "select one with --link PROCESS"
        done = Command(link.folder)("ctl", "--link", str(2**22 + 1))
        assert done.code == 1
        assert f"\n  {one.pid}  for " in done.err
        assert done.err.endswith("\n  next: select one with --link PROCESS\n")
        refused = Command(link.folder)("ctl", "--link", str(one.pid), "reload").err
        assert refused.endswith("next: `airpath ctl --help` shows examples\n")
        lines = {line.split()[0]: line for line in str(found.value).splitlines()[1:]}
        for process, preset in ((one, "wired"), (two, "gprs")):
            line = lines[str(process.pid)]
            assert f"  airpath link {preset} " in line
            assert "sleep 100" in line or line.endswith("…")
        known = control.described(one.pid)
        assert known is not None
        assert 0 <= known.age_s < 120
    assert control.described(2**22 + 1) is None
