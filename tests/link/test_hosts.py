"""Further names of the server on a closed link, each with an address of its own."""

import pytest

from support.link import LinkCommand, python

NAMES = ("www.example.com", "cdn.example.com", "api.example.com")


def test_each_name_has_an_address_that_reaches_the_server(link: LinkCommand) -> None:
    options = " ".join(f"--host {name}" for name in NAMES)
    serve = "exec python3 -m http.server 8000 --bind 0.0.0.0"
    done = link(*python("named.py"), serve=serve, options=options)
    rows = [line.split() for line in done.out.splitlines()]
    assert [name for name, _ in rows] == list(NAMES), done
    assert len({address for _, address in rows}) == len(NAMES)


@pytest.mark.parametrize(
    ("options", "serve", "message"),
    [
        ("--host www.example.com", None, "--host needs a server"),
        ("--host server", "true", "--host server: it has an address already"),
        ("--host a.test --host a.test", "true", "--host a.test: it has an address already"),
        ("--host a/b", "true", "not a host name"),
    ],
)
def test_a_name_that_cannot_be_used_is_an_error(
    link: LinkCommand, options: str, serve: str | None, message: str
) -> None:
    done = link("true", serve=serve, options=options, code=125)
    assert message in done.err
