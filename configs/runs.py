"""The configuration of a run: a profile, a TOML file and flags, checked together before anything starts.

Layers, each overriding the one before: defaults, profile, TOML file, flags. All problems are found and told at once.
This module knows names, types and places; whether a vocabulary fits its size or an archive can be read is found out
by the stages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from configs.builds import check_build
from configs.filters import check_filters
from configs.layers import Flag, Layer, merge_layers, read_file, read_flags, read_profile
from configs.near_duplicates import check_near_duplicates
from configs.patterns import check_patterns
from configs.places import check_places
from schemas.errors import ConfigError
from schemas.options import BuildOptions, Fraction, IngestOptions, RunOptions, ScanOptions, TokenizeOptions
from schemas.places import is_remote
from schemas.units import Stage

DEFAULT_PROFILE = "hybrid-64k"

Threads = Annotated[int, Field(ge=1, le=1024)]
MemoryBytes = Annotated[int, Field(ge=1 << 20)]

DEFAULT_MEMORY_BYTES = 2 << 30

EngineName = Literal["local", "flink", "spark", "prism", "dataflow"]

ONE_PROCESS_ENGINES = ("local", "prism")
"""Engines whose units run in one process, on all threads of the native core; the others have a process a CPU."""

PathText = InstanceOf[str]
"""A path or a URL; unlike `str` it may hold the surrogates that stand for bytes which are not UTF-8."""

Place = InstanceOf[Path] | PathText
"""A local path, or the URL of a place on an object store, as text."""


def usable_threads() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_worker_threads(engine: str) -> int:
    """Return how many threads each process that runs units has on an engine, unless it is told."""
    return usable_threads() if engine in ONE_PROCESS_ENGINES else 1


class RunTable(BaseModel):
    """The table [run]: where a run reads and writes, and how it is carried out.

    Attributes:
        sources: Directories, globs, archives, Parquet and JSONL files, local or on any fsspec path.
        out: The output folder, local or mounted, or `s3://bucket/prefix`.
        profile: Name of a profile in `configs/profiles/`.
        tokenizer: Directory of a tokenizer to use, local or `s3://…`; none is built then.
        threads: Number of threads of a process; by default all CPUs that the process may use, and 1 in the workers of
            an engine that has a worker process for each CPU.
        memory_bytes: What the tables of a scan may take in a process; more goes to temporary files.
        engine: Where the Beam stages run.
        beam_options: Options handed to Beam as they are.
        rehash: Read and hash every input again, whatever its size and time say.
        max_dead_fraction: A run ends with exit code 3 if more than this share of the documents could not be used.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[PathText, ...] = ()
    out: PathText | None = None
    profile: str = DEFAULT_PROFILE
    tokenizer: PathText | None = None
    threads: Threads | None = None
    memory_bytes: MemoryBytes = DEFAULT_MEMORY_BYTES
    engine: EngineName = "local"
    beam_options: tuple[str, ...] = ()
    rehash: bool = False
    max_dead_fraction: Fraction = 0.01


TABLES: dict[str, type[BaseModel]] = {
    "run": RunTable,
    "ingest": IngestOptions,
    "scan": ScanOptions,
    "build": BuildOptions,
    "tokenize": TokenizeOptions,
}
"""The tables of a run file and the models of their keys; `build.profile` is set by `run.profile`."""

KEYS: dict[str, frozenset[str]] = {
    name: frozenset(model.model_fields) - ({"profile"} if name == "build" else set()) for name, model in TABLES.items()
}
"""The keys that each table may have."""

FLAGS: dict[str, Flag] = {
    "SOURCE": Flag("run", "sources"),
    "--out": Flag("run", "out"),
    "--profile": Flag("run", "profile"),
    "--tokenizer": Flag("run", "tokenizer"),
    "--threads": Flag("run", "threads", numeric=True),
    "--memory-bytes": Flag("run", "memory_bytes", numeric=True),
    "--engine": Flag("run", "engine"),
    "--": Flag("run", "beam_options"),
    "--rehash": Flag("run", "rehash"),
    "--max-dead-fraction": Flag("run", "max_dead_fraction", numeric=True),
    "--unit-bytes": Flag("ingest", "unit_bytes", numeric=True),
    "--limit": Flag("ingest", "limit", numeric=True),
    "--sample": Flag("ingest", "sample", numeric=True),
    "--near-duplicate-similarity": Flag("ingest", "near_duplicate_similarity", numeric=True),
    "--vocab-size": Flag("build", "vocab_size", numeric=True),
}
"""Where each flag's value belongs; `SOURCE` stands for the arguments, `--` for what follows it."""

STORE_FLAGS: dict[str, Flag] = {"--store" if name == "--out" else name: flag for name, flag in FLAGS.items()}
"""The same of a command that gives each run a folder of its own in a store."""


class RunConfig(BaseModel):
    """All that a command needs to know to run.

    Attributes:
        sources: What to read: directories, globs, archives and table files, local or on any fsspec path.
        out: The output folder.
        options: What decides the bytes of the run.
        tokenizer: Directory of a tokenizer to use instead of building one.
        threads: Number of threads of this process.
        worker_threads: Number of threads of each process that runs units.
        memory_bytes: What the tables of a scan may take in a process; more goes to temporary files.
        engine: Where the Beam stages run.
        beam_options: Options handed to Beam as they are.
        rehash: Read and hash every input again, whatever its size and time say.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    out: Place
    sources: tuple[PathText, ...] = ()
    options: RunOptions = RunOptions()
    tokenizer: Place | None = None
    threads: Threads = Field(default_factory=usable_threads)
    worker_threads: Threads = Field(default_factory=usable_threads)
    memory_bytes: MemoryBytes = DEFAULT_MEMORY_BYTES
    engine: EngineName = "local"
    beam_options: tuple[str, ...] = ()
    rehash: bool = False

    @property
    def out_folder(self) -> Path:
        """The output folder where it is known to be local; a URL is no path."""
        if isinstance(self.out, str) and is_remote(self.out):
            raise ConfigError(f"--out {self.out}: a local folder is needed here")
        return Path(self.out)

    def stage_options(self, stage: Stage) -> dict[str, Any]:
        """Return the options of a stage as JSON values; empty if it has none."""
        options: dict[str, Any] = self.options.to_json().get(stage, {})
        return options


def load_run_config(
    *,
    file: Path | None = None,
    flags: Mapping[str, object] | None = None,
    needs_sources: bool = False,
    names: Mapping[str, Flag] = FLAGS,
    base: Layer | None = None,
) -> RunConfig:
    """Return the run configuration of a TOML file and flags; flags win.

    Args:
        file: The TOML file; relative paths in it are relative to the working directory.
        flags: Values by flag (the keys of `FLAGS`), text as it was typed; None for a flag that was not given.
        needs_sources: Whether the command reads sources.
        names: The flags that there are.
        base: What a file and flags win over, as the options of an earlier run.

    Raises:
        ConfigError: With one line for every problem.

    Example:
        >>> load_run_config(flags={"--out": "/tmp/out", "--threads": "2"}).threads
        2
    """
    problems: list[str] = []
    given = [read_flags(flags or {}, names)]
    if file is not None:
        given.insert(0, read_file(file, problems))
    if base is not None:
        given.insert(0, base)
    profile = _profile_name(given)
    layers = [read_profile(profile, origin=_profile_origin(given), problems=problems), *given]
    readable = not problems
    for layer in layers:
        problems += layer.problems(TABLES, KEYS)
    tables = merge_layers(layers)
    tables["run"] = _expand_home(tables.get("run", {}))
    if readable:  # else what is missing may stand in the file that could not be read
        problems += check_places(tables, layers=layers, needs_sources=needs_sources)
        problems += check_patterns(tables, layers)
        problems += check_build(tables, layers)
        problems += check_filters(tables, layers)
        problems += check_near_duplicates(tables, layers)
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    return _assemble(tables, profile=profile)


def _profile_name(layers: Sequence[Layer]) -> str:
    """Return the profile that the last layer names, the default one if none does (or does with no string)."""
    name = merge_layers(layers).get("run", {}).get("profile", DEFAULT_PROFILE)
    return name if isinstance(name, str) else DEFAULT_PROFILE


def _profile_origin(layers: Sequence[Layer]) -> str:
    """Return where the profile was named, as messages begin."""
    naming = [layer for layer in layers if "profile" in layer.table("run")]
    return naming[-1].place("run", "profile") if naming else "profile"


def _expand_home(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table [run] with the home folder for `~/`, as a shell writes it, in the paths."""

    def expand(value: Any) -> Any:  # noqa: ANN401 - not yet known to be text
        if isinstance(value, tuple):
            return tuple(map(expand, value))
        return f"{Path.home()}{value[1:]}" if isinstance(value, str) and f"{value}/".startswith("~/") else value

    return {key: expand(value) if key in ("sources", "out", "tokenizer") else value for key, value in run.items()}


def to_place(text: str) -> Path | str:
    """Return a path, or a URL as it is."""
    return text if is_remote(text) else Path(text)


def _assemble(tables: Mapping[str, Mapping[str, Any]], *, profile: str) -> RunConfig:
    """Return the configuration of tables whose values were checked."""
    run = RunTable(**tables.get("run", {}))
    options = RunOptions(
        ingest=IngestOptions(**tables.get("ingest", {})),
        scan=ScanOptions(**tables.get("scan", {})),
        build=BuildOptions(**{**tables.get("build", {}), "profile": profile}),
        tokenize=TokenizeOptions(**tables.get("tokenize", {})),
        max_dead_fraction=run.max_dead_fraction,
    )
    return RunConfig(
        sources=run.sources,
        out=to_place(str(run.out)),
        options=options,
        tokenizer=None if run.tokenizer is None else to_place(run.tokenizer),
        threads=run.threads or usable_threads(),
        worker_threads=run.threads or default_worker_threads(run.engine),
        memory_bytes=run.memory_bytes,
        engine=run.engine,
        beam_options=run.beam_options,
        rehash=run.rehash,
    )
