"""Tokenizers side by side on the same documents: compression, losslessness, speed, and the use of their tokens.

Documents come in batches; each batch goes through every tokenizer before the next one is read, so a text need not fit
into memory, and a slow phase of the machine slows all of them. Each batch begins with another tokenizer.

Only encoding is timed. Reading, preparing a library's input and reading its ids are not, nor is the first batch, which
warms up. Each document is encoded once, so a cache of words helps as in a real run. The same library then decodes the
ids, and the result is compared with the document.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.reasons import how_lost
from tokenizer_build.compare.candidates import CandidateTokenizer, TokenLists

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Entrant:
    """A tokenizer of a comparison.

    Attributes:
        name: For the tables.
        candidate: What encodes.
        tokens: The bytes of each id; None where it has none.
        bands: The band of each id, if the tokenizer has bands.
    """

    name: str
    candidate: CandidateTokenizer
    tokens: Sequence[bytes | None]
    bands: Sequence[str] | None = None


IDENTIFIERS, NUMBERS, INDENTATION = KINDS = ("identifiers", "numbers", "indentation")
"""The spans that are measured: as the lexer has them, keywords among identifiers; and the blanks that begin lines."""

_LEXED = {"identifier": IDENTIFIERS, "number": NUMBERS}
_INDENTATION = re.compile(rb"^[ \t]+", re.MULTILINE)

Spans = tuple[Counts, Counts, Counts]
"""Where spans begin and end in the bytes of a batch, and the rows of their documents."""


@dataclass
class SpanTally:
    """What a tokenizer made of the spans of a kind.

    Attributes:
        measured: Spans whose tokens are known, because their document's tokens add up to it.
        tokens: Tokens that have a byte of one of these, each counted with each.
        whole: How many of these lie in one token.
    """

    measured: int = 0
    tokens: int = 0
    whole: int = 0


@dataclass
class ComparedText:
    """The documents of a comparison: how many, their bytes by project, their identifiers, and the corpus' digest."""

    documents: int = 0
    projects: dict[str, int] = field(default_factory=dict)
    identifiers: int = 0
    digest_sum: int = 0

    @property
    def digest(self) -> str:
        """The corpus' digest, as the receipt of a run of these documents has it."""
        return f"{self.digest_sum:064x}"

    @property
    def num_bytes(self) -> int:
        """The bytes of all documents."""
        return sum(self.projects.values())


@dataclass
class Tally:
    """What one tokenizer made of the text.

    Attributes:
        projects: Tokens by project.
        counts: How often each id occurred.
        lossy: Documents that did not decode to themselves, by what became of them.
        lossy_bytes: The same in bytes.
        first_lossy: Project and path of the first of them.
        spans: What became of identifiers, numbers and indentation.
        timed: Bytes and seconds of each batch.
    """

    projects: dict[str, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=lambda: np.zeros(0, np.int64))
    lossy: Counter[str] = field(default_factory=Counter)
    lossy_bytes: Counter[str] = field(default_factory=Counter)
    first_lossy: str | None = None
    spans: dict[str, SpanTally] = field(default_factory=lambda: {kind: SpanTally() for kind in KINDS})
    timed: list[tuple[int, float]] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """The tokens of all documents."""
        return sum(self.projects.values())

    @property
    def bytes_a_second(self) -> float:
        """The speed of encoding; the first batch is the warm-up, and left out if there are more."""
        timed = self.timed[1:] or self.timed
        seconds = sum(seconds for _, seconds in timed)
        return sum(num_bytes for num_bytes, _ in timed) / seconds if seconds else 0.0


@dataclass(frozen=True)
class Comparison:
    """The text, the tokenizers, and what each made of it, in the same order."""

    text: ComparedText
    entrants: Sequence[Entrant]
    tallies: Sequence[Tally]
    threads: int


@dataclass(frozen=True)
class _Documents:
    """Some documents with all that is measured on them.

    Attributes:
        rows: Columns doc_id, project, path, content.
        first: Where each document begins in the bytes of the batch, and where the last one ends.
        spans: The spans of each kind.
    """

    rows: pa.RecordBatch
    first: Counts
    spans: Mapping[str, Spans]

    @property
    def contents(self) -> pa.Array[Any]:
        return self.rows["content"]

    @property
    def num_bytes(self) -> int:
        return int(self.first[-1])


def compare(entrants: Sequence[Entrant], documents: Iterable[pa.RecordBatch], *, threads: int) -> Comparison:
    """Encode documents with every tokenizer and tally.

    All but the speed is the same in every run and for any number of threads and cut into batches.

    Args:
        entrants: The tokenizers.
        documents: Batches with the columns doc_id, project, path (string) and content (binary).
        threads: How many threads encode.
    """
    text = ComparedText()
    tallies = [Tally(counts=np.zeros(entrant.candidate.vocab_size, np.int64)) for entrant in entrants]
    lengths = [token_lengths(entrant.tokens) for entrant in entrants]
    for number, rows in enumerate(_first_in_two(documents)):
        batch = _read(rows)
        _add_text(text, batch)
        order = [(number + place) % len(entrants) for place in range(len(entrants))]
        for place in order:
            lists = _encode(entrants[place].candidate, batch, tallies[place], threads)
            lossless = _check(entrants[place].candidate, batch, lists, tallies[place], threads)
            _add_tokens(tallies[place], batch, lists)
            _add_spans(tallies[place], batch, lists, lengths[place], lossless)
    return Comparison(text, entrants, tallies, threads)


def _first_in_two(documents: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, the first in two parts, so that there is one to warm up with however small the text."""
    batches = iter(documents)
    for first in batches:
        half = first.num_rows // 2
        yield from (part for part in (first.slice(0, half), first.slice(half)) if part.num_rows)
        break
    yield from batches


def _read(rows: pa.RecordBatch) -> _Documents:
    contents: list[Any] = rows["content"].to_pylist()
    first = np.cumsum([0, *map(len, contents)], dtype=np.int64)
    found = [_find_spans(content) for content in contents]
    spans = {kind: _joined([one[kind] for one in found], first) for kind in KINDS}
    return _Documents(rows, first, spans)


def _joined(found: Sequence[tuple[Counts, Counts]], first: Counts) -> Spans:
    """Return the spans of documents as those of the batch."""
    starts, ends = (
        np.concatenate([np.zeros(0, np.int64), *(pair[side] + at for pair, at in zip(found, first[:-1], strict=True))])
        for side in (0, 1)
    )
    return starts, ends, np.repeat(np.arange(len(found)), [len(pair[0]) for pair in found])


def _find_spans(content: bytes) -> dict[str, tuple[Counts, Counts]]:
    """Return where the spans of each kind in a document begin and end."""
    lexed = cppmill_core.lex(content)
    kinds = pc.cast(lexed["kind"], pa.string())
    found = {}
    for name, kind in _LEXED.items():
        chosen = lexed.filter(pc.equal(kinds, pa.scalar(name)))
        found[kind] = chosen["start"].to_numpy().astype(np.int64), chosen["end"].to_numpy().astype(np.int64)
    blanks = np.array([match.span() for match in _INDENTATION.finditer(content)], np.int64).reshape(-1, 2)
    return found | {INDENTATION: (blanks[:, 0], blanks[:, 1])}


def _add_text(text: ComparedText, batch: _Documents) -> None:
    projects: list[Any] = batch.rows["project"].to_pylist()
    rows = batch.rows
    digest = cppmill_core.corpus_digest_sum(rows["doc_id"], rows["project"], rows["path"])
    text.digest_sum = (text.digest_sum + int.from_bytes(digest)) % (1 << 256)
    text.documents += len(projects)
    text.identifiers += len(batch.spans[IDENTIFIERS][0])
    for project, size in zip(projects, np.diff(batch.first).tolist(), strict=True):
        text.projects[project] = text.projects.get(project, 0) + size


def _encode(candidate: CandidateTokenizer, batch: _Documents, tally: Tally, threads: int) -> TokenLists:
    encode = candidate.encoder(batch.contents, threads)
    started = time.perf_counter()
    result = encode()
    tally.timed.append((batch.num_bytes, time.perf_counter() - started))
    return result()


def _check(
    candidate: CandidateTokenizer, batch: _Documents, lists: TokenLists, tally: Tally, threads: int
) -> npt.NDArray[np.bool_]:
    """Decode the documents and return which of them come out as they were."""
    decoded = candidate.decode(lists, threads).cast(pa.large_binary())
    same: npt.NDArray[np.bool_] = pc.equal(batch.contents.cast(pa.large_binary()), decoded).to_numpy(
        zero_copy_only=False
    )
    lossy = np.flatnonzero(~same)
    if len(lossy) and tally.first_lossy is None:
        row = int(lossy[0])
        tally.first_lossy = f"{batch.rows['project'][row].as_py()}: {batch.rows['path'][row].as_py()}"
    for row in lossy.tolist():
        document, back = batch.contents[row].as_py(), decoded[row].as_py()
        reason = how_lost(document, back)
        tally.lossy[reason] += 1
        tally.lossy_bytes[reason] += len(document)
    return same


def _add_tokens(tally: Tally, batch: _Documents, lists: TokenLists) -> None:
    tally.counts += np.bincount(lists.ids, minlength=len(tally.counts))
    projects: list[Any] = batch.rows["project"].to_pylist()
    for project, tokens in zip(projects, np.diff(lists.offsets).tolist(), strict=True):
        tally.projects[project] = tally.projects.get(project, 0) + tokens


def _add_spans(
    tally: Tally, batch: _Documents, lists: TokenLists, lengths: Counts, lossless: npt.NDArray[np.bool_]
) -> None:
    """Count the tokens that have a byte of a span.

    A token's place follows from the bytes of those before it. So a document counts only if these add up to its own;
    one byte more is the space that SentencePiece puts in front.
    """
    sizes, num_tokens = lengths[lists.ids], np.diff(lists.offsets)
    ends = np.cumsum(np.concatenate([[0], sizes]))
    made = ends[lists.offsets[1:]] - ends[lists.offsets[:-1]]
    added = made - np.diff(batch.first)
    measured = lossless & ((added == 0) | (added == 1))
    document = np.repeat(np.arange(len(num_tokens)), num_tokens)
    inside = ends[:-1] - ends[lists.offsets[:-1]][document] - added[document]
    begins = batch.first[document] + np.maximum(inside, 0)
    begins = begins[measured[document] & (sizes > 0)]
    for kind, (starts, stops, of) in batch.spans.items():
        first, last = starts[measured[of]], stops[measured[of]]
        tokens = np.searchsorted(begins, last, "left") - np.searchsorted(begins, first, "right") + 1
        found = tally.spans[kind]
        found.measured += len(tokens)
        found.tokens += int(tokens.sum())
        found.whole += int((tokens == 1).sum())


def token_lengths(tokens: Sequence[bytes | None]) -> Counts:
    """Return the bytes of each id; 0 where it has none."""
    return np.array([len(token or b"") for token in tokens], np.int64)
