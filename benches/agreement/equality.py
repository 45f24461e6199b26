"""`python -m benches.agreement.equality RUN REFERENCES`: compare the native ids of a run with those of `tokenizers`.

What `tokenizers` gives takes hours on gigabytes, so it is kept: for each documents shard a Parquet file in a folder of
references, with `doc_id`, `tokens` and `ids_sha256` (of little-endian 32-bit ids) of each row. A shard that has its
file is not encoded by `tokenizers` again, so the same command resumes a run that was stopped. Nothing is written
into the run. What `make equal-encode` runs.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benches.lib.references import Reference, digest_ids, is_utf8, split_ids
from configs.execution import usable_threads
from schemas.errors import ExitCode
from tokenizer_build.compare.candidates import set_rayon_threads

_SHOWN = 10
"""How many documents with other ids are named."""

_FIELDS: dict[str, pa.DataType] = {"doc_id": pa.string(), "tokens": pa.uint64(), "ids_sha256": pa.binary()}
_SCHEMA = pa.schema(_FIELDS)

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@dataclass
class Agreement:
    """What a comparison found, of one shard or of all."""

    documents: int = 0
    num_bytes: int = 0
    tokens: int = 0
    not_utf8: int = 0
    different: list[str] = field(default_factory=list)

    def add(self, other: Agreement) -> None:
        """Add what was found in another shard."""
        self.documents += other.documents
        self.num_bytes += other.num_bytes
        self.tokens += other.tokens
        self.not_utf8 += other.not_utf8
        self.different += other.different


@app.command(epilog="Exit codes: 0 all ids are equal, 1 some are not, 2 wrong usage.")
def equality(
    run: Annotated[Path, typer.Argument(metavar="RUN", exists=True, file_okay=False, help="A run's output folder.")],
    references: Annotated[
        Path, typer.Argument(metavar="REFERENCES", file_okay=False, help="Keep what `tokenizers` gives there.")
    ],
    tokenizer: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Tokenizer directory. [RUN/tokenizer]")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Processes; all usable CPUs by default.")] = None,
) -> None:
    """Compare the native ids of every document of a run with those of `tokenizers`, for one tokenizer."""
    shards = sorted((run / "documents").glob("part-*.parquet"))
    if not shards:
        raise typer.BadParameter(f"{run}/documents has no part-*.parquet; name a run's output folder")
    references.mkdir(parents=True, exist_ok=True)
    work = partial(compare_shard, references=references, tokenizer=tokenizer or run / "tokenizer")
    total = Agreement()
    with multiprocessing.get_context("spawn").Pool(processes or usable_threads(), set_rayon_threads, (1,)) as pool:
        for done, found in enumerate(pool.imap_unordered(work, shards), 1):
            total.add(found)
            typer.echo(f"{done} of {len(shards)} shards: {describe(total)}", err=True)
    typer.echo(describe(total))
    for line in total.different[:_SHOWN]:
        typer.echo(f"  {line}")
    if total.different:
        raise typer.Exit(ExitCode.FAILED_CHECK)


def describe(found: Agreement) -> str:
    """Return a comparison in a line."""
    return (
        f"{found.documents:,} documents ({found.not_utf8:,} not UTF-8), {found.num_bytes:,} bytes, "
        f"{found.tokens:,} tokens: {f'{len(found.different):,} differ' if found.different else 'all ids are equal'}"
    )


def compare_shard(shard: Path, *, references: Path, tokenizer: Path) -> Agreement:
    """Compare one documents shard, with its reference file or with one that is made now."""
    expected = references / shard.name
    if not expected.is_file():
        write_reference(shard, expected, tokenizer / "tokenizer.json")
    rows = iter(zip(*(pq.read_table(expected).column(name).to_pylist() for name in _SCHEMA.names), strict=True))
    native = cppmill_core.Tokenizer.from_dir(tokenizer)
    found = Agreement()
    for batch in read_documents(shard):
        encoded = native.encode_batch(batch["content"])
        ids = split_ids(encoded.values.to_numpy(), encoded.offsets.to_numpy())
        columns = (batch[name].to_pylist() for name in batch.schema.names)
        for doc_id, path, content, mine in zip(*columns, ids, strict=True):
            wanted = next(rows, (None, None, None))
            if wanted != (doc_id, len(mine), digest_ids(mine)):
                found.different.append(f"{shard.name}: {path}: {len(mine)} ids, expected {wanted[1]} of {wanted[0]}")
            found.add(Agreement(1, len(content), len(mine), int(not is_utf8(content))))
    found.different += [f"{expected}: a row too many, {row[0]}" for row in rows]
    return found


def write_reference(shard: Path, target: Path, tokenizer_json: Path) -> None:
    """Write the reference file of a documents shard; it has its name once it is whole."""
    reference = Reference(tokenizer_json)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    with pq.ParquetWriter(temporary, _SCHEMA) as writer:
        for batch in read_documents(shard):
            contents: list[Any] = batch["content"].to_pylist()
            ids = list(reference.encode(contents))
            columns: list[pa.Array[Any]] = [
                batch["doc_id"],
                pa.array([len(one) for one in ids], pa.uint64()),
                pa.array([digest_ids(one) for one in ids], pa.binary()),
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))
    temporary.replace(target)


def read_documents(shard: Path) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a shard: columns `doc_id`, `path` and `content`."""
    with pq.ParquetFile(shard) as file:
        yield from file.iter_batches(batch_size=1024, columns=["doc_id", "path", "content"])


if __name__ == "__main__":
    app(prog_name="python -m benches.agreement.equality")
