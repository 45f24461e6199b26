"""Keeps or cuts the candidates: the scan's counts decide which fixed tokens deserve a slot.

Generic words are cut because BPE learns them for free, rare ones because nobody would miss them, and a category is cut
whole if too little of it is left. Only tokens of the domain band can be cut, and never locked ones. A freed id becomes
a learned token; the cut token keeps the id in its file, so that another corpus may keep it under the same id.

The rules come from the published scan of 1,435,084 files, which cut 209 of the 473 tokens it found as generic words,
and the whole categories of MongoDB operators, Redis, CMake, ORM and protobuf keywords.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa

from schemas.options import DISTINCTIVE_SHAPES, BuildOptions
from tokenizer_build.bands import DOMAIN
from tokenizer_build.lock import Lock
from tokenizer_build.vocabulary import Candidate, Vocabulary


class Shape(StrEnum):
    """What makes a name one that generic text does not have, the most distinctive first.

    After the published C++ vocabulary, which kept generic words only if they had a double underscore, were in
    SCREAMING_CASE or began as an API's names do. Compound names are added: several words say more than one, and less
    than a prefix that one library alone uses.
    """

    DOUBLE_UNDERSCORE = "double_underscore"
    SCREAMING_CASE = "screaming_case"
    API_PREFIX = "api_prefix"
    COMPOUND = "compound"
    NONE = "none"


_SCREAMING_CASE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LEAST_LETTERS = 2


def name_shape(
    token: str,
    api_prefixes: Iterable[str],
    *,
    shapes: Collection[str] = DISTINCTIVE_SHAPES,
    compound_parts: int = 2,
) -> Shape:
    """Return the most distinctive shape of a name.

    Args:
        token: The name.
        api_prefixes: Prefixes of its category; one counts if it ends in an underscore, or no lower-case letter follows.
        shapes: The shapes to look for.
        compound_parts: How many words a compound has at least.

    Example:
        >>> name_shape("cudaMalloc", ["cuda"]), name_shape("cudaless", ["cuda"]), name_shape("TEST_F", [])
        (<Shape.API_PREFIX: 'api_prefix'>, <Shape.NONE: 'none'>, <Shape.SCREAMING_CASE: 'screaming_case'>)
        >>> name_shape("thread_block_tile", []), name_shape("DescriptorPool", []), name_shape("size_t", [])
        (<Shape.COMPOUND: 'compound'>, <Shape.COMPOUND: 'compound'>, <Shape.NONE: 'none'>)
    """
    found = {
        Shape.DOUBLE_UNDERSCORE: "__" in token,
        Shape.SCREAMING_CASE: _SCREAMING_CASE.fullmatch(token) is not None,
        Shape.API_PREFIX: any(_has_api_prefix(token, prefix) for prefix in api_prefixes),
        Shape.COMPOUND: len(name_parts(token)) >= compound_parts,
    }
    return next((shape for shape, has in found.items() if has and shape in shapes), Shape.NONE)


def name_parts(token: str) -> Sequence[str]:
    """Return the words of an identifier, cut at underscores, humps and digits.

    A part of one letter is a convention (`size_t`, `m_count`), no word, and left out.

    Example:
        >>> name_parts("thread_block_tile"), name_parts("HTTPServer2"), name_parts("size_t")
        (['thread', 'block', 'tile'], ['HTTP', 'Server'], ['size'])
    """
    if not _IDENTIFIER.fullmatch(token):
        return []
    return [part for part in _PART.findall(token) if len(part) >= _LEAST_LETTERS]


def _has_api_prefix(token: str, prefix: str) -> bool:
    rest = token.removeprefix(prefix)
    if rest in (token, ""):
        return False
    return prefix.endswith("_") or not rest[0].islower()


class Rule(StrEnum):
    """Why a candidate was kept or cut."""

    USED = "used"
    DISTINCTIVE = "distinctive_shape"
    COMPOUND = "compound"
    RARE = "below_hit_floor"
    GENERIC = "generic"
    CATEGORY = "category_floor"
    OTHER_CATEGORY = "kept_by_other_category"
    OTHER_BAND = "not_in_domain_band"
    MORPHEME = "morpheme"
    LOCKED = "locked"
    KEEP = "keep"


CUTTING = frozenset({Rule.RARE, Rule.GENERIC, Rule.CATEGORY})
"""The rules that cut."""

PROTECTED = frozenset({Rule.OTHER_BAND, Rule.MORPHEME})
"""The rules that keep a token regardless of its counts."""

_PER = 1_000_000


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
    """What was decided of one candidate in one category, and by which rule.

    Attributes:
        token: The candidate.
        id: Its id, used or not.
        category: The category in which it was counted.
        counts: What the scan counted there.
        document_share: Share of the scanned documents that have it.
        shape: Its shape.
        rule: The rule that decided in the end.
        own_rule: What its own counts and shape say, before category, lock and other categories had theirs.
    """

    token: str
    id: int
    category: str
    counts: Counts
    document_share: float
    shape: Shape
    rule: Rule
    own_rule: Rule

    @property
    def kept(self) -> bool:
        """Whether the token keeps its id in this build."""
        return self.rule not in CUTTING


def decide(
    vocabulary: Vocabulary, lock: Lock, terms: pa.Table, documents: int, options: BuildOptions
) -> list[Decision]:
    """Decide every candidate of a vocabulary.

    Each candidate is decided by its own counts and shape, then each category by what that leaves of it. A token in
    several categories is kept if one of them keeps it; a locked token is always kept, and so is one with `keep`.

    Args:
        vocabulary: The candidates, their ids, and which are to be kept.
        lock: Locked tokens are kept regardless of their counts.
        terms: `counts/terms.parquet` (`schemas.tables.TERMS`); what it does not have was not found.
        documents: Number of documents that were scanned.
        options: The thresholds.

    Returns:
        One decision a candidate and category, sorted by category, then id.
    """
    counts = read_counts(terms, "term", "category")
    morphemes = {morpheme.morpheme for morpheme in vocabulary.morphemes}
    decisions = []
    for candidate in vocabulary.candidates:
        found = counts.get((candidate.token, candidate.category), Counts())
        share = document_share(found, documents)
        shape = name_shape(
            candidate.token,
            candidate.api_prefixes,
            shapes=options.distinctive_shapes,
            compound_parts=options.compound_parts,
        )
        rule = _protecting_rule(candidate, vocabulary, morphemes) or _frequency_rule(found, share, shape, options)
        token_id = vocabulary.by_token[candidate.token].id
        decisions.append(Decision(candidate.token, token_id, candidate.category, found, share, shape, rule, rule))
    decisions.sort(key=lambda d: (d.category, d.id))
    return _settle(_decide_categories(decisions, documents, options), lock, vocabulary.kept)


def document_share(counts: Counts, documents: int) -> float:
    """Return the share of the documents that have a term; 0 if there are none."""
    return counts.documents / documents if documents else 0.0


def _frequency_rule(counts: Counts, share: float, shape: Shape, options: BuildOptions) -> Rule:
    if counts.hits < options.min_hits:
        return Rule.RARE
    if share <= options.generic_document_share:
        return Rule.USED
    if shape is Shape.COMPOUND:
        return Rule.COMPOUND if share <= options.compound_document_share else Rule.GENERIC
    return Rule.GENERIC if shape is Shape.NONE else Rule.DISTINCTIVE


def _protecting_rule(candidate: Candidate, vocabulary: Vocabulary, morphemes: set[str]) -> Rule | None:
    """Return the rule that keeps a token regardless of its counts; a morpheme is a seed and one token in any case."""
    if vocabulary.by_token[candidate.token].band.name != DOMAIN:
        return Rule.OTHER_BAND
    return Rule.MORPHEME if candidate.token in morphemes else None


class Floor(StrEnum):
    """The floor that a category is below."""

    HITS = "hits"
    HIT_SHARE = "hit_share"
    PROJECTS = "projects"


@dataclass(frozen=True)
class Remains:
    """What its candidates' own counts and shapes leave of a category.

    What another band or the morphemes hold is not the category's to keep: it counts among its hits, not as left.

    Attributes:
        names: How many names it proposes as its own.
        hits: Hits of what is left.
        all_hits: Hits of all its candidates.
        projects: The most projects that one name of what is left occurs in.
    """

    names: int
    hits: int
    all_hits: int
    projects: int

    @classmethod
    def of(cls, category: Iterable[Decision]) -> Remains:
        """Add up the decisions of one category."""
        group = list(category)
        own = [decision for decision in group if decision.own_rule not in PROTECTED]
        left = [decision.counts for decision in own if decision.own_rule not in CUTTING]
        return cls(
            names=len(own),
            hits=sum(found.hits for found in left),
            all_hits=sum(decision.counts.hits for decision in group),
            projects=max((found.projects for found in left), default=0),
        )

    def least_hits(self, documents: int, options: BuildOptions) -> float:
        """Return the hits that it needs. We use the mean of its names, so grouping has no effect."""
        return options.min_category_hits_per_name * self.names * documents / _PER

    def failed_floor(self, documents: int, projects: int, options: BuildOptions) -> Floor | None:
        """Return the first floor that it is below, None if the category is kept.

        Args:
            documents: Number of documents that were scanned.
            projects: The most projects that one candidate occurs in: the project floor is not higher.
            options: The floors.
        """
        if self.hits < self.least_hits(documents, options):
            return Floor.HITS
        if self.hits < options.min_category_hit_share * self.all_hits:
            return Floor.HIT_SHARE
        return Floor.PROJECTS if self.projects < min(options.min_category_projects, projects) else None


def by_category(decisions: Iterable[Decision]) -> dict[str, list[Decision]]:
    """Return the decisions of each category, in their order."""
    groups = defaultdict(list)
    for decision in decisions:
        groups[decision.category].append(decision)
    return dict(groups)


def most_projects(decisions: Iterable[Decision]) -> int:
    """Return the most projects that one candidate occurs in."""
    return max((decision.counts.projects for decision in decisions), default=0)


def _decide_categories(decisions: Sequence[Decision], documents: int, options: BuildOptions) -> list[Decision]:
    """Cut what is left of each category that is below a floor; what was cut before keeps its own rule."""
    projects = most_projects(decisions)
    fallen = {
        name
        for name, group in by_category(decisions).items()
        if Remains.of(group).failed_floor(documents, projects, options) is not None
    }
    return [
        replace(decision, rule=Rule.CATEGORY)
        if decision.category in fallen and decision.kept and decision.rule not in PROTECTED
        else decision
        for decision in decisions
    ]


def _settle(decisions: Sequence[Decision], lock: Lock, keep: Collection[str]) -> list[Decision]:
    """Turn cuts around where the token is locked, is to be kept, or another of its categories keeps it."""
    kept = {decision.token for decision in decisions if decision.kept}
    settled = []
    for decision in decisions:
        rule = decision.rule
        if rule in CUTTING and decision.token in lock.by_token:
            rule = Rule.LOCKED
        elif rule in CUTTING and decision.token in keep:
            rule = Rule.KEEP
        elif rule in CUTTING and decision.token in kept:
            rule = Rule.OTHER_CATEGORY
        settled.append(replace(decision, rule=rule))
    return settled


def cut_tokens(decisions: Iterable[Decision]) -> set[str]:
    """Return the tokens that lose their id in this build."""
    return {decision.token for decision in decisions if not decision.kept}


def read_counts(table: pa.Table, name: str, group: str) -> dict[tuple[str, str], Counts]:
    """Return the counts of a table of terms or morphemes by name and group.

    Args:
        table: Columns `name`, `group`, hits, documents, projects.
        name: The column of the term.
        group: The column of its category or position.
    """
    columns = (table[column].to_pylist() for column in (name, group, "hits", "documents", "projects"))
    return {(term, of): Counts(*found) for term, of, *found in zip(*columns, strict=True)}
