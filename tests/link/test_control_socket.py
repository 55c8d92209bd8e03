"""`airpath ctl` finds the link that runs."""

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
