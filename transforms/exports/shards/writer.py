"""Writing one file of a split, or a Megatron pair, from the token shards that hold its stretch of the stream.

A `.bin` shard has exactly its stretch: a document may begin in one file and end in the next, as with llm.c. A pair has
the documents that begin in its stretch, whole. Each file is read back before it gets its name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.digests import add_digests
from schemas.errors import IntegrityError
from schemas.export_options import ShardOptions
from schemas.resources import naming_file
from schemas.units import OutputFile, Stage, Unit, UnitReceipt
from transforms.exports.shards.formats import (
    BIN_HEADER_BYTES,
    WrittenIds,
    hash_ids,
    megatron_type,
    read_bin,
    read_index,
    write_bin,
    write_ids,
    write_index,
)
from transforms.exports.shards.platforms import ENDING, CollectedPlatforms
from transforms.exports.shards.splits import Split
from transforms.exports.shards.streams import Borders, StreamSettings, Stretch, read_stretches
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenIds, TokenShard, open_token_shard, sum_row_digests
from transforms.units.prefetch import prefetch


@dataclass(frozen=True, kw_only=True)
class ShardSettings:
    """What a worker needs to write training shards.

    Attributes:
        out: The folder of the export.
        run: The folder of the run.
        options: Format, split, borders and names.
        borders: The ids around the text of a document.
        vocab_size: Number of ids of the tokenizer.
        threads: Threads of the native core.
    """

    out: OutputFolder
    run: OutputFolder
    options: ShardOptions
    borders: Borders
    vocab_size: int
    threads: int = 1


@dataclass
class DocumentTotals:
    """Totals of the documents that begin in a stretch, added up as they are written.

    `platforms` are those of all documents of the file, also of one that began before it.
    """

    threads: int
    documents: int = 0
    num_bytes: int = 0
    tokens: int = 0
    digest: str = field(default_factory=lambda: add_digests([]))
    lengths: list[npt.NDArray[np.int64]] = field(default_factory=list)
    platforms: CollectedPlatforms = field(default_factory=CollectedPlatforms)

    def add(self, stretch: Stretch, chosen: npt.NDArray[np.bool_]) -> None:
        """Count the chosen documents of a stretch, with the row digests that the dataset's digest sums."""
        rows = stretch.rows.filter(chosen)
        self.documents += rows.num_rows
        self.num_bytes += int(rows.column("num_bytes").to_numpy().sum())
        self.lengths.append(stretch.lengths[chosen])
        self.tokens += int(self.lengths[-1].sum())
        self.digest = add_digests([self.digest, sum_row_digests(rows, threads=self.threads)])


def write_shard(unit: Unit, settings: ShardSettings) -> UnitReceipt:
    """Write a file of a split, read it back, and publish it and its receipt.

    Args:
        unit: Its payload: `split`, `index`, `begin` and `end` of the stretch, and `parts`, the token shards that it
            lies in, each {shard, place}.
        settings: What to write.

    Raises:
        IntegrityError: If a token shard is not the receipt's, the counts of the plan do not hold, or what is read back
            is not what was written.
    """
    counted = DocumentTotals(settings.threads)
    write = _write_bin if settings.options.format == "bin" else _write_pair
    outputs, written = write(unit.payload, settings, counted)
    totals = {
        "split": unit.payload["split"],
        "documents": counted.documents,
        "bytes": counted.num_bytes,
        "tokens": written.tokens,
        "ids_sha256": written.sha256,
        "dataset_digest": counted.digest,
    }
    inputs = {part["shard"]["path"]: part["shard"]["sha256"] for part in unit.payload["parts"]}
    return UnitReceipt(stage=Stage.SHARDS, key=unit.key, outputs=outputs, totals=totals, inputs=inputs)


def file_name(options: ShardOptions, split: Split, index: int) -> str:
    """Return the name of a file of a split, relative to the export, without its ending: what loaders glob."""
    return f"shards/{options.name}_{split}_{index:06d}"


def _write_bin(
    plan: dict[str, Any], settings: ShardSettings, counted: DocumentTotals
) -> tuple[tuple[OutputFile, ...], WrittenIds]:
    results: list[WrittenIds] = []

    def write(path: Path) -> int:
        written = write_bin(path, _cut(plan, settings, counted), tokens=plan["end"] - plan["begin"])
        read_bin(path)
        _check_read_back(path, written, skip=BIN_HEADER_BYTES)
        results.append(written)
        return counted.documents

    name = file_name(settings.options, plan["split"], plan["index"])
    published = [settings.out.publish(f"{name}.bin", write)]
    return (*published, *_publish_platforms(name, settings, counted, results[0])), results[0]


def _publish_platforms(
    name: str, settings: ShardSettings, counted: DocumentTotals, written: WrittenIds
) -> list[OutputFile]:
    """Publish the platforms of a file's documents, if they are asked for."""
    if not settings.options.platform_ids:
        return []
    return [settings.out.publish(f"{name}{ENDING}", lambda path: counted.platforms.write(path, tokens=written.tokens))]


def _write_pair(
    plan: dict[str, Any], settings: ShardSettings, counted: DocumentTotals
) -> tuple[tuple[OutputFile, ...], WrittenIds]:
    """Write a pair, or nothing if no document begins in the stretch: one that fills it began before."""
    out, kind = settings.out, megatron_type(settings.vocab_size)
    name = file_name(settings.options, plan["split"], plan["index"])
    with tempfile.TemporaryDirectory(dir=out.temporary) as folder:
        ids, index = Path(folder) / "ids", Path(folder) / "index"
        with naming_file(out.where(f"{name}.bin"), ids):
            written = write_ids(ids, _whole(plan, settings, counted), kind=kind)
        _check_read_back(ids, written, skip=0)
        if not counted.documents:
            return (), written
        with naming_file(out.where(f"{name}.idx"), index):
            write_index(index, np.concatenate(counted.lengths), kind=kind)
        if int(read_index(index).lengths.sum(dtype=np.int64)) != written.tokens:
            raise IntegrityError(f"{out.where(name)}.idx: its lengths differ when read back; run again")
        published = [
            out.adopt(f"{name}.{ending}", path, rows=counted.documents)
            for ending, path in (("bin", ids), ("idx", index))
        ]
        return (*published, *_publish_platforms(name, settings, counted, written)), written


def _check_read_back(path: Path, written: WrittenIds, *, skip: int) -> None:
    found = hash_ids(path, skip=skip)
    if found != written.sha256:
        raise IntegrityError(
            f"{path}: its ids have SHA-256 {found} when read back, but were written as "
            f"{written.sha256}; is the disk faulty? Export again"
        )


def _cut(plan: dict[str, Any], settings: ShardSettings, counted: DocumentTotals) -> Iterator[TokenIds]:
    """Yield exactly the ids of the stretch; documents count where they begin."""
    for stretch in prefetch(_stretches(plan, settings)):
        counted.add(stretch, _begins_within(stretch, plan))
        counted.platforms.add(np.maximum(stretch.starts - plan["begin"], 0), stretch.rows)
        yield stretch.ids[max(plan["begin"] - stretch.begin, 0) : plan["end"] - stretch.begin]


def _whole(plan: dict[str, Any], settings: ShardSettings, counted: DocumentTotals) -> Iterator[TokenIds]:
    """Yield the ids of the documents that begin in the stretch."""
    for stretch in prefetch(_stretches(plan, settings)):
        chosen = _begins_within(stretch, plan)
        lengths = stretch.lengths[chosen]
        counted.platforms.add(counted.tokens + np.cumsum(lengths) - lengths, stretch.rows.filter(chosen))
        counted.add(stretch, chosen)
        yield stretch.ids[np.repeat(chosen, stretch.lengths)]


def _begins_within(stretch: Stretch, plan: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Return which documents begin in the stretch of the plan."""
    begins: npt.NDArray[np.bool_] = (stretch.starts >= plan["begin"]) & (stretch.starts < plan["end"])
    return begins


def _stretches(plan: dict[str, Any], settings: ShardSettings) -> Iterator[Stretch]:
    options = settings.options
    stream = StreamSettings(
        split=plan["split"],
        split_by=options.split_by,
        validation_fraction=options.validation_fraction,
        borders=settings.borders,
    )
    for part in plan["parts"]:
        shard = TokenShard(**part["shard"])
        with open_token_shard(settings.run, shard) as file:
            yield from read_stretches(
                file,
                stream,
                place=part["place"],
                begin=plan["begin"],
                end=plan["end"],
                where=settings.run.where(shard.path),
            )
