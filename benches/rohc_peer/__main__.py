"""Exchanges packets with librohc, another implementation of ROHC: compiles `peer.c`, runs the test.

    python benches/rohc_peer [--prefix DIR]

The library is that of https://rohc-lib.org, version 2.4. `--prefix` is the folder in which it is
installed; without it pkg-config searches its usual places. docs/header-compression.md has the
commands that build it. Where it is missing, nothing is run, and the last line states why.
"""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VERSION = "2.4"
"""The version that was compared."""


def flags(prefix: Path | None) -> list[str]:
    """Return the options of the C compiler for the library.

    Raises:
        LookupError: The library, pkg-config or this version is missing.
    """
    environment = dict(os.environ)
    if prefix is not None:
        environment["PKG_CONFIG_PATH"] = str(prefix / "lib" / "pkgconfig")
    command = ["pkg-config", "--cflags", "--libs", f"rohc >= {VERSION}"]
    try:
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LookupError("pkg-config is not installed") from None
    if found.returncode != 0:
        raise LookupError(found.stderr.strip().splitlines()[0])
    libraries = [each.removeprefix("-L") for each in shlex.split(found.stdout) if each.startswith("-L")]
    return [*shlex.split(found.stdout), *(f"-Wl,-rpath,{folder}" for folder in libraries)]


def main() -> int:
    """Return the exit code of the test, or 0 if it was skipped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, help="where librohc is installed")
    arguments = parser.parse_args()
    try:
        library = flags(arguments.prefix)
    except LookupError as missing:
        print(f"SKIPPED packets exchanged with librohc {VERSION}: {missing}")
        return 0
    program = ROOT / "target" / "rohc-peer"
    program.parent.mkdir(exist_ok=True)
    source = Path(__file__).with_name("peer.c")
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", program, source, *library], check=True)
    test = ["cargo", "test", "--locked", "--package", "airpath-rohc", "--test", "all", "peer::", "--", "--nocapture"]
    return subprocess.run(test, cwd=ROOT, env=os.environ | {"AIRPATH_ROHC_PEER": str(program)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
