"""How a command is carried out: threads, memory, engine. None of this changes what is made."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from schemas.declarations import ARGUMENTS, BEAM_OPTIONS, EXECUTION, Option
from schemas.errors import ConfigError
from schemas.options import MAX_JSON_INTEGER

EngineName = Literal["local", "flink", "spark", "prism", "dataflow"]

ONE_PROCESS_ENGINES = ("local", "prism")
"""Engines whose units run in one process, on all threads of the native core; the others use one process per CPU."""

PathText = InstanceOf[str]
"""A path or a URL; unlike `str` it may hold the surrogates that represent bytes which are not UTF-8."""

Threads = Annotated[int, Field(ge=1, le=1024)]


def usable_threads() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_worker_threads(engine: str) -> int:
    """Return how many threads each process that runs units has on an engine, by default."""
    return usable_threads() if engine in ONE_PROCESS_ENGINES else 1


@dataclass(frozen=True)
class Peer:
    """One of several processes that carry out a run together.

    Attributes:
        number: Which one, from 0.
        count: How many there are.
    """

    number: int
    count: int

    def __str__(self) -> str:
        """Return it as it is typed."""
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Peer:
        """Read `I/N`.

        Raises:
            ConfigError: If it is not that, or if I is not from 0 to N - 1.

        Example:
            >>> Peer.parse("2/3")
            Peer(number=2, count=3)
        """
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if found is None:
            raise ConfigError(f"--peer {text}: not allowed; it takes I/N, such as 0/3 for the first of three processes")
        number, count = map(int, found.groups())
        if number >= count:
            allowed = f"from 0/{count} to {count - 1}/{count}" if count else "0/1 or more"
            raise ConfigError(f"--peer {text}: not allowed; I counts from 0: {allowed}")
        return cls(number, count)


class PeerOptions(BaseModel):
    """Which part of a run a process carries out; not a key of a run file, because it differs between processes."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    peer: Annotated[str | None, Option(heading=EXECUTION.heading, metavar="I/N", default="")] = None
    """Be process I (from 0) of N processes that share this run; the other arguments must be the same for all."""


class ExecutionOptions(BaseModel):
    """How any command with Beam stages is carried out."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    threads: Annotated[
        Threads | None,
        Field(examples=[2]),
        Option(
            heading=EXECUTION.heading, default="all CPUs that it may use; 1 in workers of flink, spark and dataflow"
        ),
    ] = None
    """Number of threads per process."""

    engine: Annotated[EngineName, EXECUTION] = "local"
    """Engine that runs the stages; local is this machine."""

    beam_options: Annotated[tuple[str, ...], Option(flag=BEAM_OPTIONS, default="")] = ()
    """Options for Beam, passed on unchanged."""


class RunExecutionOptions(ExecutionOptions):
    """How a run is carried out, and what it reads."""

    sources: Annotated[
        tuple[PathText, ...],
        Field(examples=[("~/src/llvm-project",)]),
        Option(flag=ARGUMENTS, metavar="SOURCE", default="", places=True),
    ] = ()
    """What to read: folders, globs, tar (.gz .xz .zst), zip, Parquet and JSONL (.gz .zst) files, local or by any fsspec
    URL (gs://…, s3://…).
    """

    memory_bytes: Annotated[int, Field(ge=1 << 20, le=MAX_JSON_INTEGER), EXECUTION] = 2 << 30
    """Memory per process for the tables of a scan; what does not fit goes to temporary files."""

    rehash: Annotated[bool, Option(heading=EXECUTION.heading, flag="--rehash")] = False
    """Read and hash every input again, even if its size and time are unchanged."""
