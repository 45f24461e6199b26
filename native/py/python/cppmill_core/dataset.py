"""The files of a dataset: token shards or sequences, whose footers and records say what they are."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.types as types

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.batches import digest_columns
from cppmill_core.columns import numbers

__all__ = ["Dataset", "fingerprint_of"]

_ADVICE = (
    "`cppmill verify` tells more, and the command that wrote the record writes it again. To load the files without it, "
    "put them into a folder without that record"
)

_FORMATS = ("cppmill-receipt-", "cppmill-export-")
"""How the formats of records begin."""

_TOKENIZER, _VOCAB_SIZE, _UNIT = b"cppmill.tokenizer", b"cppmill.vocab_size", b"cppmill.unit"
_SIZE, _KEY = re.compile("[1-9][0-9]{0,9}"), re.compile("[0-9a-f]{64}")
_IDS = "token_ids"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The files of a dataset and the sizes of their row groups; read once, and sent to workers.

    Attributes:
        folder: The folder.
        filesystem: The file system of the folder.
        groups: File, number in the file and number of rows of each row group, sorted by file.
        tokenizer: Digest of the tokenizer, from the footers.
        vocab_size: Number of ids of the tokenizer.
        digests: The columns that hold ids of documents.
        fingerprint: SHA-256 of the file names and the sizes of the row groups.
        source: Digests of the run's dataset, and of the receipt or manifest beside the folder; None if there is none.
        versions: Size and time in nanoseconds of each file whose SHA-256 was compared; another one is not read.
    """

    folder: str
    filesystem: pafs.FileSystem
    groups: tuple[tuple[str, int, int], ...]
    tokenizer: str
    vocab_size: int
    digests: frozenset[str]
    fingerprint: str
    source: Mapping[str, str] | None = None
    versions: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        filesystem: pafs.FileSystem | None = None,
        *,
        check_files: bool = False,
    ) -> Dataset:
        """Read the footers of `part-*.parquet` in a folder, `OUT/tokens` or one of sequences.

        Args:
            folder: The folder; a path in `filesystem` if that is given.
            filesystem: Such as `pyarrow.fs.S3FileSystem(…)`; the local one by default.
            check_files: Read all files, and compare each file's SHA-256 with the receipt or manifest beside the folder.
                A file that has another size or time when it is read later is refused.

        Raises:
            OSError: If the folder or a file cannot be read.
            InvalidInputError: If there are no such files, or no rows in them.
            CorruptDataError: If a file is damaged, a footer names no tokenizer, or footers name more than one; if a
                file has the name of another one, or a column has several types; or if the receipt or manifest beside
                the folder is damaged, or lists other files, other numbers of rows, or another tokenizer. With
                `check_files` also if a file has another SHA-256, or if nothing beside the folder lists any.
        """
        where = filesystem or pafs.LocalFileSystem()
        entries = where.get_file_info(pafs.FileSelector(os.fspath(folder)))
        infos = [info for info in entries if _is_shard(info.base_name) and info.type != pafs.FileType.Directory]
        for info in infos:
            _check_file(info)
        names = sorted(info.base_name for info in infos)
        groups: list[tuple[str, int, int]] = []
        footers: dict[tuple[str, int], str] = {}
        digests: frozenset[str] = frozenset()
        kinds: dict[str, pa.DataType] = {}
        for name in names:
            with _opened(f"{os.fspath(folder)}/{name}", where) as file:
                groups += [(name, i, file.metadata.row_group(i).num_rows) for i in range(file.num_row_groups)]
                footers.setdefault(_footer(file, name), name)
                _check_columns(file.schema_arrow, kinds, name)
                digests = digest_columns(file.schema_arrow)
        if not any(rows for _, _, rows in groups):
            raise InvalidInputError(f"{folder}: no rows in part-*.parquet; give a folder as OUT/tokens")
        if len(footers) > 1:
            raise CorruptDataError(
                f"{folder}: files of more than one tokenizer: {', '.join(map(str, footers.items()))}"
            )
        ((tokenizer, vocab_size),) = footers
        found = PurePosixPath(Path(folder).absolute() if filesystem is None else os.fspath(folder))
        name, record = _record_beside(where, found)
        counted = dict.fromkeys(names, 0)
        for file_name, _, rows in groups:
            counted[file_name] += rows
        listed = _check_complete(record, found, counted)
        said = record["tokenizer"] if record else {"digest": tokenizer}
        if (said["digest"], said.get("vocab_size", vocab_size)) != (tokenizer, vocab_size):
            raise CorruptDataError(
                f"{folder}: the files name the tokenizer {tokenizer} of {vocab_size} ids, and the {name} beside the "
                f"folder {said['digest']} of {said.get('vocab_size')}; {_ADVICE}"
            )
        if check_files:
            _check_files(where, listed, found)
        return cls(
            folder=os.fspath(folder),
            filesystem=where,
            groups=tuple(groups),
            tokenizer=tokenizer,
            vocab_size=vocab_size,
            digests=digests,
            fingerprint=fingerprint_of(groups),
            source={"dataset": record["dataset"]["digest"], name: record["digest"]} if record else None,
            versions={info.base_name: _version(info) for info in infos if check_files and info.base_name in listed},
        )

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(rows for _, _, rows in self.groups)

    def read(self, group: int, columns: Sequence[str] | None) -> pa.Table:
        """Read a row group.

        Raises:
            OSError: If the file cannot be read.
            InvalidInputError: If the file lacks a column.
            CorruptDataError: If the file is damaged, is not the one of `versions`, has other row groups than when the
                dataset was opened, or `token_ids` are not ids of the tokenizer.
        """
        name, number, rows = self.groups[group]
        replaced = f"{self.folder}/{name}: was replaced while it was read; open the dataset again"
        with _opened(f"{self.folder}/{name}", self.filesystem) as file:
            if number >= file.num_row_groups or file.metadata.row_group(number).num_rows != rows:
                raise CorruptDataError(replaced)
            missing = set(columns or ()) - set(file.schema_arrow.names)
            if missing:
                raise InvalidInputError(f"{name}: no column {', '.join(missing)}; {', '.join(file.schema_arrow.names)}")
            table = file.read_row_group(number, columns=None if columns is None else list(columns))
            if name in self.versions and self._find_version(name) != self.versions[name]:
                raise CorruptDataError(replaced)
        if _IDS in table.column_names:
            _check_ids(table.column(_IDS), self.vocab_size, f"{self.folder}/{name}")
        return table

    def _find_version(self, name: str) -> tuple[int, int | None]:
        path = f"{self.folder}/{name}"
        with _naming(path):
            return _version(self.filesystem.get_file_info(path))


def _version(info: pafs.FileInfo) -> tuple[int, int | None]:
    return info.size, info.mtime_ns


def fingerprint_of(groups: Sequence[tuple[str, int, int]]) -> str:
    """Return the SHA-256 of the names of files and the rows of their row groups, as `Dataset.groups` has them."""
    return hashlib.sha256(json.dumps(groups).encode()).hexdigest()


def _record_beside(where: pafs.FileSystem, folder: PurePosixPath) -> tuple[str, dict[str, Any]]:
    """Return what kind of record is beside a folder, and the record: a receipt, a manifest, or nothing.

    Raises:
        CorruptDataError: If there is one that is damaged.
    """
    for name in ("receipt", "manifest"):
        path = f"{folder.parent}/{name}.json"
        info = where.get_file_info(path)
        if info.type == pafs.FileType.NotFound:
            continue
        _check_file(info)
        with _naming(path), where.open_input_stream(path) as file:
            data = file.read()
        try:
            record: dict[str, Any] = json.loads(data)
            if _is_foreign(record):
                continue
            _ = record["dataset"]["digest"], record["tokenizer"]["digest"]
            is_intact = _digest_without(data, record["digest"]) == record["digest"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptDataError(f"{path}: damaged ({type(error).__name__}: {error}); {_ADVICE}") from error
        if not is_intact:
            raise CorruptDataError(f"{path}: its content does not have its digest, {record['digest']}; {_ADVICE}")
        return name, record
    return "", {}


def _is_foreign(record: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a file is the record of something else, which has its name."""
    if not isinstance(record, dict):
        return True
    return not (str(record.get("format")).startswith(_FORMATS) or {"dataset", "digest"} <= record.keys())


def _digest_without(data: bytes, digest: str) -> str:
    """Return the SHA-256 of canonical JSON without the key `digest`, which has this value."""
    entry = b'"digest":' + json.dumps(digest).encode()
    before, _, after = data.rpartition(entry)
    rest = before + after.removeprefix(b",") if before.endswith(b"{") else before.removesuffix(b",") + after
    return hashlib.sha256(rest).hexdigest()


def _check_complete(
    record: Mapping[str, Any], folder: PurePosixPath, found: Mapping[str, int]
) -> dict[str, Mapping[str, Any]]:
    """Compare the rows of each file with those that a record lists for the folder, if it lists any; return its lines.

    Raises:
        CorruptDataError: Naming the first file that is missing, not listed, or of another number of rows.
    """
    lines = record["dataset"].get("shards") or record.get("files") if record else None
    listed: dict[str, Mapping[str, Any]] = {}
    for line in lines if isinstance(lines, list) else ():
        try:
            path, _ = PurePosixPath(line["path"]), line["rows"]
        except (KeyError, TypeError) as error:
            raise CorruptDataError(f"{folder.parent}: its record lists a file without path or rows") from error
        if path.parent.name == folder.name and _is_shard(path.name):
            listed[path.name] = line
    for name in sorted(listed.keys() | found.keys()) if listed else ():
        rows = listed[name]["rows"] if name in listed else None
        if rows != found.get(name):
            raise CorruptDataError(
                f"{folder / name}: {_count(found.get(name))}, and the record in {folder.parent} lists {_count(rows)}; "
                f"{_ADVICE}"
            )
    return listed


def _check_files(where: pafs.FileSystem, listed: Mapping[str, Mapping[str, Any]], folder: PurePosixPath) -> None:
    """Compare the SHA-256 of each file with the one that a record lists.

    Raises:
        CorruptDataError: Naming the first file that has another one, or the folder if none is listed.
    """
    if not listed:
        raise CorruptDataError(f"{folder}: nothing beside it lists its files, so they cannot be checked")
    for name, line in listed.items():
        found = hashlib.sha256()
        with _naming(str(folder / name)), where.open_input_stream(str(folder / name)) as file:
            while data := file.read(_READ_BYTES):
                found.update(data)
        if found.hexdigest() != line.get("sha256"):
            raise CorruptDataError(
                f"{folder / name}: its SHA-256 is {found.hexdigest()}, the record in {folder.parent} lists "
                f"{line.get('sha256')}; `cppmill verify` tells more"
            )


def _check_file(info: pafs.FileInfo) -> None:
    """Check, before it is opened, that something is a file: one would wait for a pipe, and read a device without end.

    Raises:
        CorruptDataError: If it is not.
    """
    if info.type != pafs.FileType.File:
        raise CorruptDataError(f"{info.path}: no file; {_ADVICE}")


def _count(rows: object) -> str:
    return "no such file" if rows is None else f"{rows!r} rows"


@contextmanager
def _opened(path: str, where: pafs.FileSystem) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; errors of pyarrow get the name of the file."""
    try:
        with _naming(path), pq.ParquetFile(path, filesystem=where) as file:
            yield file
    except pa.ArrowInvalid as error:
        raise CorruptDataError(
            f"{path}: damaged ({error}); `cppmill verify` names all such files, and the command that wrote the dataset "
            "writes them again"
        ) from error


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in errors of reading it."""
    try:
        yield
    except OSError as error:
        # Those of the operating system have a number and name the file; those of codecs and object stores do not.
        if error.errno is not None:
            raise
        raise OSError(f"{path}: {error}") from error


def _is_shard(name: str) -> bool:
    return name.startswith("part-") and name.endswith(".parquet")


def _footer(file: pq.ParquetFile, name: str) -> tuple[str, int]:
    """Return the tokenizer's digest and its number of ids.

    Raises:
        CorruptDataError: If the footer has neither, or is that of a file of another name.
    """
    metadata = file.metadata.metadata or {}
    try:
        tokenizer, size = metadata[_TOKENIZER].decode(), metadata[_VOCAB_SIZE].decode()
        unit = metadata.get(_UNIT, b"").decode()
    except KeyError as error:
        raise CorruptDataError(f"{name}: no {error} in its footer; it is not a shard of cppmill") from error
    except UnicodeDecodeError as error:
        raise CorruptDataError(f"{name}: its footer is no text ({error}); {_ADVICE}") from error
    if not _SIZE.fullmatch(size):
        raise CorruptDataError(f"{name}: its footer says that the tokenizer has {size[:20]!r} ids; {_ADVICE}")
    key = _KEY.search(name)
    if unit and key and key[0] != unit:
        raise CorruptDataError(f"{name}: it is the file of another unit, {unit}; {_ADVICE}")
    return tokenizer, int(size)


def _check_columns(schema: pa.Schema, kinds: dict[str, pa.DataType], name: str) -> None:
    """Check that a file has each column once, with the type that it has in the files before; note the types.

    Raises:
        CorruptDataError: Naming the first column of which this is not true.
    """
    for number, column in enumerate(schema):
        if column.name in schema.names[:number]:
            raise CorruptDataError(f"{name}: it has the column {column.name} twice; {_ADVICE}")
        expected = kinds.setdefault(column.name, column.type)
        if column.type != expected:
            raise CorruptDataError(f"{name}: {column.name} is {column.type}, in other files {expected}; {_ADVICE}")


def _check_ids(column: pa.ChunkedArray[Any], vocab_size: int, where: str) -> None:
    """Check that lists hold ids of a vocabulary: a model would read beyond its embedding.

    Raises:
        CorruptDataError: If they do not.
    """
    chunks: list[Any] = column.chunks
    for chunk in chunks:
        values = chunk.flatten() if types.is_nested(chunk.type) else chunk
        if not types.is_unsigned_integer(values.type) or chunk.null_count or values.null_count:
            raise CorruptDataError(f"{where}: {_IDS} are {chunk.type}, or null, not lists of ids; {_ADVICE}")
        largest = int(numbers(values).max(initial=0))
        if largest >= vocab_size:
            raise CorruptDataError(f"{where}: it has the id {largest:,}, of a tokenizer of {vocab_size:,}; {_ADVICE}")
