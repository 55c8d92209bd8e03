"""The tree of commands, and the help of `airpath`."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from airpath.cli.messages import help_without_command

_HELP = """Simulate, emulate and analyse Internet protocols over GSM, GPRS, UMTS, HSDPA, LTE, NR and Wi-Fi.

\b
Examples:
  airpath run gprs
  airpath run scenario.toml --set fixed.delay='50 ms' --repeat 30 --format csv
  airpath run hs-dsch-384 --set bearer.bler=0.1 --capture --out runs/lossy
  airpath report runs/lossy -o report.html
  airpath plot runs/lossy --what time-sequence -o figure.pdf
  airpath export runs/lossy --format perfetto -o trace.json
  airpath replay runs/lossy --set bearer.queue.packets=20
  airpath link hs-dsch-384 --serve 'python3 -m http.server 8000' -- curl http://server:8000/
  airpath proxy run proxy.toml
  airpath measure bulk server.example --bytes "10 MB"
  airpath trace capture.pcapng -o report.html
  airpath presets list
  airpath page show static-site
  airpath study run hsdpa-sim
  airpath sweep plan.toml --out runs/sweep
  airpath compare runs/before runs/after --fail-if 'duration_s p95 > 5 %'

\b
Exit codes:
  0    done; aborted or unfinished flows are a result, not a failure
  1    the run, or a run of a sweep, stopped on an error; a finding of a study does not hold; a
       rule of a comparison failed
  2    bad usage, or a scenario, plan, preset, page, result folder or capture that cannot be used
  3    the result could not be written in full; the written part is kept
  130  interrupted by Ctrl-C; the result until then is kept
  141  the reader of standard output closed the pipe
"""

COMMANDS = {
    "run": "Run a scenario in virtual time and print its figures.",
    "link": "Run a real program on an emulated link.",
    "ctl": "Print the state of a running link or live proxy, or change it.",
    "doctor": "Check what emulated links need on this host.",
    "replay": "Send the packets of a result through its network again.",
    "trace": "Show the causes of each TCP connection's elapsed time.",
    "sweep": "Run a scenario with many settings, and keep one table.",
    "compare": "Compare results with a base, and fail on a change for a CI.",
    "report": "Draw results as one HTML file that works offline.",
    "plot": "Draw one figure of results as an image for a paper.",
    "export": "Write a result as CSV tables, as a trace or as HAR.",
    "measure": "Measure a real network with the simulator's workloads.",
    "proxy": "Run a transport-level proxy for the mobiles of a router.",
    "presets": "List and show presets of bearers, environments and proxies.",
    "page": "List, show, import and load web pages.",
    "study": "List and run published studies.",
}
"""The modules of the commands, with the lines of `airpath --help`."""

_CLASSES = {
    "run": ("proxy_option", "WithProxyOption"),
    "link": ("misplaced_arguments", "LinkArguments"),
    "trace": ("trace_compare", "WithCompare"),
}
"""The commands with a class of their own: its module and its name."""


class _Commands(TyperGroup):
    """The commands. Each is imported when it is used, so that `airpath --help` imports none."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; `None` if there is none of this name."""
        return _load(cmd_name) if cmd_name in self.commands else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the section of the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _load(name: str) -> Any:
    from airpath.cli.repeated_option import WithSingleOptions

    module = import_module(f"airpath.cli.{name}")
    loaded = typer.Typer(add_completion=False, rich_markup_mode=None)
    if hasattr(module, "app"):
        for command in module.app.registered_commands:
            if command.cls in (None, TyperCommand):
                command.cls = WithSingleOptions
        loaded.add_typer(module.app, name=name)
    else:
        place = _CLASSES.get(name)
        own_class = getattr(import_module(f"airpath.cli.{place[0]}"), place[1]) if place else WithSingleOptions
        loaded.command(name, cls=own_class)(getattr(module, name))
        loaded.callback()(lambda: None)  # or the only command is the group
    group: Any = typer.main.get_command(loaded)
    return group.commands[name]


# Plain help text: it needs no import of rich, and is the same on a terminal, in a pipe and in a
# log.
app = typer.Typer(
    name="airpath",
    cls=_Commands,
    help=_HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from airpath import __version__

        typer.echo(f"airpath {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Handle the options before any command."""
    help_without_command(context)
