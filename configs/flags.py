"""Flags, made from the fields of options models: name, kind, help and shown default.

Values are taken as they were typed and become a layer of the configuration, which is checked like a TOML file. Nothing
here knows a command-line library.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from configs.layers import Layer, freeze
from schemas.declarations import Option, field_docstring
from schemas.digests import parse_toml
from schemas.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)

SET = "--set"
"""The flag that gives any key its value."""

SET_HELP = (
    "Set a key of the TOML file, such as ingest.drop_secrets=true; strings in quotes. Works for every key, also for "
    "those without a flag, and may be repeated. Flags override it."
)

_METAVARS = {int: "N", float: "FRACTION", tuple: "A,B"}
_MEBIBYTE, _GIBIBYTE = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Flag:
    """The flag of a key.

    Attributes:
        table: The table of the key.
        key: The key.
        model: The model of the table.
        field: The field that declares it.
        option: What the field says of its flag.
    """

    table: str
    key: str
    model: type[BaseModel]
    field: FieldInfo
    option: Option

    @property
    def forms(self) -> tuple[str, ...]:
        """The flag; for true or false also the one that says false, if there is one."""
        dashed = self.key.replace("_", "-")
        if self.option.flag:
            return (self.option.flag,)
        return (f"--{dashed}", f"--no-{dashed}") if self.type is bool else (f"--{dashed}",)

    @cached_property
    def type(self) -> type:
        """The type of the value: bool, int, float, str or tuple."""
        return _value_type(self.field.annotation)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that there are; empty if they are not counted."""
        return tuple(map(str, get_args(_arm(self.field.annotation)))) if self._is_choice else ()

    @property
    def metavar(self) -> str | None:
        """The name of the value in help; None for true or false, which has none."""
        if self.type is bool:
            return None
        return self.option.metavar or "|".join(self.choices) or _METAVARS.get(self.type, "NAME")

    @property
    def help(self) -> str:
        """The help: what the first paragraph of the field's docstring says, and the default."""
        text = first_paragraph(self.model, self.key).replace("`", "")
        return f"{text}  [default: {self.default}]" if self.default else text

    @property
    def default(self) -> str:
        """The default as help shows it; empty if there is nothing to show."""
        if self.field.is_required():
            return ""
        if self.type is bool and len(self.forms) == 1:
            return ""
        own = "" if self.field.default_factory else _shown(self.field.default, is_size=self.key.endswith("_bytes"))
        return self.option.default.replace("{}", own)

    def value(self, given: object) -> object:
        """Return the value that was given: a number or a list, if that is what the key takes and the text says one."""
        if isinstance(given, str) and self.type is tuple:
            return tuple(entry.strip() for entry in given.split(","))
        if isinstance(given, str) and self.type in (int, float):
            return _number(given)
        return freeze(given)

    @property
    def _is_choice(self) -> bool:
        return get_origin(_arm(self.field.annotation)) is Literal


def first_paragraph(model: type[BaseModel], key: str) -> str:
    """Return the first paragraph of a field's docstring in one line: what help says of it."""
    return " ".join(field_docstring(model, key).split("\n\n")[0].split())


def find_flags(tables: Mapping[str, type[BaseModel]]) -> dict[str, Flag]:
    """Return the flags of all fields that have one, in the order of their declaration.

    Args:
        tables: The models by table.
    """
    found = {}
    for table, model in tables.items():
        for key, field in model.model_fields.items():
            for option in field.metadata:
                if isinstance(option, Option):
                    flag = Flag(table, key, model, field, option)
                    found[flag.forms[0]] = flag
    return found


def read_flags(values: Mapping[str, object], flags: Mapping[str, Flag]) -> Layer:
    """Return the layer of the flags that were given (not None and no empty list).

    Args:
        values: Values by flag, text as it was typed.
        flags: The flags that there are.
    """
    tables: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if value is not None and value != []:
            tables.setdefault(flags[name].table, {})[flags[name].key] = flags[name].value(value)
    forms = {(flag.table, flag.key): (name, *flag.forms[1:]) for name, flag in flags.items()}
    return Layer(origin="", values=tables, flags=forms)


def read_options(model: type[Model], values: Mapping[str, object], flags: Mapping[str, Flag]) -> Model:
    """Return the options that flags alone give, without a file.

    Args:
        model: The model of the options; its flags are of the table `options`.
        values: Values by flag, text as it was typed; None for a flag that was not given.
        flags: The flags that there are.

    Raises:
        ConfigError: With one line for every problem.
    """
    return read_layer(model, read_flags(values, flags))


def read_layer(model: type[Model], layer: Layer) -> Model:
    """Return the options that the table `options` of a layer gives.

    Raises:
        ConfigError: With one line for every problem.
    """
    problems = list(layer.problems({"options": model}, {"options": frozenset(model.model_fields)}))
    if problems:
        raise ConfigError("\n".join(problems))
    return model.model_validate(layer.table("options"))


def read_set_values(texts: Sequence[str], problems: list[str]) -> list[Layer]:
    """Return the layers of what was given with `--set`; what is not TOML is added to `problems`.

    Args:
        texts: `TABLE.KEY=VALUE` each, as typed.
        problems: Lines so far.
    """
    layers = []
    for text in texts:
        try:
            values = parse_toml(text)
        except tomllib.TOMLDecodeError as error:
            problems.append(
                f"{SET} {text}: not TOML: {error}; it takes TABLE.KEY=VALUE, with quotes around a string: "
                f"{SET} 'scan.pattern=\"cpp-words-1\"'"
            )
        else:
            layers.append(Layer(origin=f"{SET} {text}", values=freeze(values), form=f"{SET} {{name}}={{value}}"))
    return layers


def _arm(annotation: Any) -> Any:  # noqa: ANN401 - any annotation
    """Return the part of an annotation that is neither None nor a mark."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        arms = get_args(annotation)
        annotation = (
            arms[0] if get_origin(annotation) is Annotated else next(arm for arm in arms if arm is not type(None))
        )
    return annotation


def _value_type(annotation: Any) -> type:  # noqa: ANN401
    arm = _arm(annotation)
    if get_origin(arm) is Literal:
        return type(get_args(arm)[0])
    found: type = get_origin(arm) or arm
    return found


def _number(text: str) -> int | float | str:
    """Return the number that a text says, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _shown(value: object, *, is_size: bool) -> str:
    """Return a default as help shows it."""
    if value is None or value == ():
        return "off"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:,}{_size(value) if is_size else ''}" if isinstance(value, int) else str(value)


def _size(num_bytes: int) -> str:
    """Return a size in words, where it is a whole number of them."""
    for unit, name in ((_GIBIBYTE, "GiB"), (_MEBIBYTE, "MiB")):
        if num_bytes >= unit and num_bytes % unit == 0:
            return f" ({num_bytes // unit} {name})"
    return ""
