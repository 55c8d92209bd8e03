"""The name of `warnings` for airpath.cli.trace."""

from airpath.trace.warnings import warnings_of

__all__ = ["warnings_of"]
