"""The tree of commands, and the help of `airpath`."""

from typing import Annotated

import typer

from airpath.cli import (
    compare,
    ctl,
    doctor,
    export,
    link,
    measure,
    page,
    plot,
    presets,
    proxy,
    replay,
    report,
    run,
    study,
    sweep,
    trace,
    trace_compare,
)
from airpath.cli.messages import help_without_command
from airpath.cli.proxy_option import WithProxyOption

_HELP = """Simulate, emulate and analyse Internet protocols over GSM, GPRS, UMTS and HSDPA.

\b
Examples:
  airpath run examples/hs-dsch.toml
  airpath run examples/hs-dsch.toml --set bearer.downlink.bler=0.1 --out runs/lossy
  airpath report runs/lossy -o report.html
  airpath plot runs/lossy --what time-sequence -o figure.pdf
  airpath export runs/lossy --format perfetto -o trace.json
  airpath replay runs/lossy --set fixed.queue.packets=20
  airpath link hs-dsch-384 --serve 'python3 -m http.server 8000' -- curl -O http://server:8000/file
  airpath proxy run proxy.toml
  airpath measure bulk server.example --bytes "10 MB"
  airpath trace capture.pcapng -o report.html
  airpath presets list
  airpath page show static-site
  airpath study run hsdpa-sim
  airpath sweep examples/plans/errors.toml --out runs/sweep
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

# Plain help text: it needs no import of rich, and is the same on a terminal, in a pipe and in a
# log.
app = typer.Typer(
    name="airpath",
    help=_HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run", cls=WithProxyOption)(run.run)
app.command("link", cls=WithProxyOption)(link.link)
app.command("ctl")(ctl.ctl)
app.command("doctor")(doctor.doctor)
app.add_typer(measure.app, name="measure")
app.add_typer(proxy.app, name="proxy")
app.command("replay")(replay.replay)
app.command("trace", cls=trace_compare.WithCompare)(trace.trace)
app.add_typer(presets.app, name="presets")
app.add_typer(page.app, name="page")
app.add_typer(study.app, name="study")
app.command("sweep")(sweep.sweep)
app.command("compare")(compare.compare)
app.command("report")(report.report)
app.command("plot")(plot.plot)
app.command("export")(export.export)


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
