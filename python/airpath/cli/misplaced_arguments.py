"""Errors of arguments that stand where a command does not expect them."""

import shlex
from typing import Any

from airpath.cli.messages import Problem
from airpath.cli.proxy_option import WithProxyOption

_SERVE = "--serve"


class LinkArguments(WithProxyOption):
    """The arguments of `airpath link`: the link and the options, `--`, the command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            Problem: The link is missing, or the command of `--serve` is not quoted.
        """
        if "--" in args and not ctx.resilient_parsing:
            end = args.index("--")
            self._check_serve(ctx, args[:end])
            if args[end + 1 :] and self._lacks_link(ctx, args[:end]):
                example = f"`airpath link gprs -- {shlex.join(args[end + 1 :])}`"
                raise Problem(
                    "the link is missing before `--`", next_step=f"name a preset or a scenario, as in {example}"
                )
        return super().parse_args(ctx, args)

    def _check_serve(self, ctx: Any, args: list[str]) -> None:
        """Check that the server's command is one argument.

        Raises:
            Problem: It is several.
        """
        if _SERVE not in args:
            return
        start = args.index(_SERVE)
        options = {name for parameter in self.params for name in (*parameter.opts, *parameter.secondary_opts)}
        words: list[str] = []
        for word in args[start + 1 :]:
            if word.partition("=")[0] in options and words:
                break
            words.append(word)
        if self._lacks_link(ctx, args[:start]):
            words = words[:-1]  # the link follows the server
        if len(words) > 1:
            quoted = shlex.quote(" ".join(words))
            raise Problem(
                f"--serve takes one argument, and `{' '.join(words)}` is {len(words)} words",
                next_step=f"quote the command of the server: --serve {quoted}",
            )

    def _lacks_link(self, ctx: Any, args: list[str]) -> bool:
        """Return whether arguments before `--` have no link; faulty ones are reported later."""
        try:
            return not self.make_parser(ctx).parse_args(args=list(args))[0].get("scenario")
        except Exception as error:
            if hasattr(error, "format_message"):
                return False
            raise


class PageLoadArguments(WithProxyOption):
    """The arguments of `airpath page load`: the page, and the link by its option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            Problem: The link is a second argument.
        """
        values, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        if rest and not values.get("link") and not ctx.resilient_parsing:
            raise Problem(
                f"unexpected argument '{rest[0]}'", next_step=f"name the link by its option: --link {rest[0]}"
            )
        return super().parse_args(ctx, args)
