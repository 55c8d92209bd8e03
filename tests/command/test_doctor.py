"""`airpath doctor` finds what the host allows; these tests restrict the host."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from support import Command, Finished, plain_environment
from support.link import LinkCommand
from support.needs import missing, needs

Need = Callable[..., str]
Under = Callable[..., Finished]

AS_ROOT = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
"""Options of unshare(1) for a command that makes namespaces or mounts."""
OWN_NETWORK = ["unshare", *AS_ROOT, "--net"]
OWN_MOUNTS = ["unshare", *AS_ROOT, "--mount"]
ORDINARY = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
"""A user without capabilities, with the read access of the user who runs the tests."""
UNMAPPED_USER = ["unshare", "--user"]
"""A user without a mapped user ID, who may make no namespaces."""
READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"
FORWARDS = "echo 1 > /proc/sys/net/ipv4/ip_forward"
SERVER = "exec python3 -m http.server 80"


@pytest.fixture
def under(link: LinkCommand) -> Under:
    """Run `airpath` under another command, after a shell line; skip the test where that fails."""

    def run(under: list[str], *words: object, prepare: str = "true") -> Finished:
        def done(*command: str) -> Finished:
            ran = subprocess.run(
                [*under, "sh", "-c", f"{prepare} || exit 99\nexec {shlex.join(command)}"],
                cwd=link.folder,
                env=plain_environment(),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            return Finished(ran.returncode, ran.stdout, ran.stderr)

        if (tried := done("true")).code != 0:
            missing("own-network", f"`{shlex.join(under)}` and `{prepare}`: {tried.err.strip()}")
        return done(*Command(link.folder).line(*map(str, words)))

    return run


def checks_of(findings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the checks by name; each must have a status, a finding and a next step."""
    assert len(findings["checks"]) >= 15
    for check in findings["checks"]:
        assert check["status"] in {"ok", "limited", "missing"}
        assert check["finding"]
        assert check["meaning"]
        assert bool(check["next_step"]) == (check["status"] != "ok"), check
    checks = {check["name"]: check for check in findings["checks"]}
    assert len(checks) == len(findings["checks"])
    return checks


def test_every_check_has_a_status_and_a_next_step(airpath_command: Command) -> None:
    done = airpath_command("doctor", "--format", "json")
    findings = done.json
    assert done.code == (0 if findings["testbed"] else 1)
    checks_of(findings)
    assert set(findings["versions"]) == {"airpath", "python", "kernel"}
    assert not findings["outside"] or findings["testbed"]


def test_what_it_promises_holds(airpath_command: Command) -> None:
    promised = airpath_command("doctor", "--format", "json").json["testbed"]
    done = airpath_command("link", "wired", "--serve", SERVER, "--", "true")
    assert done.code == (0 if promised else 125), done.err


def test_the_text_ends_with_what_works(airpath_command: Command) -> None:
    done = airpath_command("doctor")
    assert "links with --serve or --host-port: " in done.out
    assert done.out.startswith("airpath ")
    assert done.err == ""


@needs("user-namespace")
@pytest.mark.parametrize(
    "user", [ORDINARY, ["unshare", "--user", "--map-root-user"]], ids=["user", "root of no network"]
)
def test_ordinary_users_can_do_without_the_outside(under: Under, user: list[str]) -> None:
    findings = under(user, "doctor", "--format", "json").json
    checks = checks_of(findings)
    assert checks["privileges"]["status"] == "limited"
    assert findings["testbed"]
    assert not findings["outside"]
    assert under(user, "link", "wired", "--serve", SERVER, "--", "true").code == 0
    refused = under(user, "link", "wired", "--", "true")
    assert (refused.code, "needs root" in refused.err) == (125, True)


@needs("user-namespace")
def test_without_namespaces_nothing_works_and_the_checks_report_it(under: Under) -> None:
    done = under(UNMAPPED_USER, "doctor", "--format", "json")
    checks = checks_of(done.json)
    assert done.code == 1
    assert not done.json["testbed"]
    for name in ("user namespaces", "network namespaces", "PID namespaces", "TUN interfaces", "virtual Ethernet pairs"):
        assert checks[name]["status"] == "missing"
    assert "run airpath as root" in checks["network namespaces"]["next_step"]
    assert checks["TUN interfaces"]["next_step"] == "see network namespaces"
    refused = under(UNMAPPED_USER, "link", "wired", "--serve", SERVER, "--", "true")
    assert (refused.code, "`airpath doctor`" in refused.err) == (125, True)


@pytest.mark.parametrize(
    ("hide", "step"),
    [
        ("mount --bind /dev/null /dev/net/tun", "is not the character device"),
        ("mount -t tmpfs none /dev/net", "modprobe tun"),
    ],
)
@needs("tun")
def test_without_tun_links_use_virtual_ethernet(under: Under, hide: str, step: str) -> None:
    findings = under(OWN_MOUNTS, "doctor", "--format", "json", prepare=hide).json
    tun = checks_of(findings)["TUN interfaces"]
    assert (tun["status"], step in tun["next_step"]) == ("limited", True), tun
    assert findings["testbed"]
    fetch = ["python3", "-c", "import urllib.request as r; print(r.urlopen('http://server').status)"]
    done = under(OWN_MOUNTS, "link", "wired", "--out", "run", "--serve", SERVER, "--", *fetch, prepare=hide)
    assert (done.code, done.out) == (0, "200\n"), done.err


def test_links_carry_ipv4_where_kernel_parameters_are_read_only(under: Under) -> None:
    findings = under(OWN_MOUNTS, "doctor", "--format", "json", prepare=READ_ONLY).json
    check = checks_of(findings)["kernel parameters"]
    assert (check["status"], "Read-only" in check["finding"]) == ("limited", True), check
    assert findings["testbed"]
    fetch = ["python3", "-c", "import urllib.request as r; print(r.urlopen('http://server').status)"]
    done = under(OWN_MOUNTS, "link", "wired", "--serve", SERVER, "--", *fetch, prepare=READ_ONLY)
    assert (done.code, done.out) == (0, "200\n"), done.err


@pytest.mark.parametrize("both", [False, True])
def test_the_outside_needs_forwarding_and_has_the_versions_that_are_forwarded(
    under: Under, need: Need, both: bool
) -> None:
    off = under(OWN_NETWORK, "doctor", "--format", "json", prepare="echo 0 > /proc/sys/net/ipv4/ip_forward").json
    assert (checks_of(off)["forwarding"]["status"], off["outside"]) == ("missing", False)
    prepare = f"{FORWARDS} && echo {int(both)} > /proc/sys/net/ipv6/conf/all/forwarding"
    on = under(OWN_NETWORK, "doctor", "--format", "json", prepare=prepare).json
    assert (checks_of(on)["forwarding"]["status"], on["outside"]) == ("ok" if both else "limited", True)
    routes = "ip -4 route show default; ip -6 route show default"
    done = under(OWN_NETWORK, "link", "wired", "--", need("sh"), "-c", routes, prepare=prepare)
    assert done.code == 0, done.err
    assert done.out.count("default dev air0") == (2 if both else 1)


def test_a_dropping_firewall_is_found_and_missing_replies_are_reported(under: Under, need: Need) -> None:
    nft, ip, ping = need("nft", "nftables"), need("ip", "iproute2"), need("ping", "iputils-ping")
    rules = (
        "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; };"
        "add table inet mine; add chain inet mine input { type filter hook input priority 0; policy drop; };"
        "add chain inet mine forward { type filter hook forward priority 0; policy accept; }"
    )
    prepare = f"{FORWARDS} && {ip} link add beyond type veth && {ip} link set beyond up && {nft} '{rules}'"
    prepare += f" && {ip} address add 192.0.2.1/24 dev beyond"
    findings = under(OWN_NETWORK, "doctor", "--format", "json", prepare=prepare).json
    firewall = checks_of(findings)["firewall"]
    assert firewall["status"] == "limited"
    assert firewall["finding"].endswith(": chain ip filter FORWARD")
    done = under(OWN_NETWORK, "link", "wired", "--", ping, "-c1", "-W1", "192.0.2.9", prepare=prepare)
    assert done.code == 1
    assert "no packet came back from the outside; `airpath doctor`" in done.err


def test_looking_changes_nothing(link: LinkCommand, need: Need) -> None:
    look = (
        "import subprocess\n"
        f"words = [{need('nft', 'nftables')!r}, 'list', 'ruleset'], ['ls', '/proc/sys/net/ipv4/conf'],"
        " ['readlink', *(f'/proc/self/ns/{kind}' for kind in ('net', 'user', 'mnt', 'pid_for_children'))]\n"
        "look = lambda: [subprocess.run(each, capture_output=True, check=True).stdout for each in words]\n"
        "before = look()\n"
        "from airpath import _native\n"
        "_native.doctor()\n"
        "assert look() == before, look()"
    )
    done = subprocess.run([*OWN_NETWORK, sys.executable, "-c", look], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
