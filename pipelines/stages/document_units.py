"""Units of the stages whose unit is a documents shard, and whether there is any document for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import cppmill_core

from pipelines.stages.session import Session
from schemas.errors import NothingKeptError
from schemas.ledger import Ledger
from schemas.reasons import Filtered
from schemas.units import DOCUMENTS_PREFIX, REJECTS_PREFIX, OutputFile, Stage, Unit, UnitReceipt, unit_key


def document_shards(documents: Sequence[UnitReceipt]) -> list[OutputFile]:
    """Return the documents shards, not the rejects, among the outputs of ingest units."""
    return [output for receipt in documents for output in receipt.outputs if output.path.startswith(DOCUMENTS_PREFIX)]


def content_bytes(documents: Sequence[UnitReceipt]) -> dict[str, int]:
    """Return the bytes of content in each documents shard, for progress: a unit's bytes, shared out by file size."""
    sizes = {}
    for receipt in documents:
        shards = document_shards([receipt])
        written = sum(shard.num_bytes for shard in shards)
        for shard in shards:
            sizes[shard.path] = receipt.totals["bytes"] * shard.num_bytes // written
    return sizes


def plan_shards(stage: Stage, documents: Sequence[UnitReceipt], *, config: dict[str, Any]) -> list[Unit]:
    """Return one unit a documents shard, keyed by the shard's bytes and the stage's configuration.

    Shards with equal bytes (one source given twice, duplicates kept) differ by an occurrence number, so that
    each has an output.

    Args:
        stage: The stage that runs the units.
        documents: Receipts of ingest units.
        config: What else decides the output, JSON values.
    """
    seen: Counter[str] = Counter()
    sizes = content_bytes(documents)
    units = []
    for shard in document_shards(documents):
        inputs = [shard.sha256, *([seen[shard.sha256]] if seen[shard.sha256] else [])]
        seen[shard.sha256] += 1
        key = unit_key(stage, core_version=cppmill_core.__version__, config=config, inputs=inputs)
        payload = {"shard": shard.path, "inputs": {shard.path: shard.sha256}}
        units.append(Unit(stage=stage, key=key, num_bytes=sizes[shard.path], label=shard.path, payload=payload))
    return units


def check_kept(session: Session, receipts: Sequence[UnitReceipt]) -> None:
    """Raise NothingKeptError if no document is kept: there is nothing to build from or to tokenize."""
    ledger = Ledger.sum(Ledger.from_json(receipt.ledger, where=receipt.path) for receipt in receipts).documents
    if ledger.kept:
        return
    reasons = [(f"{column}[{reason}]" if reason else str(column), n) for column, reason, n in ledger.entries() if n]
    shown = ", ".join(f"{name} {number:,}" for name, number in reasons) or "it has none"
    most = max(ledger.filtered, key=lambda reason: ledger.filtered[reason], default=None)
    ways = "--extensions names those to take" if most == Filtered.EXTENSION else "docs/how-to/filters.md"
    rejects = session.out.where(f"{REJECTS_PREFIX}*.parquet")
    raise NothingKeptError(
        f"{_of_sources(session)}: none of {ledger.total:,} documents is kept: {shown}; {rejects} names each ({ways})"
    )


def _of_sources(session: Session) -> str:
    """Return the sources of the documents as a message begins with them; OUT if the command has none."""
    sources = session.config.sources
    return f"SOURCE {', '.join(sources)}" if sources else str(session.out.root)
