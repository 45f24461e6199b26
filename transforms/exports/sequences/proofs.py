"""Proofs of sequences: a written file is read back, and every position is compared with the texts it was made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.export_options import Fim, SequenceOptions
from transforms.exports.sequences.cursors import NO_CURSOR, encode_sides
from transforms.exports.sequences.fill_in_middle import NAMES, list_array
from transforms.exports.sequences.prefixes import NONE, Span, clear_spans, remove_prefix
from transforms.exports.sequences.segments import (
    Encoding,
    SourceText,
    bare_range,
    files_within,
    platforms_at,
    segment_end,
    starts_with_bos,
)
from transforms.tokens.shards import TokenIds

_PLACES = ["num_tokens", "doc_ids", "starts", "first_tokens"]


class _StoredSegment(NamedTuple):
    """A segment as the file has it; `prefix` is where in its ids the prefix is."""

    where: str
    name: str
    ids: TokenIds
    first: int
    prefix: Span
    fim: Fim
    start: int
    end: int
    cursor: int


def prove_sequences(
    path: Path,
    texts: Sequence[SourceText],
    options: SequenceOptions,
    encoding: Encoding,
    *,
    pad_id: int,
    ledger: Counter[str],
) -> Counter[str]:
    """Check a file of sequences against the texts and the ledger of its segments.

    Each segment must have the ids of its text from its first token on; a rearranged one, decoded, the bytes of it, in
    the order that it says; one that is cut, the ids of both sides of its cursor. A prefix and platforms must be its
    document's, and files those of its repository. The mask must have loss on all tokens but the first of a segment, and
    on no padding, nor on a prefix if the options say so.

    Returns:
        sequences, positions, positions_with_loss.

    Raises:
        IntegrityError: At the first difference, naming the row.
    """
    by_name = {text.name: text for text in texts}
    prefixes = {(text.name, text.prefix.tobytes()) for text in texts}
    counted: Counter[str] = Counter(dict.fromkeys(("sequences", "positions", "positions_with_loss"), 0))
    segments = tokens = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=max(1, (1 << 22) // options.length)):
            at = counted["sequences"]
            found = list(_segments(batch, options, pad_id, where=f"{path}, from row {at}"))
            counted["sequences"] += batch.num_rows
            counted["positions"] += batch.num_rows * options.length
            counted["positions_with_loss"] += find_loss(batch, options, where=f"{path}, from row {at}")
            _prove_platforms(batch, texts, options, where=f"{path}, from row {at}")
            _prove_files(batch, by_name, where=f"{path}, from row {at}")
            segments += len(found)
            tokens += sum(len(segment.ids) for segment in found)
            found = list(_without_prefixes(found, prefixes, encoding)) if options.prefix else found
            _prove_plain([segment for segment in found if not segment.fim and not segment.cursor], by_name)
            _prove_cut([segment for segment in found if segment.cursor], by_name, options, encoding)
            _prove_rearranged([segment for segment in found if segment.fim], by_name, options, encoding)
    for name, value in (("segments", segments), ("tokens_in_sequences", tokens)):
        if ledger[name] != value:
            raise IntegrityError(f"{path}: it has {value} {name}, but {ledger[name]} were planned; run again")
    return counted


def _segments(batch: pa.RecordBatch, options: SequenceOptions, pad_id: int, *, where: str) -> Iterator[_StoredSegment]:
    ids = matrix(batch, "token_ids", options.length)
    names = [name for name in batch.schema.names if name not in ("token_ids", "loss_mask")]
    rows: list[dict[str, Any]] = batch.select(names).to_pylist()
    for number, row in enumerate(rows):
        ends = [*row["starts"][1:], row["num_tokens"]]
        if (ids[number, row["num_tokens"] :] != pad_id).any():
            raise IntegrityError(f"{where}, row {number}: not only padding after its {row['num_tokens']} tokens")
        for at, (name, start, end) in enumerate(zip(row["doc_ids"], row["starts"], ends, strict=True)):
            split = (row["fim"][at], row["fim_starts"][at], row["fim_ends"][at]) if options.fim_rate else (0, 0, 0)
            prefix = Span(row["prefix_starts"][at] - start, row["prefix_ends"][at] - start) if options.prefix else NONE
            label = f"{where}, row {number}, segment {at} of {name}"
            yield _StoredSegment(
                label,
                name,
                ids[number, start:end],
                row["first_tokens"][at],
                prefix,
                Fim(split[0]),
                start=split[1],
                end=split[2],
                cursor=row["cursors"][at] if options.cursor_rate else NO_CURSOR,
            )


def _without_prefixes(
    found: Sequence[_StoredSegment], prefixes: Set[tuple[str, bytes]], encoding: Encoding
) -> Iterator[_StoredSegment]:
    """Yield segments without their prefixes, each checked; `prefixes` has those of the documents, by name."""
    for segment in found:
        start, end = segment.prefix
        bos = starts_with_bos(segment.first, encoding.policy)
        if start != bos or end < start or (segment.name, segment.ids[start:end].tobytes()) not in prefixes:
            raise IntegrityError(f"{segment.where}: its prefix, {start} to {end}, differs from the document's")
        yield segment._replace(ids=remove_prefix(segment.ids, segment.prefix))


def _prove_platforms(
    batch: pa.RecordBatch, texts: Sequence[SourceText], options: SequenceOptions, *, where: str
) -> None:
    """Compare the platform ids of segments with those of their documents, of which several may have one name."""
    if not options.platform_ids:
        return
    named: dict[str, list[SourceText]] = {}
    for text in texts:
        named.setdefault(text.name, []).append(text)
    columns = [batch[name].to_pylist() for name in ("doc_ids", "first_tokens", "platform_ids")]
    for number, row in enumerate(zip(*columns, strict=True)):
        for name, first, found in zip(*row, strict=True):
            if not any(platforms_at(text, first).tolist() == found for text in named[name]):
                raise IntegrityError(f"{where}, row {number}: the platform ids of {name}, {found}, are other ones")


def _prove_files(batch: pa.RecordBatch, texts: dict[str, SourceText], *, where: str) -> None:
    """Compare the files that begin in sequences with those of their repositories."""
    columns = [name for name in ("file_starts", "file_doc_ids", "file_platform_ids") if name in batch.schema.names]
    rows: list[dict[str, Any]] = batch.select([*_PLACES, *columns]).to_pylist() if columns else []
    for number, row in enumerate(rows):
        expected: dict[str, list[Any]] = {name: [] for name in columns}
        ends = [*row["starts"][1:], row["num_tokens"]]
        for name, first, start, end in zip(row["doc_ids"], row["first_tokens"], row["starts"], ends, strict=True):
            for file in files_within(texts[name], first, first + end - start):
                stored = (start + file.start - first, file.doc_id, file.platforms.tolist())
                for column, value in zip(columns, stored, strict=False):
                    expected[column].append(value)
        if any(row[name] != values for name, values in expected.items()):
            raise IntegrityError(f"{where}, row {number}: its files, {row['file_doc_ids']}, differ from the projects'")


def find_loss(batch: pa.RecordBatch, options: SequenceOptions, *, where: str) -> int:
    """Return how many positions have loss, after a look at each."""
    mask = matrix(batch, "loss_mask", options.length)
    used: Any = batch["num_tokens"].to_numpy()
    expected = np.arange(options.length) < used[:, None]
    for row, starts in enumerate(batch["starts"].to_pylist()):
        expected[row, starts] = False
    if options.prefix == "no-loss":
        clear_spans(expected, batch["prefix_starts"].to_pylist(), batch["prefix_ends"].to_pylist())
    if not np.array_equal(mask, expected):
        row = int(np.argmax((mask != expected).any(axis=1)))
        raise IntegrityError(f"{where}, row {row}: loss_mask does not match its starts and num_tokens; run again")
    return int(mask.sum())


def matrix(batch: pa.RecordBatch, name: str, length: int) -> npt.NDArray[Any]:
    """Return a column of lists of one length as rows of a matrix."""
    column: Any = batch[name]
    values: npt.NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(batch.num_rows, length)


def _prove_plain(found: Sequence[_StoredSegment], texts: dict[str, SourceText]) -> None:
    for segment in found:
        expected = texts[segment.name].ids[segment.first : segment.first + len(segment.ids)]
        if not np.array_equal(segment.ids, expected):
            raise IntegrityError(f"{segment.where}: its ids differ from the document's, from {segment.first} on")


def _prove_rearranged(
    found: Sequence[_StoredSegment], texts: dict[str, SourceText], options: SequenceOptions, encoding: Encoding
) -> None:
    if not found:
        return
    control = [encoding.tokenizer.control_id(name) for name in NAMES]
    meant, pieces = list[TokenIds](), list[TokenIds]()
    for segment in found:
        expected, ids = _bare(segment, texts[segment.name].ids, options, encoding)
        meant.append(expected)
        pieces += _undo(segment, ids, control)
    decoded, original = _decoded(pieces, encoding), _decoded(meant, encoding)
    for number, (segment, text) in enumerate(zip(found, original, strict=True)):
        start = segment.start if segment.fim == Fim.PSM else 0
        if decoded[3 * number : 3 * number + 3] != [text[:start], text[start : segment.end], text[segment.end :]]:
            raise IntegrityError(
                f"{segment.where}: its pieces differ from the document's, at {(segment.start, segment.end)}"
            )


def _prove_cut(
    found: Sequence[_StoredSegment], texts: dict[str, SourceText], options: SequenceOptions, encoding: Encoding
) -> None:
    if not found:
        return
    bare = [_bare(segment, texts[segment.name].ids, options, encoding) for segment in found]
    meant, decoded = (_decoded(rows, encoding) for rows in zip(*bare, strict=True))
    sides = encode_sides(meant, [segment.cursor for segment in found], encoding.tokenizer, encoding.threads)
    for segment, text, written, (_, ids), both in zip(found, meant, decoded, bare, sides, strict=True):
        if segment.cursor >= len(text) or written != text or not np.array_equal(ids, both):
            raise IntegrityError(f"{segment.where}: its sides differ from the document's, at {segment.cursor}")


def _decoded(rows: Sequence[TokenIds], encoding: Encoding) -> list[Any]:
    return encoding.tokenizer.decode_batch(list_array(rows), encoding.threads).to_pylist()


def _bare(
    segment: _StoredSegment, text: TokenIds, options: SequenceOptions, encoding: Encoding
) -> tuple[TokenIds, TokenIds]:
    """Return the ids of a document that a segment, rearranged or cut, is made of, and its own, without BOS and EOS."""
    length = options.length - (segment.prefix.end - segment.prefix.start)
    last = segment_end(segment.first, len(text), length, options)
    start, end = bare_range(segment.first, last, len(text), encoding.policy)
    around = last - segment.first - end
    return text[segment.first + start : segment.first + end], segment.ids[start : len(segment.ids) - around]


def _undo(segment: _StoredSegment, ids: TokenIds, control: Sequence[int]) -> tuple[TokenIds, TokenIds, TokenIds]:
    """Return the ids of prefix, middle and suffix; in SPM prefix and middle are one, the middle."""
    places = [np.flatnonzero(ids == number) for number in control]
    if any(len(place) != 1 for place in places) or places[0][0] != 0:
        raise IntegrityError(f"{segment.where}: its control tokens do not match {segment.fim.name}")
    suffix, middle = int(places[1][0]), int(places[2][0])
    return ids[1:suffix], ids[middle + 1 :], ids[suffix + 1 : middle]
