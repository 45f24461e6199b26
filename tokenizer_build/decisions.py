"""Keeps or cuts the candidates: the scan's counts decide which fixed tokens deserve a slot.

Generic words are cut because BPE learns them for free, rare ones because nobody would miss them, and a category is cut
whole if too little of it is left. Only tokens of the domain band can be cut, and never locked ones. A freed id becomes
a learned token; the cut token keeps the id in its file, so that another corpus may keep it under the same id.

The rules come from the published scan of 1,435,084 files, which cut 209 of the 473 tokens it found as generic words,
and the whole categories of MongoDB operators, Redis, CMake, ORM and protobuf keywords. The second rules, which profiles
set (`min_distinctive_hits`, `generic_word_project_share`, `min_morpheme_hits`), tell names of an API from words by
their shape and by how many projects have them, and decide about morphemes too. Small vocabularies leave out what the
text needs less than one more learned token, in nearly all bands (`min_fixed_use`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa

from schemas.options import BuildOptions
from tokenizer_build.bands import DOMAIN, MORPHEMES
from tokenizer_build.lock import Lock
from tokenizer_build.shapes import Shape, is_plain_word, name_shape
from tokenizer_build.vocabulary import Candidate, FixedToken, Vocabulary

_FEW_PROJECTS = 2
"""A word that this many projects have may be the name of one of them, vendored by the others."""


class Rule(StrEnum):
    """Why a candidate was kept or cut."""

    USED = "used"
    DISTINCTIVE = "distinctive_shape"
    COMPOUND = "compound"
    RARE = "below_hit_floor"
    GENERIC = "generic"
    COMMON = "common_word"
    CATEGORY = "category_floor"
    OTHER_CATEGORY = "kept_by_other_category"
    OTHER_POSITION = "kept_by_other_position"
    OTHER_BAND = "not_in_domain_band"
    MORPHEME = "morpheme"
    LOCKED = "locked"
    KEEP = "keep"
    UNNEEDED = "below_learned_use"


CUTTING = frozenset({Rule.RARE, Rule.GENERIC, Rule.COMMON, Rule.CATEGORY, Rule.UNNEEDED})
"""The rules that cut."""

GENERIC_RULES = frozenset({Rule.GENERIC, Rule.COMMON})
"""The rules that cut generic words."""

PROTECTED = frozenset({Rule.OTHER_BAND, Rule.MORPHEME})
"""The rules that keep a token regardless of its counts."""

_PER = 1_000_000

BY_USE = "band:"
"""How the category of a decision begins that was made of a fixed token by its use."""

_ALWAYS_FIXED = frozenset({"control", "keywords"})
"""Bands that every build has whole: what a pipeline inserts, and the closed word list of the language."""


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
    vocabulary: Vocabulary,
    lock: Lock,
    terms: pa.Table,
    documents: int,
    options: BuildOptions,
    *,
    cut_morphemes: Collection[str] = (),
) -> list[Decision]:
    """Decide every candidate of a vocabulary.

    Each candidate is decided by its own counts and shape, then each category by what that leaves of it. A token in
    several categories is kept if one of them keeps it; a token that a lock binds builds to is always kept, and so is
    one with `keep`.

    Args:
        vocabulary: The candidates, their ids, and which are to be kept.
        lock: Locked tokens are kept regardless of their counts.
        terms: `counts/terms.parquet` (`schemas.tables.TERMS`); what it does not have was not found.
        documents: Number of documents that were scanned.
        options: The thresholds.
        cut_morphemes: The morphemes that `decide_morphemes` cuts: they do not keep a candidate.

    Returns:
        One decision a candidate and category, sorted by category, then id.
    """
    counts = read_counts(terms, "term", "category")
    corpus = Corpus(documents, max((found.projects for found in counts.values()), default=0))
    morphemes = {morpheme.morpheme for morpheme in vocabulary.morphemes}.difference(cut_morphemes)
    decisions = []
    for candidate in vocabulary.candidates:
        found = counts.get((candidate.token, candidate.category), Counts())
        shape, rule = decide_name(candidate.token, candidate.api_prefixes, found, corpus, options)
        rule = _protecting_rule(candidate, vocabulary, morphemes) or rule
        share, token_id = document_share(found, documents), vocabulary.by_token[candidate.token].id
        decisions.append(Decision(candidate.token, token_id, candidate.category, found, share, shape, rule, rule))
    decisions.sort(key=lambda d: (d.category, d.id))
    return _settle(_decide_categories(decisions, documents, options), lock, vocabulary.kept)


def decide_morphemes(
    vocabulary: Vocabulary, lock: Lock, morphemes: pa.Table, documents: int, options: BuildOptions
) -> list[Decision]:
    """Decide every morpheme of a vocabulary in each of its positions.

    A morpheme is kept if it has the hits in one of its positions; a locked one, one with an id in another band than the
    morphemes' or the domains', and all without `min_morpheme_hits`, are always kept. BPE learns most morphemes without
    a seed too; then the seed takes no id from anything else. What it would not learn must have the hits.

    Args:
        vocabulary: The morphemes and their ids.
        lock: Locked tokens are kept regardless of their counts.
        morphemes: `counts/morphemes.parquet` (`schemas.tables.MORPHEMES`).
        documents: Number of documents that were scanned.
        options: The thresholds.

    Returns:
        One decision a morpheme and position, the category `morpheme:POSITION`, sorted by category, then id.
    """
    counts = read_counts(morphemes, "morpheme", "position")
    floor = least_morpheme_hits(documents, options)
    decisions = []
    for morpheme in vocabulary.morphemes:
        token = vocabulary.by_token[morpheme.morpheme]
        found = counts.get((morpheme.morpheme, morpheme.position), Counts())
        is_own_band = token.band.name in (MORPHEMES, DOMAIN)
        rule = Rule.RARE if is_own_band and found.hits < floor else Rule.MORPHEME
        share, category = document_share(found, documents), f"morpheme:{morpheme.position}"
        decisions.append(Decision(morpheme.morpheme, token.id, category, found, share, Shape.NONE, rule, rule))
    decisions.sort(key=lambda d: (d.category, d.id))
    return _settle(decisions, lock, vocabulary.kept, elsewhere=Rule.OTHER_POSITION)


def least_morpheme_hits(documents: int, options: BuildOptions) -> float:
    """Return the hits that a morpheme needs in one of its positions."""
    return (options.min_morpheme_hits or 0) * documents / _PER


@dataclass(frozen=True)
class Corpus:
    """What was scanned.

    Attributes:
        documents: Number of documents.
        projects: The most projects that one candidate occurs in.
    """

    documents: int
    projects: int


def decide_name(
    token: str, api_prefixes: Iterable[str], counts: Counts, corpus: Corpus, options: BuildOptions
) -> tuple[Shape, Rule]:
    """Decide a name of the domain band by its own counts and shape.

    Args:
        token: The name.
        api_prefixes: Prefixes of its category.
        counts: What the scan counted of it.
        corpus: What was scanned.
        options: The thresholds.

    Returns:
        Its shape, and the rule that keeps or cuts it, before category, lock and other categories have theirs.
    """
    shape = name_shape(token, api_prefixes, shapes=options.distinctive_shapes, compound_parts=options.compound_parts)
    share = document_share(counts, corpus.documents)
    is_distinctive = shape is not Shape.NONE
    if counts.hits < (least_distinctive_hits(options) if is_distinctive else options.min_hits):
        return shape, Rule.RARE
    kept_by_shape = Rule.COMPOUND if shape is Shape.COMPOUND else Rule.DISTINCTIVE
    if share <= options.generic_document_share:
        if is_common_word(token, counts, corpus, options):
            return shape, Rule.COMMON
        return shape, kept_by_shape if counts.hits < options.min_hits else Rule.USED
    is_idiom = shape is Shape.COMPOUND and share > options.compound_document_share
    return shape, kept_by_shape if is_distinctive and not is_idiom else Rule.GENERIC


def least_distinctive_hits(options: BuildOptions) -> int:
    """Return the fewest hits of a name with a distinctive shape."""
    least = options.min_distinctive_hits
    return options.min_hits if least is None else min(least, options.min_hits)


def is_common_word(token: str, counts: Counts, corpus: Corpus, options: BuildOptions) -> bool:
    """Return whether a name is one plain word (`stride`, `Message`) that many projects use, so no API's own.

    Words in capitals (`DWORD`, `SELECT`) and with digits (`float4`) are no plain words.
    """
    share = options.generic_word_project_share
    if share is None or counts.projects <= _FEW_PROJECTS or not is_plain_word(token):
        return False
    return counts.projects >= share * corpus.projects


def document_share(counts: Counts, documents: int) -> float:
    """Return the share of the documents that have a term; 0 if there are none."""
    return counts.documents / documents if documents else 0.0


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
        generic_hits: Hits of its own names that were cut as generic words.
        all_hits: Hits of all its candidates.
        projects: The most projects that one name of what is left occurs in.
    """

    names: int
    hits: int
    generic_hits: int
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
            generic_hits=sum(decision.counts.hits for decision in own if decision.own_rule in GENERIC_RULES),
            all_hits=sum(decision.counts.hits for decision in group),
            projects=max((found.projects for found in left), default=0),
        )

    def least_hits(self, documents: int, options: BuildOptions) -> float:
        """Return the hits that it needs. We use the mean of its names, so grouping has no effect."""
        return options.min_category_hits_per_name * self.names * documents / _PER

    def failed_floor(self, documents: int, projects: int, options: BuildOptions) -> Floor | None:
        """Return the first floor that it is below, None if the category is kept.

        Below the floor `HIT_SHARE`, names with a distinctive shape stay if `min_distinctive_hits` is set.

        Args:
            documents: Number of documents that were scanned.
            projects: The most projects that one candidate occurs in: the project floor is not higher.
            options: The floors.
        """
        counted = self.hits if options.min_distinctive_hits is None else self.hits + self.generic_hits
        if counted < self.least_hits(documents, options):
            return Floor.HITS
        if self.projects < min(options.min_category_projects, projects):
            return Floor.PROJECTS
        return Floor.HIT_SHARE if self.hits < options.min_category_hit_share * self.all_hits else None


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
    floors = {
        name: Remains.of(group).failed_floor(documents, projects, options)
        for name, group in by_category(decisions).items()
    }
    return [
        replace(decision, rule=Rule.CATEGORY) if _falls(decision, floors[decision.category], options) else decision
        for decision in decisions
    ]


def _falls(decision: Decision, floor: Floor | None, options: BuildOptions) -> bool:
    """Return whether a candidate falls with its category, which is below a floor."""
    if floor is None or not decision.kept or decision.rule in PROTECTED:
        return False
    spared = options.min_distinctive_hits is not None and decision.shape is not Shape.NONE
    return not (spared and floor is Floor.HIT_SHARE)


def _settle(
    decisions: Sequence[Decision], lock: Lock, keep: Collection[str], *, elsewhere: Rule = Rule.OTHER_CATEGORY
) -> list[Decision]:
    """Turn cuts around where the token is locked, is to be kept, or another category or position keeps it."""
    kept = {decision.token for decision in decisions if decision.kept}
    settled = []
    for decision in decisions:
        rule = decision.rule
        if rule in CUTTING and decision.token in keep:
            rule = Rule.KEEP
        elif rule in CUTTING and decision.token in lock.binding.by_token:
            rule = Rule.LOCKED
        elif rule in CUTTING and decision.token in kept:
            rule = elsewhere
        settled.append(replace(decision, rule=rule))
    return settled


def decide_by_use(
    vocabulary: Vocabulary, lock: Lock, fixed: Iterable[FixedToken], uses: Mapping[bytes, int], least: float
) -> list[Decision]:
    """Decide fixed tokens of a build by how often the text has them, encoded with all of them.

    Control tokens, keywords, single bytes, tokens with `keep` and tokens that a lock binds builds to are left alone.

    Args:
        vocabulary: Which tokens are to be kept.
        lock: Its lock.
        fixed: The fixed tokens that all other rules keep.
        uses: Occurrences of each token.
        least: The fewest occurrences of a token that stays.

    Returns:
        One decision a token, the category `band:NAME`, with its occurrences as hits, by id.
    """
    bound = vocabulary.kept.union(lock.binding.by_token)
    decisions = []
    for token in sorted(fixed, key=lambda token: token.id):
        name = token.token.encode()
        if token.band.name in _ALWAYS_FIXED or len(name) == 1 or token.token in bound:
            continue
        found = Counts(hits=uses.get(name, 0))
        rule = Rule.USED if found.hits >= least else Rule.UNNEEDED
        category = f"{BY_USE}{token.band.name}"
        decisions.append(Decision(token.token, token.id, category, found, 0.0, Shape.NONE, rule, rule))
    return decisions


def leave_out(decisions: Iterable[Decision], unneeded: Collection[str]) -> list[Decision]:
    """Return decisions in which tokens that the text does not need are cut."""
    return [
        replace(decision, rule=Rule.UNNEEDED) if decision.kept and decision.token in unneeded else decision
        for decision in decisions
    ]


def cut_tokens(decisions: Iterable[Decision]) -> set[str]:
    """Return the tokens that lose their id in this build."""
    return {decision.token for decision in decisions if not decision.kept}


def keep_candidates(morphemes: Iterable[Decision], candidates: Iterable[Decision]) -> list[Decision]:
    """Return the decisions of morphemes, those turned around that are kept as candidates."""
    kept = {decision.token for decision in candidates if decision.kept}
    return [
        replace(decision, rule=Rule.OTHER_CATEGORY) if decision.token in kept and not decision.kept else decision
        for decision in morphemes
    ]


def read_counts(table: pa.Table, name: str, group: str) -> dict[tuple[str, str], Counts]:
    """Return the counts of a table of terms or morphemes by name and group.

    Args:
        table: Columns `name`, `group`, hits, documents, projects.
        name: The column of the term.
        group: The column of its category or position.
    """
    columns = (table[column].to_pylist() for column in (name, group, "hits", "documents", "projects"))
    return {(term, of): Counts(*found) for term, of, *found in zip(*columns, strict=True)}
