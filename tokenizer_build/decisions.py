"""Keeps or cuts the candidates: the scan's counts decide which fixed tokens deserve a slot.

Generic words are cut because BPE learns them for free, and rare ones because nobody would miss them. Only tokens of the
domain band can be cut. A freed id becomes a learned token; the cut token keeps the id in its file, so that another
corpus may keep it under the same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.options import BuildOptions
from tokenizer_build.bands import DOMAIN
from tokenizer_build.lock import Lock
from tokenizer_build.vocabulary import Candidate, Vocabulary

_COLUMNS = {
    "token": pa.string(),
    "id": pa.uint32(),
    "category": pa.string(),
    "hits": pa.uint64(),
    "documents": pa.uint64(),
    "projects": pa.uint64(),
    "document_share": pa.float64(),
    "shape": pa.string(),
    "decision": pa.string(),
    "rule": pa.string(),
}
DECISIONS = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _COLUMNS.items()])
"""`decisions.parquet`: one row a candidate and category, then one a morpheme and position (`morpheme:suffix`)."""

KEPT, CUT = "kept", "cut"


class Shape(StrEnum):
    """What makes a name one that generic text does not have."""

    DOUBLE_UNDERSCORE = "double_underscore"
    SCREAMING_CASE = "screaming_case"
    API_PREFIX = "api_prefix"
    NONE = "none"


class Rule(StrEnum):
    """Why a candidate was kept or cut."""

    USED = "used"
    DISTINCTIVE = "distinctive_shape"
    RARE = "below_hit_floor"
    GENERIC = "generic"
    OTHER_CATEGORY = "kept_by_other_category"
    OTHER_BAND = "not_in_domain_band"
    MORPHEME = "morpheme"
    LOCKED = "locked"


CUTTING = frozenset({Rule.RARE, Rule.GENERIC})
"""The rules that cut."""

_SCREAMING_CASE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


@dataclass(frozen=True)
class Counts:
    """What the scan counted of one term in one category.

    Attributes:
        hits: Occurrences.
        documents: Documents with one or more.
        projects: Projects with one or more.
    """

    hits: int = 0
    documents: int = 0
    projects: int = 0


@dataclass(frozen=True)
class Decision:
    """What was decided of one candidate in one category, and by which rule."""

    token: str
    id: int
    category: str
    counts: Counts
    document_share: float
    shape: Shape
    rule: Rule

    @property
    def kept(self) -> bool:
        """Whether the token keeps its id in this build."""
        return self.rule not in CUTTING


def name_shape(token: str, api_prefixes: Iterable[str]) -> Shape:
    """Return the distinctive shape of a name.

    Args:
        token: The name.
        api_prefixes: Prefixes of its category; one counts if it ends in an underscore, or no lower-case letter follows.

    Example:
        >>> name_shape("cudaMalloc", ["cuda"]), name_shape("cudaless", ["cuda"]), name_shape("TEST_F", [])
        (<Shape.API_PREFIX: 'api_prefix'>, <Shape.NONE: 'none'>, <Shape.SCREAMING_CASE: 'screaming_case'>)
    """
    if "__" in token:
        return Shape.DOUBLE_UNDERSCORE
    if _SCREAMING_CASE.fullmatch(token):
        return Shape.SCREAMING_CASE
    if any(_has_api_prefix(token, prefix) for prefix in api_prefixes):
        return Shape.API_PREFIX
    return Shape.NONE


def _has_api_prefix(token: str, prefix: str) -> bool:
    rest = token.removeprefix(prefix)
    if rest in (token, ""):
        return False
    return prefix.endswith("_") or not rest[0].islower()


def decide(
    vocabulary: Vocabulary, lock: Lock, terms: pa.Table, documents: int, options: BuildOptions
) -> list[Decision]:
    """Decide every candidate of a vocabulary.

    A token in several categories is kept if one of them keeps it.

    Args:
        vocabulary: The candidates and their ids.
        lock: Locked tokens are kept whatever the counts say.
        terms: `counts/terms.parquet` (`schemas.tables.TERMS`); what it does not have was not found.
        documents: Number of documents that were scanned.
        options: The thresholds.

    Returns:
        One decision a candidate and category, sorted by category, then id.
    """
    counts = _counts(terms, "term", "category")
    morphemes = {morpheme.morpheme for morpheme in vocabulary.morphemes}
    decisions = []
    for candidate in vocabulary.candidates:
        found = counts.get((candidate.token, candidate.category), Counts())
        share = found.documents / documents if documents else 0.0
        shape = name_shape(candidate.token, candidate.api_prefixes)
        rule = _protecting_rule(candidate, vocabulary, morphemes) or _frequency_rule(found, share, shape, options)
        token_id = vocabulary.by_token[candidate.token].id
        decisions.append(Decision(candidate.token, token_id, candidate.category, found, share, shape, rule))
    decisions.sort(key=lambda d: (d.category, d.id))
    return _settle(decisions, lock)


def _frequency_rule(counts: Counts, share: float, shape: Shape, options: BuildOptions) -> Rule:
    if counts.hits < options.min_hits:
        return Rule.RARE
    if share <= options.generic_document_share:
        return Rule.USED
    return Rule.GENERIC if shape is Shape.NONE else Rule.DISTINCTIVE


def _protecting_rule(candidate: Candidate, vocabulary: Vocabulary, morphemes: set[str]) -> Rule | None:
    """Return the rule that keeps a token whatever its counts; a morpheme is a seed and one token in any case."""
    if vocabulary.by_token[candidate.token].band.name != DOMAIN:
        return Rule.OTHER_BAND
    return Rule.MORPHEME if candidate.token in morphemes else None


def _settle(decisions: list[Decision], lock: Lock) -> list[Decision]:
    """Turn cuts around where the token is locked or another of its categories keeps it."""
    kept = {decision.token for decision in decisions if decision.kept}
    settled = []
    for decision in decisions:
        rule = decision.rule
        if rule in CUTTING and decision.token in lock.by_token:
            rule = Rule.LOCKED
        elif rule in CUTTING and decision.token in kept:
            rule = Rule.OTHER_CATEGORY
        settled.append(replace(decision, rule=rule))
    return settled


def cut_tokens(decisions: Iterable[Decision]) -> set[str]:
    """Return the tokens that lose their id in this build."""
    return {decision.token for decision in decisions if not decision.kept}


def write_decisions(
    decisions: Iterable[Decision], vocabulary: Vocabulary, morphemes: pa.Table, documents: int, path: Path
) -> None:
    """Write `decisions.parquet`: the candidates, then the morphemes, which are always kept.

    Args:
        decisions: What `decide` returned.
        vocabulary: Where the morphemes and their ids are.
        morphemes: `counts/morphemes.parquet` (`schemas.tables.MORPHEMES`).
        documents: Number of documents that were scanned.
        path: The file to write.
    """
    rows = [*decisions, *_morpheme_rows(vocabulary, morphemes, documents)]
    table = pa.Table.from_pylist([_report_row(row) for row in rows], schema=DECISIONS)
    pq.write_table(table, path, compression="zstd")


def _report_row(decision: Decision) -> dict[str, Any]:
    return {
        "token": decision.token,
        "id": decision.id,
        "category": decision.category,
        **asdict(decision.counts),
        "document_share": decision.document_share,
        "shape": decision.shape.value,
        "decision": KEPT if decision.kept else CUT,
        "rule": decision.rule.value,
    }


def _morpheme_rows(vocabulary: Vocabulary, table: pa.Table, documents: int) -> list[Decision]:
    counts = _counts(table, "morpheme", "position")
    rows = []
    for morpheme in vocabulary.morphemes:
        found = counts.get((morpheme.morpheme, morpheme.position), Counts())
        share = found.documents / documents if documents else 0.0
        token_id = vocabulary.by_token[morpheme.morpheme].id
        category = f"morpheme:{morpheme.position}"
        rows.append(Decision(morpheme.morpheme, token_id, category, found, share, Shape.NONE, Rule.MORPHEME))
    return sorted(rows, key=lambda row: (row.category, row.id))


def _counts(table: pa.Table, name: str, group: str) -> dict[tuple[str, str], Counts]:
    columns = (table[column].to_pylist() for column in (name, group, "hits", "documents", "projects"))
    return {(term, of): Counts(*found) for term, of, *found in zip(*columns, strict=True)}
