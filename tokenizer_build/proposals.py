"""Proposes names and morphemes for a vocabulary: what costs most tokens in the text of a run, from its counts.

First the words of a scan say which names take more tokens than an id of their own would (`find_gaps`). Then a second
count of the documents gives these their hits, documents and projects, and the rules of a build leave out what it would
cut (`propose`). `Proposals` gives the rest free ids and writes them as TOML for a vocabulary of the user's own.

An affix that is never a whole word of an identifier is not proposed: these are short, and BPE learns them.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from schemas.options import BuildOptions
from schemas.printing import count
from tokenizer_build.bands import DOMAIN, MORPHEMES
from tokenizer_build.decisions import CUTTING, Corpus, Counts, decide_name, least_morpheme_hits, read_counts
from tokenizer_build.lock import Lock
from tokenizer_build.own import free_ids
from tokenizer_build.shapes import name_parts
from tokenizer_build.vocabulary import Position, Vocabulary

CATEGORY = "proposed"
"""The category that proposed names get in the counts and decisions of the next scan."""

CountTokens = Callable[[Sequence[bytes]], Sequence[int]]
"""Returns of each text how many tokens it takes."""

_IDENTIFIER = re.compile(rb"(?<![A-Za-z0-9_\x80-\xff])[A-Za-z_][A-Za-z0-9_]*(?![A-Za-z0-9_\x80-\xff])")
_IDENTIFIER_RUN = re.compile(r"[A-Za-z0-9_]+")
_LEAST_MORPHEME_LETTERS = 3
_SMALL_LETTERS = re.compile(f"[a-z]{{{_LEAST_MORPHEME_LETTERS},}}")
_LEAST_MORPHEME_NAMES = 8
"""A morpheme builds names: it is a word of so many different identifiers, or it is a part of few names."""

_LEAD = 20
"""How many times as many are counted again as are proposed, because the rules leave some of them out."""


@dataclass(frozen=True)
class Gap:
    """What takes more tokens than an id of its own would, by the counts of words.

    Attributes:
        name: The identifier or morpheme.
        saved_tokens: Tokens that the id would save in the text; for a morpheme at most.
        position: Where a morpheme is counted; None for a whole identifier.
    """

    name: str
    saved_tokens: int
    position: Position | None = None


@dataclass(frozen=True)
class Proposal:
    """A gap with what the documents have of it.

    Attributes:
        name: The identifier or morpheme.
        position: Where a morpheme is counted; None for a whole identifier.
        counts: Hits in code, documents and projects.
        saved_bytes: Bytes of token ids that its id would save in the token shards of the run.
    """

    name: str
    position: Position | None
    counts: Counts
    saved_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return its columns: name, position, hits, documents, projects, saved_bytes."""
        found = {"hits": self.counts.hits, "documents": self.counts.documents, "projects": self.counts.projects}
        return {"name": self.name, "position": self.position, **found, "saved_bytes": self.saved_bytes}


def count_identifiers(words: Iterable[pa.RecordBatch]) -> Counter[bytes]:
    """Return how often each identifier occurs in words (`schemas.tables.WORDS`), with marks around it or none."""
    hits = Counter[bytes]()
    for batch in words:
        for _, name, _, times in _identifiers(batch):
            hits[name] += times
    return hits


def _identifiers(batch: pa.RecordBatch) -> Iterator[tuple[bytes, bytes, bytes, int]]:
    """Yield the identifiers of words: what is before it, the identifier, what is behind it, the count of the word."""
    columns: list[list[Any]] = [batch["word"].to_pylist(), batch["count"].to_pylist()]
    for word, times in zip(*columns, strict=True):
        for found in _IDENTIFIER.finditer(word):
            yield word[: found.start()], found[0], word[found.end() :], times


def find_gaps(
    words: Iterable[pa.RecordBatch], vocabulary: Vocabulary, count_tokens: CountTokens, *, names: int, morphemes: int
) -> list[Gap]:
    """Return the names and morphemes that cost most tokens, to be counted in the documents.

    Args:
        words: Counts of words (`schemas.tables.WORDS`), read once.
        vocabulary: The vocabulary that they would be added to; what it has is no gap.
        count_tokens: How many tokens texts take with the tokenizer of the run.
        names: How many names will be proposed.
        morphemes: How many morphemes will be proposed.

    Returns:
        `_LEAD` times as many, or fewer, the names first; each group by tokens saved, then by name.
    """
    cost = _Cost(count_tokens)
    for batch in words:
        cost.add(list(_identifiers(batch)))
    taken = _taken_names(vocabulary)
    costly = {name.decode(): saved for name, saved in cost.saved.items() if saved > 0}
    tokens = _tokens_of(costly, count_tokens)
    whole = [Gap(name, saved) for name, saved in costly.items() if tokens[name] > 1]
    pieces = _find_morphemes(cost.hits, count_tokens)
    return [
        *_costliest((gap for gap in whole if gap.name not in taken), _LEAD * names),
        *_costliest((gap for gap in pieces if gap.name not in vocabulary.by_token), _LEAD * morphemes),
    ]


@dataclass
class _Cost:
    """The identifiers of words: their hits, and the tokens that an id of their own would save.

    An identifier of the domain band is one token between what is before and behind it, so a word with it then takes the
    tokens of these two, and one.
    """

    count_tokens: CountTokens
    hits: Counter[bytes] = field(default_factory=Counter)
    saved: Counter[bytes] = field(default_factory=Counter)

    def add(self, found: Sequence[tuple[bytes, bytes, bytes, int]]) -> None:
        around = {text for before, _, after, _ in found for text in (before, after)}
        tokens = dict(zip(around, self.count_tokens(list(around)), strict=True)) if around else {}
        whole = self.count_tokens([b"".join(parts) for *parts, _ in found]) if found else []
        for (before, name, after, times), now in zip(found, whole, strict=True):
            self.hits[name] += times
            self.saved[name] += times * (now - tokens[before] - 1 - tokens[after])


def _taken_names(vocabulary: Vocabulary) -> set[str]:
    """Return the identifiers that cannot be proposed: those with an id, and those within other tokens.

    An atomic name would keep these from being one token: `pragma` in `#pragma omp`.
    """
    within = (run for token in vocabulary.by_token for run in _IDENTIFIER_RUN.findall(token))
    return {*vocabulary.by_token, *within}


def _find_morphemes(hits: Mapping[bytes, int], count_tokens: CountTokens) -> Iterator[Gap]:
    """Yield the words of identifiers that build many names and take several tokens, with where they are counted.

    Names of one word are left out: in comments they are words of English. A word counts as a stem if it saves more at
    the beginning of longer words (`dealloc` in `deallocate`) than alone.
    """
    words, building = Counter[str](), Counter[str]()
    for name, times in hits.items():
        parts = name_parts(name.decode())
        for part in filter(_SMALL_LETTERS.fullmatch, parts if len(parts) > 1 else ()):
            words[part] += times
            building[part] += 1
    tokens = _tokens_of(words, count_tokens)
    found = {part for part in words if building[part] >= _LEAST_MORPHEME_NAMES and tokens[part] > 1}
    longer = _saved_in_longer(words, found, tokens, count_tokens)
    for part in found:
        alone = words[part] * (tokens[part] - 1)
        is_stem = longer[part] > alone
        yield Gap(part, alone + is_stem * longer[part], "cpp_stem" if is_stem else "component")


def _tokens_of(texts: Iterable[str], count_tokens: CountTokens) -> dict[str, int]:
    found = list(texts)
    return dict(zip(found, count_tokens([text.encode() for text in found]), strict=True)) if found else {}


def _saved_in_longer(
    words: Mapping[str, int], stems: Collection[str], tokens: Mapping[str, int], count_tokens: CountTokens
) -> Counter[str]:
    """Return the tokens that each stem would save in the words that begin with it and are longer."""
    begun = [
        (word, word[:length], word[length:])
        for word in words
        for length in range(_LEAST_MORPHEME_LETTERS, len(word))
        if word[:length] in stems
    ]
    rests = _tokens_of({rest for _, _, rest in begun}, count_tokens)
    saved = Counter[str]()
    for word, stem, rest in begun:
        saved[stem] += words[word] * max(0, tokens[word] - 1 - rests[rest])
    return saved


def _costliest(gaps: Iterable[Gap], number: int) -> list[Gap]:
    return sorted(gaps, key=lambda gap: (-gap.saved_tokens, gap.name))[:number]


def scanner_config(gaps: Iterable[Gap], pattern: str) -> str:
    """Return the configuration of the native scanner that counts gaps, as JSON."""
    found = list(gaps)
    names = [{"term": gap.name, "category": CATEGORY, "match": "ident"} for gap in found if gap.position is None]
    pieces = [{"morpheme": gap.name, "position": gap.position} for gap in found if gap.position is not None]
    return json.dumps({"pattern": pattern, "candidates": names, "morphemes": pieces})


def propose(
    gaps: Iterable[Gap],
    terms: pa.Table,
    morphemes: pa.Table,
    *,
    corpus: Corpus,
    options: BuildOptions,
    id_bytes: int,
) -> list[Proposal]:
    """Return the gaps that a build would keep as fixed tokens, with what the documents have of them.

    Args:
        gaps: What `find_gaps` returned.
        terms: Counts of the names (`schemas.tables.TERMS`), by a scanner with `scanner_config`.
        morphemes: Counts of the morphemes (`schemas.tables.MORPHEMES`), by the same.
        corpus: What was scanned.
        options: The thresholds of the build: a name that they would cut is left out.
        id_bytes: Bytes of a token id in the token shards.

    Returns:
        Names and morphemes, the most bytes saved first.
    """
    counts = read_counts(terms, "term", "category") | read_counts(morphemes, "morpheme", "position")
    proposals = []
    for gap in gaps:
        found = counts.get((gap.name, gap.position or CATEGORY), Counts())
        if _would_stay(gap, found, corpus, options):
            proposals.append(Proposal(gap.name, gap.position, found, gap.saved_tokens * id_bytes))
    return sorted(proposals, key=lambda row: (-row.saved_bytes, row.name))


def _would_stay(gap: Gap, counts: Counts, corpus: Corpus, options: BuildOptions) -> bool:
    if counts.projects < min(options.min_category_projects, corpus.projects):
        return False
    if gap.position is not None:
        return counts.hits >= max(options.min_hits, least_morpheme_hits(corpus.documents, options))
    return counts.hits >= options.min_hits and decide_name(gap.name, (), counts, corpus, options)[1] not in CUTTING


@dataclass(frozen=True)
class Proposals:
    """What is proposed for a vocabulary, each with a free id of it.

    Attributes:
        names: Id of the domain band to name.
        morphemes: Id of the band of morphemes to morpheme.
    """

    names: Mapping[int, Proposal]
    morphemes: Mapping[int, Proposal]

    @classmethod
    def of(
        cls, proposals: Iterable[Proposal], vocabulary: Vocabulary, lock: Lock, *, names: int, morphemes: int
    ) -> Proposals:
        """Give the first proposals of both kinds free ids, as long as there are any."""
        found = list(proposals)
        given = []
        for band, number in ((DOMAIN, names), (MORPHEMES, morphemes)):
            rows = [row for row in found if (row.position is None) is (band == DOMAIN)]
            given.append(dict(zip(free_ids(vocabulary, lock.by_id, band), rows[:number], strict=False)))
        return cls(*given)

    def to_toml(self) -> str:
        """Return them as TOML: a file for a vocabulary folder, or lines for the end of its `own.toml`."""
        lines = []
        if self.names:
            lines += ["", "[[candidates]]", f'category = "{CATEGORY}"', 'match = "ident"', "[candidates.tokens]"]
            lines += [_line(token_id, row) for token_id, row in self.names.items()]
        positions = defaultdict[str, dict[int, Proposal]](dict)
        for token_id, row in self.morphemes.items():
            positions[str(row.position)][token_id] = row
        for position, rows in positions.items():
            lines += ["", "[[morphemes]]", f'position = "{position}"', "[morphemes.tokens]"]
            lines += [_line(token_id, row) for token_id, row in rows.items()]
        return "".join(f"{line}\n" for line in lines)


def _line(token_id: int, row: Proposal) -> str:
    hits, documents, projects = row.counts.hits, row.counts.documents, row.counts.projects
    found = f"{count(hits, 'hit')}, {count(documents, 'document')}, {count(projects, 'project')}"
    return f'{token_id} = "{row.name}"  # {found}, {count(row.saved_bytes, "byte")} saved'
