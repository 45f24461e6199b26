"""The configuration of an export: a finished run, a folder of its own, and the export's options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from configs.execution import EngineName, default_worker_threads
from configs.flags import Flag, read_flags
from configs.places import check_places
from configs.runs import Place, to_place
from configs.tables import ExportTableOptions
from schemas.errors import ConfigError
from schemas.options import Options
from schemas.places import is_remote
from schemas.units import Stage

ExportOptions = TypeVar("ExportOptions", bound=Options)


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
    model: type[ExportOptions],
    *,
    run: str,
    values: Mapping[str, object],
    flags: Mapping[str, Flag],
    options: Mapping[str, object] | None = None,
) -> ExportConfig[ExportOptions]:
    """Return the configuration of an export from its flags.

    Args:
        model: The options of this kind of export.
        run: The finished run, a folder or its URL.
        values: Values by flag, text as it was typed; None for a flag that was not given.
        flags: All flags; the flags of the options belong to the table `options`.
        options: Options that do not come from flags, by key; checked already.

    Raises:
        ConfigError: With one line for every problem.
    """
    layer = read_flags(values, flags)
    tables: dict[str, type[BaseModel]] = {"run": ExportTableOptions, "options": model}
    keys = {name: frozenset(table.model_fields) for name, table in tables.items()}
    problems = [
        *layer.problems(tables, keys),
        *check_places({"run": layer.table("run")}, layers=[layer], needs_sources=False),
        *_check_apart(run, layer.table("run").get("out", "")),
    ]
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    table = ExportTableOptions.model_validate(layer.table("run"))
    return ExportConfig(
        run=to_place(run),
        out=to_place(table.out),
        options=model.model_validate({**layer.table("options"), **(options or {})}),
        worker_threads=table.threads or default_worker_threads(table.engine),
        engine=table.engine,
        beam_options=table.beam_options,
    )


def _check_apart(run: str, out: str) -> Iterator[str]:
    """Yield a line if one of run and export lies in the other: the receipt of a run names every file in it."""
    if not out or is_remote(run) != is_remote(out):
        return
    inner, outer = (PurePosixPath(place) if is_remote(place) else Path(place).resolve() for place in (out, run))
    if inner.is_relative_to(outer):
        yield f"--out {out}: it lies in the run {run}, whose receipt names every file; choose a folder apart from it"
    elif outer.is_relative_to(inner):
        yield f"--out {out}: the run {run} lies in it; choose a folder apart from it"
