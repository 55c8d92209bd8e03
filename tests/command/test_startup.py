"""`airpath --help` answers at once: heavy modules are imported only when needed."""

import subprocess
import sys

import pytest

from support import Command

HEAVY = ("airpath._native", "airpath.report", "airpath.plot", "airpath.study", "jinja2", "pandas", "plotly", "polars")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["study", "--help"], ["presets", "list", "--help"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    assert not _imported(f"from airpath.cli import main; main({arguments!r})") & {*HEAVY, "rich"}


def test_help_imports_no_command() -> None:
    loaded = {each for each in _imported("from airpath.cli import main; main(['--help'])") if "airpath.cli." in each}
    assert loaded == {"airpath.cli.application", "airpath.cli.messages"}


def test_help_names_every_command_in_a_line(airpath_command: Command) -> None:
    lines = airpath_command("--help").out.partition("Commands:\n")[2].splitlines()
    assert len(lines) >= 16
    for line in lines:
        assert len(line) < 80
        assert airpath_command(line.split()[0], "--help").code == 0


def test_the_package_imports_nothing_heavy() -> None:
    assert not _imported("import airpath") & {*HEAVY, "rich", "typer"}


def test_a_name_is_loaded_when_it_is_used() -> None:
    assert not {each for each in _imported("import airpath") if each.startswith("airpath.")}
    loaded = _imported("import airpath; airpath.run")
    assert "airpath.run" in loaded
    assert not loaded & {"airpath.sweep.driver", "airpath.compare", "airpath.trace"}


@pytest.mark.parametrize("name", ["compare", "link", "preset", "replay", "run", "sweep", "trace"])
def test_a_function_stays_one_after_its_module_is_imported(name: str) -> None:
    code = f"import airpath.{name}, airpath; assert callable(airpath.{name}), airpath.{name}"
    assert f"airpath.{name}" in _imported(code)


def test_running_needs_no_frames() -> None:
    """A run's summary is printed without Polars, Plotly and the template engine."""
    code = "from airpath.cli import main; main(['run', 'no-such-file.toml'])"
    assert not _imported(code) & {"jinja2", "pandas", "plotly", "polars"}


def test_the_module_outlives_the_thread_that_imported_it() -> None:
    # Version 3 of the allocator took that thread for the main one.
    scenario = {"format": 1, "bearer": {"preset": "wired"}, "flow": [{"kind": "download", "bytes": "100 kB"}]}
    script = f"""
import threading, airpath
for work in (lambda: __import__("airpath._native"), lambda: airpath.run({scenario!r})):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


def _imported(code: str) -> set[str]:
    """Return the modules that are loaded after `code` ran in a new interpreter."""
    script = f"import sys\n{code}\nprint('MODULES', *sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return set(output.rsplit("MODULES ", 1)[1].split())
