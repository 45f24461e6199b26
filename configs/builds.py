"""Whether the options of a build go together: what is learned, its size, and what only one kind of vocabulary has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from configs.layers import Layer, Tables

_LEAST_IDS = {"bpe": 7200, "sentencepiece-bpe": 320, "sentencepiece-unigram": 320}
"""The ids that are not learned: those of the vocabulary files; control tokens and bytes."""

_ONLY_BPE = ("superwords_after", "max_token_bytes")


def check_build(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every option that the kind of vocabulary does not have, and for a size that cannot be enough.

    Args:
        tables: The merged tables; values of a wrong type are passed over, they were told about.
        layers: The layers that were merged, for the places to name.
    """
    build = tables.get("build", {})
    kind, vocab_size = build.get("kind", "bpe"), build.get("vocab_size")
    if kind not in _LEAST_IDS or tables.get("run", {}).get("tokenizer") is not None:
        return
    least = _LEAST_IDS[kind]
    if isinstance(vocab_size, int) and 0 < vocab_size < least:
        place = _place(layers, "vocab_size")
        yield f"{place}: not allowed; a vocabulary of the kind {kind} has {least:,} ids before any is learned"
    if kind != "bpe":
        for key in _ONLY_BPE:
            if build.get(key) is not None:
                yield f"{_place(layers, key)}: a vocabulary of the kind {kind} has no such option; leave it out"


def _place(layers: Sequence[Layer], key: str) -> str:
    layer = next(layer for layer in reversed(layers) if key in layer.table("build"))
    return layer.place("build", key)
