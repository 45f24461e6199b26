"""The tokenizers of a trial: opened, named by digest, and held to giving every held-out document back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.tokenizers.compare import named_places
from pipelines.tokenizers.places import local_tokenizer
from pipelines.trial.texts import TrialText, batches
from schemas.errors import ConfigError
from tokenizer_build.compare.candidates import (
    CandidateTokenizer,
    TokenLists,
    open_candidate,
    set_rayon_threads,
    tokenizer_digest,
)
from tokenizer_build.compare.comparison import Counts, token_lengths

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TrialEntrant:
    """A tokenizer of a trial.

    Attributes:
        name: For tables.
        digest: Of the tokenizer.
        candidate: What encodes.
        lengths: Bytes by id.
        held_out: The ids of the held-out documents, each after the id `boundary`.
    """

    name: str
    digest: str
    candidate: CandidateTokenizer
    lengths: Counts
    held_out: Ids

    @property
    def boundary(self) -> int:
        """The id that begins every document: one more than the tokenizer has, so all tokenizers are treated alike."""
        return self.candidate.vocab_size

    @property
    def held_out_tokens(self) -> int:
        """Tokens of the held-out documents, without those that begin them."""
        return int((self.held_out != self.boundary).sum())

    def to_json(self) -> dict[str, Any]:
        """Return what records say of the tokenizer."""
        return {
            "name": self.name,
            "digest": self.digest,
            "vocab_size": self.candidate.vocab_size,
            "library": self.candidate.library,
        }


def open_entrants(
    tokenizers: Sequence[str], held_out: TrialText, *, pattern: str | None, threads: int
) -> list[TrialEntrant]:
    """Open tokenizers.

    Args:
        tokenizers: Paths or URLs, each as `NAME=PATH` if it is to have a name.
        held_out: The held-out documents.
        pattern: The pattern of files of ranks.
        threads: How many threads encode.

    Raises:
        ConfigError: If something is not a tokenizer, two have one name, or one loses a document.
    """
    set_rayon_threads(threads)
    found = []
    for name, place in named_places(tokenizers):
        path = local_tokenizer(place, argument="TOKENIZER")
        candidate = open_candidate(path, pattern=pattern)
        found.append(
            TrialEntrant(
                name=name,
                digest=tokenizer_digest(path, pattern=pattern),
                candidate=candidate,
                lengths=np.append(token_lengths(candidate.token_bytes()), 0),
                held_out=_encode_checked(name, candidate, held_out, threads),
            )
        )
    return found


def encode(candidate: CandidateTokenizer, contents: Sequence[bytes], threads: int) -> Ids:
    """Return the ids of documents, each after the id that begins a document."""
    return _begun(candidate, candidate.encoder(pa.array(contents, pa.binary()), threads)()())


def _encode_checked(name: str, candidate: CandidateTokenizer, text: TrialText, threads: int) -> Ids:
    parts = []
    for contents in batches(list(text.contents.values())):
        documents = pa.array(contents, pa.binary())
        lists = candidate.encoder(documents, threads)()()
        same = pc.equal(documents.cast(pa.large_binary()), candidate.decode(lists, threads).cast(pa.large_binary()))
        lost = len(contents) - int(np.count_nonzero(same.to_numpy(zero_copy_only=False)))
        if lost:
            raise ConfigError(
                f"TOKENIZER {name}: {lost:,} of {len(contents):,} held-out documents do not decode to themselves, so "
                "its bits per byte would be those of another text; leave it out"
            )
        parts.append(_begun(candidate, lists))
    return np.concatenate(parts)


def _begun(candidate: CandidateTokenizer, lists: TokenLists) -> Ids:
    return np.insert(lists.ids.astype(np.int64), lists.offsets[:-1], candidate.vocab_size)
