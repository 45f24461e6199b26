"""The groups of commands in `cppmill --help`: each command names its own where it is declared."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from enum import StrEnum
from typing import Any, TextIO

import typer
from typer._click.exceptions import BadParameter, NoSuchOption, UsageError
from typer.core import TyperGroup

from pipelines.console.console import exit_interrupted
from pipelines.console.failures import Failure, print_failure
from pipelines.console.terminal import silence
from schemas.declarations import BEAM_OPTIONS
from schemas.errors import ExitCode
from schemas.passwords import encode_spaces_of_arguments, redacted
from schemas.printing import printable
from schemas.resources import explain_refusal, explain_unreachable

PROGRAM = "cppmill"
ASKED = "_CPPMILL_COMPLETE"
"""The variable by which a shell asks this program for completions."""
_TEXTS = {"explain", "--document-separator"}
"""A command and an option that take a text, which is left as it is even if it looks like a URL."""


class Group(StrEnum):
    """The headings of `cppmill --help`, in their order."""

    RUN = "Run"
    LOOK = "Look"
    EXPORT = "Export"
    VOCABULARY = "Vocabulary"
    PUBLISH = "Publish"
    SHELL = "Shell"


@contextmanager
def ending_streams() -> Iterator[None]:
    """End the program after the block with a code of ours, also if a standard stream takes no more.

    The parser of arguments writes help, versions and what is wrong with arguments before a command handles errors.

    Raises:
        SystemExit: With the code of the block, or 1 in place of success.
    """
    code: str | int | None = None
    failure: OSError | None = None
    try:
        yield
    except SystemExit as end:
        code = end.code
    except OSError as error:
        if explain_refusal(error) is None and not isinstance(error, BrokenPipeError):
            raise
        is_usage = isinstance(error.__context__, UsageError)
        failure, code = (None, int(ExitCode.USAGE)) if is_usage else (error, int(ExitCode.FAILED_CHECK))
    refused = _flush(sys.stdout)
    if refused is not None and not code:
        failure, code = refused, int(ExitCode.FAILED_CHECK)
    if failure is not None and not isinstance(failure, BrokenPipeError):
        with suppress(OSError):
            sys.stderr.write(f"error: the output stream: {explain_refusal(failure)}\n")
    _flush(sys.stderr)
    raise SystemExit(code)


def _flush(stream: TextIO) -> OSError | None:
    """Write what a standard stream holds back; return why not, and let the stream lead nowhere then."""
    try:
        stream.flush()
    except OSError as error:
        silence(stream)
        return error
    return None


class GroupedCommands(TyperGroup):
    """Commands that help lists under the headings of their groups, in each in the order of their declaration.

    With `--json`, wrong arguments end as other errors do: as a JSON object on the error stream.
    """

    def main(self, args: Sequence[str] | None = None, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Run a command."""
        words = sys.argv[1:] if args is None else list(args)
        number = words.index(BEAM_OPTIONS) if BEAM_OPTIONS in words else len(words)
        ours = words[:number]
        if not _TEXTS & {word.partition("=")[0] for word in ours}:
            ours = encode_spaces_of_arguments(ours)  # or no message shows where a password ends
        args = [*ours, *words[number:]]
        if "--json" not in ours:
            return super().main(args, **options)
        try:
            code = super().main(args, **{**options, "standalone_mode": False})
        except UsageError as error:
            print_failure(_usage_failure(error), as_json=True)
            raise SystemExit(int(ExitCode.USAGE)) from None
        raise SystemExit(code if isinstance(code, int) else int(ExitCode.DONE))

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer's private classes
        """Run the command; the parser writes its errors past the escaping, so they are made safe here.

        It would also end a command that a signal stops just before or after its block of `with` silently.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            exit_interrupted(interrupt)
        except UsageError as error:
            raise _made_safe(error) from None
        except OSError as error:  # of an argument's parser: a command handles its own
            reason = explain_unreachable(error)
            if reason is None:
                raise
            raise UsageError(printable(redacted(reason)), ctx) from error

    def make_context(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - typer's private classes
        """Read the options in front of a command; what is wrong with them is made safe as in `invoke`."""
        try:
            return super().make_context(*arguments, **options)
        except UsageError as error:
            raise _made_safe(error) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's private classes
        """Write the commands, each with the first line of its help."""
        width = max(map(len, self.commands))  # the second columns of all groups are in one line
        for group in Group:
            rows = [
                (f"{name:{width}}", command.get_short_help_str(formatter.width - 6 - width))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", None) == group
            ]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def narrowed(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """Return the command line with the command alone that the first word names: making all takes a quarter of a second.

    Without such a command it stays whole, as help and completion need it.

    Args:
        app: The command line; each of its commands and groups has a name.
        words: The arguments.
    """
    if not words or ASKED in os.environ:
        return app
    commands, named = list(app.registered_commands), list[Any]()
    for info in app.registered_groups:
        group: Any = info.typer_instance
        named += [info] if group.info.name == words[0] else []
        commands += [] if group.info.name else group.registered_commands
    found = copy(app)
    found.registered_commands, found.registered_groups = [one for one in commands if one.name == words[0]], named
    return found if found.registered_commands or found.registered_groups else app


def _made_safe(error: UsageError) -> UsageError:
    """Return an error of the parser without passwords, and with escapes for what a terminal would obey."""
    error.message = printable(redacted(error.message))
    return error


def _usage_failure(error: UsageError) -> Failure:
    """Return what wrong arguments are for programs: the parser's message, and the option that it is about."""
    option, message = "", error.format_message()
    if isinstance(error, NoSuchOption):
        option = redacted(error.option_name)
    elif isinstance(error, BadParameter) and error.param is not None:
        name = error.param.opts[0]
        option = name if name.startswith("-") else str(error.param.metavar)
        message = re.sub(r"^Invalid value for [^:]*: ", "", message)
    return Failure(UsageError.__name__, message, ExitCode.USAGE, option=option)
