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


def as_help(text: str) -> str:
    """Return a docstring without its indentation as the help of a command: examples keep their lines."""
    return text.replace("\nExample", "\n\b\nExample")


def described(
    group: typer.Typer, *, cls: type[TyperCommand] | None = None, exit_codes: str = EXIT_CODES
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command, of a class of its own if it has one, of a function; its docstring is the help."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        return group.command(help=as_help(inspect.getdoc(function) or ""), epilog=exit_codes, cls=cls)(function)

    return decorate
