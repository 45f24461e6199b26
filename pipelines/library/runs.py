"""A finished run as an object: its receipt, its ledger, its tables and its tokenizer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.dataset as ds

from pipelines.library.places import place_text
from pipelines.tokenizers.places import local_tokenizer
from schemas.errors import ConfigError
from schemas.ledger import Ledger, Tally
from schemas.places import is_remote
from schemas.units import DOCUMENTS_PREFIX, REJECTS_PREFIX
from transforms.records.receipts import RECEIPT, check_named, named_files, read_receipt
from transforms.records.versions import find_run
from transforms.storage.folder import OutputFolder
from transforms.storage.urls import open_url

if TYPE_CHECKING:
    from cppmill_core import AnyTokenizer

TABLES: dict[str, str] = {
    "documents": DOCUMENTS_PREFIX,
    "rejects": REJECTS_PREFIX,
    "tokens": "tokens/part-",
    "words": "counts/words/part-",
    "terms": "counts/terms.parquet",
    "morphemes": "counts/morphemes.parquet",
    "namespaces": "counts/namespaces.parquet",
    "decisions": "tokenizer/decisions.parquet",
}
"""The tables of a run, by name: how the names of their files begin. A run with a tokenizer given has no counts."""


class Run:
    """A finished run.

    Attributes:
        out: Its folder, an absolute path or a URL.
        receipt: `receipt.json`, as JSON values.
    """

    def __init__(self, out: str) -> None:
        """Read the receipt.

        Raises:
            ConfigError: If there is none.
            IntegrityError: If it is not a receipt of this version.
        """
        self._folder = OutputFolder(find_run(out))
        self.out = self._folder.root
        self.receipt: dict[str, Any] = read_receipt(self._folder)

    def __repr__(self) -> str:
        """Name the place and what is in it."""
        dataset = self.receipt["dataset"]
        return f"Run({self.out!r}: {dataset['documents']:,} documents, {dataset['tokens']:,} tokens)"

    @property
    def ledger(self) -> pd.DataFrame:
        """What became of every input document.

        Returns:
            One row for `in`, one for `kept`, and one per reason why documents were not kept, indexed by `column` and
            `reason` (empty if a column has none), with `documents` and `bytes`.
        """
        ledger = Ledger.from_json(self.receipt["ledger"], where=self._folder.where(RECEIPT))
        sums = {name: _sums(tally) for name, tally in (("documents", ledger.documents), ("bytes", ledger.num_bytes))}
        table = pd.DataFrame(sums).fillna(0).astype("int64")
        table.index = pd.MultiIndex.from_tuples(table.index, names=["column", "reason"])
        return table

    @property
    def tables(self) -> list[str]:
        """The names of the tables that this run has."""
        return [name for name in TABLES if self._files(name)]

    def dataset(self, name: str) -> ds.Dataset:
        """Return a table that you can read in parts, with `to_batches`; only its schema is read now.

        What is read later is not compared with the receipt: `table` does that, and `verify`.

        Args:
            name: One of `tables`.

        Raises:
            ConfigError: If the run has no such table.
        """
        files = self._files(name)
        if not files:
            raise ConfigError(f"{self.out}: no table {name!r}; there are {', '.join(self.tables)}")
        system, root = open_url(self.out) if is_remote(self.out) else (None, self.out)
        return ds.dataset([f"{root}/{file}" for file in files], format="parquet", filesystem=system)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a whole table, or some of its columns, in memory.

        Args:
            name: One of `tables`; `docs/reference/formats.md` lists the columns of each.
            columns: The columns to read; all by default.

        Raises:
            ConfigError: If the run has no such table or column.
            IntegrityError: If a file of it is missing, or not the one that the receipt names.
        """
        check_named(self._folder, self.receipt, self._files(name))
        dataset = self.dataset(name)
        if missing := [column for column in columns or () if column not in dataset.schema.names]:
            known = ", ".join(dataset.schema.names)
            raise ConfigError(f"{self.out}: table {name!r} has no column {missing[0]!r}; it has {known}")
        return dataset.to_table(columns=None if columns is None else list(columns)).to_pandas()

    @cached_property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer that made the tokens; if it is at a URL, it is copied first.

        Raises:
            CorruptDataError: If it is not the one that the receipt names.
        """
        import cppmill_core

        return cppmill_core.load_tokenizer(
            local_tokenizer(f"{self.out}/tokenizer"), digest=self.receipt["tokenizer"]["digest"]
        )

    def verify(self) -> list[str]:
        """Return every difference between the folder and its receipt; empty if there is none."""
        from pipelines.versions import verify

        return verify.verify(self.out)

    def _files(self, name: str) -> list[str]:
        """Return the files of a table, in order, that the receipt names."""
        begin = TABLES.get(name)
        return [] if begin is None else sorted(file for file in named_files(self.receipt) if file.startswith(begin))


def open_run(place: str | os.PathLike[str]) -> Run:
    """Open a finished run.

    Args:
        place: Its folder or URL; a store means its current version.

    Raises:
        ConfigError: If there is no receipt.
        IntegrityError: If it is not a receipt of this version.

    Example:
        >>> run = open_run("out/demo")  # doctest: +SKIP
        >>> run.table("tokens", ["project", "num_tokens"]).groupby("project").sum()  # doctest: +SKIP
    """
    return Run(place_text(place))


def _sums(tally: Tally) -> dict[tuple[str, str], int]:
    """Return the sums of a tally by column and reason, all documents or bytes first."""
    return {("in", ""): tally.total, **{(str(column), reason): count for column, reason, count in tally.entries()}}
