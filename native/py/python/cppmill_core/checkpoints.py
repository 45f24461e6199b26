"""Ties a checkpoint to the tokenizer that it was trained with: writes a stamp into its metadata, and checks it.

With ids of another vocabulary, a model trains and answers without an error, only badly. Where an embedding has fewer
rows than the vocabulary, ids beyond it read other memory or crash the process, on some devices without a message.
`stamp` writes the tokenizer's digest, revision and vocabulary size into the metadata of a checkpoint. `assert_vocab`
compares them with a receipt or a tokenizer, and the rows of the embeddings with the vocabulary size.

The stamp of a safetensors file is in its header, under the names that footers of token shards use. A config.json and a
dict that is saved as a checkpoint have it under the key `cppmill`. For any other file it is in NAME.cppmill.json beside
the file. Neither torch nor safetensors is needed: only the header of a safetensors file is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
from argparse import Namespace
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cppmill_core._native import CorruptDataError, InvalidInputError, VocabularyError
from cppmill_core.manifests import parse_unique_json

__all__ = ["VocabStamp", "assert_vocab", "is_embedding", "read_header", "read_stamp", "stamp"]

KEY = "cppmill"

_CONFIG = "config.json"
_SAFETENSORS = ".safetensors"
_HEADER_LENGTH = struct.Struct("<Q")
_MAX_HEADER_BYTES = 100_000_000
"""The limit that the format sets."""
_ALIGNMENT = 8
_EMBEDDING = re.compile(
    r"(?:^|\.)(?:embed|embedding|embeddings|embed_tokens|embed_in|embed_out|wte|tok_emb|tok_embeddings|token_embedding|"
    r"word_embeddings|shared|lm_head|output_layer|decoder)\.weight$"
)
_SIZE = re.compile(r"(?:^|\.)(?:padded_)?vocab_size$")
_OTHER_IDS = re.compile(
    r"(?:^|[._])(?:pos|position|patch|segment|time|token_type|vision|visual|image|audio|video)(?!_language)(?:[._]|$)"
)
"""Embeddings and sizes of something other than tokens: positions, images, audio."""
_MATRIX = 2

Checkpoint = MutableMapping[str, Any] | str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class VocabStamp:
    """The tokenizer of a checkpoint.

    Attributes:
        tokenizer: Its digest.
        revision: The release of its vocabulary, `unreleased`, or empty if unknown.
        vocab_size: The number of its ids.
        position: The position of the loader, as its `state_dict` returns it; None if it was not stamped.
    """

    tokenizer: str
    revision: str
    vocab_size: int
    position: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the stamp as plain values."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, source: Any) -> VocabStamp:  # noqa: ANN401 - one of several kinds
        """Return the stamp of a receipt or a tokenizer.

        Args:
            source: A stamp, a loaded tokenizer, the dict of a receipt, or a path: a finished run's folder, its
                receipt.json, or a tokenizer directory.

        Raises:
            OSError: If a file cannot be read.
            InvalidInputError: If the source is none of these.
            CorruptDataError: If the file is neither a receipt nor the manifest of a tokenizer.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, Mapping):
            return cls._of_receipt(source, "the receipt")
        if isinstance(source, str | os.PathLike):
            return cls._of_path(Path(source))
        try:
            return cls(tokenizer=source.digest, revision="", vocab_size=source.vocab_size)
        except AttributeError as error:
            raise InvalidInputError(f"{source!r}: neither a receipt nor a tokenizer") from error

    @classmethod
    def _of_path(cls, path: Path) -> VocabStamp:
        manifest = path / "manifest.json"
        if manifest.is_file():
            content = manifest.read_bytes()
            size = _parsed(content, manifest).get("vocab_size")
            if type(size) is not int:
                raise CorruptDataError(f"{manifest}: not the manifest of a tokenizer: it has no vocab_size")
            return cls(tokenizer=hashlib.sha256(content).hexdigest(), revision="", vocab_size=size)
        receipt = path / "receipt.json" if path.is_dir() else path
        return cls._of_receipt(_parsed(receipt.read_bytes(), receipt), str(receipt))

    @classmethod
    def _of_receipt(cls, receipt: Mapping[str, Any], where: str) -> VocabStamp:
        try:
            found = receipt["tokenizer"]
            return cls(tokenizer=found["digest"], revision=found["revision"], vocab_size=found["vocab_size"])
        except (KeyError, TypeError) as error:
            raise CorruptDataError(f"{where}: not the receipt of a run ({error!r} of its tokenizer)") from error


def stamp(
    checkpoint: Checkpoint,
    source: Any,  # noqa: ANN401 - one of several kinds
    *,
    revision: str | None = None,
    position: Mapping[str, Any] | None = None,
) -> VocabStamp:
    """Write the stamp of a tokenizer into a checkpoint, replacing an older stamp.

    Args:
        checkpoint: A safetensors file; a config.json; a folder with a config.json, in which every safetensors file is
            stamped too; any other file; or a dict that will be saved.
        source: A receipt or a tokenizer, as for `VocabStamp.of`.
        revision: The release of the vocabulary, if the source does not have it.
        position: `Loader.state_dict(…)` of the training, so that `cppmill trace` can name the documents that it
            consumed.

    Returns:
        The stamp.

    Raises:
        OSError: If a file cannot be read or written.
        InvalidInputError: If the source is neither a receipt nor a tokenizer.
        CorruptDataError: If a file is damaged.

    Example:
        >>> checkpoint = {"model": {}}
        >>> stamp(checkpoint, tokenizer).vocab_size == checkpoint["cppmill"]["vocab_size"]
        True
    """
    made = VocabStamp.of(source)
    if revision is not None:
        made = replace(made, revision=revision)
    if position is not None:
        made = replace(made, position=position)
    if isinstance(checkpoint, MutableMapping):
        checkpoint[KEY] = made.to_json()
        return made
    for path in _files(Path(checkpoint)):
        if path.suffix == _SAFETENSORS:
            _stamp_safetensors(path, made)
        elif path.suffix == ".json":
            _write_json(path, _parsed(path.read_bytes(), path) | {KEY: made.to_json()})
        else:
            _write_json(_beside(path), {KEY: made.to_json()})
    return made


def read_stamp(checkpoint: Checkpoint) -> VocabStamp | None:
    """Return the stamp of a checkpoint, None if it has none; for a folder, the stamp of its config.json.

    Raises:
        OSError: If it cannot be read.
        CorruptDataError: If it is damaged.
    """
    if isinstance(checkpoint, MutableMapping):
        return _found(checkpoint.get(KEY), "the checkpoint")
    path = _files(Path(checkpoint))[0]
    if path.suffix == _SAFETENSORS:
        metadata = read_header(path)[0].get("__metadata__", {})
        named = {name: metadata.get(f"{KEY}.{name}") for name in VocabStamp.__dataclass_fields__}
        return _found(named if named["tokenizer"] else None, str(path))
    holder = path if path.suffix == ".json" else _beside(path)
    return _found(_parsed(holder.read_bytes(), holder).get(KEY) if holder.exists() else None, str(holder))


def assert_vocab(checkpoint: Checkpoint, source: Any) -> None:  # noqa: ANN401 - one of several kinds
    """Check that a checkpoint, or a model's configuration, was made for a tokenizer; return nothing if it was.

    Checks the digest and the vocabulary size of the stamp, each `vocab_size` of a configuration (also nested, as in
    `text_config` or `model_args`), and the rows of every embedding and output layer that has a usual name. There may be
    more rows than ids (padding), but never fewer.

    Args:
        checkpoint: As for `stamp`; every file of a folder is checked.
        source: A receipt or a tokenizer, as for `VocabStamp.of`.

    Raises:
        VocabularyError: If there is no stamp, or something differs; the message has both values.
        OSError: If a file cannot be read.

    Example:
        >>> assert_vocab("checkpoints/1000", "out/receipt.json")  # doctest: +SKIP
    """
    expected = VocabStamp.of(source)
    against = source if isinstance(source, str | os.PathLike) else f"the {type(source).__name__}"
    parts = [checkpoint] if isinstance(checkpoint, MutableMapping) else _files(Path(checkpoint))
    wrong = [problem for part in parts for problem in _problems(part, expected, str(against))]
    if wrong:
        raise VocabularyError("; ".join(wrong))


def _problems(part: MutableMapping[str, Any] | Path, expected: VocabStamp, against: str) -> Iterator[str]:
    where = "the checkpoint" if isinstance(part, MutableMapping) else str(part)
    found = read_stamp(part)
    if found is None:
        yield f"{where}: no stamp of a tokenizer; write one when saving it: cppmill_core.stamp(checkpoint, tokenizer)"
    elif found.tokenizer != expected.tokenizer:
        yield f"{where}: of tokenizer {_named(found)}, but {against} is of {_named(expected)}"
    elif found.vocab_size != expected.vocab_size:
        yield f"{where}: stamped with {found.vocab_size:,} ids, but {against} has {expected.vocab_size:,}"
    for name, rows in _row_counts(part):
        if rows is None:
            yield f"{where}: {name} is not a number, and {against} has {expected.vocab_size:,} ids"
        elif rows < expected.vocab_size:
            yield f"{where}: {name} has {rows:,} rows, fewer than the {expected.vocab_size:,} ids of {against}"


def _named(found: VocabStamp) -> str:
    return f"{found.tokenizer} ({found.revision or 'no revision'}, {found.vocab_size:,} ids)"


def _row_counts(part: MutableMapping[str, Any] | Path) -> Iterator[tuple[str, int | None]]:
    """Yield the name and rows of everything that must have a row per id; None for unreadable rows."""
    if isinstance(part, MutableMapping):
        yield from _rows_within(part)
    elif part.suffix == _SAFETENSORS:
        for name, tensor in read_header(part)[0].items():
            if is_embedding(name, tensor.get("shape", ())):
                yield name, tensor["shape"][0]
    elif part.suffix == ".json":
        yield from _rows_within(_parsed(part.read_bytes(), part))


def _rows_within(found: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, int | None]]:
    """Yield the path and rows of each size and matrix in a configuration or a checkpoint."""
    for key, value in found.items():
        name = f"{above}{key}"
        if isinstance(value, Namespace):
            value = vars(value)
        if isinstance(value, Mapping):
            if key != KEY:
                yield from _rows_within(value, f"{name}.")
        elif _SIZE.search(name) and not _OTHER_IDS.search(name):
            if value is not None:
                yield name, _whole(value)
        elif is_embedding(name, getattr(value, "shape", ())):
            yield name, int(value.shape[0])


def is_embedding(name: str, shape: Sequence[int]) -> bool:
    """Return whether a tensor has the name and the shape of an embedding or output layer of tokens."""
    return len(shape) == _MATRIX and bool(_EMBEDDING.search(name)) and not _OTHER_IDS.search(name)


def _whole(value: Any) -> int | None:  # noqa: ANN401 - any value of a configuration
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _files(path: Path) -> list[Path]:
    """Return the files of a checkpoint that have a stamp, in them or beside them."""
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such checkpoint")
        return [path]
    if not (path / _CONFIG).is_file():
        raise InvalidInputError(f"{path}: a folder without {_CONFIG}; name the file of the checkpoint")
    return [path / _CONFIG, *sorted(path.glob(f"*{_SAFETENSORS}"))]


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.cppmill.json")


def _found(value: Any, where: str) -> VocabStamp | None:  # noqa: ANN401 - any JSON value
    if value is None:
        return None
    try:
        position = value.get("position")
        return VocabStamp(
            tokenizer=value["tokenizer"],
            revision=value["revision"] or "",
            vocab_size=int(value["vocab_size"]),
            position=json.loads(position) if isinstance(position, str) else position,
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptDataError(f"{where}: a stamp that cannot be read ({error!r}); stamp it again") from error


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a safetensors file and the offset of its data.

    Raises:
        OSError: If it cannot be read.
        CorruptDataError: If it is not such a file, or was cut.
    """
    with path.open("rb") as file:
        start = file.read(_HEADER_LENGTH.size)
        length = _HEADER_LENGTH.unpack(start)[0] if len(start) == _HEADER_LENGTH.size else _MAX_HEADER_BYTES + 1
        size = path.stat().st_size
        if length > min(_MAX_HEADER_BYTES, size):
            raise CorruptDataError(f"{path}: not a safetensors file")
        header, begin = _parsed(file.read(length), path), _HEADER_LENGTH.size + length
    _check_tensors(header, size - begin, path)
    return header, begin


def _check_tensors(header: Mapping[str, Any], data_bytes: int, path: Path) -> None:
    """Check that each tensor of a header is within the data of its file."""
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        try:
            ends = max(0, *tensor["data_offsets"]) if isinstance(tensor["shape"], list) else None
        except (TypeError, LookupError):
            ends = None
        if ends is None:
            raise CorruptDataError(f"{path}: damaged: {name} has no shape or no place in its header; save it again")
        if ends > data_bytes:
            raise CorruptDataError(
                f"{path}: damaged: {name} ends at byte {ends:,} of {data_bytes:,}; copy or save the file again"
            )


def _stamp_safetensors(path: Path, made: VocabStamp) -> None:
    """Write a copy with the stamp in its header, then replace the file."""
    header, begin = read_header(path)
    named = {
        f"{KEY}.{name}": json.dumps(value) if isinstance(value, Mapping) else str(value)
        for name, value in made.to_json().items()
    }
    kept = {name: value for name, value in header.get("__metadata__", {}).items() if not name.startswith(f"{KEY}.")}
    header["__metadata__"] = kept | named
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    part = path.with_name(f".{path.name}.part")
    with path.open("rb") as old, part.open("wb") as new:
        old.seek(begin)
        new.write(_HEADER_LENGTH.pack(len(text)) + text)
        shutil.copyfileobj(old, new, 1 << 24)
    part.replace(path)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    try:
        value = parse_unique_json(content)
    except ValueError as error:
        raise CorruptDataError(f"{path}: not JSON, or ambiguous ({error})") from error
    if not isinstance(value, dict):
        raise CorruptDataError(f"{path}: JSON, but no object")
    return value
