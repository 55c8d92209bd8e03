"""The contenders of benches/proxy.py that are not part of airpath: where they come from.

HAProxy and the stream module of nginx are packages of Debian, extracted without installing them.
PEPsal is built from its public source. Both need the network once; what cannot be had is reported,
and its contender is skipped.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

PACKAGES = {
    "haproxy": ["haproxy", "liblua5.3-0", "libopentracing1", "libopentracing-c-wrapper0"],
    "nginx": ["nginx"],
    "ngx_stream_module.so": ["libnginx-mod-stream"],
}
# Where a package or a build has its programs and modules.
FOLDERS = ("sbin", "modules", "pepsal")
PEPSAL = "https://github.com/CNES/pepsal"
PEPSAL_VERSION = "1045d3c828e2d37a8faa210ab8e60ecb2b2a390e"  # 2.0.2
PEPSAL_CONFIG = """
#define PACKAGE_NAME "PEPsal"
#define PACKAGE_STRING "PEPsal 2.0.2"
#define VERSION "2.0.2"
"""
# PEPsal ends if it cannot raise its limit of open files above that of the host. Here it keeps the
# limit that it has.
PEPSAL_LIMIT = "int keep_limit(void) { return 0; }\n"


def provide(peers: Path) -> None:
    """Put the contenders that are missing into the folder `peers`."""
    for file, packages in PACKAGES.items():
        if find(file, peers) is None:
            _attempt(", ".join(packages), partial(_extract, packages, peers))
    if not (peers / "pepsal" / "pepsal").exists():
        _attempt("PEPsal", partial(_build_pepsal, peers / "pepsal"))


def find(file: str, peers: Path) -> Path | None:
    """Return the program or module, from the folder or from the host."""
    extracted = [each for folder in FOLDERS for each in peers.glob(f"**/{folder}/{file}")]
    installed = [Path("/usr/sbin") / file, Path("/usr/lib/nginx/modules") / file]
    return next((each.resolve() for each in [*extracted, *installed] if each.is_file()), None)


def _attempt(what: str, action: Callable[[], None]) -> None:
    try:
        action()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{what}: not available here: {error}", file=sys.stderr)


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)


def _extract(packages: list[str], peers: Path) -> None:
    folder = peers / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    _run(["apt-get", "download", *packages], folder)
    for package in folder.glob("*.deb"):
        _run(["dpkg", "-x", str(package.resolve()), str(peers.resolve())], folder)
    shutil.rmtree(folder)


def _build_pepsal(folder: Path) -> None:
    """Build the source in `folder`, which is downloaded if it is not there."""
    if not (folder / "src" / "pep.c").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run(["git", "init", "--quiet"], folder)
        _run(["git", "fetch", "--quiet", "--depth", "1", PEPSAL, PEPSAL_VERSION], folder)
        _run(["git", "checkout", "--quiet", "FETCH_HEAD"], folder)
    (folder / "include" / "config.h").write_text(PEPSAL_CONFIG)
    (folder / "src" / "keep_limit.c").write_text(PEPSAL_LIMIT)
    sources = sorted(str(each.relative_to(folder)) for each in folder.glob("src/*.c"))
    flags = ["-O2", "-w", "-D_GNU_SOURCE", "-Dsetrlimit=keep_limit", "-Iinclude"]
    _run(["cc", *flags, *sources, "-o", "pepsal", "-lpthread", "-lrt", "-lm"], folder)
