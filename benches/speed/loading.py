"""`python -m benches.speed.loading DIR`: the loader in torch's DataLoader, beside MosaicML streaming and `datasets`.

One run of the sources gives token shards and sequences. Each candidate reads an epoch of the same rows, shuffled, with
the same columns, batches and workers, and makes tensors of them: ids as int64, ragged columns as values and offsets.
The peers leave text as str, and read from their own files, which are written outside the clock. Workers start inside
it. What `make bench-loader` runs.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import typer

from benches.lib.harness import Candidate, Comparison, RunResult, compare, write_rows
from benches.lib.options import JsonRows, LimitMegabytes, Rounds, Sources, Threads, check_json_folder
from benches.lib.peers import OURS
from benches.lib.session import bench_session, conclude
from pipelines.console.progress import MEGABYTE
from pipelines.engines.cache import engine_path

STREAMING, DATASETS = "mosaicml-streaming", "datasets"
SEED = 1
LENGTH = 2048
PER_PROCESSOR_SECOND = "tokens/processor s"
COLUMNS = {
    "token shards, all columns": ("tokens", None),
    "sequences, all columns": ("sequences", None),
    "token shards, ids": ("tokens", ("token_ids",)),
    "sequences, ids and masks": ("sequences", ("token_ids", "loss_mask")),
}
"""What is read, by the name of its comparison: a folder and columns."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a candidate reads.

    Attributes:
        folder: Token shards or sequences.
        columns: Of these; None: all.
        batch_rows: Rows of a batch.
        workers: Worker processes.
        work: A folder for the peers' files.
    """

    folder: Path
    columns: tuple[str, ...] | None
    batch_rows: int
    workers: int
    work: Path

    @property
    def files(self) -> list[Path]:
        """The files that hold the rows."""
        return sorted(self.folder.glob("part-*.parquet"))

    def num_bytes(self) -> int:
        """Return the bytes of the files."""
        return sum(path.stat().st_size for path in self.files)


@app.command(epilog="Exit codes: 0 done, 1 rows differ or a run failed, 2 wrong usage or too little text.")
def bench_loader(
    corpus: Sources,
    json_file: JsonRows = None,
    rounds: Rounds = 3,
    threads: Threads = None,
    limit_mb: LimitMegabytes = None,
) -> None:
    """Measure an epoch of the loader in torch beside MosaicML streaming and a loop over `datasets`.

    All is made in a temporary folder (TMPDIR says where). `make engines` fetches torch and the peer.
    """
    check_json_folder(json_file)
    with bench_session() as (reporter, work):
        from benches.lib.corpus import make_corpus
        from pipelines.exports import sequences

        for name in ("torch", "streaming"):
            engine_path(name)
        limit_bytes = None if limit_mb is None else limit_mb * MEGABYTE
        made = make_corpus(corpus.absolute(), work / "run", threads=threads, limit_bytes=limit_bytes, reporter=reporter)
        flags = {"--out": str(work / "export"), "--length": str(LENGTH)}
        sequences.run(sequences.load_config(str(work / "run"), flags=flags), reporter)
        reporter.note(f"benches: {made.describe()}")
        folders = {"tokens": work / "run/tokens", "sequences": work / "export/sequences"}
        comparisons: list[Comparison] = []
        for comparison in measure(folders, work / "peers", rounds=rounds):
            comparisons.append(comparison)
            if json_file is not None:
                write_rows(json_file, comparisons)
    conclude(str(corpus), comparisons)


def measure(folders: dict[str, Path], work: Path, *, rounds: int) -> Iterator[Comparison]:
    """Yield every comparison, with one and with two workers.

    Args:
        folders: Token shards and sequences.
        work: A folder for the peers' files.
        rounds: Runs of each candidate.
    """
    for workers in (1, 2):
        for name, (folder, columns) in COLUMNS.items():
            reading = Reading(folder=folders[folder], columns=columns, batch_rows=8, workers=workers, work=work / name)
            candidates = [
                Candidate(name=candidate, prepare=partial(prepare, reading), run=run_epoch, threads=workers)
                for candidate, prepare in PREPARE.items()
            ]
            bench = f"{name}, {workers} worker{'s' if workers > 1 else ''}"
            yield compare(bench, candidates, input_bytes=reading.num_bytes(), rounds=rounds)


def prepare_ours(reading: Reading) -> Iterable[Any]:
    """Return the DataLoader of a `TokenDataset`."""
    data = _import_torch()
    from cppmill_core.loader import Loader

    adapter = import_module("cppmill_core.torch_data")
    loader = Loader(reading.folder, columns=reading.columns, seed=SEED, batch_rows=reading.batch_rows)
    made: Iterable[Any] = data.DataLoader(adapter.TokenDataset(loader), batch_size=None, num_workers=reading.workers)
    return made


def prepare_streaming(reading: Reading) -> Iterable[Any]:
    """Return the DataLoader of a StreamingDataset on local MDS files, which are written first."""
    data = _import_torch()
    sys.path.append(str(engine_path("streaming")))
    streaming = import_module("streaming")
    folder = reading.work / STREAMING
    if not folder.exists():
        with streaming.MDSWriter(out=str(folder), columns=_encodings(_rows(reading))) as writer:
            for row in _rows(reading):
                writer.write(row)
    dataset = streaming.StreamingDataset(
        local=str(folder), shuffle=True, shuffle_seed=SEED, batch_size=reading.batch_rows, allow_unsafe_types=True
    )
    return _peer_loader(data, dataset, reading)


def prepare_datasets(reading: Reading) -> Iterable[Any]:
    """Return the DataLoader of a shuffled `datasets.Dataset`, whose Arrow files are written first."""
    data = _import_torch()
    datasets = import_module("datasets")
    made = datasets.Dataset.from_parquet(
        [str(path) for path in reading.files],
        cache_dir=str(reading.work / DATASETS),
        columns=None if reading.columns is None else list(reading.columns),
    )
    return _peer_loader(data, made.with_format("numpy").shuffle(seed=SEED), reading)


PREPARE: dict[str, Callable[[Reading], Iterable[Any]]] = {
    OURS: prepare_ours,
    STREAMING: prepare_streaming,
    DATASETS: prepare_datasets,
}


def run_epoch(batches: Iterable[Any]) -> RunResult:
    """Read an epoch; the result is how many ids there were, and their sum.

    Beside the rate, it gives ids per second of processor time, of this process and its workers, which hardly depends
    on what else the machine does.
    """
    before = _processor_seconds()
    tokens = total = 0
    for batch in batches:
        ids = batch["token_ids"]
        values = ids[0] if isinstance(ids, tuple) else ids
        tokens += values.numel()
        total += int(values.sum())
    shares = {PER_PROCESSOR_SECOND: tokens / (_processor_seconds() - before)}
    return RunResult(amounts={"tokens": tokens}, shares=shares, digest=f"{tokens} {total}")


def _processor_seconds() -> float:
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rows of a peer as a batch, as one writes it by hand."""
    return {name: _collate_column([row[name] for row in rows]) for name in rows[0]}


def _collate_column(values: list[Any]) -> Any:  # noqa: ANN401 - tensors, or a list of text
    torch = import_module("torch")
    arrays = [np.asarray(value) for value in values]
    if arrays[0].dtype.kind not in "biuf":
        return values
    if len({array.shape for array in arrays}) == 1:
        stacked = np.stack(arrays)
        return torch.from_numpy(stacked if stacked.dtype in (np.bool_, np.uint8) else stacked.astype(np.int64))
    offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int32)
    return torch.from_numpy(np.concatenate(arrays).astype(np.int64)), torch.from_numpy(offsets)


def _import_torch() -> Any:  # noqa: ANN401 - an optional package
    # This process was spawned; its workers are to be forked, as is usual, and not to import torch again.
    multiprocessing.set_start_method("fork", force=True)
    sys.path.append(str(engine_path("torch")))
    return import_module("torch.utils.data")


def _peer_loader(data: Any, dataset: Any, reading: Reading) -> Iterable[Any]:  # noqa: ANN401 - of optional packages
    loader: Iterable[Any] = data.DataLoader(
        dataset, batch_size=reading.batch_rows, num_workers=reading.workers, collate_fn=collate
    )
    return loader


def _rows(reading: Reading) -> Iterator[dict[str, Any]]:
    """Yield each row as MDS takes it: arrays, int, and str; booleans as uint8, and lists of text as JSON."""
    from cppmill_core.columns import Rows

    columns = None if reading.columns is None else list(reading.columns)
    for path in reading.files:
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            rows = Rows.of(file.read_row_group(group, columns=columns))
            for number in range(len(rows)):
                yield {name: _plain(value) for name, value in rows[number].items()}


def _plain(value: Any) -> Any:  # noqa: ANN401 - a value of any column
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.tolist()
    if isinstance(value, np.ndarray) and value.dtype == np.bool_:
        return value.astype(np.uint8)
    return int(value) if isinstance(value, np.integer) else value


def _encodings(rows: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return how MDS encodes each column: it takes no empty arrays, so pickles columns that have some."""
    found: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, np.ndarray):
                kind = f"ndarray:{value.dtype}" if value.size else "pkl"
            else:
                kind = {int: "int", str: "str", list: "json"}[type(value)]
            found[name] = "pkl" if found.get(name) == "pkl" else kind
    return found


if __name__ == "__main__":
    app(prog_name="python -m benches.speed.loading")
