"""What drift counts of one token shard: its ids, and the namespaces and families of names in its documents.

The counts stay in `.cache/drift`, named by the token shard's digest alone, and the next version shares them. So a
version counts only the shards that are new, and the counts of a shard that is gone can be taken away from totals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.tables import NAME_COUNTS, required
from schemas.units import RECEIPT_FOLDERS, Stage, Unit, UnitReceipt, unit_key, unit_receipt_path
from transforms.scan.count import read_documents
from transforms.storage.folder import OutputFolder
from transforms.tokens.usage import Counts, count_ids
from transforms.units.flow import AT_ONCE
from transforms.units.parts import write_rows

PART_IDS = pa.schema([required("id", pa.uint32()), required("count", pa.int64())])
"""The ids that a shard has, in order."""

PART_NAMES = NAME_COUNTS.append(required("names", pa.int64()))
"""The names in a shard; `names` is the most different names of a family in one document, 0 for namespaces."""

NAMESPACE, FAMILY = "namespace", "family"
"""Kinds of names: `nng` in `nng::open`; `nng_http_` in `nng_http_client_alloc`."""

_FOLDER = RECEIPT_FOLDERS[Stage.DRIFT]
_COUNTED = "drift-1"
"""Stands for the version of what is counted; the native core's would part a version from the one before an upgrade."""

_SCANNER = json.dumps({"pattern": "cpp-words-1", "families": True})


@dataclass(frozen=True, kw_only=True)
class DriftSettings:
    """What a worker needs to count token shards.

    Attributes:
        out: The output folder.
        vocab_size: Number of ids.
        threads: Threads of a process.
        memory_bytes: What the tables of words in a process may take; more goes to temporary files.
    """

    out: OutputFolder
    vocab_size: int
    threads: int = 1
    memory_bytes: int


def plan_parts(tokens: Iterable[UnitReceipt]) -> list[Unit]:
    """Return one unit per token shard, from the receipts of the shards."""
    units = []
    for receipt in tokens:
        shard, documents = receipt.outputs[0], next(iter(receipt.inputs))
        payload = {"shard": shard.path, "documents": documents, "inputs": {shard.path: shard.sha256, **receipt.inputs}}
        num_bytes = receipt.totals["bytes"]
        units.append(
            Unit(stage=Stage.DRIFT, key=part_key(shard.sha256), num_bytes=num_bytes, label=shard.path, payload=payload)
        )
    return units


def part_key(sha256: str) -> str:
    """Return the key of a token shard's counts: what they depend on is its content."""
    return unit_key(Stage.DRIFT, core_version=_COUNTED, config={}, inputs=sha256)


def count_part(unit: Unit, settings: DriftSettings) -> UnitReceipt:
    """Count a token shard and its documents, publish the counts, and return their receipt.

    Args:
        unit: Its payload names both shards: `{"shard", "documents", "inputs": {path: SHA-256}}`.
        settings: Vocabulary size, threads and memory.

    Raises:
        IntegrityError: If one of them is damaged.
    """
    out = settings.out
    out.check_bytes(unit.payload["inputs"])
    ids = count_ids(out, unit.payload["shard"], settings.vocab_size)
    names = _count_names(unit.payload["documents"], settings)
    outputs = (
        out.publish(_ids_path(unit.key), partial(write_rows, table=_sparse(ids))),
        out.publish(_names_path(unit.key), partial(write_rows, table=names)),
    )
    return UnitReceipt(stage=Stage.DRIFT, key=unit.key, outputs=outputs, totals={}, inputs=unit.payload["inputs"])


def _count_names(documents: str, settings: DriftSettings) -> pa.Table:
    out = settings.out
    memory_bytes = settings.memory_bytes // AT_ONCE
    scanner = cppmill_core.Scanner(_SCANNER, settings.threads, memory_bytes=memory_bytes, spill_dir=out.temporary)
    with out.open_local(documents) as shard:
        for batch in read_documents([shard], read_ahead=settings.threads > 1):
            scanner.add(batch)
    counts = scanner.finish()
    families, namespaces = (pa.Table.from_batches([counts[kind]]) for kind in ("families", "namespaces"))
    grouped = namespaces.group_by("namespace", use_threads=False).aggregate([("hits", "sum"), ("documents", "sum")])
    grouped = grouped.rename_columns(["namespace", "hits", "documents"]).append_column(
        "names", pa.repeat(0, grouped.num_rows)
    )
    tables = [_rows(FAMILY, families), _rows(NAMESPACE, grouped)]
    return pa.concat_tables(tables).sort_by([("kind", "ascending"), ("name", "ascending")])


def _rows(kind: str, counts: pa.Table) -> pa.Table:
    """Return counts, whose first column is the name, as rows of `PART_NAMES`."""
    return pa.table([pa.repeat(kind, counts.num_rows), *counts.columns], names=PART_NAMES.names).cast(PART_NAMES)


def _sparse(counts: Counts) -> pa.Table:
    """Return the ids that occur, with their counts."""
    ids = np.flatnonzero(counts)
    return pa.table([pa.array(ids.astype(np.uint32)), pa.array(counts[ids])], schema=PART_IDS)


def remove_damaged_parts(out: OutputFolder, units: Iterable[Unit]) -> None:
    """Remove counts that are not those that their receipts name, read or not before, so that their units run again."""

    def check(unit: Unit) -> None:
        try:
            receipt = out.find_receipt(unit)
            out.check_bytes({} if receipt is None else receipt.files)
        except IntegrityError:
            for name in _files(unit.key):
                out.remove(name)

    out.each(check, units)


def check_parts(out: OutputFolder, shards: Iterable[str]) -> None:
    """Check that the counts of token shards, by their SHA-256, are kept, and are those that their receipts name.

    Raises:
        IntegrityError: If some are not.
    """

    def check(sha256: str) -> None:
        unit = Unit(stage=Stage.DRIFT, key=part_key(sha256), num_bytes=0, label=sha256, payload={})
        receipt = out.find_receipt(unit)
        if receipt is None:
            raise IntegrityError(f"{out.where(unit.receipt_path)}: missing, or not the receipt of the counts beside it")
        out.check_bytes(receipt.files)

    out.each(check, shards)


def add_ids(out: OutputFolder, shards: Iterable[str], vocab_size: int) -> Counts:
    """Return the sum of the ids of token shards by their SHA-256."""
    total = np.zeros(vocab_size, np.int64)
    for ids, counts in out.each(partial(_read_ids, out), shards):
        total[ids] += counts
    return total


def open_names(out: OutputFolder, sha256: str) -> Callable[[], AbstractContextManager[pa.NativeFile]]:
    """Return what opens the file of names of a token shard."""
    return partial(out.open_ranges, _names_path(part_key(sha256)))


def remove_other_parts(out: OutputFolder, units: Iterable[Unit]) -> None:
    """Remove the counts of all shards but those of some units, which a version got from the one before."""
    kept = {name for unit in units for name in _files(unit.key)}
    for name in out.files(_FOLDER):
        if name not in kept:
            out.remove(name)


def _files(key: str) -> tuple[str, ...]:
    return _ids_path(key), _names_path(key), unit_receipt_path(Stage.DRIFT, key)


def _ids_path(key: str) -> str:
    return f"{_FOLDER}/ids-{key}.parquet"


def _names_path(key: str) -> str:
    return f"{_FOLDER}/names-{key}.parquet"


def _read_ids(out: OutputFolder, sha256: str) -> tuple[Counts, Counts]:
    with out.open_ranges(_ids_path(part_key(sha256))) as source:
        table = pq.read_table(source, schema=PART_IDS)
    return table["id"].to_numpy(), table["count"].to_numpy()
