"""A page in Chromium over an emulated link, served inside it or outside."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from airpath import extras
from airpath.files import temporary_folder
from airpath.link import Linked, error_in, link, new_link_result, read_link
from airpath.next_step import WithNextStep
from airpath.page import authority, files, har_browser, har_log, recording
from airpath.page.devtools import executable
from airpath.page.figures import figures
from airpath.page.origins import Origin, is_name, link_names, origin_of, origins_of
from airpath.page.site import url_of
from airpath.result import Result
from airpath.result_folder import has_earlier_result, new_result, refusal, written_to
from airpath.run import override_texts

PROTOCOLS = {"http/1.0": "http/1.0", "http/1.1": "http/1.1", "h1": "http/1.1", "h2": "h2", "h3": "h3"}
"""The protocols, by their names as options."""
TLS_VERSIONS = ("none", "TLSv1.2", "TLSv1.3")
_HTTP_1 = ["--disable-http2", "--disable-quic"]
_WITHOUT = {"http/1.0": _HTTP_1, "http/1.1": _HTTP_1, "h2": ["--disable-quic"], "h3": []}
"""Options of Chromium that leave one protocol."""
SERVER = (
    "import socket, runpy; early = socket.create_server(('', 0)); "
    "runpy.run_module('airpath.page.serve', run_name='__main__')"
)
"""A link starts its command when something listens at the server: so Chromium starts while the
server is still being imported, and waits for it before the first load."""


class LoadError(WithNextStep):
    """The page could not be loaded: the text has the message of browser or link."""


class UsageError(WithNextStep):
    """Arguments do not fit together; `next_step` has what to change."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message, next_step=next_step)


@dataclass(frozen=True)
class Loaded:
    """Views of a page in a browser."""

    views: list[dict[str, Any]]
    """Figures of each view, the rows of `page.json`."""
    linked: Linked
    """The link: packets, radio, flows."""
    error: str | None
    """Why later views are missing."""
    without: Sequence[str] = ()
    """URLs of a recorded site whose responses have no content: they are 404."""


@dataclass
class _Target:
    """What to load, and who serves it."""

    name: str
    url: str
    objects: dict[str, str] | None
    """Names of the objects by URL; `None` if they are not known."""
    plan: dict[str, Any]
    """For browser and server."""
    serve: str | None
    hosts: list[str]
    host_ports: Sequence[int] = ()
    secure: list[Origin] = field(default_factory=list)
    """Origins that need a certificate."""
    without: Sequence[str] = ()
    """URLs of a recorded site whose responses have no content."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the load that belong to its inputs; `options` of the rows of `page.json`."""


def load(
    target: str | Path,
    scenario: str | Path | Mapping[str, Any],
    out: Path,
    *,
    protocol: str | None = None,
    tls: str | None = None,
    serve: str | None = None,
    hosts: Sequence[str] = (),
    host_ports: Sequence[int] = (),
    compression: bool = True,
    runs: int = 1,
    repeat_view: bool = False,
    overrides: Mapping[str, Any] | None = None,
    seed: int | None = None,
    timeout: float = 600,
    dns: bool = False,
    throttle: Mapping[str, float] | None = None,
) -> Loaded:
    """Load a page in Chromium at the mobile of a link.

    The result folder of the link gets `page.json`, `page.har` and `filmstrip` in addition.

    Args:
        target: Name of a page of airpath, path of a page file, folder, HAR or WARC file of a
            recorded site, or a URL.
        scenario: The link, as for `airpath.link`.
        out: The result folder.
        protocol: `http/1.0`, `http/1.1` (or `h1`), `h2` or `h3`; `http/1.1` by default, and of a URL
            what browser and server select.
        tls: `none`, `TLSv1.2` or `TLSv1.3`; by default TLS 1.3 where URLs or protocol need TLS.
        serve: For a URL: the command of a server at the other end of the link; without it the
            outside is there.
        hosts: For a URL: further names of that server.
        host_ports: For a URL: ports of this host's own localhost, which the browser reaches at
            `server`.
        compression: Whether the server compresses.
        runs: Number of loads, each in a new browser; all on one link.
        repeat_view: Whether each browser loads the page again, with its cache.
        overrides: Values of the scenario by dotted path.
        seed: The seed, in place of the scenario's.
        timeout: Limit of one browser in seconds.
        dns: Whether the browser looks up the names of a page that is served inside the link, by
            queries over the link; otherwise it is given their addresses.
        throttle: Conditions that DevTools emulates, in addition to the link: `latency` in
            milliseconds, `downloadThroughput` and `uploadThroughput` in bytes per second
            (`Network.emulateNetworkConditions`).

    Raises:
        BrowserError: There is no Chromium.
        ExtraMissingError: Packages of the extra `page` are missing.
        UsageError: Arguments do not fit together.
        ScenarioError: The page cannot be used. PageProblemError: The recorded site cannot be used.
        LoadError: No view was completed; an earlier result in `out` stays.
        FileExistsError: `out` has another result, or more; nothing was changed.
    """
    executable()
    target = str(target)
    if dns and "://" in target:
        how = "of the outside are looked up over the link" if serve is None else "of your own server are known"
        raise UsageError(f"--dns is for pages that airpath serves; names {how}", "remove it")
    if "://" in target:
        chosen = _url(target, protocol, tls, serve, hosts, host_ports)
    elif serve is not None or hosts or host_ports:
        needed = "remove --serve, --host and --host-port, or name a URL"
        raise UsageError("a server needs a URL to load from it", needed)
    else:
        _check_kind(target)
        try:
            chosen = _served(target, PROTOCOLS[protocol or "http/1.1"], tls, compression=compression)
        except ValueError as error:
            # A host or port that no URL can have; errors of page files are another type.
            raise UsageError(f"{target}: {error}", "check the origins of its objects") from None
    if dns and not any(is_name(host) for host in chosen.hosts):
        hosts = ", ".join(chosen.hosts)
        reason = f"--dns has no effect: no origin has a name with a domain ({hosts})"
        raise UsageError(reason, "remove it, or name an origin like www.example.com")
    chosen.options = {
        # Those of a page that airpath serves have defaults; those of a URL are up to its server.
        "protocol": chosen.plan.get("protocol", protocol and PROTOCOLS[protocol]),
        "tls": chosen.plan.get("tls"),
        "compression": chosen.plan.get("compression"),
        "dns": dns,
        "repeat_view": repeat_view,
        "throttle": None if throttle is None else dict(throttle),
    }
    _check_earlier_views(out, chosen, runs * (2 if repeat_view else 1))
    with temporary_folder("airpath-page-") as folder:
        options = list(chosen.plan["options"])
        if chosen.secure:
            key = authority.issue({each.host for each in chosen.secure}, folder)
            options.append(f"--ignore-certificate-errors-spki-list={key}")
        plan = chosen.plan | {"url": chosen.url, "runs": runs, "views": 2 if repeat_view else 1, "timeout": timeout}
        plan |= {"certificates": str(folder), "options": options, "throttle": throttle, "dns": dns}
        # The user's own server is waited for by the link.
        is_served = chosen.serve is None and not chosen.host_ports and chosen.plan["closed"]
        plan["ready"] = str(folder / "ready") if is_served else None
        file = folder / "plan.json"
        file.write_text(json.dumps(plan), encoding="utf-8")
        server = shlex.join(["exec", sys.executable, "-c", SERVER, str(file)]) if plan["ready"] else chosen.serve
        command = [sys.executable, "-m", "airpath.page.browse", str(file), str(folder)]
        inputs = {"overrides": override_texts(overrides), "seed": seed, "serve": server, "capture": True}
        # Without an earlier result, the link checks the folder.
        new = new_link_result(read_link(scenario), command, **inputs) if has_earlier_result(out) else None
        with nullcontext(out) if new is None else new_result(out, new) as written:
            try:
                linked = link(
                    scenario,
                    command,
                    serve=server,
                    hosts=link_names(chosen.hosts, hidden=dns),
                    host_ports=chosen.host_ports,
                    set=overrides,
                    seed=seed,
                    out=written,
                    capture=True,
                    capture_output=True,
                )
            finally:
                # Also after Ctrl-C: what was measured is kept.
                views = _keep(folder, written, chosen)
                if not views and written != out:
                    shutil.rmtree(written, ignore_errors=True)  # the earlier result stays
        reason = _reason(folder, linked) if linked.returncode else None
    if not views:
        raise reason or LoadError("the browser loaded nothing")
    text = None if reason is None else str(reason)
    return Loaded(views, replace(linked, result=Result(written_to(out))), text, chosen.without)


def _check_earlier_views(out: Path, chosen: _Target, number: int) -> None:
    """Check that new views in a folder replace at most as many of the same page.

    Raises:
        FileExistsError: The folder has views of another page, with other options, or more.
    """
    try:
        views = json.loads((out / "page.json").read_text(encoding="utf-8"))
        other = next((each for each in views if (each["page"], each["url"]) != (chosen.name, chosen.url)), None)
        earlier = [option for each in views for option in each.get("options", chosen.options).items()]
    except (OSError, ValueError, KeyError, TypeError):
        return
    fault = None
    if other is not None:
        fault = f"views of another page ({other['url']})"
    elif (differs := next((each for each in earlier if chosen.options.get(each[0]) != each[1]), None)) is not None:
        fault = f"views with another value of `{differs[0]}` ({json.dumps(differs[1])})"
    elif len(views) > number:
        fault = f"{len(views)} views, and this load has {number}"
    if fault is not None:
        raise refusal(out, fault)


def _served(target: str, protocol: str, tls: str | None, *, compression: bool) -> _Target:
    """Return a page that is served inside the link."""
    recorded, without = recording.file_of(Path(target)), []
    if recorded is None:
        page = files.load(target)
        tls = tls or ("TLSv1.3" if protocol in ("h2", "h3") else "none")
        scheme = "http" if tls == "none" else "https"
        objects = {url_of(each, scheme): each["name"] for each in page["object"]}
        name, url, origins = page["name"], url_of(page["object"][0], scheme), origins_of(objects)
        source = {"page": page, "recording": None}
    else:
        # Read here, so that errors come before the link.
        found = recording.contents(recorded, compression=False)
        without = recording.check_document(recorded, found)
        objects = {url: url for url in found}
        name, url, origins = recording.name_of(recorded), recording.document_of(recorded), origins_of(objects)
        source = {"page": None, "recording": str(recorded.resolve())}
        secure = any(each.is_secure for each in origins)
        if tls is not None and (tls != "none") != secure:
            how = "over TLS" if secure else "without TLS"
            raise UsageError(f"{target}: the site was recorded {how}", f"remove --tls {tls}")
        tls = tls or ("TLSv1.3" if secure else "none")
    if protocol in ("h2", "h3"):
        if tls == "none":
            raise UsageError(f"{protocol} needs TLS", "remove `--tls none`, or select http/1.1 for a site without TLS")
        if protocol == "h3" and tls != "TLSv1.3":
            raise UsageError("h3 needs TLS 1.3", "remove --tls")
        extras.require("page", "hypercorn", *(["aioquic"] if protocol == "h3" else []))
    hosts = list(dict.fromkeys(each.host for each in origins))
    options = _protocol_options(protocol, origins)
    plan = source | {"closed": True, "hosts": hosts, "protocol": protocol, "tls": tls, "compression": compression}
    plan |= {"options": options, "may_be_incomplete": False, "origins": [astuple(each) for each in origins]}
    secure = [each for each in origins if each.is_secure]
    return _Target(name, url, objects, plan, None, hosts, secure=secure, without=without)


_ADDRESS = re.compile(r"[\w.-]+:\d+(/.*)?|localhost(/.*)?")
_LOCALHOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


def _check_kind(target: str) -> None:
    """Refuse what is not a page, but is often given as one.

    Raises:
        UsageError: It is an address without a scheme, or a site that was not recorded.
    """
    path = Path(target)
    if _ADDRESS.fullmatch(target) and not path.exists():
        raise UsageError(f"{target} is no page", f"write a URL: http://{target}")
    is_plain = path.is_dir() and not (path / recording.HAR).is_file()
    if is_plain or path.suffix.lower() in {".htm", ".html"}:
        folder = path if is_plain else path.parent
        serve = f"--serve 'python3 -m http.server 8000 -d {folder}'"
        name = "" if is_plain else path.name
        what = "a folder without a recorded site (site.har)" if is_plain else "an HTML file, not a page file"
        raise UsageError(f"{target} is {what}", f"serve it: airpath page load http://server:8000/{name} {serve}")


def _url(
    url: str,
    protocol: str | None,
    tls: str | None,
    serve: str | None,
    hosts: Sequence[str],
    host_ports: Sequence[int],
) -> _Target:
    """Return a page of the user's own server, or of the outside."""
    try:
        origin = origin_of(url)
    except ValueError as error:
        raise UsageError(str(error), "name a page, a file, a folder or a URL") from None
    if tls is not None:
        raise UsageError("--tls is for pages that airpath serves", "remove it: the URL and its server decide")
    if protocol == "http/1.0":
        raise UsageError("the browser cannot send HTTP/1.0", "remove --protocol: the server decides")
    if protocol is not None and PROTOCOLS[protocol] in ("h2", "h3") and not origin.is_secure:
        raise UsageError(f"{protocol} needs TLS", "name a URL with https://")
    if hosts and serve is None:
        raise UsageError("--host names a server at the other end", "add --serve CMD")
    closed = serve is not None or bool(host_ports)
    if origin.host in _LOCALHOSTS:
        port = origin.port
        url = f"http://server:{port}/"
        how = f"use {url}" if serve else f"use --host-port {port} and {url} for a server of this host"
        raise UsageError(f"{origin.host} is the mobile itself, where no server runs", how)
    if host_ports and serve is None and origin.host != "server":
        raise UsageError("--host-port is reached as host `server`", f"name a URL like http://server:{host_ports[0]}/")
    own = [origin.host] if closed and origin.host != "server" else []
    names = list(dict.fromkeys((*own, *hosts)))
    options = [] if protocol is None else _protocol_options(PROTOCOLS[protocol], [origin])
    # The only server of a closed link is the user's, with a certificate of its own.
    options += ["--ignore-certificate-errors"] if closed and origin.is_secure else []
    plan = {"closed": closed, "hosts": names, "options": options, "may_be_incomplete": True}
    return _Target(url, url, None, plan, serve, names, host_ports)


def _protocol_options(protocol: str, origins: Sequence[Origin]) -> list[str]:
    """Return the options of Chromium that select a protocol."""
    options = list(_WITHOUT[protocol])
    if protocol == "h3":
        secure = ",".join(each.authority for each in origins if each.is_secure)
        options += ["--enable-quic", f"--origin-to-force-quic-on={secure}"]
    return options


def _reason(folder: Path, linked: Linked) -> LoadError:
    """Return why the browser or the link failed."""
    file = folder / "error"
    if file.is_file():
        reason = json.loads(file.read_text(encoding="utf-8"))
        return LoadError(reason["message"], next_step=reason["next_step"])
    text = (linked.stderr or b"").decode(errors="replace").strip()
    return LoadError(error_in(text) or "\n".join(text.splitlines()[-5:]) or "no message")


def _keep(folder: Path, out: Path, chosen: _Target) -> list[dict[str, Any]]:
    """Write what the browser measured to the result folder; return the views."""
    file = folder / "views.json"
    if not file.is_file():
        return []
    raw = json.loads(file.read_text(encoding="utf-8"))
    views = [figures(each, chosen.name, chosen.objects) | {"options": chosen.options} for each in raw]
    (out / "page.json").write_text(json.dumps(views, indent=1), encoding="utf-8")
    if (folder / "filmstrip").is_dir():
        shutil.move(folder / "filmstrip", out / "filmstrip")
    pages, entries = [], []
    for each, view in zip(raw, views, strict=True):
        identifier = f"run_{each['run']}_view_{each['view']}"
        pages.append(_har_page(identifier, view))
        entries += [har_browser.entry(request, identifier) for request in each["requests"]]
    har_log.write(out / "page.har", pages, entries)
    return views


def _har_page(identifier: str, view: Mapping[str, Any]) -> dict[str, Any]:
    def milliseconds(name: str) -> float:
        return -1 if view[name] is None else view[name] * 1e3

    return {
        "startedDateTime": har_log.date(view["started_s"]),
        "id": identifier,
        "title": view["page"],
        "pageTimings": {
            "onContentLoad": milliseconds("content_loaded_s"),
            "onLoad": milliseconds("load_event_s"),
            "_firstContentfulPaint": milliseconds("first_contentful_paint_s"),
            "_largestContentfulPaint": milliseconds("largest_contentful_paint_s"),
        },
    }
