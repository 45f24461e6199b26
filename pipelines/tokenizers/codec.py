"""The commands `encode` and `decode`: text to a JSON array of ids, and back to the same bytes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.console.terminal import raw_stream
from schemas.digests import parse_json
from schemas.errors import ConfigError
from schemas.files import read_regular

if TYPE_CHECKING:
    from cppmill_core import AnyTokenizer

STANDARD_INPUT = "-"

_IDS_A_WRITE = 1 << 16
_ARGUMENT = "pass skip_control=True"
"""How the library says it."""


def read_input(file: str) -> bytes:
    """Return the bytes of a file, or of the standard input for `-`.

    Raises:
        ConfigError: If the file cannot be read.
    """
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return read_regular(Path(file))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error


def encode_file(tokenizer: Path, file: str) -> None:
    """Write the ids of a file's bytes to the standard output, as one JSON array on a line.

    Args:
        tokenizer: The tokenizer directory.
        file: The file, or `-`.
    """
    data = read_input(file)
    ids = load_tokenizer(tokenizer).encode(data)
    sys.stdout.write("[")
    for start in range(0, len(ids), _IDS_A_WRITE):
        separator = "," if start else ""
        sys.stdout.write(separator + ",".join(map(str, ids.slice(start, _IDS_A_WRITE).to_pylist())))
    sys.stdout.write("]\n")


def decode_file(tokenizer: Path, file: str, *, skip_control: bool) -> None:
    """Write the bytes that the ids of a JSON array decode to, to the standard output.

    Args:
        tokenizer: The tokenizer directory.
        file: The file with the array, or `-`.
        skip_control: Leave control ids out; else they are an error, as they have no bytes.
    """
    from cppmill_core import InvalidInputError

    loaded = load_tokenizer(tokenizer)
    ids = parse_ids(read_input(file), vocab_size=loaded.vocab_size, where=file)
    try:
        data = loaded.decode(ids, skip_control=skip_control)
    except InvalidInputError as error:
        raise ConfigError(str(error).replace(_ARGUMENT, "give --skip-control")) from error
    stdout = raw_stream(sys.stdout).buffer
    stdout.write(data)
    stdout.flush()


def parse_ids(data: bytes, *, vocab_size: int, where: str) -> list[int]:
    """Return the ids of a JSON array.

    Raises:
        ConfigError: For anything else than an array of whole numbers from 0 to below `vocab_size`.

    Example:
        >>> parse_ids(b"[3, 1]", vocab_size=4, where="-")
        [3, 1]
    """
    place = "standard input" if where == STANDARD_INPUT else where
    try:
        ids = parse_json(data)
    except ValueError as error:
        raise ConfigError(
            f"{place}: not JSON that can be read ({error}); a JSON array of ids is needed, as `encode` prints it"
        ) from error
    if not isinstance(ids, list):
        raise ConfigError(f"{place}: a JSON {_kind(ids)}; a JSON array of ids is needed, as `encode` prints it")
    for index, entry in enumerate(ids):
        if type(entry) is not int:
            raise ConfigError(f"{place}: entry {index:,} is {_shown(entry)}; ids are whole numbers")
        if not 0 <= entry < vocab_size:
            raise ConfigError(
                f"{place}: entry {index:,} is {_shown(entry)}; the tokenizer has the ids 0 to {vocab_size - 1:,}"
            )
    return ids


def _kind(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if value is None or isinstance(value, bool):
        return _shown(value)
    return {dict: "object", str: "string", int: "number", float: "number"}[type(value)]


def _shown(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:39] + "…"


def load_tokenizer(folder: Path, *, argument: str = "--tokenizer") -> AnyTokenizer:
    """Load a tokenizer directory.

    Args:
        folder: The directory.
        argument: The argument that named it, for messages.

    Raises:
        ConfigError: If there is no tokenizer.
        CoreError: If its files are damaged, or do not agree.
    """
    if not (folder / "manifest.json").is_file():
        raise ConfigError(f"{argument} {folder}: no tokenizer; it takes a directory with a manifest.json")
    import cppmill_core

    return cppmill_core.load_tokenizer(folder)
