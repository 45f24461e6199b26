"""The example of a run file, made from the options: every key with its help and its default.

python -m configs.example > configs/run.example.toml
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from configs.flags import first_paragraph
from configs.problems import describe_allowed, show
from configs.tables import KEYS, TABLES
from schemas.errors import ConfigError
from schemas.files import write_new_file
from schemas.options import MAX_JSON_INTEGER
from schemas.resources import explain_refusal

_COLUMNS = 118

_HEADER = """\
# Every key of a run configuration, with its default. Copy what you change:
#
#     cppmill run --config run.toml
#
# Flags win over this file, this file over the profile. Relative paths are relative to the working directory. Keys that
# are commented out have no default value; what they show is an example.
"""

_RUN_HEADER = """\
# A run of cppmill:
#
#     cppmill run --config {file}
#
# Every option is here with what it does and its default. Remove the # of those that you change. Flags win over this
# file, this file over the profile. Relative paths are relative to the working directory.
"""


def example_file() -> str:
    """Return the text of the file."""
    return "\n".join([_HEADER, *_tables()])


def write_run_file(file: Path) -> None:
    """Write the file with every key as a comment, to edit.

    Raises:
        ConfigError: If it exists, or cannot be written.
        OSError: If the machine refuses it, as a full disk does.
    """
    lines = "\n".join(_tables()).splitlines()
    text = "\n".join([_RUN_HEADER.format(file=file), *map(_commented, lines)])
    try:
        write_new_file(file, (text + "\n").encode())
    except FileExistsError:
        raise ConfigError(f"{file}: it exists, and is not overwritten; name another file") from None
    except OSError as error:
        if explain_refusal(error):
            raise
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error


def _commented(line: str) -> str:
    """Return a line as a comment, unless it is one, is empty, or begins a table."""
    return line if not line or line[0] in "#[" else f"# {line}"


def _tables() -> Iterator[str]:
    for table, model in TABLES.items():
        yield from _table(table, model)


def _table(name: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"[{name}]  # {(inspect.getdoc(model) or '').splitlines()[0]}"
    for key, field in model.model_fields.items():
        if key in KEYS[name]:
            text = first_paragraph(model, key) + _allowed(model, key)
            yield from textwrap.wrap(text, _COLUMNS, initial_indent="## ", subsequent_indent="## ")
            yield _entry(key, field)
    yield ""


def _allowed(model: type[BaseModel], key: str) -> str:
    """Return what the key takes, where there is more to say than its type."""
    allowed = describe_allowed(model, key).replace(f" to {MAX_JSON_INTEGER:,}", " on")
    return f" It takes {allowed}." if any(word in allowed for word in ("one of", "above", "from", "more")) else ""


def _entry(key: str, field: FieldInfo) -> str:
    """Return the line of a key: with its default, or commented out with the example that the field has."""
    examples = field.examples or ()
    text = f"{key} = {_toml(field.default if not examples else examples[0])}"
    if examples:
        return f"# {text}"
    if len(text) <= _COLUMNS:
        return text
    entries = textwrap.wrap(", ".join(map(show, field.default)), _COLUMNS, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([f"{key} = [", *entries, "]"])


def _toml(value: Any) -> str:  # noqa: ANN401 - any TOML value
    if value == {}:
        return "{}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else show(value)


if __name__ == "__main__":
    sys.stdout.write(example_file())
