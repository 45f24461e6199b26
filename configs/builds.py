"""Whether the options of a build fit together: the kind of vocabulary, its size, and what only one kind has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from configs.layers import Layer, Tables, place_of

_LEAST_IDS = {"bpe": 7200, "sentencepiece-bpe": 320, "sentencepiece-unigram": 320}
"""The number of ids that are not learned: those of the vocabulary files, or control tokens and bytes."""

_ONLY_BPE = ("superwords_after", "max_token_bytes")


def check_build(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every option that the kind of vocabulary does not have, and for a size that is too small.

    Args:
        tables: The merged tables; values of a wrong type are passed over, as they were reported.
        layers: The layers that were merged, for the places to name.
    """
    build = tables.get("build", {})
    kind, vocab_size = build.get("kind", "bpe"), build.get("vocab_size")
    if kind not in _LEAST_IDS or tables.get("run", {}).get("tokenizer") is not None:
        return
    least = _LEAST_IDS[kind]
    if isinstance(vocab_size, int) and 0 < vocab_size < least:
        place = place_of(layers, "build", "vocab_size")
        yield f"{place}: not allowed; a vocabulary of the kind {kind} has {least:,} ids before any is learned"
    if kind != "bpe":
        for key in _ONLY_BPE:
            if build.get(key) is not None:
                place = place_of(layers, "build", key)
                yield f"{place}: a vocabulary of the kind {kind} has no such option; leave it out"
