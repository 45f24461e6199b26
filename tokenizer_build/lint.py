"""Checks of the files of a vocabulary: what must hold between them, and what people who edit them should know.

Errors stop a build. Warnings name tokens that a pre-token pattern splits: they are not fixed under it; of a vocabulary
of the user's own, whose tokens are promised, that is an error. Notes count unused ids.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from pathlib import Path
from typing import get_args

import cppmill_core

from schemas.errors import VocabularyConfigError
from tokenizer_build.bands import BANDS, CONTROL, RESERVED_IDS, Band, Strength, reserved_name
from tokenizer_build.lock import Lock, check_lock, check_versions, read_lock, read_releases
from tokenizer_build.training import unreachable_seed
from tokenizer_build.vocabulary import Candidate, FixedToken, Match, Vocabulary, read_vocabulary

REQUIRED_CONTROL = ("<PAD>", "<UNK>", "<BOS>", "<EOS>")
"""Control tokens that the tokenizer's configuration names."""

_IDENTIFIER_RUN = re.compile(r"[A-Za-z0-9_]+")

Split = Callable[[str], Sequence[bytes]]
"""Cuts a text into the words of a pre-token pattern."""


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing that the lint found: the rule, and a message that names the place and the fix."""

    severity: Severity
    rule: str
    message: str


def load_vocabulary(directory: Path) -> tuple[Vocabulary, Lock]:
    """Read a vocabulary folder and its lock, and refuse what cannot be built from under any pattern.

    Raises:
        VocabularyConfigError: With one line a problem.
    """
    vocabulary, lock = read_vocabulary(directory), read_lock(directory)
    errors = _token_errors(vocabulary)
    if errors:
        raise VocabularyConfigError("\n".join(errors))
    check_lock(lock, vocabulary)
    return vocabulary, lock


def text_vocabulary(directory: Path, specials: Sequence[str]) -> tuple[Vocabulary, Lock]:
    """Return the vocabulary of text that is no code: control tokens, whose ids are the first, and a lock of nothing.

    Args:
        directory: The folder whose releases a build is looked up in.
        specials: The names, at least one.

    Raises:
        VocabularyConfigError: If there is none, or one is there twice.
    """
    if not specials or len(set(specials)) < len(specials):
        raise VocabularyConfigError(f"specials = {list(specials)}: name one control token or more, each once")
    band = Band(CONTROL, 0, len(specials) - 1, Strength.CONTROL)
    tokens = tuple(FixedToken(id_, name, band, "build.specials") for id_, name in enumerate(specials))
    return Vocabulary(directory, tokens, (), ()), Lock.from_entries(())


@lru_cache(maxsize=4)
def _token_errors(vocabulary: Vocabulary) -> tuple[str, ...]:
    return tuple(found.message for found in lint_tokens(vocabulary) if found.severity is Severity.ERROR)


def lint_vocabulary(directory: Path, split: Split) -> list[Finding]:
    """Return everything the lint has to say of a vocabulary folder under a pattern.

    Raises:
        VocabularyConfigError: If a file cannot be read at all.
    """
    vocabulary, lock = read_vocabulary(directory), read_lock(directory)
    findings = lint_tokens(vocabulary)
    findings += [*([] if findings else lint_reach(vocabulary)), *lint_pattern(vocabulary, split)]
    findings += lint_holes(vocabulary)
    for check in (partial(check_lock, lock, vocabulary), partial(check_versions, lock, read_releases(directory))):
        try:
            check()
        except VocabularyConfigError as error:
            findings += [Finding(Severity.ERROR, "locked", line) for line in str(error).splitlines()]
    return findings


def lint_tokens(vocabulary: Vocabulary) -> list[Finding]:
    """Return what is wrong with the tokens under any pattern, in a fixed order."""
    rules = {
        "duplicate": _duplicates(vocabulary),
        "band": _out_of_band(vocabulary.tokens),
        "control": _control_names(vocabulary),
        "breaks-atomic": _atomic_breakers(vocabulary.tokens),
        "candidate": _candidates_without_id(vocabulary),
        "match": _never_counted(vocabulary.candidates),
    }
    return [Finding(Severity.ERROR, rule, message) for rule, messages in rules.items() for message in messages]


def lint_reach(vocabulary: Vocabulary) -> list[Finding]:
    """Return an error if no sequence of allowed merges makes a token; for tokens without errors of their own."""
    names = [token.token for token in vocabulary.control]
    names += [reserved_name(token_id) for token_id in sorted(RESERVED_IDS)]
    reason = unreachable_seed(vocabulary.tokens, names)
    return [] if reason is None else [Finding(Severity.ERROR, "unreachable", f"{vocabulary.directory}: {reason}")]


def lint_pattern(vocabulary: Vocabulary, split: Split) -> list[Finding]:
    """Return a finding for each fixed token that a pattern cuts into several words: an error for the user's own."""
    return [
        Finding(Severity.ERROR if token.token in vocabulary.own else Severity.WARNING, "split", _split(token, split))
        for token in split_tokens(vocabulary, split)
    ]


def check_own_tokens(vocabulary: Vocabulary, split: Split) -> None:
    """Refuse a pattern that cuts a token which a vocabulary of the user's own has added.

    Raises:
        VocabularyConfigError: With a line for each such token: its pieces, and what would do.
    """
    cut = _cut(filter(lambda token: token.token in vocabulary.own, vocabulary.tokens), split)
    if cut:
        raise VocabularyConfigError("\n".join(_split(token, split) for token in cut))


def _split(token: FixedToken, split: Split) -> str:
    """Return what a pattern does to a token that it cuts, and the way out."""
    pieces = split(token.token)
    of_code = [name for name in cppmill_core.PATTERNS if name.startswith("cpp-")]
    whole = [name for name in of_code if len(cppmill_core.split(name, token.token.encode())) == 1]
    words = [piece.decode("utf-8", "replace") for piece in pieces]
    names = [repr(word.strip()) for word in words if _IDENTIFIER_RUN.fullmatch(word.strip())]
    ways = [f"use a profile with the pattern {' or '.join(whole)}"] if whole else []
    ways += [f"give {' and '.join(dict.fromkeys(names))}, each of which is one word"] if names else []
    return (
        f"{token.source} = {token.token!r}: the pattern cuts it into {_spelled(pieces)}, so it cannot have a fixed id; "
        f"{', or '.join(ways) or 'give a token that is one word'}"
    )


def split_tokens(vocabulary: Vocabulary, split: Split) -> list[FixedToken]:
    """Return the fixed tokens that a pattern cuts into several words, by id; control tokens are never split."""
    return _cut(vocabulary.tokens, split)


def _cut(tokens: Iterable[FixedToken], split: Split) -> list[FixedToken]:
    ordinary = (token for token in tokens if token.strength is not Strength.CONTROL)
    return [token for token in ordinary if len(split(token.token)) != 1]


def lint_holes(vocabulary: Vocabulary) -> list[Finding]:
    """Return a note for each band with ids that no token has."""
    holes = []
    for band in BANDS:
        used = sum(token.id in band for token in vocabulary.tokens)
        free = [i for i in range(band.first, band.last + 1) if i not in vocabulary.by_id and i not in RESERVED_IDS]
        if free:
            message = f"{band.name}: {used} ids used, {len(free)} free from {free[0]} on"
            holes.append(Finding(Severity.NOTE, "holes", f"{message}; a build fills them with learned tokens"))
    return holes


def _duplicates(vocabulary: Vocabulary) -> Iterator[str]:
    by_id, by_token = defaultdict(list), defaultdict(list)
    for token in vocabulary.tokens:
        by_id[token.id].append(token)
        by_token[token.token].append(token)
    for token_id, tokens in by_id.items():
        if len(tokens) > 1:
            yield f"id {token_id} is given to {_places(tokens)}; give all but one another free id"
    for text, tokens in by_token.items():
        if len(tokens) > 1:
            yield f"{text!r} has the ids of {_places(tokens)}; keep the older (`elsewhere` counts it in two categories)"
    yield from _counted_twice(vocabulary)


def _counted_twice(vocabulary: Vocabulary) -> Iterator[str]:
    terms = Counter((candidate.category, candidate.token) for candidate in vocabulary.candidates)
    for (category, token), times in terms.items():
        if times > 1:
            yield f"candidates[{category}]: {token!r} is listed {times} times; keep one"
    pieces = Counter((morpheme.position, morpheme.morpheme) for morpheme in vocabulary.morphemes)
    for (position, piece), times in pieces.items():
        if times > 1:
            yield f"morphemes[{position}]: {piece!r} is listed {times} times; keep one"


def _out_of_band(tokens: Iterable[FixedToken]) -> Iterator[str]:
    for token in tokens:
        band = token.band
        if not token.token:
            yield f"{token.source}: an empty token; remove the line"
        if token.id in RESERVED_IDS or band.strength is Strength.RESERVED:
            yield f"{token.source} = {token.token!r}: id {token.id} is reserved at every size; choose another"
        elif token.id not in band:
            yield (
                f"{token.source} = {token.token!r}: outside band {band.name} ({band.first}-{band.last}); "
                "choose a free id inside, or move the line to its band's file"
            )


def _control_names(vocabulary: Vocabulary) -> Iterator[str]:
    names = {token.token for token in vocabulary.control}
    for missing in sorted(set(REQUIRED_CONTROL) - names):
        yield f"{vocabulary.directory}: no control token {missing!r}; add it with its published id"
    reserved = {reserved_name(token_id): token_id for token_id in sorted(RESERVED_IDS)}
    for token in vocabulary.tokens:
        if token.token in reserved:
            yield f"{token.source} = {token.token!r}: the name of reserved id {reserved[token.token]}; choose another"
        elif token.token in names and token.strength is not Strength.CONTROL:
            yield f"{token.source} = {token.token!r}: spells a control token, which text must never give; remove it"


def _atomic_breakers(tokens: Iterable[FixedToken]) -> Iterator[str]:
    """Yield the tokens that can never be one, because no merge joins an atomic token to a byte outside identifiers."""
    by_token = {token.token: token for token in tokens}
    for token in by_token.values():
        if token.strength is Strength.CONTROL:
            continue
        for run in _IDENTIFIER_RUN.findall(token.token):
            inner = by_token.get(run)
            if run != token.token and inner is not None and inner.strength is Strength.ATOMIC:
                yield (
                    f"{token.source} = {token.token!r}: holds the atomic token {run!r} ({inner.source}) beside a byte "
                    f"that is no identifier byte, so it can never be one token; remove it, or {run!r}"
                )


def _candidates_without_id(vocabulary: Vocabulary) -> Iterator[str]:
    for candidate in vocabulary.candidates:
        if candidate.token not in vocabulary.by_token:
            yield f"{candidate.source}: {candidate.token!r} has no id in any file; give it one under `tokens`"
    for morpheme in vocabulary.morphemes:
        if morpheme.morpheme not in vocabulary.by_token:
            yield f"{morpheme.source}: {morpheme.morpheme!r} has no id in any file; give it a free one of the band"


def _never_counted(candidates: Sequence[Candidate]) -> Iterator[str]:
    """Yield the candidates that a scan looks for where they cannot be."""
    if _refusal([(candidate.token, candidate.match) for candidate in candidates]) is None:
        return
    for candidate in candidates:
        token = candidate.token
        refusal = _refusal([(token, candidate.match)])
        if refusal is not None:
            fitting = [f'match = "{match}"' for match in get_args(Match) if _refusal([(token, match)]) is None]
            way = f"{' or '.join(fitting)} counts it" if fitting else "give it an id under `tokens`, which no scan cuts"
            yield f"{candidate.source}: {refusal}; {way}"


def _refusal(terms: Iterable[tuple[str, str]]) -> str | None:
    """Return what the native scanner has against terms with their `match`."""
    rows = [{"term": term, "category": str(place), "match": match} for place, (term, match) in enumerate(terms)]
    try:
        cppmill_core.Scanner(json.dumps({"pattern": "cpp-words-1", "candidates": rows}))
    except cppmill_core.InvalidInputError as error:
        return str(error).replace(' of category "0"', "")
    return None


def _places(tokens: Iterable[FixedToken]) -> str:
    return " and ".join(f"{token.source} = {token.token!r}" for token in tokens)


def _spelled(words: Iterable[bytes]) -> str:
    return " + ".join(repr(word.decode("utf-8", "replace")) for word in words)
