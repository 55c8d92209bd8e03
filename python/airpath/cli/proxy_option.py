"""`--proxy [NAME|FILE]`: puts a proxy before the bearer of a scenario."""

from pathlib import Path
from typing import Annotated, Any

import typer

from airpath.cli.repeated_option import WithSingleOptions

_OPTION = "--proxy"
_DEFAULT = "adaptive"

Proxy = Annotated[
    str | None,
    typer.Option(
        _OPTION,
        metavar="[NAME|FILE]",
        help="Put a proxy before the bearer: a preset (default: adaptive), or the [proxy] table of a TOML file;"
        " --set proxy.KEY=VALUE changes it.",
    ),
]
"""`--proxy`: the preset of the proxy; `None` without the option."""


class WithProxyOption(WithSingleOptions):
    """A command with `--proxy`, whose value is optional."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--proxy` its default where the next argument is an option, or there is none."""
        own = args.index("--") if "--" in args else len(args)
        for index in range(own):
            following = args[index + 1 : index + 2]
            if args[index] == _OPTION and (not following or following[0].startswith("-")):
                args[index] = f"{_OPTION}={_DEFAULT}"
        return super().parse_args(ctx, args)


def proxy_override(proxy: str | None) -> dict[str, str]:
    """Return the override that puts this proxy below the scenario's own keys."""
    if proxy is None:
        return {}
    # A path is relative to the working directory, not to the scenario.
    is_path = "/" in proxy or proxy.endswith(".toml")
    return {"proxy.preset": str(Path(proxy).absolute()) if is_path else proxy}
