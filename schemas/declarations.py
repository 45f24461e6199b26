"""What a field of an options model says about its flag. Everything else follows from the field itself.

A field is the only declaration of an option: its name is the key of the TOML file, its type and bounds are the check,
the first paragraph of its docstring is the help, its default is the default. `configs.flags` makes flags of that.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise


@dataclass(frozen=True, kw_only=True)
class Option:
    """Mark a field that has a flag. A field without the mark is set in a TOML file or with `--set`.

    Attributes:
        heading: The heading under which `--help` lists it; empty for those that come first.
        flag: The flag, `--key` by default, and `--key/--no-key` for true or false. `SOURCE` is for arguments and `--`
            for what follows it.
        metavar: The name of the value in `--help`; by default the type gives it.
        default: What `--help` shows as the default, where the field's own value says too little; the value takes the
            place of `{}`.
        places: Whether the value names files or folders, which a job on another machine takes as URLs.
    """

    heading: str = ""
    flag: str = ""
    metavar: str = ""
    default: str = "{}"
    places: bool = False


ARGUMENTS = "SOURCE"
"""The flag of a field that takes the arguments."""

BEAM_OPTIONS = "--"
"""The flag of a field that takes what follows `--`."""

EXECUTION = Option(heading="Execution")
READING = Option(heading="Reading sources")
FILTER = Option(heading="Filters")
VOCABULARY = Option(heading="Vocabulary")
TOKENS = Option(heading="Tokens")


def field_docstring(model: type, name: str) -> str:
    """Return the docstring below a field in the source of a model or of what it inherits from; empty if it has none.

    The source is read when somebody asks. Pydantic could do the same for each model that is imported, but few commands
    print help.
    """
    for home in model.__mro__:
        if name in vars(home).get("__annotations__", {}):
            return _docstrings(home.__module__).get(home.__qualname__, {}).get(name, "")
    return ""


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of each class in a module, by the qualified name of the class."""
    source = inspect.getsource(sys.modules[module])
    return {name: dict(_field_docstrings(node)) for name, node in _classes(ast.parse(source), "")}


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield prefix + child.name, child
            yield from _classes(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            yield from _classes(child, f"{prefix}{child.name}.<locals>.")


def _field_docstrings(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(node.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield field.target.id, inspect.cleandoc(text.value.value)
