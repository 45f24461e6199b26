"""Checks of written training shards by themselves: whether headers, indices, ids and unit receipts fit together.

Whether the ids are those of a run is not looked at here: for this the files are made again from the run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from cppmill_core.platforms.documents import DocumentPlatforms

from schemas.errors import IntegrityError
from schemas.export_options import ShardOptions
from schemas.units import UnitReceipt
from transforms.exports.shards.formats import BIN_HEADER_BYTES, hash_ids, megatron_type, read_bin, read_index
from transforms.exports.shards.platforms import ENDING
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenIds

_CHUNK = 1 << 22


@dataclass(frozen=True, kw_only=True)
class ShardFacts:
    """What the manifest says of all training shards of an export.

    Attributes:
        out: The folder of the export.
        options: Its options.
        vocab_size: Number of ids of the tokenizer.
        platforms: Number of platform ids, padding included; 0 if the export has none.
    """

    out: OutputFolder
    options: ShardOptions
    vocab_size: int
    platforms: int


def check_files(receipts: Sequence[UnitReceipt], facts: ShardFacts) -> None:
    """Check that the files of all units are numbered from 0 in each split, and full but for the last.

    Args:
        receipts: The unit receipts, of which `check_facts` found nothing.
        facts: What the manifest says.

    Raises:
        IntegrityError: At the first contradiction, naming the file.
    """
    options, places = facts.options, dict[str, list[tuple[int, UnitReceipt]]]()
    endings = [".bin", *([".idx"] if options.format == "megatron" else []), *([ENDING] if facts.platforms else [])]
    for receipt in receipts:
        split = receipt.totals["split"]
        found = re.fullmatch(rf"shards/{re.escape(options.name)}_{split}_(\d{{6,}})\.bin", _first_path(receipt))
        paths = [output.path for output in receipt.outputs]
        stem = _first_path(receipt).removesuffix(".bin")
        if paths and (found is None or paths != [f"{stem}{ending}" for ending in endings]):
            raise IntegrityError(f"{facts.out.where(receipt.path)}: its files are {', '.join(paths)}")
        if found is not None:
            places.setdefault(split, []).append((int(found[1]), receipt))
    for split, files in places.items():
        _check_row(split, sorted(files, key=lambda file: file[0]), facts)


def _first_path(receipt: UnitReceipt) -> str:
    return receipt.outputs[0].path if receipt.outputs else ""


def _check_row(split: str, files: Sequence[tuple[int, UnitReceipt]], facts: ShardFacts) -> None:
    """Check the numbers and sizes of the files of a split, in order; of pairs some may have no document."""
    numbers = [number for number, _ in files]
    where = f"{facts.out.where('shards')}: the files of {split}"
    if len(set(numbers)) < len(numbers) or (facts.options.format == "bin" and numbers != list(range(len(numbers)))):
        raise IntegrityError(f"{where} have the numbers {numbers}")
    if facts.options.format == "bin":
        sizes = [receipt.totals["tokens"] for _, receipt in files]
        full = facts.options.shard_tokens
        if any(size != full for size in sizes[:-1]) or not 0 < sizes[-1] <= full:
            raise IntegrityError(f"{where} have {sizes} tokens, and the options say {full:,} per file")


def check_unit(receipt: UnitReceipt, facts: ShardFacts) -> None:
    """Check the files of a unit against its receipt and the manifest.

    Raises:
        IntegrityError: At the first contradiction, naming the file.
        CorruptDataError: If a file of platforms is none.
    """
    if not receipt.outputs:
        if receipt.totals["tokens"] or receipt.totals["documents"]:
            raise IntegrityError(f"{facts.out.where(receipt.path)}: it has tokens, and no file")
        return
    with ExitStack() as stack:
        paths = {
            PurePosixPath(output.path).suffix: stack.enter_context(facts.out.open_local(output.path))
            for output in receipt.outputs
        }
        where = facts.out.where(receipt.outputs[0].path)
        skip = BIN_HEADER_BYTES if facts.options.format == "bin" else 0
        kind = megatron_type(facts.vocab_size)
        ids = read_bin(paths[".bin"]) if skip else np.memmap(paths[".bin"], dtype=kind, mode="r")
        _check_ids(ids, receipt, facts, where=where)
        if hash_ids(paths[".bin"], skip=skip) != receipt.totals["ids_sha256"]:
            raise IntegrityError(f"{where}: its ids have another SHA-256 than its unit receipt says")
        starts = None if skip else _check_index(paths[".idx"], ids, receipt, kind=kind)
        _check_borders(ids, starts, receipt, facts, where=where)
        _check_platforms(paths, starts, receipt, facts)


def _check_ids(ids: TokenIds, receipt: UnitReceipt, facts: ShardFacts, *, where: str) -> None:
    documents = receipt.totals["documents"]
    rows = {output.rows for output in receipt.outputs if not output.path.endswith(ENDING)}
    if len(ids) != receipt.totals["tokens"] or rows != {documents}:
        said = f"{receipt.totals['tokens']} and {documents}"
        raise IntegrityError(f"{where}: it has {len(ids)} tokens and {rows} documents, its unit receipt says {said}")
    largest = int(ids.max(initial=0))
    if largest >= facts.vocab_size:
        raise IntegrityError(f"{where}: it has the id {largest}, and the vocabulary {facts.vocab_size} ids")


def _check_index(path: Path, ids: TokenIds, receipt: UnitReceipt, *, kind: str) -> TokenIds:
    """Check the `.idx` of a pair, and return where its documents start, in tokens."""
    index = read_index(path)
    lengths = index.lengths.astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    right = (
        index.kind == kind
        and len(lengths) == receipt.totals["documents"]
        and lengths.min(initial=1) > 0
        and lengths.sum() == len(ids)
        and np.array_equal(index.pointers, starts * np.dtype(kind).itemsize)
        and np.array_equal(index.documents, np.arange(len(lengths) + 1))
    )
    if not right:
        raise IntegrityError(f"{path}: type, lengths, places or documents are not those of its .bin")
    return starts.astype(np.uint64)


def _check_borders(
    ids: TokenIds, starts: TokenIds | None, receipt: UnitReceipt, facts: ShardFacts, *, where: str
) -> None:
    """Check that BOS begins each document, and is nowhere else, where the options put it there.

    Which id it is only the tokenizer says: the first one of pairs, and of the first shard of a split; of the others one
    that occurs once per document.
    """
    if facts.options.bos != "document" or not receipt.totals["documents"]:
        return
    if starts is not None:
        right = np.count_nonzero(ids == ids[0]) == len(starts) and bool((ids[starts] == ids[0]).all())
    else:
        chunks = (ids[at : at + _CHUNK] for at in range(0, len(ids), _CHUNK))
        counts = sum((np.bincount(chunk, minlength=facts.vocab_size) for chunk in chunks), np.zeros(1, np.int64))
        found = counts[[ids[0]]] if where.endswith("_000000.bin") else counts
        right = bool((found == receipt.totals["documents"]).any())
    if not right:
        raise IntegrityError(f"{where}: no id begins each of its {receipt.totals['documents']} documents")


def _check_platforms(
    paths: Mapping[str, Path], starts: TokenIds | None, receipt: UnitReceipt, facts: ShardFacts
) -> None:
    if ENDING not in paths:
        return
    platforms = DocumentPlatforms.load(paths[ENDING])
    number, documents = len(platforms.starts), receipt.totals["documents"]
    ids, places = platforms.ids.values, platforms.starts
    (rows,) = (output.rows for output in receipt.outputs if output.path.endswith(ENDING))
    right = (
        platforms.tokens == receipt.totals["tokens"]
        and number == rows
        and number - documents in ((0,) if starts is not None else (0, 1))
        and (starts is None or np.array_equal(places.astype(np.uint64), starts))
        and bool((np.diff(places) > 0).all())
        and 0 <= places.min(initial=0) <= places.max(initial=0) < max(platforms.tokens, 1)
        and int(ids.max(initial=0)) < facts.platforms
        and int(ids.min(initial=1)) > 0
    )
    if not right:
        raise IntegrityError(f"{paths[ENDING]}: tokens, places or ids are not those of its .bin and its platforms")
