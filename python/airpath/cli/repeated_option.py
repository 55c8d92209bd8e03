"""Options that are given twice although they have one value."""

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperOption

from airpath.cli.messages import Problem

_REASONS = {"--link": "a command loads a page over one link"}
"""Why an option has one value, where a user may expect several."""


class WithSingleOptions(TyperCommand):
    """A command whose options with one value may not be repeated: the first would be ignored."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            Problem: An option with one value is given twice.
        """
        order = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        for option, times in Counter(order).items():
            has_value = isinstance(option, TyperOption) and not option.is_flag
            if times > 1 and has_value and not option.multiple:
                name = max(option.opts, key=len)
                next_step = f"give it once; {_REASONS[name]}" if name in _REASONS else "give it once"
                raise Problem(f"{name}: given twice", next_step=next_step)
        return super().parse_args(ctx, args)
