"""`airpath page`: web pages as data."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from airpath.cli.messages import (
    ExitCode,
    Problem,
    check_outputs,
    cleanly_ended,
    explained,
    help_without_command,
    note,
    problem_of,
    replacing_result,
    writing,
)
from airpath.cli.misplaced_arguments import PageLoadArguments
from airpath.cli.options import Overrides, Seed
from airpath.cli.proxy_option import Proxy, proxy_override
from airpath.cli.scenario_notes import BROWSER, note_late_on_link, note_unused_by_link

app = typer.Typer(help="List, show, import and load web pages.", rich_markup_mode=None, invoke_without_command=True)
app.callback()(help_without_command)


def _complete(incomplete: str) -> list[str]:
    from airpath.page import names

    return [name for name in names() if name.startswith(incomplete)]


@app.command("list")
def list_pages(
    format: Annotated[Literal["text", "json"], typer.Option(help="On standard output: a table, or JSON.")] = "text",
) -> None:
    """List the pages that a scenario can name.

    \b
    Examples:
      airpath page list
      airpath page list --format json
    """
    from airpath.cli.output import print_table
    from airpath.page import load, names
    from airpath.quantities import size

    found = [load(name) for name in names()]
    if format == "json":
        typer.echo(json.dumps(found, indent=2))
        return
    rows = [
        (each["name"], str(len(each["object"])), size(each["bytes"]), size(each["compressed_bytes"]), each["title"])
        for each in found
    ]
    print_table(("page", "objects", "bytes", "compressed", "what it is"), rows, brief="what it is")


@app.command("show")
def show_page(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A page, or a file.", autocompletion=_complete)],
    format: Annotated[
        Literal["text", "json", "toml"],
        typer.Option(help="On standard output: a table, JSON, or the TOML to copy and change."),
    ] = "text",
) -> None:
    """Show the objects of a page, and where its numbers come from.

    \b
    Examples:
      airpath page show static-site
      airpath page show front-page --format toml > my.page
      airpath page show my.page
    """
    from airpath.cli.output import print_table
    from airpath.page import load

    with explained():
        page = load(name)
    if format == "json":
        typer.echo(json.dumps(page, indent=2))
        return
    if format == "toml":
        import tomli_w

        keys = ("name", "title", "source", "object")
        typer.echo(tomli_w.dumps({"format": 1} | {key: page[key] for key in keys if page.get(key)}), nl=False)
        return
    rows = [
        tuple(str(each.get(key, "")) for key in ("name", "type", "size", "compressed", "referrer", "at", "origin"))
        for each in page["object"]
    ]
    print_table(("object", "type", "size", "compressed", "referrer", "at", "origin"), rows)
    if page.get("source"):
        typer.echo(f"source: {page['source']}")


def _importable(source: Path) -> Path:
    """Refuse what is no page to import.

    Raises:
        Problem: It is a URL, a TOML or page file, or a capture.
    """
    from airpath.cli.command_for import command_for
    from airpath.input_kind import is_capture
    from airpath.page.warc import is_warc

    text = str(source)
    if "://" in text or text.startswith(("http:/", "https:/")):
        url = re.sub(r"^(\w+):/+", r"\1://", text)
        raise Problem(f"{url} is a URL, not a file", next_step=f"`airpath page record {shlex.quote(url)} -o FOLDER`")
    if source.is_file() and source.suffix in (".toml", ".page"):
        what = "a page file already" if source.suffix == ".page" else "a TOML file, not a HAR or WARC file"
        raise Problem(f"{source} is {what}", next_step=f"`{command_for(text)}`")
    if source.is_file() and not is_warc(source) and is_capture(source):
        raise Problem(f"{source} is a capture, not a HAR or WARC file", next_step=f"`{command_for(text)}`")
    return source


@app.command("import")
def import_page(
    source: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A HAR or WARC file, or the folder of a saved site.", callback=_importable),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page file to write.")],
    page: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The page in a HAR file, or its URL in a WARC file; the first by default."),
    ] = None,
    document: Annotated[
        str | None, typer.Option(metavar="PATH", help="The document in a folder; index.html by default.")
    ] = None,
) -> None:
    """Make a page file from a HAR file, a WARC file or the folder of a saved site.

    \b
    Examples:
      airpath page import site.har -o site.page
      airpath page import site.warc.gz -o site.page
      airpath page import saved/ --document start.html -o site.page
    """
    from airpath import ScenarioError
    from airpath.files import temporary_folder
    from airpath.page import from_folder, from_har, from_warc, load
    from airpath.page.warc import is_warc

    if source.is_dir() and page is not None:
        raise Problem("--page needs a HAR or WARC file", next_step="remove it")
    if not source.is_dir() and document is not None:
        raise Problem("--document needs a folder", next_step="remove it")
    with explained(), _browser_problems():
        check_outputs(out)
        try:
            if source.is_dir():
                imported = from_folder(source, document or "index.html")
            else:
                imported = from_warc(source, page) if is_warc(source) else from_har(source, page)
        except OSError as error:
            raise Problem(f"{source}: it cannot be read: {error.strerror}", next_step="check the path") from None
        # It is checked as scenarios check it, before it replaces an earlier file.
        with temporary_folder("airpath-page-") as folder:
            imported.write(draft := folder / out.name)
            try:
                load(draft)
            except ScenarioError as error:
                reason = re.sub(rf"^{re.escape(str(draft))}:(\d+:)? ", "", str(error))
                raise Problem(f"{source}: {reason}", next_step="no page file was written") from None
        with writing(out):
            imported.write(out)
    typer.echo(out)


@app.command("record")
def record_page(
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL of the document.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder for the recording.")],
    timeout: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Limit of the browser.")] = 120,
) -> None:
    """Save a site through Chromium, so that it can be loaded again without the Internet.

    FOLDER gets site.har with the contents of all responses, for `airpath page load FOLDER`, and
    site.page, for the simulator.

    \b
    Examples:
      airpath page record https://www.example.com/ -o recorded/example
      airpath page load recorded/example --link umts-dch-384 --protocol h2 -o runs/example
      airpath page show recorded/example/site.page
    """
    from airpath.page import load
    from airpath.page.record import record
    from airpath.page.recording import PAGE
    from airpath.quantities import size

    with explained(), _browser_problems(), cleanly_ended():
        check_outputs(folders=[out])
        try:
            recorded = record(url, out, timeout=timeout)
        except ValueError as error:
            raise Problem(str(error), next_step="give the URL of a document") from None
        # The file is checked as scenarios check it.
        load((out / PAGE).resolve())
    for each in recorded.without:
        note(f"no content: {each}")
    typer.echo(f"{out}: {recorded.responses} responses, {size(recorded.bytes)}")


@app.command("load", cls=PageLoadArguments)
def load_page(
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE|FOLDER|URL",
            help="A page, a recorded site (folder, HAR or WARC file), or a URL.",
            autocompletion=_complete,
        ),
    ],
    link: Annotated[
        str, typer.Option("--link", metavar="SCENARIO", help="A preset, or the file of a preset or scenario.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The result folder.")],
    protocol: Annotated[
        Literal["http/1.0", "http/1.1", "h1", "h2", "h3"] | None,
        typer.Option(help="Protocol; http/1.1 by default, with a URL what its server offers."),
    ] = None,
    tls: Annotated[
        Literal["none", "TLSv1.2", "TLSv1.3"] | None,
        typer.Option(help="TLS; by default where the protocol or the recorded URLs need it."),
    ] = None,
    proxy: Proxy = None,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="CMD", help="With a URL: run this server at the other end; without it the outside is there."
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further name of that server, with an address of its own; repeatable."),
    ] = None,
    host_port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT", help="With a URL: reach this port of the host's own localhost at `server`; repeatable."
        ),
    ] = None,
    compression: Annotated[bool, typer.Option(help="Let the server compress.")] = True,
    dns: Annotated[
        bool,
        typer.Option("--dns", help="Let the browser look up names over the link; by default it has their addresses."),
    ] = False,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of loads, each in a new browser.")] = 1,
    repeat_view: Annotated[bool, typer.Option(help="Load the page again in each browser, with its cache.")] = False,
    set: Overrides = None,
    seed: Seed = None,
    timeout: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Limit of one browser.")] = 600,
    format: Annotated[Literal["text", "json"], typer.Option(help="On standard output: a table, or JSON.")] = "text",
) -> None:
    """Load a page in Chromium over an emulated link.

    A server inside the link serves pages and recorded sites. The result folder is that of `airpath
    link`, with captures, page.json, page.har and filmstrip.

    \b
    Examples:
      airpath page load front-page --link umts-dch-384 -o runs/page
      airpath page load static-site --link gprs-3+1 --protocol h2 --runs 5 -o runs/page
      airpath page load static-site --link gprs-3+1 --proxy http -o runs/page
      airpath page load http://server:8000/ --serve 'python3 -m http.server 8000' --link wired -o runs/page
      airpath page load http://server:3000/ --host-port 3000 --link 3g -o runs/page
      airpath page load https://www.example.com/ --link umts-dch-384 -o runs/page

    \b
    Exit codes:
      0    done
      1    the link or a browser failed; views before the failure are kept, or an earlier result
      2    bad usage, page or scenario, or no Chromium
    """
    import subprocess

    from airpath import _native
    from airpath.cli.key_value import parse_pairs
    from airpath.cli.link import ports_of, scenario_of
    from airpath.page.load import LoadError
    from airpath.page.load import load as load_in_browser
    from airpath.run import override_texts

    overrides = proxy_override(proxy) | parse_pairs("--set", set or [], example="bearer.downlink.bler=0.1")
    ports = ports_of(host_port or [])
    with explained(), _browser_problems(), cleanly_ended(), replacing_result(out):
        scenario, sets = scenario_of(link), override_texts(overrides)
        _native.files(*scenario, sets)
        try:
            loaded = load_in_browser(
                page,
                link,
                out,
                protocol=protocol,
                tls=tls,
                serve=serve,
                hosts=host or [],
                host_ports=ports,
                compression=compression,
                runs=runs,
                repeat_view=repeat_view,
                overrides=overrides,
                seed=seed,
                timeout=timeout,
                dns=dns,
            )
        except LoadError as error:
            raise problem_of(error, ExitCode.FAILED) from None
        except subprocess.CalledProcessError as error:
            log = (error.stderr or b"").decode(errors="replace").strip()
            raise Problem(f"the link failed: {log.removeprefix('error: ')}", exit_code=ExitCode.FAILED) from None
    _print_views(loaded.views, format)
    if loaded.without:
        examples = ", ".join(loaded.without[:3]) + (", …" if len(loaded.without) > 3 else "")
        note(f"{len(loaded.without)} recorded URLs have no content and were 404: {examples}")
    note_unused_by_link(scenario[0], overrides)
    ends = [each["simulated_s"] for each in loaded.linked.result.summary["repetitions"]]
    note_late_on_link(scenario, sets, ends, cause=BROWSER)
    result = loaded.linked.result.path
    note(f"the result is in {result}; `airpath report {result} -o report.html` draws it")
    if loaded.error is not None:
        raise Problem(f"later views are missing: {loaded.error}", exit_code=ExitCode.FAILED)


_TIMES = {
    "page time": "page_time_s",
    "first byte": "first_byte_s",
    "first paint": "first_contentful_paint_s",
    "largest paint": "largest_contentful_paint_s",
    "Speed Index": "speed_index_s",
    "load event": "load_event_s",
}


def _print_views(views: list[dict[str, Any]], format: str) -> None:
    """Print the views on standard output, and notes about their requests."""
    from airpath.cli.output import print_table
    from airpath.quantities import seconds

    if format == "json":
        typer.echo(json.dumps(views, indent=2))
    else:
        rows = [
            (
                f"{each['run'] + 1}{', repeated' if each['view'] else ''}",
                *("-" if each[name] is None else seconds(each[name]) for name in _TIMES.values()),
                str(each["requests"]),
                str(each["connections"]),
            )
            for each in views
        ]
        print_table(("run", *_TIMES, "requests", "connections"), rows)
    for each in views:
        if each["missing"]:
            note(f"run {each['run'] + 1}: not requested: {', '.join(each['missing'])}")
        for url, reason in each["failed"].items():
            note(f"run {each['run'] + 1}: {url}: {reason}")


@contextmanager
def _browser_problems() -> Iterator[None]:
    """Convert errors of browsers and of their arguments to a `Problem`."""
    from airpath.page import PageProblemError
    from airpath.page.devtools import BrowserError
    from airpath.page.load import UsageError

    try:
        yield
    except (BrowserError, PageProblemError, UsageError) as error:
        raise problem_of(error) from None
