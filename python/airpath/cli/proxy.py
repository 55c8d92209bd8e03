"""`airpath proxy`: a live transport-level proxy on a router."""

import json
import signal
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from airpath.cli.doctor import check_text
from airpath.cli.messages import ExitCode, Problem, explained, help_without_command, note, replacing_result
from airpath.cli.options import Capture, NoLog, Out

app = typer.Typer(
    help="Run a transport-level proxy for the mobiles of a router.", rich_markup_mode=None, invoke_without_command=True
)
app.callback()(help_without_command)

Configuration = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")]


@app.command("run")
def run(
    configuration: Configuration,
    out: Out = None,
    capture: Capture = False,
    no_log: NoLog = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Continue the connections of the proxy that runs, which ends.")
    ] = False,
) -> None:
    """Run a proxy for the mobiles that CONFIG lists, until SIGINT or SIGTERM.

    It needs root or CAP_NET_ADMIN for the set-up, and drops them afterwards. When it ends, also by
    SIGKILL, the router forwards packets past it. SIGHUP, and `airpath ctl reload`, read CONFIG
    again.

    With --take-over it continues the connections of the proxy that runs on the same interface,
    which ends. It needs the same build, and the user of that proxy or root.

    \b
    Examples:
      airpath proxy check /etc/airpath/proxy.toml
      airpath proxy run /etc/airpath/proxy.toml
      airpath proxy run proxy.toml --out runs/evening --capture
      airpath proxy run proxy.toml --take-over       # in place of the one that runs
      airpath ctl                                    # its state
      airpath ctl reload

    \b
    Exit codes:
      0    ended by SIGINT or SIGTERM, or taken over
      1    the proxy cannot be set up on this host, or failed
      2    bad usage, or a configuration that cannot be used
      3    the result could not be written in full; the written part is kept
    """
    from airpath import LinkError, _native
    from airpath.result_folder import NewResult, new_result

    if capture and out is None:
        raise Problem("--capture needs a result folder", next_step="add --out DIR")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the proxy takes it
    with explained(), replacing_result(out), ExitStack() as stack:
        folder = None
        if out is not None:
            settings = tomllib.loads(_native.proxy_configuration(str(configuration)))
            new = NewResult("proxy", settings, capture=capture, log=not no_log)
            folder = stack.enter_context(new_result(out, new))
        try:
            _native.proxy_run(
                str(configuration),
                out=None if folder is None else str(folder),
                log=not no_log,
                capture=capture,
                take_over=take_over,
            )
        except LinkError as error:
            next_step = f"`airpath proxy check {configuration}` shows what it needs"
            raise Problem(str(error), next_step=next_step, exit_code=ExitCode.FAILED) from None
    if out is not None:
        note(f"the result is in {out}; `airpath report {out} -o report.html` draws it")


@app.command("check")
def check(
    configuration: Configuration,
    format: Annotated[Literal["text", "json"], typer.Option(help="How to print the findings.")] = "text",
) -> None:
    """Check CONFIG, and what the proxy needs on this host; change nothing.

    \b
    Examples:
      airpath proxy check /etc/airpath/proxy.toml
      airpath proxy check proxy.toml --format json

    \b
    Exit codes:
      0    the proxy can run
      1    something is missing on this host
      2    bad usage, or a configuration that cannot be used
    """
    from airpath import _native

    with explained():
        checks = json.loads(_native.proxy_check(str(configuration)))
    if format == "json":
        typer.echo(json.dumps(checks))
    else:
        for each in checks:
            typer.echo(check_text(each))
    missing = any(each["status"] == "missing" for each in checks)
    raise typer.Exit(ExitCode.FAILED if missing else ExitCode.OK)
