"""`airpath ctl`: print the state of a running link, or change its conditions."""

import json
from typing import Annotated, Any, Literal

import typer

from airpath.cli.messages import ExitCode, Problem


def ctl(
    change: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[K=V]...|reload", help="The change, as in a scenario; without one the state is printed."
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(metavar="PROCESS|DIR", help="The link, by process number or result folder."),
    ] = None,
    format: Annotated[Literal["text", "json"], typer.Option(help="How to print the state.")] = "text",
) -> None:
    """Print the state of a running link or live proxy, or change it.

    \b
    Examples:
      airpath ctl                                    # rate, queues, losses of the link that runs
      airpath ctl outage="3 s"
      airpath ctl handover="350 ms"
      airpath ctl rate="128 kbit/s" direction=up
      airpath ctl loss=0.02 to=fixed
      airpath ctl --link runs/one bler=0.3
      airpath ctl reload                             # a live proxy reads its configuration again

    \b
    Exit codes:
      0    done
      1    the link is not running, or not ready
      2    the link does not support the change; nothing was changed
    """
    from airpath.cli.key_value import parse_pairs
    from airpath.control import NoLinkError, find, send

    reloads = change == ["reload"]
    pairs = [] if reloads else change or []
    values = {key: _value(text) for key, text in parse_pairs("airpath ctl", pairs, example='outage="3 s"').items()}
    request: dict[str, Any] = {"reload": {}} if reloads else {"change": values} if values else {"status": {}}
    try:
        answer = send(find(link), request)
    except NoLinkError as error:
        raise Problem(str(error), next_step=error.next_step, exit_code=ExitCode.FAILED) from None
    except ValueError as error:
        raise Problem(str(error), next_step=_after_refusal(str(error))) from None
    if format == "json":
        typer.echo(json.dumps(answer))
    elif reloads or values:
        typer.echo(f"done at {answer['time_s']:.3f} s")
    else:
        _print_state(answer)


def _after_refusal(reason: str) -> str:
    """Return the next step after a request that a link or a proxy refused."""
    if "old configuration" not in reason:
        return "`airpath ctl --help` shows examples"
    # The proxy reports what it cannot change while it runs, and that its routing rules are gone.
    return "start the proxy again" if "again" in reason else "`airpath proxy check FILE` checks a configuration"


def _value(text: str) -> Any:
    """Return a number or boolean; any other value is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _print_state(state: dict[str, Any]) -> None:
    typer.echo(f"running for {state['time_s']:.1f} s, 99 % of packets at most {1e3 * state['late_p99_s']:.2f} ms late")
    for link in state["links"]:
        lost = ", ".join(f"{count['packets']} {cause}" for cause, count in link["dropped"].items()) or "none lost"
        typer.echo(
            f"{link['component']:>10} {link['direction']:<4}  {link['delivered_packets']:>8} packets delivered, "
            f"{link['queued_packets']} waiting, {lost}"
        )
    if proxy := state.get("proxy"):
        _print_proxy(proxy)


def _print_proxy(proxy: dict[str, Any]) -> None:
    def by_cause(counts: dict[str, int]) -> str:
        return ", ".join(f"{count} {cause}" for cause, count in counts.items()) or "none"

    typer.echo(f"{proxy['connections']} connections of {proxy['opened']} opened")
    typer.echo(f"packets passed unchanged: {by_cause(proxy['passed'])}; dropped: {by_cause(proxy['dropped'])}")
    if http := proxy["http"]:
        helped = http["response_bytes"]
        bypassed = sum(count for name, count in http.items() if name.startswith("bypassed_bytes_"))
        typer.echo(
            f"HTTP: {http['requests']} requests; {helped} B of {helped + bypassed} B to the mobiles were interpreted"
        )
    for mobile in proxy["mobiles"]:
        typer.echo(
            f"{mobile['mobile']:>20}  {mobile['connections']} connections, {mobile['half_open']} half-open, "
            f"{mobile['outstanding_bytes']} of {mobile['budget_bytes']} B outstanding, "
            f"{mobile['queued_bytes']} B queued"
        )
