"""Further names of the server on a closed link, each with an address of its own."""

import os

import pytest

from support.link import LinkCommand, python
from support.needs import needs

NAMES = ("www.example.com", "cdn.example.com", "api.example.com")


def test_each_name_has_an_address_that_reaches_the_server(link: LinkCommand) -> None:
    options = " ".join(f"--host {name}" for name in NAMES)
    serve = "exec python3 -m http.server 8000 --bind 0.0.0.0"
    done = link(*python("named.py"), serve=serve, options=options)
    rows = [line.split() for line in done.out.splitlines()]
    assert [name for name, _ in rows] == list(NAMES), done
    assert len({address for _, address in rows}) == len(NAMES)


@needs("mount-namespace")
def test_every_user_can_read_the_names(link: LinkCommand) -> None:
    under = ["sh", "-c", 'umask 077; exec "$@"', "sh"]
    assert link("stat", "-c", "%a", "/etc/hosts", under=under).out == "644\n"


@needs("mount-namespace")
def test_names_of_the_link_replace_those_of_the_host(link: LinkCommand) -> None:
    hosts = link.folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n192.0.2.7 {NAMES[0]} other.test # kept\n192.0.2.8 server\n")
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    under = ["unshare", *user, "--mount", "sh", "-c", 'mount --bind hosts /etc/hosts; exec "$@"', "sh"]
    names = ("server", NAMES[0], "other.test", "localhost")
    program = "import socket, sys; print(*map(socket.gethostbyname, sys.argv[1:])); print(open('/etc/hosts').read())"
    done = link(*python(program, *names), options=f"--host {NAMES[0]}", under=under)
    addresses, *rest = done.out.splitlines()
    assert addresses.split() == ["100.64.0.1", "100.64.0.3", "192.0.2.7", "127.0.0.1"]
    assert "192.0.2.7 other.test # kept" in rest
    assert "192.0.2.8" not in done.out


@pytest.mark.parametrize(
    ("options", "serve", "message"),
    [
        ("--host www.example.com", None, "--host needs a server"),
        ("--host server", "true", "--host server: it has an address already"),
        ("--host a.test --host a.test", "true", "--host a.test: it has an address already"),
        ("--host a/b", "true", "not a host name"),
        ("--host LocalHost", "true", "--host LocalHost: it has an address already"),
        ("--host a.test --host A.test", "true", "--host A.test: it has an address already"),
        ("--host .", "true", "not a host name"),
        ("--host a..test", "true", "not a host name"),
        (f"--host {'a' * 64}.test", "true", "not a host name"),
        ("--host 192.0.2.7", "true", "--host 192.0.2.7: an address, not a name"),
        ("--host 0xC0.2", "true", "--host 0xC0.2: an address, not a name"),
    ],
)
def test_a_name_that_cannot_be_used_is_an_error(
    link: LinkCommand, options: str, serve: str | None, message: str
) -> None:
    done = link("true", serve=serve, options=options, code=125)
    assert message in done.err
