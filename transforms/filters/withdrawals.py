"""Withdrawn documents: a list by doc_id, path, project and licence, of which only hashes are kept.

The list itself publishes no path and no name: an entry is the SHA-256 of its kind and its value. Whoever knows a value
can look for it in the list; nobody can read the values from it. Names of public projects can be guessed.

It is applied to fingerprints, not to texts: another list reads no source again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core.manifests import parse_unique_json

from schemas.digests import HEX_DIGEST, canonical_json
from schemas.errors import ConfigError, IntegrityError
from schemas.files import read_regular
from schemas.options import FILE_DIGEST
from schemas.places import is_remote
from schemas.tables import SOURCE_DOC_ID
from transforms.sources.license_terms import named_licenses
from transforms.storage.folder import CACHE, OutputFolder
from transforms.storage.urls import open_url, store_errors

WITHDRAWN = "withdrawn.json"
"""The list in OUT and in a store of versions."""

WITHDRAWN_FORMAT = "cppmill-withdrawn-1"
KINDS = ("doc_ids", "paths", "projects", "licenses")
COLUMNS = ("doc_id", "project", "path", "license")
"""The columns that `Withdrawals.find` looks at."""

_PUBLISHED = f"{CACHE}/withdrawn"
_WORDS = {"doc_ids": "doc_id", "paths": "path", "projects": "project", "licenses": "licence"}


@lru_cache(maxsize=1 << 16)
def entry(kind: str, value: str) -> str:
    """Return the entry of a value: the SHA-256 of its kind, a zero byte and the value.

    Example:
        >>> entry("projects", "zlib")[:16]
        '0e3f2aeb7fa76ea5'
    """
    return sha256(f"{kind}\0{_normal(kind, value)}".encode("utf-8", "surrogateescape")).hexdigest()


def _normal(kind: str, value: str) -> str:
    return value.lower() if kind in ("doc_ids", "licenses") else value


@dataclass(frozen=True, eq=False)
class Withdrawals:
    """What is withdrawn.

    Attributes:
        entries: The entries by kind; a kind may be missing.
    """

    entries: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Iterable[str]]) -> Withdrawals:
        """Return the list of values by kind; a path that ends with a slash is all that is below it."""
        return cls({kind: frozenset(entry(kind, value) for value in values.get(kind, ())) for kind in KINDS})

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str, advice: str = "`cppmill withdraw` makes one") -> Withdrawals:
        """Read a list back.

        Args:
            data: Its bytes.
            where: Its place, for the message.
            advice: What to do if it is none, for the message.

        Raises:
            IntegrityError: If it is not one.
        """
        try:
            value = parse_unique_json(data)
            if value.pop("format") != WITHDRAWN_FORMAT or value.keys() != set(KINDS):
                raise ValueError("other keys or another format")
            entries = {kind: frozenset(map(str, value[kind])) for kind in KINDS}
            if not all(HEX_DIGEST.fullmatch(text) for texts in entries.values() for text in texts):
                raise ValueError("an entry is no SHA-256")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IntegrityError(f"{where}: not a list of format {WITHDRAWN_FORMAT} ({error}); {advice}") from error
        return cls(entries)

    def to_bytes(self) -> bytes:
        """Return the list as canonical JSON, the same bytes for the same entries."""
        return canonical_json({"format": WITHDRAWN_FORMAT, **{kind: sorted(self._of(kind)) for kind in KINDS}})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the list."""
        return sha256(self.to_bytes()).hexdigest()

    @property
    def option(self) -> str:
        """The list as the options of a receipt name it."""
        return f"{FILE_DIGEST}{self.digest}"

    @property
    def name(self) -> str:
        """Where workers find it, relative to OUT."""
        return f"{_PUBLISHED}/{self.digest}.json"

    @property
    def counts(self) -> dict[str, int]:
        """The number of entries by kind."""
        return {kind: len(self._of(kind)) for kind in KINDS}

    def __or__(self, other: Withdrawals) -> Withdrawals:
        """Return the entries of both."""
        return Withdrawals({kind: self._of(kind) | other._of(kind) for kind in KINDS})

    def __eq__(self, other: object) -> bool:
        """Compare the entries."""
        return isinstance(other, Withdrawals) and self.digest == other.digest

    def __hash__(self) -> int:
        """Hash the entries."""
        return hash(self.digest)

    def _of(self, kind: str) -> frozenset[str]:
        return self.entries.get(kind, frozenset())

    def find(self, documents: pa.RecordBatch | pa.Table) -> Iterator[tuple[int, str]]:
        """Yield the rows that are withdrawn, and a few words for people.

        Args:
            documents: Rows with the columns `COLUMNS`; where content was altered, with `source_doc_id`, which counts
                as a doc_id too.
        """
        for row, values in enumerate(_values(documents)):
            kind = next((kind for kind, names in values.items() if self._has(kind, names)), None)
            if kind is not None:
                yield row, f"its {_WORDS[kind]} is in the list of withdrawn documents"

    def without(self, documents: pa.RecordBatch | pa.Table) -> Withdrawals:
        """Return the entries that no document has; the rows are those of `find`."""
        found: dict[str, set[str]] = {kind: set() for kind in KINDS}
        for values in _values(documents):
            for kind, names in values.items():
                if self._of(kind):
                    found[kind].update(entry(kind, name) for name in names)
        return Withdrawals({kind: self._of(kind) - found[kind] for kind in KINDS})

    def _has(self, kind: str, names: Sequence[str]) -> bool:
        listed = self._of(kind)
        return bool(listed) and not listed.isdisjoint(entry(kind, name) for name in names)


def describe_counts(withdrawals: Withdrawals) -> str:
    """Return how much a list has.

    Example:
        >>> describe_counts(Withdrawals.of({"paths": ["a.h", "b/"], "projects": ["zlib"]}))
        '2 paths, 1 projects'
    """
    counts = withdrawals.counts
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.items() if number) or "nothing"


def _values(documents: pa.RecordBatch | pa.Table) -> Iterator[dict[str, Sequence[str]]]:
    """Yield the values that a document can be withdrawn by, by kind."""
    columns: list[list[Any]] = [documents.column(name).to_pylist() for name in COLUMNS]
    sources: Iterable[Any] = repeat(None, documents.num_rows)
    if SOURCE_DOC_ID in documents.schema.names:
        sources = documents.column(SOURCE_DOC_ID).to_pylist()
    for doc_id, project, path, license, source in zip(*columns, sources, strict=True):
        yield {
            "doc_ids": [doc_id, source] if source else [doc_id],
            "paths": [path, *_folders(path)],
            "projects": [project],
            "licenses": list(named_licenses(license or "")),
        }


def read_columns(out: OutputFolder, name: str) -> pa.Table:
    """Read the columns that `Withdrawals.find` looks at from a documents shard."""
    with out.open_ranges(name) as file:
        names = pq.read_schema(file).names
        altered = [SOURCE_DOC_ID] if SOURCE_DOC_ID in names else []
        return pq.read_table(file, columns=[*COLUMNS, *altered], use_threads=False)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, each with a slash at its end."""
    end = path.rfind("/")
    while end >= 0:
        yield path[: end + 1]
        end = path.rfind("/", 0, end)


def read_withdrawals(place: str | None) -> Withdrawals | None:
    """Return the list at a place, a path or a URL; None without a place.

    Raises:
        ConfigError: If there is none, or it is no such list.
        StoreError: If a store fails, or refuses the credentials.
    """
    if place is None:
        return None
    try:
        return Withdrawals.from_bytes(_read(place), where=place)
    except OSError as error:
        raise ConfigError(f"ingest.withdrawn: {place}: cannot be read: {error.strerror or error}") from error
    except IntegrityError as error:
        raise ConfigError(str(error)) from error


def _read(place: str) -> bytes:
    if not is_remote(place):
        return read_regular(Path(os.path.expanduser(place)))  # noqa: PTH111 - Path raises for users whom there are not
    with store_errors(place):
        system, path = open_url(place)
        return bytes(system.cat_file(path))


def withdrawn_in(folder: OutputFolder) -> Withdrawals | None:
    """Return the list of a run or a store; None if it has none."""
    try:
        data = folder.read_bytes(WITHDRAWN)
    except FileNotFoundError:
        return None
    advice = "restore it; a store and its versions have copies, each of what was withdrawn by then"
    return Withdrawals.from_bytes(data, where=folder.where(WITHDRAWN), advice=advice)


@contextmanager
def published_withdrawals(withdrawals: Withdrawals | None, out: OutputFolder) -> Iterator[None]:
    """Let workers load a list by its name, from OUT, as long as this lasts; without one do nothing."""
    if withdrawals is None:
        yield
        return
    out.publish_bytes(withdrawals.name, withdrawals.to_bytes())
    try:
        yield
    finally:
        out.remove_folder(_PUBLISHED)


def load_withdrawals(name: str, out: OutputFolder) -> Withdrawals:
    """Return a list that is published under a name."""
    return Withdrawals.from_bytes(out.read_bytes(name), where=out.where(name))


def keep_withdrawals(withdrawals: Withdrawals | None, out: OutputFolder) -> None:
    """Write the list of a run into OUT, or remove that of an earlier run; nothing if it is there already."""
    if withdrawals is None:
        out.remove(WITHDRAWN)
    elif out.digest(WITHDRAWN) != withdrawals.digest:
        out.publish_bytes(WITHDRAWN, withdrawals.to_bytes())
