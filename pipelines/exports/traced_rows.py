"""The rows of a dataset as a training reads them, and the documents of a run that are in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core.dataset import fingerprint_of

from schemas.errors import ConfigError, IntegrityError
from schemas.export_options import SequenceOptions
from schemas.options import TokenizeOptions
from schemas.units import Stage, UnitReceipt, current_path
from transforms.exports.sequences.segments import Encoding
from transforms.exports.sequences.spans import DocumentSpan, SequenceSpans
from transforms.records.manifests import MANIFEST, read_intact_manifest
from transforms.records.receipts import read_receipt
from transforms.records.record import reads_record
from transforms.storage.folder import OutputFolder
from transforms.tokens.documents import RunDocuments
from transforms.tokens.shards import open_shard
from transforms.tokens.tokenizer import TokenizeSettings, open_tokenizer
from transforms.units.batches import list_column

_ROWS_AT_ONCE = 1024


class TracedRows:
    """The rows of a dataset and the documents in them; reads token shards, or sequences and the run behind them."""

    def __init__(self, data: str, run: str | None) -> None:
        """Open a finished run, or an export of sequences and its run.

        Raises:
            ConfigError: If it is neither, or the run is missing or another one.
            IntegrityError: If a file of rows is missing.
        """
        self.out = OutputFolder(data)
        self.manifest = read_intact_manifest(self.out) if self.out.exists(MANIFEST) else None
        if self.manifest is None:
            self.receipt = read_receipt(self.out, argument="--data")
            files, source = self.receipt["dataset"]["shards"], self.out
            self._receipts: dict[str, str] = {}
        else:
            files, source = self.manifest["files"], _run_of(data, self.manifest, run)
            self.receipt = read_receipt(source, argument="--run")
            _check_run(self.manifest, self.receipt, run)
            self._receipts = {current_path(unit): digest for unit, digest in self.manifest["receipts"].items()}
        self._digests = {file["path"]: file["sha256"] for file in files}
        rows_of = {file["path"]: file["rows"] for file in files}
        self.groups = [(name, *group) for name in sorted(rows_of) for group in self._row_groups(name, rows_of[name])]
        self._documents = RunDocuments(source, self.receipt)
        self._spans = self._open_spans(source)
        self._inputs: dict[str, list[str]] = {}

    @property
    def run(self) -> OutputFolder:
        """The run that the documents are of."""
        return self._documents.out

    @property
    def lacks_licenses(self) -> bool:
        """Whether documents of the run were gone, so that their licences are not known."""
        return self._documents.lacks_documents

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(rows for _, _, rows in self.groups)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the files, as the positions of loaders have it."""
        return fingerprint_of([(PurePosixPath(name).name, group, rows) for name, group, rows in self.groups])

    def facts(self) -> dict[str, Any]:
        """Return what the dataset is made from: digests, and the release of the vocabulary."""
        tokenizer = self.receipt["tokenizer"]
        found = {
            "dataset": self.receipt["dataset"]["digest"],
            "corpus": self.receipt["corpus"]["digest"],
            "receipt": self.receipt["digest"],
            "tokenizer": tokenizer["digest"],
            "revision": tokenizer["revision"],
        }
        return found if self.manifest is None else {**found, "manifest": self.manifest["digest"]}

    def documents(self, group: int, rows: npt.NDArray[np.int64]) -> Iterator[list[DocumentSpan]]:
        """Yield the documents of some rows of a row group, by row.

        Raises:
            IntegrityError: If a file is missing or another one, or a row of sequences does not fit the run.
        """
        name, number, _ = self.groups[group]
        if self._spans is None:
            for found in self._documents.rows(name, number, rows):
                yield [DocumentSpan(found, 0, found.num_bytes, found.num_tokens)]
            return
        with open_shard(self.out, name, sha256=self._digests.pop(name, None), remedy="export again") as file:
            table = file.read_row_group(number, columns=self._spans.columns).take(rows)
        for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            try:
                yield from self._spans.find(_as_rows(batch), self._inputs_of(name))
            except (IndexError, KeyError, ValueError) as error:
                where = self.out.where(name)
                raise IntegrityError(f"{where}: a row does not fit the run; see `cppmill verify --run`") from error

    def _row_groups(self, name: str, rows: int) -> list[tuple[int, int]]:
        """Return the numbers and rows of a file's row groups; which rows a step reads depends on those of all files."""
        where = self.out.where(name)
        if not self.out.exists(name):
            raise IntegrityError(f"{where}: missing, and its record names it; see `cppmill verify`")
        with self.out.open_ranges(name) as file, pq.ParquetFile(file) as opened:
            groups = [opened.metadata.row_group(number).num_rows for number in range(opened.num_row_groups)]
        if sum(groups) != rows:
            raise IntegrityError(f"{where}: has {sum(groups)} rows, and its record says {rows}; see `cppmill verify`")
        return list(enumerate(groups))

    def _open_spans(self, source: OutputFolder) -> SequenceSpans | None:
        if self.manifest is None:
            return None
        policy = TokenizeOptions.model_validate(self.receipt["configs"]["tokenize"])
        settings = TokenizeSettings(out=source, tokenizer_digest=self.receipt["tokenizer"]["digest"], options=policy)
        with reads_record(self.out.where(MANIFEST), kind="manifest", advice="export again"):
            options = SequenceOptions.model_validate(self.manifest["options"])
        return SequenceSpans(self._documents, options, Encoding(open_tokenizer(settings), policy))

    def _inputs_of(self, name: str) -> list[str]:
        """Return the token shards that a file of sequences was made from."""
        if name not in self._inputs:
            unit = current_path(name.replace("/part-", "/_unit-").replace(".parquet", ".json"))
            self._inputs[name] = sorted(self._read_unit(unit).inputs)
        return self._inputs[name]

    def _read_unit(self, unit: str) -> UnitReceipt:
        """Return a unit receipt of the sequences.

        Raises:
            IntegrityError: If it is missing, or not the one that the manifest names.
        """
        where = self.out.where(unit)
        try:
            data = self.out.read_receipt_bytes(unit)
        except FileNotFoundError as error:
            raise IntegrityError(f"{where}: missing; export again") from error
        if sha256(data).hexdigest() != self._receipts.get(unit):
            raise IntegrityError(f"{where}: not the file that {MANIFEST} names; export again")
        return UnitReceipt.from_bytes(data, where=where)


def _run_of(data: str, manifest: Mapping[str, Any], run: str | None) -> OutputFolder:
    if manifest["export"] != Stage.SEQUENCES:
        raise ConfigError(f"--data {data}: an export of {manifest['export']}, which the loader does not read")
    if run is None:
        raise ConfigError(f"--data {data}: sequences; give the run that they were made from too, with --run")
    return OutputFolder(run)


def _check_run(manifest: Mapping[str, Any], receipt: Mapping[str, Any], run: str | None) -> None:
    if receipt["digest"] != manifest["dataset"]["receipt"]:
        raise ConfigError(
            f"--run {run}: its receipt is {receipt['digest']}, but the sequences were made from the run with the "
            f"receipt {manifest['dataset']['receipt']}"
        )


def _as_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch of sequences; `token_ids` as an array."""
    ids: Any = list_column(batch, "token_ids").flatten().to_numpy()
    rows: list[dict[str, Any]] = batch.drop_columns(["token_ids"]).to_pylist()
    for row, values in zip(rows, ids.reshape(batch.num_rows, -1), strict=True):
        row["token_ids"] = values
    return rows
