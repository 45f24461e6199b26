"""What a scan found and what the build made of it, in words and one table: `findings.md` of a tokenizer directory.

The form follows the published scan: fixed candidates against morphemes, namespaces, generic words, the categories that
were cut entirely, and how the slots were used. Everything is counted here from tables; nothing is read or decided.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from schemas.options import BuildOptions
from schemas.printing import count
from tokenizer_build.decisions import (
    CUTTING,
    GENERIC_RULES,
    PROTECTED,
    Decision,
    Floor,
    Remains,
    Rule,
    by_category,
    cut_tokens,
    most_projects,
)
from tokenizer_build.layout import LEARNED, BandUse
from tokenizer_build.training import LeftOut

FINDINGS_MD = "findings.md"

_SHOWN_NAMESPACES = 6
_SHOWN_LOCKED = 10
_SHOWN_SUPERWORDS = 8
_TABLE_NOTE = (
    "`kept` includes tokens that another category, another band or `ids.lock` (the ids that a release pinned) keeps. "
    "The columns after it count the tokens that each rule cut; the second `category` counts those that were cut with "
    "their whole category."
)
_CUT_COLUMNS = {"generic": GENERIC_RULES, "rare": {Rule.RARE}, "category": {Rule.CATEGORY}}
_USE_COLUMN = {"use": {Rule.UNNEEDED}}
_RENYI_ORDER = 2.5
_LANGUAGE = frozenset({"attributes", "cpp26_keywords"})
"""Categories whose kept tokens are the language's own, which the shipped vocabulary keeps: no news."""


@dataclass(frozen=True)
class DomainSlots:
    """How the ids of the domain band were used.

    Attributes:
        proposed: Tokens that the files propose for the band.
        kept: Tokens that have their id in this build.
        learned: Learned tokens of the build, those in freed ids included.
        split: Tokens of any band that the pattern splits, which are therefore not fixed.
    """

    proposed: int
    kept: int
    learned: int
    split: Sequence[str]


@dataclass(frozen=True)
class Findings:
    """The tables that findings are computed from.

    Attributes:
        decisions: What `decide` returned.
        morphemes: `counts/morphemes.parquet` (`schemas.tables.MORPHEMES`).
        namespaces: `counts/namespaces.parquet` (`schemas.tables.NAMESPACES`).
        statistics: `counts/statistics.json`: `documents` and `bytes.total` are used.
        morphemes_proposed: Number of different morphemes that were looked for.
        slots: How the ids of the domain band were used.
        options: The thresholds that decided.
        superwords: Tokens that merges in lines made, with how often each occurred when it was learned.
        left_out: What did not fit into training.
        morpheme_decisions: What `decide_morphemes` returned.
        use: How often the ids of each band occur in the text; empty if that was not counted.
        by_use: What was decided of fixed tokens by their use; empty if that did not decide.
        least_use: The fewest occurrences of those that stay.
    """

    decisions: Sequence[Decision]
    morphemes: pa.Table
    namespaces: pa.Table
    statistics: Mapping[str, Any]
    morphemes_proposed: int
    slots: DomainSlots
    options: BuildOptions
    superwords: Mapping[bytes, int] = field(default_factory=dict)
    left_out: LeftOut = LeftOut(words_below=1, words=0, lines_below=1, lines=0)
    morpheme_decisions: Sequence[Decision] = ()
    use: Sequence[BandUse] = ()
    by_use: Sequence[Decision] = ()
    least_use: float = 0.0

    @property
    def documents(self) -> int:
        """Number of documents that were scanned."""
        return int(self.statistics["documents"])

    @property
    def projects(self) -> int:
        """Number of projects: as many as the name that most of them share occurs in."""
        return max([most_projects(self.decisions), *_numbers(self.morphemes), *_numbers(self.namespaces)])

    def report(self) -> list[str]:
        """Return everything as lines of Markdown that are readable as they are."""
        lines = [
            f"Scanned {self.documents:,} files, {int(self.statistics['bytes']['total']):,} bytes, of "
            f"{count(self.projects, 'project')}.",
            "",
            *(f"- {line}" for line in self._sentences()),
            *(f"  - {line}" for line in self.fallen_categories()),
        ]
        use = ["", *_use_table(self.use)] if self.use else []
        columns = _CUT_COLUMNS | (_USE_COLUMN if self.by_use else {})
        return [*lines, *use, "", *_table(by_category(self.decisions), columns), "", _TABLE_NOTE]

    def summary(self) -> list[str]:
        """Return a few lines for the end of the build stage."""
        fallen = sum(1 for _ in self.fallen_categories())
        return [
            self._slot_sentence(),
            *self._unneeded_sentences(),
            *self._lock_sentences(_SHOWN_LOCKED),
            *self._superword_sentences(),
            *self._left_out_sentences(),
            f"No token was kept from {fallen:,} of {self._groups()}; tokenizer/{FINDINGS_MD} says why.",
        ]

    def fallen_categories(self) -> Iterable[str]:
        """Yield a line for each category from which nothing is kept, with the reason."""
        projects = most_projects(self.decisions)
        for name, group in by_category(self.decisions).items():
            own = [decision for decision in group if decision.rule not in PROTECTED]
            if own and not any(decision.kept for decision in own):
                yield f"`{name}` ({len(group)} proposed): {self._why(group, projects)}"

    def _sentences(self) -> Iterable[str]:
        yield self._morpheme_sentence()
        yield from self._morpheme_class_sentences()
        yield from self._ascii_sentences()
        yield self._namespace_sentence()
        yield self._generic_sentence()
        yield from self._common_sentences()
        yield self._slot_sentence()
        yield from self._unneeded_sentences()
        yield from self._use_sentences()
        yield from self._lock_sentences()
        yield from self._superword_sentences()
        yield from self._left_out_sentences()
        if self.slots.split:
            yield f"Without a fixed id, because the pre-token pattern splits them: {_listed(self.slots.split)}."
        fallen = sum(1 for _ in self.fallen_categories())
        counted = " A hit counts only if its name is neither generic nor rare, nor in another band:" if fallen else ""
        yield f"No token was kept from {fallen:,} of {self._groups()}.{counted}"

    def _groups(self) -> str:
        return count(len(by_category(self.decisions)), "category", "categories")

    def _morpheme_sentence(self) -> str:
        tokens = self._hits_by_token()
        found, fixed = sum(hits > 0 for hits in tokens.values()), sum(tokens.values())
        hits = sum(_numbers(self.morphemes, "hits"))
        ratio = f" Morphemes have {hits / fixed:.1f} times as many hits." if fixed else ""
        return (
            f"{self.morphemes_proposed} morphemes have {hits:,} hits. Of {count(len(tokens), 'token')} proposed in "
            f"{self._groups()}, {found:,} were found, with {fixed:,} hits.{ratio}"
        )

    def _morpheme_class_sentences(self) -> Iterable[str]:
        classes = by_category(self.morpheme_decisions)
        if not classes:
            return
        parts = []
        for name, group in classes.items():
            hits, found = sum(d.counts.hits for d in group), sum(d.counts.hits > 0 for d in group)
            parts.append(f"`{name.partition(':')[2]}` {hits:,} ({found:,} of {len(group):,} found)")
        hits, identifiers = sum(_numbers(self.morphemes, "hits")), int(self.statistics.get("identifiers", 0))
        rate = f"; {hits / identifiers:.2f} per identifier" if identifiers else ""
        yield f"Morpheme hits by class: {', '.join(parts)}{rate}."
        cut = sorted(cut_tokens(self.morpheme_decisions))
        if cut:
            yield f"Cut {count(len(cut), 'morpheme')} with too few hits in each position: {_listed(cut)}."

    def _ascii_sentences(self) -> Iterable[str]:
        total, other = (self.statistics["bytes"].get(name) for name in ("total", "non_ascii"))
        if total and other is not None:
            yield f"{(total - other) / total:.4%} of the bytes are ASCII."

    def _common_sentences(self) -> Iterable[str]:
        common = {d.token: d.counts.projects for d in self.decisions if d.own_rule is Rule.COMMON}
        if common:
            most = sorted(common, key=lambda token: (-common[token], token))
            least = count(min(common.values()), "project")
            yield f"Cut {count(len(common), 'plain word')} that {least} or more use: {_listed(most)}."

    def _use_sentences(self) -> Iterable[str]:
        tokens, num_bytes = sum(band.tokens for band in self.use), sum(band.num_bytes for band in self.use)
        if not tokens:
            return
        fixed = [band for band in self.use if band.band != LEARNED]
        shares = sum(band.tokens for band in fixed) / tokens, sum(band.num_bytes for band in fixed) / num_bytes
        yield f"Coverage: fixed tokens are {shares[0]:.1%} of the tokens and {shares[1]:.1%} of the bytes."
        evenness = renyi_efficiency([times for band in self.use for times in band.counts])
        yield (
            f"Evenness of the tokens' frequencies: Rényi efficiency {evenness:.4f} of order {_RENYI_ORDER} (1 is even; "
            "Zouhar and others, Tokenization and the Noiseless Channel, 2023)."
        )

    def _namespace_sentence(self) -> str:
        rows = sorted(self.namespaces.to_pylist(), key=lambda row: (-row["hits"], row["namespace"]))
        total = sum(row["hits"] for row in rows)
        top = ", ".join(
            f"`{row['namespace']}::` {row['hits']:,} ({row['hits'] / total:.1%}, {count(row['projects'], 'project')})"
            for row in rows[:_SHOWN_NAMESPACES]
        )
        return f"{total:,} namespace references" + (f": {top}." if top else ".")

    def _generic_sentence(self) -> str:
        found = {decision.token for decision in self.decisions if decision.counts.hits}
        shares = {d.token: d.document_share for d in self.decisions if d.own_rule is Rule.GENERIC}
        sentence = f"{len(shares):,} of {len(found):,} found tokens are generic words"
        if not shares:
            return f"{sentence} (in more than {self.options.generic_document_share:.1%} of the files)."
        most = [token for token, _ in sorted(shares.items(), key=lambda item: (-item[1], item[0]))]
        low, high = min(shares.values()), max(shares.values())
        return f"{sentence} ({low:.1%} to {high:.1%} of the files): {_listed(most)}."

    def _slot_sentence(self) -> str:
        slots = self.slots
        return (
            f"Kept {slots.kept:,} of {count(slots.proposed, 'candidate library token')} (band `domain`), with their "
            f"fixed ids. The ids of the other {slots.proposed - slots.kept:,} are used for learned tokens. The build "
            f"learned {count(slots.learned, 'token')} of two bytes or more."
        )

    def _unneeded_sentences(self) -> Iterable[str]:
        if not self.by_use:
            return
        cut = cut_tokens(self.by_use)
        parts = (
            f"{name.partition(':')[2]} {len(cut_tokens(group)):,} of {len(group):,}"
            for name, group in by_category(self.by_use).items()
        )
        yield (
            f"Left out {count(len(cut), 'fixed token')} that the text has fewer than {self.least_use:,.0f} times, less "
            f"often than the last learned token: {', '.join(parts)}."
        )

    def _lock_sentences(self, shown: int | None = None) -> Iterable[str]:
        every = (*self.decisions, *self.morpheme_decisions)
        locked = sorted({decision.token for decision in every if decision.rule is Rule.LOCKED})
        if locked:
            stay = "which stays" if len(locked) == 1 else "which stay"
            yield f"The scan would cut {count(len(locked), 'locked token')}, {stay} for life: {_listed(locked, shown)}."
        language = {decision.token for decision in self.decisions if decision.category in _LANGUAGE}
        kept = sorted({decision.token for decision in self.decisions if decision.rule is Rule.KEEP} - language)
        if kept:
            stay = "which stays" if len(kept) == 1 else "which stay"
            yield f"The scan would cut {count(len(kept), 'token')} with `keep`, {stay}: {_listed(kept, shown)}."

    def _superword_sentences(self) -> Iterable[str]:
        if self.superwords:
            most = sorted(self.superwords, key=lambda token: (-self.superwords[token], token))[:_SHOWN_SUPERWORDS]
            shown = ", ".join(f"`{repr(token)[2:-1]}` {self.superwords[token]:,}" for token in most)
            learned = count(len(self.superwords), "token was learned in lines", "tokens were learned in lines")
            yield f"{learned}; the most frequent, as they were learned: {shown}."

    def _left_out_sentences(self) -> Iterable[str]:
        left_out, room = self.left_out, f"build.max_held_tokens = {self.options.max_held_tokens:,}"
        if left_out.words:
            words = count(left_out.words, "word")
            yield f"{words} that occur fewer than {left_out.words_below:,} times did not fit into training ({room})."
        if left_out.lines:
            lines, below = count(left_out.lines, "line"), f"{left_out.lines_below:,}"
            yield (
                f"{lines} did not fit into training ({room}): of those that occur fewer than {below} times only some "
                f"were kept, chosen by hash, and each counts as {below}."
            )

    def _hits_by_token(self) -> dict[str, int]:
        """Return the hits of each candidate, once where several categories count it."""
        hits: dict[str, int] = {}
        for decision in self.decisions:
            hits[decision.token] = max(hits.get(decision.token, 0), decision.counts.hits)
        return hits

    def _why(self, group: Sequence[Decision], projects: int) -> str:
        remains = Remains.of(group)
        if remains.all_hits == 0:
            return "not found"
        if remains.hits == 0:
            rules = Counter(decision.own_rule for decision in group if decision.counts.hits)
            words = {
                **dict.fromkeys(GENERIC_RULES, "generic words"),
                Rule.RARE: f"names with fewer than {count(self.options.min_hits, 'hit')}",
            }
            kinds = dict.fromkeys(words.get(rule, "tokens of other bands") for rule in sorted(rules))
            return f"{count(remains.all_hits, 'hit')}, all of {' or '.join(kinds)}"
        left = f"{remains.hits:,} of {count(remains.all_hits, 'hit')} {'counts' if remains.hits == 1 else 'count'}"
        if any(decision.rule is Rule.UNNEEDED for decision in group):
            return f"{left}, but as tokens its names occur less often than the last learned token"
        floor = remains.failed_floor(self.documents, projects, self.options)
        if floor is Floor.HITS:
            return f"{left}, but at least {remains.least_hits(self.documents, self.options):,.0f} must"
        if floor is Floor.HIT_SHARE:
            return f"{left}, but at least {self.options.min_category_hit_share:.0%} must"
        return f"{left}, but none of its names is in more than {count(remains.projects, 'project')}"


def renyi_efficiency(counts: Iterable[int], order: float = _RENYI_ORDER) -> float:
    """Return how evenly tokens are used: their Rényi entropy as a share of that of equal frequencies.

    Zouhar, Meister, Gastaldi, Du, Sachan and Cotterell, "Tokenization and the Noiseless Channel", ACL 2023: the
    efficiency of order 2.5 goes best with the quality of translations by models of different tokenizers.

    Args:
        counts: How often each id of the vocabulary occurs, 0 included.
        order: The order, above 0 and not 1; a higher one minds frequent tokens more.

    Returns:
        A share; 0.0 where nothing occurs or there is one id only.

    Example:
        >>> renyi_efficiency([5, 5, 5, 5]), round(renyi_efficiency([8, 4, 2, 2], order=2), 4)
        (1.0, 0.7678)
    """
    found = list(counts)
    total = sum(found)
    if not total or len(found) < 2:
        return 0.0
    power = math.fsum((number / total) ** order for number in found)
    return math.log(power) / (1 - order) / math.log(len(found))


def _numbers(table: pa.Table, column: str = "projects") -> list[int]:
    numbers: list[Any] = table[column].to_pylist()
    return numbers


def _listed(tokens: Sequence[str], shown: int | None = None) -> str:
    rest = [] if shown is None or len(tokens) <= shown else [f"and {len(tokens) - shown:,} more"]
    return ", ".join([*(f"`{token}`" for token in tokens[:shown]), *rest])


def _table(groups: Mapping[str, Sequence[Decision]], columns: Mapping[str, Collection[Rule]]) -> Iterable[str]:
    """Yield the lines of a table with a row per category: what was proposed, found, kept, and cut by which rule."""
    head = ["category", "proposed", "found", "hits", "kept", *columns]
    yield from _aligned([head, *(_table_row(name, group, columns) for name, group in sorted(groups.items()))])


def _use_table(use: Iterable[BandUse]) -> Iterable[str]:
    """Yield the lines of a table with a row per band: its ids, how many occur, their share of tokens and bytes."""
    bands = list(use)
    tokens, num_bytes = (
        max(1, sum(numbers)) for numbers in zip(*((b.tokens, b.num_bytes) for b in bands), strict=True)
    )
    rows = [
        [
            b.band,
            f"{b.ids:,}",
            f"{b.used:,}",
            f"{b.tokens:,}",
            f"{b.tokens / tokens:.1%}",
            f"{b.num_bytes / num_bytes:.1%}",
        ]
        for b in bands
    ]
    yield from _aligned([["band", "ids", "used", "tokens", "of tokens", "of bytes"], *rows])


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yield the lines of a Markdown table, the first column to the left and the others to the right."""
    head = rows[0]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    rules = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    for row in (head, rules, *rows[1:]):
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        yield f"| {' | '.join(cells)} |"


def _table_row(name: str, group: Sequence[Decision], columns: Mapping[str, Collection[Rule]]) -> list[str]:
    rules = [decision.rule for decision in group if decision.rule in CUTTING]
    numbers = [
        len(group),
        sum(decision.counts.hits > 0 for decision in group),
        sum(decision.counts.hits for decision in group),
        len(group) - len(cut_tokens(group)),
        *(sum(rule in column for rule in rules) for column in columns.values()),
    ]
    return [name, *(f"{number:,}" for number in numbers)]
