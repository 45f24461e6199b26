"""How commands get their help from docstrings, and options from models: each flag of `configs.tables` becomes one.

Values are taken as they were typed: `configs` converts and checks them, so that all problems are reported at once and
in the same words as for a TOML file.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from configs.flags import Flag
from pipelines.cli.groups import Group
from schemas.declarations import ARGUMENTS, BEAM_OPTIONS

EXIT_CODES = (
    "Exit codes: 0 done, 1 a failed check, or a failure outside cppmill such as a full disk, 2 wrong usage or "
    "configuration, 3 more unusable input than allowed, 70 an unexpected error, 129, 130 and 143 stopped by "
    "SIGHUP, Ctrl-C and SIGTERM."
)

_BEAM_OPTIONS_KEY = "cppmill.beam_options"
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


class BeamCommand(TyperCommand):
    """A command that keeps what follows `--` for Beam, and lists its options under headings."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's private context class
        """Take what follows `--` out of the arguments and into the context."""
        if BEAM_OPTIONS in args:
            split = args.index(BEAM_OPTIONS)
            ctx.meta[_BEAM_OPTIONS_KEY] = args[split + 1 :]
            args = args[:split]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the pieces of the usage line, Beam's options last."""
        return [*super().collect_usage_pieces(ctx), "[-- BEAM OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write arguments and options, each under its heading, in the order in which the headings come first."""
        shown = [(_heading(parameter), parameter.get_help_record(ctx)) for parameter in self.get_params(ctx)]
        order = list(dict.fromkeys(["Arguments", "Options", *(heading for heading, _ in shown)]))
        records = sorted(
            (order.index(heading), number, record) for number, (heading, record) in enumerate(shown) if record
        )
        for index, lines in groupby(records, key=lambda line: line[0]):
            rows = [record for _, _, record in lines]
            if order[index] == "Arguments":
                rows.append(("BEAM OPTIONS", "Options of Apache Beam; its runner then runs the stages."))
            with formatter.section(order[index]):
                formatter.write_dl(rows)


def _heading(parameter: Any) -> str:  # noqa: ANN401
    return parameter.rich_help_panel or f"{parameter.param_type_name.capitalize()}s"


def as_typed(value: str) -> str:
    """Return the text of an argument as it is: a file name need not be UTF-8."""
    return value


def with_flags(flags: Mapping[str, Flag]) -> Callable[[Callable[..., None]], FlaggedCommand]:
    """Give a command the options of flags: they take the place of its parameter `flags`, which gets their values.

    Args:
        flags: The flags that there are. With `--` among them, what follows it is taken for Beam.

    Example:
        >>> from configs.tables import SHARD_FLAGS
        >>> command = with_flags({"--name": SHARD_FLAGS["--name"]})(lambda *, flags: print(flags))
        >>> command(name="cpp")
        {'--name': 'cpp'}
    """
    return functools.partial(FlaggedCommand, flags)


class FlaggedCommand:
    """A command with the options of flags; these are made once it is called or its help is read.

    Args:
        flags: The flags.
        function: The command, with a parameter `flags`.
    """

    def __init__(self, flags: Mapping[str, Flag], function: Callable[..., None]) -> None:
        """Keep both."""
        functools.update_wrapper(self, function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        self._flags, self._function = flags, function
        self._options = {flag.key: (name, flag) for name, flag in flags.items() if name != BEAM_OPTIONS}

    def __call__(self, **values: Any) -> None:  # noqa: ANN401
        """Call the function."""
        given = {name: values.pop(key) for key, (name, _) in self._options.items()}
        if BEAM_OPTIONS in self._flags:
            given[BEAM_OPTIONS] = values.pop("context").meta.get(_BEAM_OPTIONS_KEY, [])
        self._function(flags=given, **values)

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        """The parameters that typer makes options of."""
        parameters = []
        if BEAM_OPTIONS in self._flags:
            parameters.append(inspect.Parameter("context", _KEYWORD, annotation=typer.Context))
        for parameter in inspect.signature(self._function, eval_str=True).parameters.values():
            if parameter.name == "flags":
                parameters += [_parameter(name, flag) for name, flag in self._options.values()]
            else:
                parameters.append(parameter.replace(kind=_KEYWORD))
        return inspect.Signature(parameters)

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        """The types of the parameters."""
        return {parameter.name: parameter.annotation for parameter in self.__signature__.parameters.values()}


def _parameter(name: str, flag: Flag) -> inspect.Parameter:
    """Return the parameter of a function for a flag."""
    annotation: Any = (
        Annotated[bool | None, _option(flag)] if flag.type is bool else Annotated[str | None, _option(flag)]
    )
    if name == ARGUMENTS:
        argument = typer.Argument(metavar=flag.metavar, parser=as_typed, help=flag.help)
        annotation = Annotated[list[str] | None, argument]
    default = inspect.Parameter.empty if flag.field.is_required() else None
    return inspect.Parameter(flag.key, _KEYWORD, annotation=annotation, default=default)


def _option(flag: Flag) -> Any:  # noqa: ANN401 - typer's private class
    parser = None if flag.type is bool else as_typed
    return typer.Option(
        "/".join(flag.forms),
        metavar=flag.metavar,
        parser=parser,
        help=flag.help,
        rich_help_panel=flag.option.heading or None,
        autocompletion=_completion(flag.choices) if flag.choices else None,
    )


def _completion(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Return what completes a value in a shell."""

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


def as_help(text: str) -> str:
    """Return a docstring without its indentation as the help of a command: examples keep their lines."""
    return text.replace("\nExample", "\n\b\nExample")


def described(
    group: typer.Typer,
    *,
    under: Group | None = None,
    name: str | None = None,
    cls: type[TyperCommand] | None = None,
    exit_codes: str = EXIT_CODES,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command, of a name and a class of its own if it has them, of a function; its docstring is the help.

    Args:
        group: What the command belongs to: all commands of `cppmill`, or those of `cppmill vocab`.
        under: The heading below which `cppmill --help` lists it; a command of `cppmill` must name one.
        name: Its name, if that is not the function's.
        cls: Its class.
        exit_codes: What its exit codes mean.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        text = as_help(inspect.getdoc(function) or "")
        named = name or function.__name__.replace("_", "-")
        return group.command(named, help=text, epilog=exit_codes, cls=cls, rich_help_panel=under)(function)

    return decorate
