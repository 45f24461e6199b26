"""The tables of a run file and of an export, their keys, and the flags of these keys."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from configs.execution import ExecutionOptions, PathText, PeerOptions, RunExecutionOptions
from configs.flags import Flag, find_flags
from schemas.declarations import EXECUTION, Option
from schemas.export_options import SequenceOptions, ShardOptions
from schemas.options import BuildOptions, Fraction, IngestOptions, ScanOptions, TokenizeOptions
from schemas.study_options import DriftOptions, TrialOptions

DEFAULT_PROFILE = "hybrid-64k"


class RunTableOptions(RunExecutionOptions):
    """Where a run reads and writes, and how it is carried out."""

    out: Annotated[PathText | None, Field(examples=["llvm"]), Option(metavar="DIR", default="", places=True)] = None
    """Output folder, or gs:// or s3://BUCKET/PREFIX: a new one, or that of an earlier run to resume."""

    profile: Annotated[str, Option()] = DEFAULT_PROFILE
    """Named set of defaults. For C++: hybrid-64k and hybrid-64k-superwords (both also with -2 or -3 at the end),
    hybrid-16k-2, hybrid-32k-2, hybrid-128k-superwords (also with -3), sentencepiece-32k, demo. For prose: text-16k,
    text-32k, text-sentencepiece-1k.
    """

    tokenizer: Annotated[
        PathText | None, Field(examples=["other/tokenizer"]), Option(metavar="DIR", default="", places=True)
    ] = None
    """Tokenize with this tokenizer, and build none: a tokenizer directory (local, gs://… or s3://…), or what
    `cppmill adopt` accepts.
    """

    rebuild_tokenizer: Annotated[bool, Option(flag="--rebuild-tokenizer")] = False
    """Build a new tokenizer even if OUT has one. Learned ids move. Without this flag a run keeps the tokenizer."""

    vocab: Annotated[
        PathText | None,
        Field(examples=["acme-vocabulary"]),
        Option(metavar="DIR", default="", places=True),
    ] = None
    """Build with your own vocabulary, a folder made by cppmill vocab init (local, gs://… or s3://…)."""

    platforms: Annotated[
        PathText | None, Field(examples=["platforms.toml"]), Option(metavar="FILE", default="", places=True)
    ] = None
    """Also find the platforms that this TOML file defines: their labels, their ids (113 or higher) and their rules."""

    max_dead_fraction: Annotated[Fraction, EXECUTION] = 0.01
    """End with exit code 3 if more than this share of the documents is unreadable or damaged."""


class StoreTableOptions(RunTableOptions):
    """The same for a command that gives each run a separate folder in a store."""

    out: Annotated[PathText, Option(flag="--store", metavar="DIR")]
    """Folder of the versions, or gs:// or s3://BUCKET/PREFIX; each version is the OUT of a run."""


class ExportTableOptions(ExecutionOptions):
    """Where an export writes, and how it is carried out."""

    out: Annotated[PathText, Option(metavar="DIR")]
    """Folder for this export alone, or gs:// or s3://BUCKET/PREFIX."""


TABLES: dict[str, type[BaseModel]] = {
    "run": RunTableOptions,
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

FLAGS: dict[str, Flag] = find_flags(TABLES)
"""The flags of a run; `SOURCE` means the arguments, `--` what follows it."""

PEER_FLAGS: dict[str, Flag] = find_flags({"peer": PeerOptions})
"""The flag of a process that carries out a run together with others."""

STORE_FLAGS: dict[str, Flag] = find_flags({**TABLES, "run": StoreTableOptions})
"""The same for a command that gives each run a folder of its own in a store."""

DRIFT_FLAGS: dict[str, Flag] = find_flags({"options": DriftOptions})
"""The flags of drift, which only a command with a store has."""

EXPORT_FLAGS: dict[str, Flag] = find_flags({"run": ExportTableOptions})
"""The flags that all exports have."""

SHARD_FLAGS: dict[str, Flag] = EXPORT_FLAGS | find_flags({"options": ShardOptions})
"""The flags of `cppmill shards`."""

SEQUENCE_FLAGS: dict[str, Flag] = EXPORT_FLAGS | find_flags({"options": SequenceOptions})
"""The flags of `cppmill sequences`; `--mixture` is a file of its own, read beside them."""

TRIAL_FLAGS: dict[str, Flag] = find_flags({"options": TrialOptions})
"""The flags of `cppmill trial` that decide its figures."""
