"""Segments: one document's part of one sequence, after weights, lengths and filling in the middle.

Their ledger must balance, in documents and in tokens, for each unit and for the whole export.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from cppmill_core import AnyTokenizer

from schemas.export_options import SequenceOptions
from schemas.ledger import check_sequence_ledger
from schemas.options import TokenizeOptions
from transforms.exports.sequences.cursors import NO_CURSOR, choose_cursor, cut_at_cursors
from transforms.exports.sequences.fill_in_middle import NOT_SPLIT, FimSplit, choose_fim, rearrange
from transforms.exports.sequences.mixture import Mixture
from transforms.exports.sequences.prefixes import NO_IDS, NONE, Span, insert_prefix
from transforms.tokens.shards import TokenIds

WEIGHT = "weight: "
"""What the ledger counts under a name or glob of the mixture begins so; nothing follows for the default."""

FIM_ROOM = 16
"""Pieces of a split document are shorter by this many tokens, so that the rearranged ones nearly always fit."""

Choice = TypeVar("Choice")


class RepositoryFile(NamedTuple):
    """A file in a repository: the place of its separator, its `doc_id`, its platforms if they are asked for."""

    start: int
    doc_id: str
    platforms: TokenIds = NO_IDS


class SourceText(NamedTuple):
    """A document, or the joined files of a project.

    Attributes:
        name: Its `doc_id`; of a repository the project.
        project: Its project.
        ids: Its ids, with BOS and EOS where the dataset has them.
        documents: How many documents it is made of.
        document_tokens: The tokens that these have in the dataset.
        files: Of a repository, its files, in order.
        prefix: The ids of the line that names its platforms; none if the options ask for none, or it is too long.
        platforms: Its platform ids, if the options ask for them; of a repository its files have them.
    """

    name: str
    project: str
    ids: TokenIds
    documents: int
    document_tokens: int
    files: tuple[RepositoryFile, ...] = ()
    prefix: TokenIds = NO_IDS
    platforms: TokenIds = NO_IDS


class Segment(NamedTuple):
    """One text's part of one sequence.

    Attributes:
        text: The number of the text.
        first: Where in its ids the segment begins.
        end: Where it ends.
        ids: The ids in the sequence, as in the text or rearranged, with the prefix.
        split: How they are rearranged.
        prefix: Where in them the prefix is.
        cursor: Where in its text it is cut, in bytes.
    """

    text: int
    first: int
    end: int
    ids: TokenIds
    split: FimSplit = NOT_SPLIT
    prefix: Span = NONE
    cursor: int = NO_CURSOR


class _Piece(NamedTuple):
    """A segment before it is known whether it is rearranged."""

    text: int
    copy: int
    first: int
    end: int


class Encoding(NamedTuple):
    """How the texts were encoded.

    Attributes:
        tokenizer: Decodes and encodes what is rearranged.
        policy: Whether texts begin with BOS and end with EOS.
        threads: Threads of the native core.
    """

    tokenizer: AnyTokenizer
    policy: TokenizeOptions
    threads: int = 1


class _Chosen(NamedTuple, Generic[Choice]):
    """A piece that is rearranged or cut: its number, how, and where in it BOS ends and EOS begins."""

    number: int
    choice: Choice
    start: int
    end: int


def make_segments(
    texts: Sequence[SourceText], options: SequenceOptions, encoding: Encoding
) -> tuple[list[Segment], Counter[str]]:
    """Return the segments of texts, in order, and the ledger.

    Raises:
        IntegrityError: If the ledger does not balance.
    """
    ledger: Counter[str] = Counter()
    pieces = list(_cut(texts, options, ledger))
    segments = [
        Segment(piece.text, piece.first, piece.end, texts[piece.text].ids[piece.first : piece.end]) for piece in pieces
    ]
    if options.fim_rate:
        _rearrange(segments, pieces, texts, options, encoding, ledger)
    if options.cursor_rate:
        _cut_at_cursors(segments, pieces, texts, options, encoding, ledger)
    if options.prefix:
        segments = [_with_prefix(segment, texts[segment.text].prefix, encoding.policy) for segment in segments]
        ledger["segments_with_prefix"] += sum(segment.prefix.start < segment.prefix.end for segment in segments)
        ledger["tokens_of_prefixes"] += sum(segment.prefix.end - segment.prefix.start for segment in segments)
    if options.platform_ids:
        known = [len(platforms_at(texts[segment.text], segment.first)) > 0 for segment in segments]
        ledger["segments_with_platforms"] += sum(known)
    ledger["segments"] += len(segments)
    ledger["tokens_in_sequences"] += sum(len(segment.ids) for segment in segments)
    check_sequence_ledger(ledger, where="a unit")
    return segments, ledger


def _cut(texts: Sequence[SourceText], options: SequenceOptions, ledger: Counter[str]) -> Iterator[_Piece]:
    mixture = Mixture(options)
    for number, text in enumerate(texts):
        ledger["documents_in"] += text.documents
        ledger["tokens_in"] += text.document_tokens
        ledger["tokens_joined"] += len(text.ids) - text.document_tokens
        ledger[WEIGHT + mixture.entry(text.project)[0]] += text.documents
        copies = mixture.copies(text.project, text.name)
        length = options.length - len(text.prefix)
        reason = _reason(copies, len(text.ids), length, options)
        if reason is not None:
            ledger[f"documents_left_out_{reason}"] += text.documents
            ledger[f"tokens_left_out_{reason}"] += len(text.ids)
            continue
        ledger["documents_in_sequences"] += text.documents
        ledger["tokens_repeated"] += (copies - 1) * len(text.ids)
        for copy in range(copies):
            yield from _cut_text(number, copy, len(text.ids), length, options, ledger)


def _reason(copies: int, tokens: int, length: int, options: SequenceOptions) -> str | None:
    """Return why a text is left out, None if it is not."""
    if not copies:
        return "weight"
    return "long" if options.long == "drop" and tokens > length else None


def _cut_text(
    number: int, copy: int, tokens: int, length: int, options: SequenceOptions, ledger: Counter[str]
) -> Iterator[_Piece]:
    first = 0
    while first < tokens:
        end = segment_end(first, tokens, length, options)
        yield _Piece(number, copy, first, end)
        if options.long == "cut":
            ledger["tokens_cut"] += tokens - end
            return
        first = end


def segment_end(first: int, tokens: int, length: int, options: SequenceOptions) -> int:
    """Return where the segment that begins at `first` ends, in a text of this many tokens, of which `length` fit."""
    if tokens <= length:
        return tokens
    room = min(FIM_ROOM, length // 2) if options.fim_rate or options.cursor_rate else 0
    return min(tokens, first + length - room)


def _choose(
    texts: Sequence[SourceText],
    pieces: Sequence[_Piece],
    policy: TokenizeOptions,
    choose: Callable[[str, int, int], Choice | None],
) -> list[_Chosen[Choice]]:
    """Return the pieces that are chosen; one that has no text, only BOS or EOS, is not."""
    chosen = []
    for number, piece in enumerate(pieces):
        text = texts[piece.text]
        choice = choose(text.name, piece.copy, piece.first)
        if choice is not None:
            start, end = bare_range(piece.first, piece.end, len(text.ids), policy)
            if start < end:
                chosen.append(_Chosen(number, choice, start, end))
    return chosen


def _rearrange(
    segments: list[Segment],
    pieces: Sequence[_Piece],
    texts: Sequence[SourceText],
    options: SequenceOptions,
    encoding: Encoding,
    ledger: Counter[str],
) -> None:
    """Put the rearranged segments, where they fit, in the place of those that were chosen."""
    chosen = _choose(texts, pieces, encoding.policy, partial(choose_fim, options))
    inner = [segments[number].ids[start:end] for number, _, start, end in chosen]
    made = rearrange(inner, [piece.choice for piece in chosen], encoding.tokenizer, threads=encoding.threads)
    for piece, (split, ids) in zip(chosen, made, strict=True):
        before = segments[piece.number]
        after = _replaced(before, piece, ids, texts, options)
        if after is None:
            ledger["segments_too_long_to_rearrange"] += 1
            continue
        ledger[f"segments_{split.kind.name.lower()}"] += 1
        ledger["tokens_rearranged"] += len(after.ids) - len(before.ids)
        segments[piece.number] = after._replace(split=split)


def _cut_at_cursors(
    segments: list[Segment],
    pieces: Sequence[_Piece],
    texts: Sequence[SourceText],
    options: SequenceOptions,
    encoding: Encoding,
    ledger: Counter[str],
) -> None:
    """Put the segments that are cut at a cursor, where they fit, in the place of those chosen; not the rearranged."""
    chosen = [
        piece
        for piece in _choose(texts, pieces, encoding.policy, partial(choose_cursor, options))
        if not segments[piece.number].split.kind
    ]
    inner = [segments[number].ids[start:end] for number, _, start, end in chosen]
    made = cut_at_cursors(inner, [piece.choice for piece in chosen], encoding.tokenizer, threads=encoding.threads)
    for piece, (cursor, ids) in zip(chosen, made, strict=True):
        before = segments[piece.number]
        after = _replaced(before, piece, ids, texts, options)
        if after is None:
            ledger["segments_too_long_to_cut"] += 1
            continue
        ledger["segments_cut_at_cursor"] += bool(cursor)
        ledger["tokens_of_cursors"] += len(after.ids) - len(before.ids)
        segments[piece.number] = after._replace(cursor=cursor)


def _replaced(
    segment: Segment, piece: _Chosen[Choice], ids: TokenIds, texts: Sequence[SourceText], options: SequenceOptions
) -> Segment | None:
    """Return a segment with other ids between BOS and EOS, None if it does not fit into a sequence."""
    joined = np.concatenate([segment.ids[: piece.start], ids, segment.ids[piece.end :]])
    fits = len(joined) <= options.length - len(texts[segment.text].prefix)
    return segment._replace(ids=joined) if fits else None


def _with_prefix(segment: Segment, prefix: TokenIds, policy: TokenizeOptions) -> Segment:
    ids, place = insert_prefix(segment.ids, prefix, bos=starts_with_bos(segment.first, policy))
    return segment._replace(ids=ids, prefix=place)


def files_within(text: SourceText, first: int, end: int) -> Sequence[RepositoryFile]:
    """Return the files of a repository that begin in a range of its ids."""
    start, stop = (bisect_left(text.files, place, key=lambda file: file.start) for place in (first, end))
    return text.files[start:stop]


def platforms_at(text: SourceText, first: int) -> TokenIds:
    """Return the platform ids of a text, of a repository those of the file that it has at a place.

    What comes before its first file belongs to that one.
    """
    if not text.files:
        return text.platforms
    number = bisect_right(text.files, first, key=lambda file: file.start) - 1
    return text.files[max(0, number)].platforms


def starts_with_bos(first: int, policy: TokenizeOptions) -> int:
    """Return with how many ids of BOS, 1 or 0, a part of a text begins that is from `first` on."""
    return int(policy.bos and first == 0)


def bare_range(first: int, end: int, tokens: int, policy: TokenizeOptions) -> tuple[int, int]:
    """Return where in a part of a text, from `first` to `end` of `tokens`, BOS ends and EOS begins."""
    return starts_with_bos(first, policy), end - first - int(policy.eos and end == tokens)
