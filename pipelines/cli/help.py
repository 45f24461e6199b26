"""How a command gets its help: the docstring of its function, and the exit codes that all commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import typer
from typer.core import TyperCommand

EXIT_CODES = (
    "Exit codes: 0 done, 1 a check failed or an unexpected error, 2 wrong usage or configuration, "
    "3 more unusable input than allowed, 130 stopped by Ctrl-C, 143 stopped by SIGTERM."
)


def help_text(function: Callable[..., object]) -> str:
    """Return a docstring as the help of a command: examples keep their lines."""
    return (inspect.getdoc(function) or "").replace("\nExample", "\n\b\nExample")


def described(
    group: typer.Typer, *, cls: type[TyperCommand] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command, of a class of its own if it has one, of a function; its docstring is the help."""
    return lambda function: group.command(help=help_text(function), epilog=EXIT_CODES, cls=cls)(function)
