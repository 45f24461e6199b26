"""The layers of a run configuration: a profile, a TOML file, `--set`, the flags. Each layer knows its own name.

Each layer is checked separately, so that every problem is reported with the place it comes from, even where a later
layer overrides it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from configs.problems import describe_unknown, describe_value, did_you_mean, first_lines, show
from schemas.digests import parse_toml
from schemas.files import read_regular
from schemas.passwords import encode_spaces

Tables = Mapping[str, Mapping[str, Any]]


_RECORDED = ("ingest", "scan", "build", "tokenize")
"""The tables whose values are in keys and receipts, but for those of `_PLACES`, of which contents are."""

_PLACES = ("decontaminate", "withdrawn")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Values by table and key, and where they come from.

    Attributes:
        origin: The file or `--set` argument, as messages name it; empty for flags.
        values: The tables; not yet checked, so a table may be anything.
        form: How messages name a value: `origin`, `name` (table, key and index), `value`.
        flags: For the layer of flags, the flag of each (table, key), and the one that says false if there is one.
    """

    origin: str
    values: Mapping[str, Any]
    form: str = "{origin}: {name} = {value}"
    flags: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)

    def table(self, name: str) -> Mapping[str, Any]:
        """Return a table of the layer, empty if it has none."""
        values = self.values.get(name)
        return values if isinstance(values, Mapping) else {}

    def place(self, table: str, key: str, *, index: int | None = None) -> str:
        """Return how a message about a value begins: file, key and value, or flag and value."""
        value = self.table(table)[key]
        if index is not None:
            value = value[index]
        value = encode_spaces(value) if isinstance(value, str) else value
        if (table, key) in self.flags:
            return _flag_place(self.flags[table, key], value)
        name = f"{table}.{key}" + ("" if index is None else f"[{index}]")
        return self.form.format(origin=self.origin, name=name, value=show(value))

    def problems(self, tables: Mapping[str, type[BaseModel]], keys: Mapping[str, frozenset[str]]) -> Iterator[str]:
        """Yield a line for every unknown table or key and every value that its model refuses."""
        for name, value in self.values.items():
            if name not in tables:
                yield f"{self.origin}: {_unknown_table(name, value, keys)}"
            elif not isinstance(value, Mapping):
                yield f"{self.origin}: {name} = {show(value)}: not allowed; [{name}] is a table"
            else:
                yield from self._table_problems(name, tables[name], keys)

    def _table_problems(self, name: str, model: type[BaseModel], keys: Mapping[str, frozenset[str]]) -> Iterator[str]:
        known = {key: value for key, value in self.table(name).items() if key in keys[name]}
        unknown = [key for key in self.table(name) if key not in known]
        yield from first_lines(
            unknown,
            lambda key: f"{self.place(name, key)}: {describe_unknown(name, key, keys)}",
            lambda number: f"{self.origin}: {number} more unknown keys in [{name}]",
        )
        errors: dict[str, list[ErrorDetails]] = {}
        for error in _errors(model, known):
            errors.setdefault(str(error["loc"][0]), []).append(error)
        for refused, found in errors.items():
            yield from first_lines(
                found,
                partial(self._refused, name, model),
                partial("{}: {} more are not allowed".format, self.place(name, refused)),
            )
            known.pop(refused)
        for key, value in known.items():
            yield from self.text_problems(name, key, value)

    def _refused(self, table: str, model: type[BaseModel], error: ErrorDetails) -> str:
        """Return the line of a value that its model refuses, or of an entry of a list."""
        refused, *rest = error["loc"]
        index = rest[0] if rest and isinstance(rest[0], int) else None
        reason = describe_value(model, str(refused), entry=index is not None)
        return f"{self.place(table, str(refused), index=index)}: {reason}"

    def text_problems(self, table: str, key: str, value: object) -> Iterator[str]:
        """Yield a line for every empty string, and for every extension that could match nothing."""
        entries = list(enumerate(value)) if isinstance(value, tuple) else [(None, value)]
        for index, text in entries:
            if text == "":
                yield f"{self.place(table, key, index=index)}: not allowed; it is empty"
            elif _has_nul(text):
                yield f"{self.place(table, key, index=index)}: not allowed; it has a NUL character"
            elif table in _RECORDED and key not in _PLACES and _has_escapes(text):
                yield f"{self.place(table, key, index=index)}: not allowed; it is not UTF-8"
            elif key == "extensions" and isinstance(text, str) and text != text.lower().lstrip("."):
                fixed = show(text.lower().lstrip("."))
                yield f"{self.place(table, key, index=index)}: not allowed; lower case and no dot: {fixed}"


def without_refused(tables: Tables, models: Mapping[str, type[BaseModel]]) -> dict[str, dict[str, Any]]:
    """Return merged tables without what is unknown, refused by its model or has a NUL, which `Layer.problems` reports.

    Args:
        tables: The merged tables.
        models: The model of each table.
    """
    accepted = {}
    for name, values in tables.items():
        known = {key: value for key, value in values.items() if name in models and key in models[name].model_fields}
        refused = {str(error["loc"][0]) for error in _errors(models[name], known)} if known else set()
        accepted[name] = {key: value for key, value in known.items() if key not in refused and not _has_nul(value)}
    return accepted


def _has_escapes(value: object) -> bool:
    """Return whether a text has bytes that are not UTF-8: no key and no receipt can have it."""
    return isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)


def _has_nul(value: object) -> bool:
    """Return whether a text, or an entry of a list, has a NUL character, which no path has."""
    entries = value if isinstance(value, tuple) else (value,)
    return any(isinstance(entry, str) and "\0" in entry for entry in entries)


def _errors(model: type[BaseModel], values: Mapping[str, Any]) -> list[ErrorDetails]:
    """Return what a model refuses of values, not what it lacks; nothing is converted to another type."""
    try:
        model.model_validate(values, strict=True)
    except ValidationError as error:
        return [found for found in error.errors(include_url=False) if found["loc"][0] in values]
    return []


def _unknown_table(name: str, value: object, keys: Mapping[str, frozenset[str]]) -> str:
    """Return what is wrong with a name at the top of a file that is not a table."""
    if not isinstance(value, Mapping):
        homes = [table for table, known in keys.items() if name in known]
        where = f"it belongs in [{homes[0]}]" if homes else "keys belong in tables"
        return f"{name} = {show(value)}: outside any table; {where}"
    listed = ", ".join(f"[{table}]" for table in keys)
    return f"[{name}]: unknown table{did_you_mean(name, keys, form='[{}]')} (known: {listed})"


def _flag_place(forms: Sequence[str], value: object) -> str:
    """Return a flag as it was given: with its value, or the form that says true or false."""
    if isinstance(value, bool):
        return forms[0] if value else forms[-1]
    return f"{forms[0]} {value}" if isinstance(value, str) and value else f"{forms[0]} {show(value)}"


def freeze(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    """Return a TOML value with tuples for its lists."""
    if isinstance(value, Mapping):
        return {key: freeze(entry) for key, entry in value.items()}
    return tuple(freeze(entry) for entry in value) if isinstance(value, list) else value


def read_file(file: Path, problems: list[str]) -> Layer:
    """Return the layer of a TOML file; what keeps it from being read is added to `problems`."""
    try:
        return Layer(origin=str(file), values=freeze(parse_toml(read_regular(file).decode("utf-8"))))
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        problems.append(f"{file}: not TOML: byte {error.start} is not UTF-8")
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{file}: not TOML: {error}")
    return Layer(origin=str(file), values={})


def receipt_layer(
    configs: Mapping[str, Any], *, origin: str, with_tokenizer: bool, platforms: str | None = None
) -> Layer:
    """Return the options of an earlier run.

    Args:
        configs: The `configs` of its receipt.
        origin: The receipt, as messages name it.
        with_tokenizer: Whether what its tokenizer was built with is among them.
        platforms: The file of its own platforms; None if it had none.
    """
    stages = ("ingest", "tokenize", *(("scan", "build") if with_tokenizer else ()))
    tables: dict[str, Any] = {name: dict(configs[name]) for name in stages}
    tables["ingest"].pop("withdrawn", None)  # a receipt has only the digest of the list
    tables["run"] = {"max_dead_fraction": configs["max_dead_fraction"]}
    if platforms is not None:
        tables["run"]["platforms"] = platforms
    if with_tokenizer:
        tables["run"]["profile"] = tables["build"].pop("profile")
    return Layer(origin=origin, values=freeze(tables))


def profile_names() -> list[str]:
    """Return the names of the profiles, sorted."""
    return sorted(file.name.removesuffix(".toml") for file in _profiles().iterdir() if file.name.endswith(".toml"))


def read_profile(name: str, *, origin: str, problems: list[str]) -> Layer:
    """Return the layer of a profile; an unknown name is added to `problems`.

    Args:
        name: Name of the profile.
        origin: Where it was named, as the message begins.
        problems: Lines so far.
    """
    known = profile_names()
    if name not in known:
        problems.append(f"{origin}: unknown profile{did_you_mean(name, known)} (known: {', '.join(known)})")
        return Layer(origin=f"profile {name}", values={})
    with resources.as_file(_profiles() / f"{name}.toml") as file:
        return read_file(file, problems)


def _profiles() -> resources.abc.Traversable:
    return resources.files("configs") / "profiles"


def merge_layers(layers: Sequence[Layer]) -> dict[str, dict[str, Any]]:
    """Return the values of all layers; the last one that has a key decides."""
    merged: dict[str, dict[str, Any]] = {}
    for layer in layers:
        for name in layer.values:
            table = merged.setdefault(name, {})
            for key, value in layer.table(name).items():
                table[key] = _merged(table.get(key), value)
    return merged


def _merged(before: object, value: object) -> object:
    """Return a value over that of an earlier layer: a table keeps the keys that it does not have."""
    if not isinstance(before, Mapping) or not isinstance(value, Mapping):
        return value
    return {**before, **{key: _merged(before.get(key), entry) for key, entry in value.items()}}


def place_of(layers: Sequence[Layer], table: str, key: str, *, index: int | None = None) -> str:
    """Return how a message about a merged value begins: the last layer that has the key names it."""
    layer = next((layer for layer in reversed(layers) if key in layer.table(table)), None)
    return layer.place(table, key, index=index) if layer else key
