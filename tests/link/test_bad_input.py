"""Invalid links: the error and the next step are reported, and the command does not run."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from support.link import LinkCommand, python, summary


@pytest.mark.parametrize(
    ("how", "words"),
    [
        pytest.param({"link": "hs-dsch-348"}, ["hs-dsch-348", "did you mean `hs-dsch-384`?"], id="preset"),
        pytest.param({"link": "nowhere.toml"}, ["nowhere.toml"], id="scenario"),
        pytest.param({"options": "--set bearer.downlink.rat=1"}, ["bearer.downlink.rat", "`rate`"], id="key"),
        pytest.param({"options": "--set bearer.downlink.rate=fast"}, ["fast", "rate"], id="value"),
        pytest.param({"options": "--set bearer"}, ["--set bearer"], id="no-value"),
        pytest.param({"options": "--sysctl kernel.pid_max=1"}, ["kernel.pid_max", "`net.`"], id="foreign-parameter"),
        pytest.param(
            {"options": "--sysctl net.ipv4.no_such=1"}, ["net.ipv4.no_such", "has no such"], id="unknown-parameter"
        ),
        pytest.param(
            {"options": "--sysctl net.ipv4.tcp_sack=many"}, ["tcp_sack", "many", "its value"], id="parameter-value"
        ),
        pytest.param(
            {"options": "--sysctl net.core.rmem_max=99999"}, ["net.core.rmem_max", "whole host"], id="host-parameter"
        ),
        pytest.param(
            {"options": "--sysctl net.ipv4.tcp_available_congestion_control=reno"},
            ["congestion_control", "only be read"],
            id="parameter-to-read",
        ),
        pytest.param({"options": "--budget soon"}, ["budget", "soon"], id="budget"),
        pytest.param({"options": "--mtu 60"}, ["--mtu", "68"], id="mtu"),
        pytest.param({"options": "--device wifi"}, ["--device", "tun"], id="device"),
        pytest.param({"options": "--captures"}, ["--captures", "--capture"], id="option"),
        pytest.param({"options": "--repeat 0"}, ["--repeat", "1"], id="repetitions"),
        pytest.param({"options": "--mptcp"}, ["--mptcp", "--second"], id="one-bearer"),
        pytest.param({"options": "--capture"}, ["--capture", "--out"], id="capture"),
        pytest.param({"serve": "exec true \udcff"}, ["--serve is not UTF-8 text", "a script"], id="serve-bytes"),
        pytest.param({"serve": " "}, ["--serve has no command"], id="serve-empty"),
        pytest.param({"serve": "exit 3"}, ["the server ended with exit code 3", "run it by itself"], id="server-fails"),
        pytest.param({"serve": "no-such-server"}, ["exit code 127"], id="no-server"),
    ],
)
def test_bad_input_names_what_is_wrong(link: LinkCommand, how: dict[str, Any], words: list[str]) -> None:
    done = link("touch", "was-run", code=125, **how)
    assert done.out == ""
    for word in words:
        assert word in done.err
    assert not (link.folder / "was-run").exists()


def test_a_command_that_cannot_be_run(link: LinkCommand) -> None:
    missing = link("no-such-command", code=127)
    assert "no-such-command" in missing.err
    assert "next: " in missing.err
    assert "the command is empty\n  next: write it after one `--`" in link("", code=127).err
    assert "the command is `--`\n  next: write it after one `--`" in link("--", "true", code=127).err
    folder = link(str(link.folder), code=126)
    assert "permission denied" in folder.err.lower()


def test_a_server_that_listens_late_or_never_does_not_keep_the_command(link: LinkCommand) -> None:
    done = link("echo", "began", serve="exec sleep 100", timeout=40)
    assert done.out == "began\n"
    assert "the server listens at no port yet" in done.err


def test_a_server_that_ends_later_is_reported(link: LinkCommand) -> None:
    done = link("sleep", "3", serve=shlex.join(python("listen.py", 2, 9)))
    assert "airpath: the server ended with exit code 9" in done.err


def test_an_out_folder_that_cannot_be_written(link: LinkCommand) -> None:
    (link.folder / "file").write_text("mine\n")
    done = link("touch", "was-run", options="--out file", code=125)
    assert "file" in done.err
    assert (link.folder / "file").read_text() == "mine\n"
    done = link("touch", "was-run", options="--out /proc/kept", code=125)
    assert "/proc/kept" in done.err
    assert not (link.folder / "was-run").exists()


def test_an_earlier_result_survives_a_link_that_cannot_be_made(link: LinkCommand) -> None:
    link("true", options="--out kept")
    before = (link.folder / "kept" / "summary.json").read_bytes()
    link("true", options="--out kept --set bearer.downlink.rat=1", code=125)
    assert (link.folder / "kept" / "summary.json").read_bytes() == before


def test_a_link_that_cannot_be_made_leaves_no_folder(link: LinkCommand) -> None:
    link("true", options="--out kept", serve="exit 3", code=125)
    assert not (link.folder / "kept").exists()
    # A folder of the user stays.
    (link.folder / "mine").mkdir()
    link("true", options="--out mine", serve="exit 3", code=125)
    assert list((link.folder / "mine").iterdir()) == []


def test_a_full_disk_is_reported_but_does_not_disturb_the_command(link: LinkCommand, small_disk: Path) -> None:
    kept = small_disk / "kept"
    serve = shlex.join(python("sink.py"))
    done = link(*python("send.py", "server", 3_000_000), serve=serve, options=f"--out {kept} --capture", code=125)
    assert done.out == "3000000\n"
    assert "no space left" in done.err.lower()
    assert (small_disk / "kept" / "summary.json").exists()


def test_a_disk_without_room_for_the_summary_has_no_draft_of_it(link: LinkCommand, small_disk: Path) -> None:
    done = link("sh", "-c", f"cat /dev/zero > {small_disk}/zeros; true", options=f"--out {small_disk}/kept", code=125)
    assert "summary.json: No space left on device" in done.err
    assert not (small_disk / "kept" / "summary.json.draft").exists()
    assert not summary(small_disk / "kept")["complete"]
