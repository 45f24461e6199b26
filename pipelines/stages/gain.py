"""What another tokenizer could gain on new text, where a run keeps the one in OUT: measured, cheaply, without building.

Two things are measured: how well the new text compresses beside the text that the tokenizer was built from, and which
identifiers of it take most tokens. The compression that ids for these identifiers would give is arithmetic on their
counts; only a rebuild tells what a rebuild gains.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import cppmill_core
import pyarrow.compute as pc

from pipelines.stages.document_units import content_bytes, document_shards
from pipelines.stages.session import Session
from pipelines.stages.standing import scanned_shards
from pipelines.stages.tokenize import tokenize_settings
from schemas.options import MEBIBYTE
from schemas.units import UnitReceipt
from tokenizer_build.proposals import count_identifiers
from transforms.scan.count import read_documents
from transforms.tokens.tokenizer import open_tokenizer

LOOKED_AT_BYTES = 64 * MEBIBYTE
"""Names are looked for in this much of the new text at most."""

NAMES = 200
"""How many names the estimate gives an id of their own."""

_SHOWN = 5
_LEAST_TOKENS = 3
"""A name of two tokens is a word and its ending, no gap in the vocabulary."""


@dataclass(frozen=True)
class Text:
    """Some documents: bytes and tokens."""

    num_bytes: int
    tokens: int

    @property
    def bytes_per_token(self) -> float:
        """The compression."""
        return self.num_bytes / self.tokens if self.tokens else 0.0


@dataclass(frozen=True)
class CostlyName:
    """An identifier that takes several tokens: how many, and how often it occurs."""

    name: str
    tokens: int
    hits: int

    @property
    def saved(self) -> int:
        """The tokens that an id of its own would save."""
        return self.hits * (self.tokens - 1)


def describe_gain(session: Session, documents: Sequence[UnitReceipt], tokens: Sequence[UnitReceipt]) -> Iterator[str]:
    """Yield what another tokenizer could gain on the documents that OUT's was not built from; nothing without any.

    Args:
        session: The session, with the tokens in OUT.
        documents: Receipts of the ingest units.
        tokens: Receipts of the token shards.
    """
    scanned = scanned_shards(session)
    is_new = {receipt.path: not scanned.issuperset(receipt.inputs.values()) for receipt in tokens}
    new = _sum(receipt for receipt in tokens if is_new[receipt.path])
    known = _sum(receipt for receipt in tokens if not is_new[receipt.path])
    if not new.tokens:
        return
    rest = f"; the rest has {known.bytes_per_token:.3f}" if known.tokens else ""
    measured = f"{new.bytes_per_token:.3f} bytes per token on {new.num_bytes:,} bytes"
    yield f"new text  {measured} that the tokenizer was not built from{rest}"
    sizes = content_bytes(documents)
    shards = [shard.path for shard in document_shards(documents) if shard.sha256 not in scanned]
    looked_at, names = _costly_names(session, _first(shards, sizes))
    saved = sum(name.saved for name in names)
    share = min(1.0, looked_at / new.num_bytes) if new.num_bytes else 1.0
    after = new.tokens * share - saved
    if names and after > 0:
        most = ", ".join(f"{name.name} ({name.tokens} tokens, {name.hits:,} times)" for name in names[:_SHOWN])
        yield (
            f"no id     {len(names):,} names take 3 tokens or more each in {looked_at:,} bytes of the new text: {most}"
        )
        gain = new.tokens * share / after
        yield (
            f"rebuild   with an id for each of these names: {new.bytes_per_token * gain:.3f} bytes per token of the "
            f"new text (+{gain - 1:.1%}), computed from how often they occur. Only a run with --rebuild-tokenizer "
            "measures what a rebuild gives; it moves learned ids"
        )


def _sum(receipts: Iterable[UnitReceipt]) -> Text:
    found = list(receipts)
    return Text(*(sum(int(receipt.totals[name]) for receipt in found) for name in ("bytes", "tokens")))


def _first(shards: Sequence[str], sizes: dict[str, int]) -> list[str]:
    """Return the first shards with text of `LOOKED_AT_BYTES` at most, and one at least."""
    taken, total = list[str](), 0
    for shard in shards:
        total += sizes[shard]
        if taken and total > LOOKED_AT_BYTES:
            break
        taken.append(shard)
    return taken


def _costly_names(session: Session, shards: Sequence[str]) -> tuple[int, list[CostlyName]]:
    """Return the bytes of text in shards, and the names in them that take most tokens, the costliest first."""
    options = session.config.options
    scanner = cppmill_core.Scanner(
        json.dumps({"pattern": options.scan.pattern}),
        session.config.threads,
        memory_bytes=session.config.memory_bytes,
        spill_dir=session.out.temporary,
    )
    for name in shards:
        with session.out.open_local(name) as shard:
            for batch in read_documents([shard], read_ahead=False):
                scanner.add(batch)
    counts = scanner.finish()
    hits = count_identifiers(counts["words"])
    names = sorted(name for name, times in hits.items() if times >= max(1, options.build.min_hits))
    tokenizer = open_tokenizer(tokenize_settings(session))
    counted = pc.list_value_length(tokenizer.encode_batch(names, threads=session.config.threads)).to_pylist()
    costly = [
        CostlyName(name.decode(), tokens, hits[name])
        for name, tokens in zip(names, counted, strict=True)
        if tokens >= _LEAST_TOKENS
    ]
    statistics = dict(zip(*counts["statistics"].to_pydict().values(), strict=True))
    return statistics["bytes"], sorted(costly, key=lambda name: (-name.saved, name.name))[:NAMES]
