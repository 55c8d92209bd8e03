"""The wheel in an empty environment outside the repository, and the source distribution."""

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from support import ROOT, plain_environment
from support.needs import needs

COMMANDS = (
    "airpath presets show driving",
    "airpath run gprs --out run --capture",
    "airpath trace run",
    "airpath report run -o run.html",
    "airpath run gprs --set flow.0.count=3 --out several --capture",
    "airpath trace several -o several.html",
    "airpath study run gsm-csd --only round-trip",
    "airpath page show static-site",
)
"""The first commands of a user. None of them has a file of the repository."""


def build(*arguments: str | Path) -> None:
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run([maturin, *arguments], cwd=ROOT, check=True, capture_output=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    made = os.environ.get("AIRPATH_WHEELS")  # `make wheel` names its folder
    if made is None:
        # With the interpreter, profile and features of `make setup`, nothing is compiled again.
        options = ["--profile", os.environ.get("AIRPATH_PROFILE", "release"), "--interpreter", sys.executable]
        options += ["--features", os.environ.get("AIRPATH_FEATURES", "extension-module")]
        build("build", *options, "--locked", "--out", folder)
    (wheel,) = (folder if made is None else ROOT / made).glob("airpath-*-abi3-manylinux_*.whl")
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    programs = folder / "environment" / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", wheel], check=True)
    return programs


@pytest.mark.parametrize("command", COMMANDS)
def test_a_first_command(command: str, installed: Path) -> None:
    run(command, installed)


@needs("network-namespace")
def test_a_first_link(installed: Path, need: Callable[..., str]) -> None:
    need("curl")
    serve = f"{sys.executable} -m http.server 8000"
    assert "environment" in run(f"airpath link gprs --serve '{serve}' -- curl -s http://server:8000/", installed)


@pytest.mark.soak
def test_the_source_distribution_builds_a_wheel(tmp_path: Path) -> None:
    """In an empty environment; the repository's target folder keeps the compiled dependencies."""
    build("sdist", "--out", tmp_path)
    (archive,) = tmp_path.glob("airpath-*.tar.gz")
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = environment / "bin" / "pip"
    variables = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")}
    wheels = ["wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, archive]
    subprocess.run([pip, *wheels], cwd=tmp_path, env=variables, check=True)
    (wheel,) = tmp_path.glob("airpath-*-abi3-*.whl")
    subprocess.run([pip, "install", "--quiet", wheel], check=True)
    for command in COMMANDS:
        run(command, environment / "bin")


def run(command: str, installed: Path) -> str:
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=installed.parent.parent,
        env=plain_environment() | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_source_distribution_has_all_that_the_crates_include(tmp_path: Path) -> None:
    build("sdist", "--out", tmp_path)
    (archive,) = tmp_path.glob("airpath-*.tar.gz")
    with tarfile.open(archive) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    included = []
    for source in (ROOT / "crates").glob("*/src/**/*.rs"):
        text = source.read_text()
        paths = [source.parent / path for path in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', text)]
        folders = re.findall(r'include_dir!\("\$CARGO_MANIFEST_DIR/([^"]+)"\)', text)
        crate = next(parent for parent in source.parents if (parent / "Cargo.toml").exists())
        for folder in folders:
            paths += [path for path in (crate / folder).rglob("*") if path.is_file()]
        included += [path.resolve().relative_to(ROOT).as_posix() for path in paths]
    assert len(included) > 40
    # Whole crates that the package does not need are left out.
    kept = {name.split("/")[1] for name in names if name.startswith("crates/")}
    needed = [path for path in included if not path.startswith("crates/") or path.split("/")[1] in kept]
    assert set(needed) <= names
