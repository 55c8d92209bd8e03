"""What a shell completes."""

import shutil

from support import ROOT, Command


def completed(command: Command, line: str) -> list[str]:
    position = str(line.count(" "))
    done = command(COMP_WORDS=line, COMP_CWORD=position, _AIRPATH_COMPLETE="complete_bash")
    return done.out.split()


def test_scenarios_and_presets_are_completed(airpath_command: Command) -> None:
    shutil.copytree(ROOT / "examples", airpath_command.folder / "examples")
    for command in ("run", "link"):
        assert completed(airpath_command, f"airpath {command} gprs-3") == ["gprs-3+1"]
        assert completed(airpath_command, f"airpath {command} ed") == ["edge"]
        assert completed(airpath_command, f"airpath {command} ex") == ["examples/"]
        assert completed(airpath_command, f"airpath {command} examples/hs") == ["examples/hs-dsch.toml"]
        assert completed(airpath_command, f"airpath {command} nothing") == []


def test_the_keys_of_the_scenario_are_completed(airpath_command: Command) -> None:
    assert "tcp.congestion.algorithm=" in completed(airpath_command, "airpath run gprs --set tcp.con")
    assert completed(airpath_command, "airpath run gprs --set bearer.cell.sl") == ["bearer.cell.slots="]
    assert completed(airpath_command, "airpath run umts-dch-384 --set bearer.cell.sl") == []
    assert completed(airpath_command, "airpath run typo --set bearer.cell.sl") == []
    load = "airpath page load static-site --link gprs --set bearer.cell.sl"
    assert completed(airpath_command, load) == ["bearer.cell.slots="]
