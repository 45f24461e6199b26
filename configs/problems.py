"""The messages of a run configuration: one line per problem, with its place, its value and what is allowed.

Pydantic finds the problems; the words are ours. Nothing here reads files or decides values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel

Item = TypeVar("Item")

SHOWN_CHARACTERS = 60

MAX_SUGGESTIONS = 20
"""So many unknown names have a line and a suggestion; that of thousands would take minutes."""


def first_lines(names: Sequence[Item], line: Callable[[Item], str], rest: Callable[[str], str]) -> Iterator[str]:
    """Yield a line for each of the first names, and one that says how many more there are.

    Args:
        names: What is unknown.
        line: Describes one.
        rest: Makes the last line of their number.
    """
    yield from map(line, names[:MAX_SUGGESTIONS])
    if len(names) > MAX_SUGGESTIONS:
        yield rest(f"{len(names) - MAX_SUGGESTIONS:,}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`, None if nothing is near; case, `-` and `_` are the same.

    Example:
        >>> nearest("Unit-Byte", ["unit_bytes", "limit"])
        'unit_bytes'
    """
    spellings = {_plain(candidate): candidate for candidate in known}
    matches = get_close_matches(_plain(name), spellings, n=1)
    return spellings[matches[0]] if matches else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def did_you_mean(name: str, known: Iterable[str], *, form: str = "{}") -> str:
    """Return `; did you mean X?` for the nearest known name, or nothing."""
    match = nearest(name, known)
    return f"; did you mean {form.format(match)}?" if match else ""


def show(value: object) -> str:
    """Return a value as TOML would write it, cut to a line's length."""
    if isinstance(value, bool | str | int | float | list | tuple):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def describe_allowed(model: type[BaseModel], key: str) -> str:
    """Return in words what a key of a model takes.

    Example:
        >>> from schemas.options import IngestOptions
        >>> describe_allowed(IngestOptions, "sample")
        'a number above 0 and up to 1'
    """
    return _allowed(model.model_json_schema()["properties"][key])


def _allowed(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_allowed(option) for option in schema["anyOf"] if option.get("type") != "null")
    if "const" in schema:
        return show(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(show(choice) for choice in schema["enum"])
    kinds = {
        "boolean": "true or false",
        "string": "a string",
        "array": "a list of strings",
        "object": "tables, each with a name of a-z, 0-9 and _",
        "integer": "a whole number",
        "number": "a number",
    }
    return kinds[schema["type"]] + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    if "pattern" in schema:
        return f" that matches {schema['pattern']}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        upper = f" and up to {_figure(high)}" if high is not None else ""
        return f" above {_figure(schema['exclusiveMinimum'])}{upper}"
    if low is not None and high is not None:
        return f" from {_figure(low)} to {_figure(high)}"
    return f", {_figure(low)} or more" if low is not None else ""


def _figure(number: float) -> str:
    return f"{number:,g}" if isinstance(number, float) else f"{number:,}"


def describe_unknown(table: str, key: str, tables: Mapping[str, frozenset[str]]) -> str:
    """Return what is wrong with a key that its table does not have: where it belongs, or which key is nearest.

    Args:
        table: The table that has it.
        key: The unknown key.
        tables: The known keys of every table.
    """
    homes = [name for name, keys in tables.items() if name != table and key in keys]
    if homes:
        return f"unknown key; it belongs in [{homes[0]}]"
    listed = ", ".join(sorted(tables[table]))
    return f"unknown key{did_you_mean(key, tables[table])} (known in [{table}]: {listed})"


def describe_value(model: type[BaseModel], key: str, *, entry: bool) -> str:
    """Return what is wrong with a value that its model refused, or with an entry of a list."""
    return f"not allowed; it takes {_allowed_entry(model, key) if entry else describe_allowed(model, key)}"


def _allowed_entry(model: type[BaseModel], key: str) -> str:
    items = model.model_json_schema()["properties"][key].get("items", {})
    return _allowed(items) if "enum" in items else "a string"
