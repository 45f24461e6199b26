"""The equivalence program: it makes one small run on every available engine and checks that all give the same bytes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from configs.runs import RunConfig, load_run_config
from pipelines.console.events import log_names
from pipelines.console.progress import Reporter
from pipelines.engines.execution import open_engine
from pipelines.stages import run
from pipelines.stages.session import engine_config
from schemas.digests import sha256_json
from schemas.errors import ConfigError, IntegrityError
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import temporary_folder

VOCAB_SIZE = "12288"
UNIT_BYTES = str(1 << 20)
"""Small units, so that there are some for each worker."""

DIGESTS = ("counts", "tokenizer", "dataset", "receipt")


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to carry out a run.

    Attributes:
        name: What the table calls it.
        engine: The engine.
        beam_options: Options for Beam.
    """

    name: str
    engine: str
    beam_options: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """What became of a way.

    Attributes:
        way: Its name.
        digests: By the names of `DIGESTS`; empty if it could not be run.
        seconds: How long the run took.
        reason: Why it could not be run.
    """

    way: str
    digests: Mapping[str, str]
    seconds: float = 0.0
    reason: str = ""


def all_ways(
    *, flink_master: str | None = None, spark_master: str | None = None, spark_page: str | None = None
) -> list[Way]:
    """Return every way, the reference first.

    Args:
        flink_master: HOST:PORT of a cluster; None for an embedded one.
        spark_master: spark://HOST:PORT of a cluster; None for an embedded one.
        spark_page: Address of its web page.
    """
    spark = {"--spark_master_url": spark_master, "--spark_master_page": spark_page}
    processes = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    return [
        Way(name="local", engine="local"),
        Way(name="processes", engine="local", beam_options=processes),
        Way(name="flink", engine="flink", beam_options=(f"--flink_master={flink_master}",) if flink_master else ()),
        Way(name="prism", engine="prism"),
        Way(
            name="spark",
            engine="spark",
            beam_options=tuple(f"{name}={value}" for name, value in spark.items() if value),
        ),
    ]


def default_sources() -> list[str]:
    """Return the C++ headers that are always installed: NumPy's and Arrow's."""
    return [np.get_include(), pa.get_include()]


def compare_ways(
    ways: Sequence[Way], sources: Sequence[str], out: Path, reporter: Reporter, *, required: bool
) -> Iterator[EngineRun]:
    """Carry out one run in each way, and yield what came out.

    Args:
        ways: The ways.
        sources: What to read.
        out: A folder for the runs, one below it for each way; what an earlier comparison left there is removed.
        reporter: Where progress goes.
        required: Whether a way that cannot be run is an error.

    Raises:
        ConfigError: If a way cannot be run and is required, or something else is where its run would be.
    """
    for way in ways:
        config = _config(way, sources, out / way.name)
        try:
            _check_available(config)
        except ConfigError as error:
            if required:
                raise
            yield EngineRun(way=way.name, digests={}, reason=str(error).splitlines()[0])
            continue
        reporter.note(f"{way.name}:")
        _check_replaceable(config.out_folder)
        shutil.rmtree(config.out_folder, ignore_errors=True)
        started = time.monotonic()
        run.run(config, reporter)
        seconds = time.monotonic() - started
        yield EngineRun(way=way.name, digests=read_digests(OutputFolder(config.out)), seconds=seconds)


def _check_replaceable(folder: Path) -> None:
    """Check that a folder is absent, empty, or that of a run.

    Raises:
        ConfigError: If it holds other files, or is a link.
    """
    is_other = folder.is_dir() and any(folder.iterdir()) and not log_names(OutputFolder(folder))
    if folder.is_symlink() or is_other:
        raise ConfigError(f"--out: {folder} is not of a run, and would be replaced; name another folder")


def read_digests(out: OutputFolder) -> dict[str, str]:
    """Return the digests of a finished run: of its counts, its tokenizer, its dataset and its receipt.

    Raises:
        ConfigError: If it has no receipt.
    """
    receipt = read_receipt(out)
    counts = {name: digest for name, digest in receipt["files"].items() if name.startswith("counts/")}
    return {
        "counts": sha256_json(counts),
        "tokenizer": receipt["tokenizer"]["digest"],
        "dataset": receipt["dataset"]["digest"],
        "receipt": receipt["digest"],
    }


@contextmanager
def folder_of_runs(out: Path | None) -> Iterator[Path]:
    """Give the folder for the runs: the one that was named, or a temporary one."""
    if out is not None:
        yield out
        return
    with temporary_folder() as folder:
        yield Path(folder)


def check_equal(outcomes: Sequence[EngineRun]) -> None:
    """Raise IntegrityError, with a line for every digest that is not the first one's."""
    found = [outcome for outcome in outcomes if outcome.digests]
    differences = [
        f"{name}: {outcome.way} gives {outcome.digests[name]}, {found[0].way} gives {found[0].digests[name]}"
        for outcome in found[1:]
        for name in DIGESTS
        if outcome.digests[name] != found[0].digests[name]
    ]
    if differences:
        raise IntegrityError("\n".join(differences))


def choose_ways(ways: Sequence[Way], names: str | None) -> list[Way]:
    """Return the ways that a list of names, with commas, chooses; all for None.

    Raises:
        ConfigError: For an unknown name.
    """
    if names is None:
        return list(ways)
    known = {way.name: way for way in ways}
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in known:
            raise ConfigError(f"--engines {names}: {name or 'an empty name'} is not one of {', '.join(known)}")
    return [known[name] for name in chosen]


def _config(way: Way, sources: Sequence[str], out: Path) -> RunConfig:
    flags = {
        "SOURCE": list(sources),
        "--out": str(out),
        "--profile": "demo",
        "--vocab-size": VOCAB_SIZE,
        "--unit-bytes": UNIT_BYTES,
        "--engine": way.engine,
        "--": list(way.beam_options),
    }
    return load_run_config(flags=flags, needs_sources=True)


def _check_available(config: RunConfig) -> None:
    """Raise ConfigError if the engine of a configuration lacks anything."""
    with open_engine(config.engine, engine_config(config, OutputFolder(config.out))):
        pass
