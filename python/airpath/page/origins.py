"""The origins of a page, and the address of each on a link."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of URLs."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        """Whether it is served over TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"


def origin_of(url: str) -> Origin:
    """Return the origin of a URL.

    Raises:
        ValueError: The URL has no host, or its port is no number.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{url}: not a URL with http:// or https:// and a host")
    return Origin(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme])


def origins_of(urls: Iterable[str]) -> list[Origin]:
    """Return the origins of URLs, each once, in the order of the URLs."""
    return list(dict.fromkeys(origin_of(url) for url in urls))


def is_name(host: str) -> bool:
    """Return whether a host is a name with a domain."""
    return re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*[A-Za-z_-][A-Za-z0-9_-]*)+", host) is not None


def link_names(hosts: Iterable[str], *, hidden: bool = False) -> list[str]:
    """Return host names for `airpath link`, which gives addresses to names only.

    With `hidden` they are others, so that the mobile's /etc/hosts does not have those of the hosts.
    """
    return [host if is_name(host) and not hidden else f"host-{number}" for number, host in enumerate(hosts)]


def addresses(hosts: Iterable[str]) -> dict[str, str]:
    """Return the addresses of hosts, at either end of the link that has their `link_names`."""
    pairs = os.environ.get("AIRPATH_HOSTS", "").split()
    return dict(zip(hosts, (pair.partition("=")[2] for pair in pairs), strict=True))
