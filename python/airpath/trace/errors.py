"""Errors of the arguments of a trace."""

from airpath._native import TraceError
from airpath.next_step import WithNextStep


class TraceInputError(WithNextStep, TraceError):
    """The files or options of a trace do not fit together."""
