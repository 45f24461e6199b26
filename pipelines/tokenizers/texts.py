"""Documents to measure on: a run's, or sources read as ingest reads them, in batches of a few megabytes.

Nothing is written. Sources are filtered as ingest does by default, and of documents with equal bytes the first is
taken; what is left out is counted by reason.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import ConfigError
from schemas.logs import module_logger
from schemas.options import IngestOptions
from schemas.places import OUTPUT_PACKAGES, is_remote
from schemas.reasons import Column
from transforms.filters.verdicts import make_content_filter
from transforms.ingest.input_units import plan_inputs
from transforms.records.in_toto import products
from transforms.records.receipts import RECEIPT, check_named, find_intact_receipt
from transforms.records.versions import find_run
from transforms.sources.document import Document, in_sample
from transforms.sources.globs import is_glob
from transforms.sources.listing import list_inputs
from transforms.sources.readers import read_documents
from transforms.storage.folder import OutputFolder, naming_damage

logger = module_logger(__name__)

BATCH_BYTES = 4_000_000
"""About so much is in a batch: a token takes some libraries some hundred bytes of memory."""

COLUMNS = ("doc_id", "project", "path", "content")
_SHARDS = "part-*.parquet"
_DOCUMENTS = "documents"
_ROWS_A_BATCH = 1024
_DUPLICATE = "duplicate"


def read_texts(places: Sequence[str], options: IngestOptions, *, argument: str) -> Iterator[pa.RecordBatch]:
    """Yield the documents of runs and sources, each once, in order.

    Args:
        places: Folders of runs, or of documents shards, and sources as ingest takes them.
        options: How sources are read, and which share of the documents is taken.
        argument: The argument that named the places, for messages.

    Returns:
        Batches with the columns of `COLUMNS`; strings, and binary content.

    Raises:
        ConfigError: If there is no document in the places, or one of them does not exist.
        IntegrityError: If the documents of a run are not those that its receipt names.
    """
    left_out: Counter[str] = Counter()
    batch, size, seen = list[Document](), 0, set[bytes]()
    for document in _documents(places, options, left_out):
        content = document.content or b""
        digest = hashlib.sha256(content).digest()
        if digest in seen:
            left_out[_DUPLICATE] += 1
            continue
        seen.add(digest)
        if batch and size + len(content) > BATCH_BYTES:
            yield _record_batch(batch)
            batch, size = [], 0
        batch.append(document)
        size += len(content)
    if left_out:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in sorted(left_out.items()))
        logger.info("left out: %s", reasons)
    if not seen:
        raise ConfigError(f"{argument} {' '.join(places)}: no document in it; give a run's folder or C++ sources")
    yield _record_batch(batch)


def _documents(places: Sequence[str], options: IngestOptions, left_out: Counter[str]) -> Iterator[Document]:
    for place in map(find_run, places):
        shards = _run_shards(place)
        yield from _of_run(OutputFolder(place), shards, options) if shards else _of_source(place, options, left_out)


def _run_shards(place: str) -> list[str]:
    """Return the documents shards of a place that is the folder of a run, or the documents of one; else none.

    Raises:
        IntegrityError: If they are not those that the receipt of the run names.
    """
    if is_remote(place):
        return _remote_shards(place) if place.partition("://")[0] in OUTPUT_PACKAGES and not is_glob(place) else []
    if not Path(place).is_dir():
        return []
    below = [f"documents/{path.name}" for path in sorted(Path(place, "documents").glob(_SHARDS))]
    names = below or [path.name for path in sorted(Path(place).glob(_SHARDS))]
    out = OutputFolder(place)
    return _named(out, [name for name in names if _has_columns(out, name)])


def _remote_shards(place: str) -> list[str]:
    """Return the documents shards of a run, or of the documents of one, at a URL."""
    out = OutputFolder(place)
    folder = "" if place.rstrip("/").endswith("/documents") else "documents"
    names = [name for name in out.files(folder) if fnmatchcase(name.rpartition("/")[2], _SHARDS)]
    return _named(out, [name for name in names if _has_columns(out, name)])


def _has_columns(out: OutputFolder, name: str) -> bool:
    """Return whether a file of a folder is a documents shard.

    Raises:
        IntegrityError: If it is damaged.
    """
    with naming_damage(out.where(name)), out.open_ranges(name) as file:
        return set(COLUMNS) <= set(pq.read_schema(file).names)


def _named(out: OutputFolder, names: list[str]) -> list[str]:
    """Return the documents shards that the receipt of a folder names; those that were found in one without a receipt.

    The receipt of the documents of a run is that of the run.

    Raises:
        IntegrityError: If the receipt was changed, or one of its shards is missing or another one.
    """
    above, _, folder = out.root.rstrip("/").rpartition("/")
    run = OutputFolder(above) if folder == _DOCUMENTS and above and not out.exists(RECEIPT) else out
    receipt = find_intact_receipt(run) if names or any(run.files("tokens")) else None
    if receipt is None:
        return names
    named = products(receipt, _DOCUMENTS)
    check_named(run, receipt, named)
    return [name if run is out else name.removeprefix(f"{_DOCUMENTS}/") for name in named]


def _of_run(out: OutputFolder, names: Sequence[str], options: IngestOptions) -> Iterator[Document]:
    for batch in read_shards(out, names, ["project", "path", "content"]):
        rows: list[Any] = batch.to_pylist()
        for row in rows:
            if in_sample(row["path"], options.sample):
                yield Document(row["project"], row["path"], len(row["content"]), row["content"])


def _of_source(place: str, options: IngestOptions, left_out: Counter[str]) -> Iterator[Document]:
    content_filter = make_content_filter(options)
    for unit in plan_inputs(list_inputs([place], options), options):
        for document in read_documents(unit, options):
            if document.content is None:
                left_out[document.reason] += 1
                continue
            verdict = content_filter(document.content, document.named_license)
            if verdict.column is Column.KEPT:
                yield document
            else:
                left_out[verdict.reason or verdict.column] += 1


def _record_batch(documents: Sequence[Document]) -> pa.RecordBatch:
    contents = [document.content or b"" for document in documents]
    columns: list[pa.Array[Any]] = [
        pa.array([hashlib.sha256(content).hexdigest() for content in contents], pa.string()),
        pa.array([document.project for document in documents], pa.string()),
        pa.array([document.path for document in documents], pa.string()),
        pa.array(contents, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))


def documents_shards(folder: str, *, argument: str) -> tuple[OutputFolder, list[str]]:
    """Return a folder, and the names of the documents shards below `documents/` or directly in it.

    Raises:
        ConfigError: If there are none.
        IntegrityError: If they are not those that the receipt of a run names.
    """
    out = OutputFolder(folder)
    names = [*out.files("documents")] or [name for name in out.files() if "/" not in name]
    shards = [name for name in names if fnmatchcase(name.rpartition("/")[2], _SHARDS)]
    found = _named(out, shards)
    if not found:
        raise ConfigError(f"{argument} {folder}: no documents shards; give a run's folder, or its documents/")
    return out, found


def read_shards(out: OutputFolder, names: Sequence[str], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of shards of OUT, of documents or of tokens."""
    for name in names:
        with out.open_local(name) as path, naming_damage(out.where(name)), pq.ParquetFile(path) as shard:
            yield from shard.iter_batches(batch_size=_ROWS_A_BATCH, columns=list(columns))
