"""Validate: read token shards back and prove them against the documents that they were made from.

Each row of a token shard is compared with the row of its documents shard: names, sizes and platform ids must agree, and
the ids must be in the vocabulary and decode to bytes whose SHA-256 is `doc_id`. A document that a lossy tokenizer does
not give back is encoded again instead. The counts go into a proof, a unit receipt below `proofs/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.digests import add_digests
from schemas.errors import IntegrityError
from schemas.tables import MAX_PLATFORM_IDS, PLATFORM_VOCAB_SIZE, is_annotated, tokens_schema
from schemas.units import Stage, Unit, UnitReceipt
from transforms.tokens.losses import LOST, Losses
from transforms.tokens.shards import check_footer, open_shard, sum_row_digests, tokenizer_facts
from transforms.tokens.tokenizer import TokenizeSettings, document_ends, open_tokenizer
from transforms.units.batches import list_column
from transforms.units.prefetch import prefetch

_SAME = ("doc_id", "project", "path", "num_bytes", "platform_ids", "platform_info")


def validate_unit(unit: Unit, settings: TokenizeSettings) -> UnitReceipt:
    """Prove one token shard and publish the proof.

    Args:
        unit: Its payload: `{"shard", "documents", "unit", "inputs"}`: the token shard, the documents shard that it
            was made from, the key of the token shard's unit, and the SHA-256 of both files.
        settings: Tokenizer and policy.

    Returns:
        The proof; its totals are counted from the file, not copied from the shard's receipt.

    Raises:
        IntegrityError: Naming the shard, the row and both values, at the first difference.
    """
    totals = prove_shard(
        unit.payload["shard"],
        unit.payload["documents"],
        unit_key=unit.payload["unit"],
        settings=settings,
        digests=unit.payload["inputs"],
    )
    return UnitReceipt(stage=Stage.VALIDATE, key=unit.key, outputs=(), totals=totals, inputs=unit.payload["inputs"])


def prove_shard(
    shard: str, documents: str, *, unit_key: str, settings: TokenizeSettings, digests: Mapping[str, str]
) -> dict[str, Any]:
    """Check every row of a token shard and return the totals counted from it.

    Args:
        shard: The token shard, relative to OUT.
        documents: The documents shard that it was made from.
        unit_key: The key of the token shard's unit.
        settings: Tokenizer and policy.
        digests: The SHA-256 that both files must have, by name; none is checked of a file that is not named.

    Returns:
        documents, bytes, tokens, max_token_id, dataset_digest and corpus_digest (sums of row digests, mergeable in
        any order); of a lossy tokenizer also what is lost.

    Raises:
        IntegrityError: At the first difference.
    """
    tokenizer = open_tokenizer(settings)
    totals: dict[str, Any] = {
        "documents": 0,
        "bytes": 0,
        "tokens": 0,
        "max_token_id": 0,
        "dataset_digest": add_digests([]),
        "corpus_digest": add_digests([]),
    }
    out, where = settings.out, settings.out.where(shard)
    remedy = "remove the file and run again"
    with (
        open_shard(out, shard, sha256=digests.get(shard), remedy=remedy) as tokens,
        open_shard(out, documents, sha256=digests.get(documents), remedy=remedy) as sources,
    ):
        check_footer(tokens, where, {**tokenizer_facts(tokenizer), "unit": unit_key})
        check_schema(tokens, where, tokenizer, settings)
        losses = Losses(sources=sources, tokenizer=tokenizer, settings=settings) if tokenizer.is_lossy else None
        for start, rows, origin in prefetch(_paired(tokens, sources, where)):
            prove_rows(rows, origin, tokenizer, settings, losses, start=start, where=f"{where}, from row {start}")
            _count(totals, rows, settings.threads)
        check_footer(tokens, where, {"max_token_id": str(totals["max_token_id"])})
    return totals if losses is None else {**totals, LOST: losses.to_json()}


def check_schema(
    tokens: pq.ParquetFile, where: str, tokenizer: cppmill_core.AnyTokenizer, settings: TokenizeSettings
) -> None:
    """Raise IntegrityError if a shard's columns do not fit its vocabulary size and policy."""
    expected = tokens_schema(tokenizer.vocab_size, prefix=settings.options.platform_prefix)
    found = tokens.schema_arrow.remove_metadata()
    if found != expected or is_annotated(found):
        raise IntegrityError(
            f"{where}: its columns are\n{found}\nbut a vocabulary of {tokenizer.vocab_size} ids asks for\n{expected}"
        )


def prove_rows(
    rows: pa.RecordBatch,
    origin: pa.RecordBatch,
    tokenizer: cppmill_core.AnyTokenizer,
    settings: TokenizeSettings,
    losses: Losses | None,
    *,
    start: int,
    where: str,
) -> None:
    """Check a batch of token rows against the document rows that they were made from.

    Args:
        rows: Columns of a token shard.
        origin: The same number of rows of the documents shard, without content.
        tokenizer: The decoder.
        settings: BOS and EOS policy.
        losses: Counts what does not come back; None if everything must.
        start: The number of the first row in the shard.
        where: Names the batch in errors.
    """
    for name in _SAME:
        if not rows.column(name).equals(origin.column(name)):
            raise IntegrityError(f"{where}: column {name} differs from the documents shard")
    ids = list_column(rows, "token_ids")
    if not np.array_equal(np.diff(ids.offsets.to_numpy()), rows.column("num_tokens").to_numpy()):
        raise IntegrityError(f"{where}: num_tokens is not the length of token_ids")
    _check_range(rows, tokenizer, where)
    _check_platforms(list_column(rows, "platform_ids"), where, settings.platform_vocab_size)
    decoded = digest_documents(ids, tokenizer, settings, where=where)
    differing = _differing(rows, decoded)
    if losses is not None:
        losses.prove(rows, differing, start=start, where=where)
    elif len(differing):
        _refuse(rows, decoded, int(differing[0]), where)


def digest_documents(
    ids: pa.ListArray[Any], tokenizer: cppmill_core.AnyTokenizer, settings: TokenizeSettings, *, where: str
) -> pa.RecordBatch:
    """Decode the ids of documents and return lengths and digests; BOS and EOS are left out where the policy has them.

    Raises:
        IntegrityError: If a list does not begin or end with them, or holds another id that is not text.
    """
    bos, eos = document_ends(tokenizer, settings.options)
    try:
        return tokenizer.digest_batch(ids, settings.threads, bos=bos, eos=eos)
    except cppmill_core.InvalidInputError as error:
        raise IntegrityError(f"{where}: {error}") from error


def _paired(
    tokens: pq.ParquetFile, sources: pq.ParquetFile, where: str
) -> Iterator[tuple[int, pa.RecordBatch, pa.RecordBatch]]:
    """Yield (first row, token rows, document rows without content), a row group of tokens at a time."""
    origin = sources.read(columns=list(_SAME)).combine_chunks()
    if origin.num_rows != tokens.metadata.num_rows:
        raise IntegrityError(f"{where}: it has {tokens.metadata.num_rows} rows, its documents shard {origin.num_rows}")
    start = 0
    for number in range(tokens.num_row_groups):
        group = tokens.read_row_group(number, use_threads=False)
        _check_statistics(tokens.metadata.row_group(number), group, f"{where}, row group {number}")
        for rows in group.to_batches():
            beside = origin.slice(start, rows.num_rows).combine_chunks().to_batches()
            yield start, rows, beside[0]
            start += rows.num_rows


def _check_statistics(said: pq.RowGroupMetaData, rows: pa.Table, where: str) -> None:
    """Compare the statistics of ids with the ids; `verify` writes the other columns again to compare them."""
    for number in range(said.num_columns):
        column = said.column(number)
        if not column.path_in_schema.startswith("token_ids.") or column.statistics is None:
            continue
        lists: Any = rows.column("token_ids").combine_chunks()
        ids, lengths = lists.flatten(), lists.value_lengths().to_numpy(zero_copy_only=False)
        empty = int((lengths == 0).sum())
        found = (pc.min(ids).as_py(), pc.max(ids).as_py(), empty, len(ids), len(ids) + empty)
        stated = column.statistics
        expected = (stated.min, stated.max, stated.null_count, stated.num_values, column.num_values)
        if found != expected:
            raise IntegrityError(f"{where}: its statistics of token_ids say {expected}, its rows give {found}")


def _check_range(rows: pa.RecordBatch, tokenizer: cppmill_core.AnyTokenizer, where: str) -> None:
    for name in ("token_ids", "prefix_token_ids"):
        if name in rows.schema.names:
            largest = int(list_column(rows, name).flatten().to_numpy().max(initial=0))
            if largest >= tokenizer.vocab_size:
                raise IntegrityError(
                    f"{where}: {name} holds id {largest}, the vocabulary has {tokenizer.vocab_size} ids"
                )


def _check_platforms(ids: pa.ListArray[Any], where: str, vocab_size: int = PLATFORM_VOCAB_SIZE) -> None:
    offsets, values = ids.offsets.to_numpy().astype(np.int64), ids.values.to_numpy().astype(np.int64)
    starts = np.zeros(len(values) + 1, dtype=bool)
    starts[offsets] = True
    falls = np.flatnonzero(~starts[1:-1] & (np.diff(values) <= 0)) + 1
    strange = np.flatnonzero((values < 1) | (values >= vocab_size))
    inside = [place for place in (*falls, *strange) if offsets[0] <= place < offsets[-1]]
    wrong = {int(np.searchsorted(offsets, place, side="right")) - 1 for place in inside}
    wrong |= {int(row) for row in np.flatnonzero(np.diff(offsets) > MAX_PLATFORM_IDS)}
    if wrong:
        row = min(wrong)
        raise IntegrityError(
            f"{where}: row {row} has platform ids {ids[row].as_py()}; they must be sorted, distinct, at most "
            f"{MAX_PLATFORM_IDS}, and in 1-{vocab_size - 1}"
        )


def _differing(rows: pa.RecordBatch, decoded: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return the rows whose ids decode to other bytes than `num_bytes` and `doc_id` say."""
    names = (("num_bytes", "num_bytes"), ("doc_id", "sha256"))
    pairs = ((rows.column(name), decoded.column(found)) for name, found in names)
    return np.flatnonzero(np.logical_or.reduce([pc.not_equal(*pair).to_numpy(zero_copy_only=False) for pair in pairs]))


def _refuse(rows: pa.RecordBatch, decoded: pa.RecordBatch, row: int, where: str) -> NoReturn:
    path, num_bytes, doc_id = (rows.column(name)[row] for name in ("path", "num_bytes", "doc_id"))
    raise IntegrityError(
        f"{where}: {path} decodes to {decoded.column('num_bytes')[row]} bytes that do not match its doc_id {doc_id} "
        f"({num_bytes} bytes); remove the file and run again"
    )


def _count(totals: dict[str, Any], rows: pa.RecordBatch, threads: int) -> None:
    ids = list_column(rows, "token_ids").flatten().to_numpy()
    totals["documents"] += rows.num_rows
    totals["bytes"] += int(rows.column("num_bytes").to_numpy().sum())
    totals["tokens"] += len(ids)
    totals["max_token_id"] = max(totals["max_token_id"], int(ids.max(initial=0)))
    doc_id, project, path = (rows.column(name) for name in ("doc_id", "project", "path"))
    sums = {
        "corpus_digest": cppmill_core.corpus_digest_sum(doc_id, project, path, threads).hex(),
        "dataset_digest": sum_row_digests(rows, threads=threads),
    }
    for name, digest in sums.items():
        totals[name] = add_digests([totals[name], digest])
