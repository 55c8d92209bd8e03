"""`airpath proxy`: a live transport-level proxy on a router."""

import json
import os
import pwd
import signal
import subprocess
import tomllib
from contextlib import ExitStack, suppress
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
    from airpath.result_folder import NewResult, cleared_unless_started, new_result

    if capture and out is None:
        raise Problem("--capture needs a result folder", next_step="add --out DIR")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the proxy takes it
    with explained(), replacing_result(out), ExitStack() as stack:
        folder = None
        if out is not None:
            settings = tomllib.loads(_native.proxy_configuration(str(configuration)))
            new = NewResult("proxy", settings, capture=capture, log=not no_log)
            is_made = not out.exists()
            folder = stack.enter_context(new_result(out, new))
            if (user := settings.get("user")) is not None and os.geteuid() == 0:
                _give(out, user, is_made=is_made)
        try:
            with cleared_unless_started(folder):
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


def _give(out: Path, user: str, *, is_made: bool) -> None:
    """Give a new result folder to the user that a proxy of root becomes.

    Raises:
        Problem: This user cannot write to the folder.
    """
    # The proxy reports a user that is unknown, or that it cannot become.
    with suppress(KeyError, OSError):
        account = pwd.getpwnam(user)
        if is_made:
            os.chown(out, account.pw_uid, account.pw_gid)
        check = ["test", "-w", out]
        done = subprocess.run(check, user=account.pw_uid, group=account.pw_gid, extra_groups=[], check=False)
        if done.returncode != 0:
            raise Problem(
                f"{out} cannot be written by {user}, the `user` of the configuration",
                next_step="name a folder that this user can reach and write",
                exit_code=ExitCode.NOT_WRITTEN,
            )


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
