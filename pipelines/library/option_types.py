"""Types of the options as keyword arguments, made from the models, so that a type checker finds a misspelt option.

python -m pipelines.library.option_types > pipelines/library/options.py
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Collection, Iterator
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from configs.flags import first_paragraph
from configs.tables import KEYS, TABLES
from schemas.declarations import Option
from schemas.study_options import DriftOptions

_COLUMNS = 120

_HEADER = '''\
"""The options as keyword arguments: their names and types. Made by `pipelines.library.option_types`, not to be edited.

None stands for an option that is not given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

PlaceText = str | os.PathLike[str]
"""A path, or the URL of a place on an object store."""
'''

_ARGUMENTS = {"sources", "out"}
"""What the functions have as arguments of their own."""


def options_module() -> str:
    """Return the text of the module."""
    tables = {name: KEYS[name] - _ARGUMENTS for name in TABLES}
    return "\n\n".join([_HEADER, *_parts(tables), ""]).rstrip("\n") + "\n"


def _parts(tables: dict[str, frozenset[str]]) -> Iterator[str]:
    for name, keys in tables.items():
        yield _class(class_name(name), f"Keys of the table `{name}`.", list(_keys(TABLES[name], keys)))
    yield _class(class_name("drift"), "Options of drift.", list(_keys(DriftOptions, DriftOptions.model_fields)))
    rows = [f"    {name}: {class_name(name)} | None" for name in tables]
    bases = ", ".join(map(class_name, tables))
    yield _class("Options", "Every option by its key, and each table of them by its name.", rows, bases=bases)


def class_name(table: str) -> str:
    """Return the name of the class of a table."""
    return f"{table.capitalize()}Keys"


def _class(name: str, text: str, rows: list[str], *, bases: str = "TypedDict") -> str:
    return "\n".join([f"class {name}({bases}, total=False):", f'    """{text}"""', "", *rows])


def _keys(model: type[BaseModel], keys: Collection[str]) -> Iterator[str]:
    """Yield the lines of each key of a model: its type, and what help says of it."""
    hints = get_type_hints(model)
    for key, field in model.model_fields.items():
        if key in keys:
            is_place = any(isinstance(option, Option) and option.places for option in field.metadata)
            shown = show_type(hints[key], text="PlaceText" if is_place else "str")
            yield f"    {key}: {shown}" + ("" if shown.endswith(" | None") else " | None")
            yield textwrap.indent("\n".join(_docstring(first_paragraph(model, key))), "    ")
            yield ""


def _docstring(text: str) -> list[str]:
    lines = textwrap.wrap(f'"""{text}', _COLUMNS - len('    """'), break_on_hyphens=False)
    return [*lines[:-1], f'{lines[-1]}"""'] if len(lines) == 1 else [*lines, '"""']


def show_type(hint: Any, *, text: str = "str") -> str:  # noqa: ANN401 - any annotation
    """Return the type of a keyword argument, as it is written.

    Args:
        hint: The type of the option; marks of pydantic are left out.
        text: How a string is written.

    Example:
        >>> show_type(tuple[str, ...] | None)
        'Sequence[str] | None'
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return f"Literal[{', '.join(_quoted(value) for value in arguments)}]"
    shown = [show_type(argument, text=text) for argument in arguments if argument is not Ellipsis]
    if origin in (Union, UnionType):
        return " | ".join(shown)
    if origin is tuple:
        return f"Sequence[{shown[0]}]"
    if origin is dict:
        return f"Mapping[{', '.join(shown)}]"
    return {str: text, NoneType: "None", Any: "Any"}.get(hint) or str(hint.__name__)


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    sys.stdout.write(options_module())
