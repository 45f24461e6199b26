"""The documents of a run's token shards: which rows they are, and the licences that the sources gave them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.units import Stage, UnitReceipt, old_receipt_path, unit_receipt_path
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import open_shard, open_token_shard, token_shards

_REMEDY = "run `cppmill run` again"

HELD_SHARDS = 64
"""Of so many shards the licences are held, a number per document and each text once."""


class RunDocument(NamedTuple):
    """A document of a run.

    Attributes:
        doc_id: SHA-256 of its bytes.
        project: Its project.
        path: Its path in the source.
        license: What the source says; None if it says nothing, or the run's documents are gone.
        num_bytes: Its bytes.
        num_tokens: Its ids, BOS and EOS among them where the run puts them.
    """

    doc_id: str
    project: str
    path: str
    license: str | None
    num_bytes: int
    num_tokens: int


class RunDocuments:
    """Reads the documents of a run by row or by id; the bytes of a shard are checked when it is first read."""

    COLUMNS = ("doc_id", "project", "path", "num_bytes", "num_tokens")

    def __init__(self, out: OutputFolder, receipt: Mapping[str, Any]) -> None:
        """Take a finished run and its receipt."""
        self.out = out
        self.shards = {shard.path: shard for shard in token_shards(dict(receipt))}
        self.lacks_documents = False
        self._units = {shard["path"]: shard["unit"] for shard in receipt["dataset"]["shards"]}
        self._files: Mapping[str, str] = receipt["files"]
        self._checked: set[str] = set()
        self._licenses = lru_cache(HELD_SHARDS)(self._read_licenses)

    def rows(self, shard: str, group: int, rows: Any) -> Iterator[RunDocument]:  # noqa: ANN401 - an array of numbers
        """Yield the documents of some rows of a row group, in the order given."""
        with self.open(shard) as file:
            table, first = file.read_row_group(group, columns=list(self.COLUMNS)).take(rows), _first_row(file, group)
        yield from self._documents(shard, table, first + np.asarray(rows))

    def find(self, shard: str, names: Collection[str]) -> Iterator[tuple[RunDocument, Any]]:
        """Yield the documents of a token shard with these ids, each with its token ids."""
        wanted = pa.array(sorted(names), pa.string())
        with self.open(shard) as file:
            for group in range(file.num_row_groups):
                ids: Any = file.read_row_group(group, columns=["doc_id"])["doc_id"]
                inside = pc.is_in(ids, value_set=wanted)
                if pc.any(inside).as_py():
                    table = file.read_row_group(group, columns=[*self.COLUMNS, "token_ids"]).filter(inside)
                    tokens: Any = table["token_ids"]
                    rows = _first_row(file, group) + np.flatnonzero(inside.to_numpy())
                    for row, document in enumerate(self._documents(shard, table, rows)):
                        yield document, tokens[row].values.to_numpy()

    def open(self, name: str) -> AbstractContextManager[pq.ParquetFile]:
        """Open a token shard.

        Raises:
            IntegrityError: If the receipt names no such shard, or it is missing or another one.
        """
        if name not in self.shards:
            raise IntegrityError(f"{self.out.where(name)}: the receipt does not name it; {_REMEDY}")
        return open_token_shard(self.out, self.shards[name], is_checked=self._note_checked(name))

    def _note_checked(self, name: str) -> bool:
        """Return whether a file was opened before, and note that it is."""
        is_checked = name in self._checked
        self._checked.add(name)
        return is_checked

    def _documents(self, shard: str, table: pa.Table, rows: npt.NDArray[np.int64]) -> Iterator[RunDocument]:
        """Yield the documents of a table, which are these rows of a token shard."""
        licenses = self._licenses(shard)
        found: list[str | None] = [None] * len(rows) if licenses is None else licenses.take(pa.array(rows)).to_pylist()
        for row, license in zip(table.select(self.COLUMNS).to_pylist(), found, strict=True):
            yield RunDocument(**row, license=license)

    def _read_licenses(self, shard: str) -> Any:  # noqa: ANN401 - a column of texts
        """Return the licence of each row of a token shard, from the documents shard behind it; None if that is gone.

        The rows of both are the same, in the same order; the same bytes may be there twice, with other licences.
        """
        found = []
        try:
            for name, digest in self._read_unit(shard).inputs.items():
                unchecked = None if self._note_checked(name) else digest
                with open_shard(self.out, name, sha256=unchecked, remedy=_REMEDY) as file:
                    found += file.read(columns=["license"])["license"].cast(pa.string()).chunks
        except FileNotFoundError:
            self.lacks_documents = True
            return None
        return pa.chunked_array(found, pa.string()).dictionary_encode().unify_dictionaries()

    def _read_unit(self, shard: str) -> UnitReceipt:
        """Return the receipt of the unit that made a token shard.

        Raises:
            FileNotFoundError: If there is none.
            IntegrityError: If it is not the one that the run's receipt names.
        """
        unit = unit_receipt_path(Stage.TOKENIZE, self._units[shard])
        data, where = self.out.read_receipt_bytes(unit), self.out.where(unit)
        if sha256(data).hexdigest() not in (self._files.get(unit), self._files.get(old_receipt_path(unit) or "")):
            raise IntegrityError(f"{where}: not the file that the receipt names; {_REMEDY}")
        return UnitReceipt.from_bytes(data, where=where)


def _first_row(file: pq.ParquetFile, group: int) -> int:
    """Return which row of a file the first one of a row group is."""
    return sum(file.metadata.row_group(number).num_rows for number in range(group))
