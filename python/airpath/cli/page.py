"""`airpath page`: web pages as data."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from airpath.cli.messages import ExitCode, Problem, check_outputs, explained, help_without_command, writing

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
    print_table(("page", "objects", "bytes", "compressed", "what it is"), rows)


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


@app.command("import")
def import_page(
    source: Annotated[Path, typer.Argument(metavar="PATH", help="A HAR file, or the folder of a saved site.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page file to write.")],
    page: Annotated[
        str | None, typer.Option(metavar="ID", help="The page in a HAR file; its first page by default.")
    ] = None,
    document: Annotated[
        str | None, typer.Option(metavar="PATH", help="The document in a folder; index.html by default.")
    ] = None,
) -> None:
    """Make a page file from a HAR file or from the folder of a saved site.

    \b
    Examples:
      airpath page import site.har -o site.page
      airpath page import saved/ --document start.html -o site.page
    """
    from airpath.page import PageProblemError, from_folder, from_har, load

    if source.is_dir() and page is not None:
        raise Problem("--page needs a HAR file", next_step="remove it")
    if not source.is_dir() and document is not None:
        raise Problem("--document needs a folder", next_step="remove it")
    with explained():
        check_outputs(out)
        try:
            imported = from_folder(source, document or "index.html") if source.is_dir() else from_har(source, page)
        except PageProblemError as error:
            raise Problem(str(error)) from None
        except OSError as error:
            raise Problem(f"{source}: it cannot be read: {error.strerror}", next_step="check the path") from None
        with writing(out):
            imported.write(out)
        # The file is checked as scenarios check it.
        load(out.resolve())
    typer.echo(out)


@app.command("load")
def load_page(
    page: Annotated[str, typer.Argument(metavar="PAGE", help="A page, or a file.", autocompletion=_complete)],
    link: Annotated[
        str, typer.Option("--link", metavar="SCENARIO", help="A preset, or the file of a preset or scenario.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The result folder.")],
    protocol: Annotated[Literal["http/1.0", "http/1.1"], typer.Option(help="Protocol of the server.")] = "http/1.1",
    compression: Annotated[bool, typer.Option(help="Let the server compress.")] = True,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of loads, each in a new browser.")] = 1,
    repeat_view: Annotated[bool, typer.Option(help="Load the page again in each browser, with its cache.")] = False,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the scenario.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="The seed, in place of the scenario's.")] = None,
    timeout: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Limit of one browser.")] = 600,
    format: Annotated[Literal["text", "json"], typer.Option(help="On standard output: a table, or JSON.")] = "text",
) -> None:
    """Load a page in Chromium over an emulated link, from a server inside the link.

    The result folder is that of `airpath link`, with captures, page.har and page.json.

    \b
    Examples:
      airpath page load front-page --link umts-dch-384 -o runs/page
      airpath page load static-site --link gprs-3+1 --protocol http/1.0 --runs 5 -o runs/page

    \b
    Exit codes:
      0    done
      1    the link or a browser failed; earlier views are kept
      2    bad usage, page or scenario, or no Chromium
    """
    import subprocess

    from airpath.cli.key_value import parse_pairs
    from airpath.cli.output import print_table
    from airpath.page.devtools import BrowserError
    from airpath.page.load import LoadError
    from airpath.page.load import load as load_in_browser
    from airpath.quantities import seconds

    overrides = parse_pairs("--set", set or [], example="bearer.downlink.bler=0.1")
    with explained():
        try:
            loaded = load_in_browser(
                page,
                link,
                out,
                protocol=protocol,
                compression=compression,
                runs=runs,
                repeat_view=repeat_view,
                overrides=overrides,
                seed=seed,
                timeout=timeout,
            )
        except BrowserError as error:
            raise Problem(str(error)) from None
        except LoadError as error:
            typer.echo(error.log, err=True)
            raise Problem(str(error), exit_code=ExitCode.FAILED) from None
        except subprocess.CalledProcessError as error:
            typer.echo((error.stderr or b"").decode(errors="replace").rstrip(), err=True)
            raise Problem("the link could not be set up", exit_code=ExitCode.FAILED) from None
    if format == "json":
        typer.echo(json.dumps(loaded.views, indent=2))
    else:
        times = (
            "page_time_s",
            "first_byte_s",
            "first_contentful_paint_s",
            "largest_contentful_paint_s",
            "load_event_s",
        )
        rows = [
            (
                f"{each['run'] + 1}{', repeated' if each['view'] else ''}",
                *("-" if each[name] is None else seconds(each[name]) for name in times),
                str(each["requests"]),
                str(each["connections"]),
            )
            for each in loaded.views
        ]
        head = (
            "run",
            "page time",
            "first byte",
            "first paint",
            "largest paint",
            "load event",
            "requests",
            "connections",
        )
        print_table(head, rows)
    for each in loaded.views:
        if each["missing"]:
            typer.echo(f"run {each['run'] + 1}: not requested: {', '.join(each['missing'])}", err=True)
    if loaded.error is not None:
        raise Problem(f"later views are missing: {loaded.error}", exit_code=ExitCode.FAILED)
