"""The configuration of an export: a finished run, a folder of its own, and the options of what is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from configs.layers import Flag, read_flags
from configs.places import check_places
from configs.runs import EngineName, PathText, Place, Threads, default_worker_threads, to_place
from schemas.errors import ConfigError
from schemas.options import Options
from schemas.places import is_remote
from schemas.units import Stage

ExportOptions = TypeVar("ExportOptions", bound=Options)

FLAGS: dict[str, Flag] = {
    "--out": Flag("run", "out"),
    "--threads": Flag("run", "threads", numeric=True),
    "--engine": Flag("run", "engine"),
    "--": Flag("run", "beam_options"),
}
"""The flags that every export has; those of its options are added by each."""


class ExportTable(BaseModel):
    """How an export is carried out: what it shares with a run.

    Attributes:
        out: The folder of the export, or its URL.
        threads: Number of threads of a process; by default as in a run.
        engine: Where the Beam stages run.
        beam_options: Options handed to Beam as they are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    out: PathText = ""
    threads: Threads | None = None
    engine: EngineName = "local"
    beam_options: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExportConfig(Generic[ExportOptions]):
    """All that an export needs to know to run.

    Attributes:
        run: The finished run.
        out: The folder of the export.
        options: What decides the bytes of the export, besides the run.
        worker_threads: Number of threads of each process that runs units.
        engine: Where the Beam stages run.
        beam_options: Options handed to Beam as they are.
    """

    run: Place
    out: Place
    options: ExportOptions
    worker_threads: int = 1
    engine: EngineName = "local"
    beam_options: tuple[str, ...] = ()

    def stage_options(self, stage: Stage) -> dict[str, Any]:
        """Return the options: an export has the same ones in all of its stages."""
        return self.options.to_json()


def load_export_config(
    model: type[ExportOptions], *, run: str, flags: Mapping[str, object], option_flags: Mapping[str, Flag]
) -> ExportConfig[ExportOptions]:
    """Return the configuration of an export from its flags.

    Args:
        model: The options of this kind of export.
        run: The finished run, a folder or its URL.
        flags: Values by flag, text as it was typed; None for a flag that was not given.
        option_flags: Where the flags that `FLAGS` lacks belong: keys of the table `options`.

    Raises:
        ConfigError: With one line for every problem.
    """
    layer = read_flags(flags, {**FLAGS, **option_flags})
    tables: dict[str, type[BaseModel]] = {"run": ExportTable, "options": model}
    keys = {name: frozenset(table.model_fields) for name, table in tables.items()}
    problems = [
        *layer.problems(tables, keys),
        *check_places({"run": layer.table("run")}, layers=[layer], needs_sources=False),
    ]
    table = ExportTable.model_construct(**layer.table("run"))
    problems += _check_apart(run, table.out)
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    return ExportConfig(
        run=to_place(run),
        out=to_place(table.out),
        options=model.model_validate(layer.table("options")),
        worker_threads=table.threads or default_worker_threads(table.engine),
        engine=table.engine,
        beam_options=table.beam_options,
    )


def _check_apart(run: str, out: str) -> Iterator[str]:
    """Yield a line if the run and the export stand in one another: the receipt of a run names every file in it."""
    if not out or is_remote(run) != is_remote(out):
        return
    inner, outer = (PurePosixPath(place) if is_remote(place) else Path(place).resolve() for place in (out, run))
    if inner.is_relative_to(outer):
        yield f"--out {out}: it lies in the run {run}, whose receipt names every file; choose a folder apart from it"
    elif outer.is_relative_to(inner):
        yield f"--out {out}: the run {run} lies in it; choose a folder apart from it"
