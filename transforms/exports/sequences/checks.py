"""Checks of written sequences by themselves: whether rows, footers and the ledger of a unit receipt fit together.

Whether the ids are those of a run is not looked at here: for this the files are made again from the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import HEX_DIGEST
from schemas.errors import IntegrityError
from schemas.export_options import SequenceOptions
from schemas.tables import is_annotated, sequences_schema
from schemas.units import UnitReceipt
from transforms.exports.sequences.proofs import find_loss, matrix
from transforms.storage import footers
from transforms.storage.folder import OutputFolder, naming_damage
from transforms.tokens.shards import check_footer, facts_of

_BY_FILE = ("file_doc_ids", "file_starts", "file_platform_ids")
_SINGLE = ("token_ids", "loss_mask", "num_tokens")


@dataclass(frozen=True, kw_only=True)
class SequenceFacts:
    """What the manifest says of all sequences of an export.

    Attributes:
        out: The folder of the export.
        options: Its options.
        tokenizer: The digest of the tokenizer.
        vocab_size: Number of its ids.
        platforms: Number of platform ids, padding included; 0 if the export has none.
    """

    out: OutputFolder
    options: SequenceOptions
    tokenizer: str
    vocab_size: int
    platforms: int


def check_unit(receipt: UnitReceipt, facts: SequenceFacts) -> None:
    """Check the file of a unit against its receipt and the manifest.

    Raises:
        IntegrityError: At the first contradiction, naming the file and the rows.
    """
    where, name = facts.out.where(receipt.path), f"sequences/part-{receipt.key}.parquet"
    if [output.path for output in receipt.outputs] != [name]:
        raise IntegrityError(f"{where}: its file is not {name}")
    where, counted, largest = facts.out.where(name), Counter[str](), 0
    with facts.out.open_local(name) as path, naming_damage(where), pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(sequences_schema(facts.vocab_size, facts.options)) or is_annotated(
            file.schema_arrow
        ):
            raise IntegrityError(f"{where}: its columns are not those that the options give")
        for batch in file.iter_batches(batch_size=max(1, (1 << 22) // facts.options.length)):
            at = f"{where}, from row {counted['sequences']}"
            largest = max(largest, _check_batch(batch, facts, where=at))
            counted["sequences"] += batch.num_rows
            counted["positions"] += batch.num_rows * facts.options.length
            counted["positions_with_loss"] += find_loss(batch, facts.options, where=at)
            counted["segments"] += len(_flat(batch, "starts"))
            counted["tokens_in_sequences"] += int(np.asarray(batch["num_tokens"]).sum())
        footer = {**facts_of(facts.tokenizer, facts.vocab_size), "max_token_id": str(largest), "unit": receipt.key}
        check_footer(file, where, footer)
        for problem in footers.check_footer(path, file, where):
            raise IntegrityError(problem)
    for total, value in counted.items():
        if receipt.totals.get(total) != value:
            said = receipt.totals.get(total)
            raise IntegrityError(f"{where}: it has {value} {total}, its unit receipt says {said}")
    if receipt.outputs[0].rows != counted["sequences"]:
        raise IntegrityError(f"{where}: it has {counted['sequences']} rows, its unit receipt says another number")


def _flat(batch: pa.RecordBatch, name: str) -> Any:  # noqa: ANN401 - an array of numpy
    column: Any = batch[name]
    return column.flatten().to_numpy(zero_copy_only=False)


def _check_batch(batch: pa.RecordBatch, facts: SequenceFacts, *, where: str) -> int:
    """Check the rows of a batch; return its largest id."""
    ids, used = matrix(batch, "token_ids", facts.options.length), np.asarray(batch["num_tokens"]).astype(np.int64)
    inside = np.arange(facts.options.length) < used[:, None]
    padding = ids[~inside]
    largest = int(ids.max(initial=0))
    if largest >= facts.vocab_size:
        raise IntegrityError(f"{where}: there is the id {largest}, and the vocabulary has {facts.vocab_size} ids")
    if used.min(initial=1) < 1 or used.max(initial=1) > facts.options.length or len(np.unique(padding)) > 1:
        raise IntegrityError(f"{where}: num_tokens is not where one id begins to fill the rows")
    _check_places(batch, used, facts, where=where)
    for name in ("platform_ids", "file_platform_ids"):
        if name in batch.schema.names:
            column: Any = batch[name]
            found = column.flatten().flatten().to_numpy()
            if len(found) and not 0 < found.min() <= found.max() < facts.platforms:
                raise IntegrityError(f"{where}: {name} has ids that are no platforms")
    return largest


def _check_places(batch: pa.RecordBatch, used: Any, facts: SequenceFacts, *, where: str) -> None:  # noqa: ANN401
    """Check where segments start, and that each has a document."""
    column: Any = batch["starts"]
    ends = column.offsets.to_numpy() - column.offsets[0].as_py()
    for name in set(batch.schema.names) - {*_SINGLE, *_BY_FILE}:
        other: Any = batch[name]
        if not np.array_equal(other.offsets.to_numpy() - other.offsets[0].as_py(), ends):
            raise IntegrityError(f"{where}: {name} does not have one entry per segment")
    numbers, starts = np.diff(ends), _flat(batch, "starts").astype(np.int64)
    rows = np.repeat(np.arange(len(numbers)), numbers)
    first = np.diff(rows, prepend=-1) > 0
    right = (
        bool((numbers > 0).all())
        and bool((starts[first] == 0).all())
        and bool((np.diff(starts, prepend=-1)[~first] > 0).all())
        and bool((starts < used[rows]).all())
        and (facts.options.mode == "pack" or bool((numbers == 1).all()))
    )
    if not right:
        raise IntegrityError(f"{where}: starts do not ascend from 0 within num_tokens")
    if not facts.options.repositories and not all(map(HEX_DIGEST.fullmatch, _flat(batch, "doc_ids"))):
        raise IntegrityError(f"{where}: doc_ids has what is no SHA-256")
