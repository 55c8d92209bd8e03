"""A study with one experiment, for tests of what `study.toml` may have."""

from pathlib import Path

from airpath.study.definition import Study, load_study, read_study

_STUDY = """\
format = 2
id = "a"
title = "A"
seed = 1
repeat = 2
tolerance.ping-loss.relative = 0.1
tolerance.ping-deviation.relative = 0.1
tolerance.relative-ping-deviation.relative = 0.1
axis.mtu."128".set = {}
[[experiment]]
name = "ping"
text = ""
scenario = "ping.toml"
axes.mtu = ["128"]
metrics = ["ping-loss", "ping-deviation", "relative-ping-deviation"]
"""


def read_small_study(folder: Path, tables: str) -> Study:
    """Write the study with further tables into a folder, and read it.

    Raises:
        StudyError: The study is invalid.
    """
    source = load_study("umts-live").experiments[0].cases[0].scenario
    (folder / "ping.toml").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "study.toml").write_text(_STUDY + tables, encoding="utf-8")
    return read_study(folder)
