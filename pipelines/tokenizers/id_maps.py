"""The program of `cppmill vocab map`: the ids of one tokenizer in those of another, and embeddings to begin with."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core.adoption import Source, find_source, write_directory
from cppmill_core.manifests import MANIFEST

from configs.outputs import check_file
from pipelines.stages.given import check_foreign, resolve_source
from schemas.errors import ConfigError
from schemas.files import whole_file
from tokenizer_build.compare.diff import TokenizerIds, VocabularyDiff, initial_rows, read_ids
from transforms.storage.scratch import temporary_folder


def map_ids(old: Path, new: Path, out: Path, *, embeddings: Path | None = None, init: Path | None = None) -> list[str]:
    """Write the map from new ids to old ones, and the rows that a model begins with.

    Args:
        old: The tokenizer that a model was trained with: a tokenizer directory, or what `adopt` takes.
        new: The tokenizer that it is to have.
        out: The map to write, `.parquet` (`tokenizer_build.compare.diff.ID_MAP`).
        embeddings: The rows of the model by old id, `.npy`.
        init: The rows to write by new id, `.npy`.

    Returns:
        What to print: how many ids are of each kind.

    Raises:
        ConfigError: If a file cannot be used or written, or there are fewer rows than old ids.
    """
    for path, option, ending in ((out, "--out", ".parquet"), (init, "--init", ".npy")):
        if path is not None:
            if path.suffix != ending:
                raise ConfigError(f"{option} {path}: its name must end in {ending}")
            check_file(path, option=option)
    if (embeddings is None) != (init is None):
        raise ConfigError("--embeddings, --init: give both, the file of the model's rows and the file to write")
    with ExitStack() as stack:
        found = VocabularyDiff(*(_read(path, stack) for path in (old, new)))
        table = found.id_map()
    with whole_file(out) as file:
        pq.write_table(table, file, compression="zstd")
    kinds = Counter(table["kind"].to_pylist())
    lines = [
        f"{out}: {table.num_rows:,} ids, " + ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(map(str, kinds)))
    ]
    if embeddings is not None and init is not None:
        lines.append(_write_rows(table, len(found.old.entries), embeddings, init))
    return lines


def _read(path: Path, stack: ExitStack) -> TokenizerIds:
    """Read the ids of a tokenizer of any kind; one without a manifest is adopted into a temporary folder."""
    path = resolve_source(path)
    try:
        if not (path / MANIFEST).is_file():
            check_foreign(path)
            folder = Path(stack.enter_context(temporary_folder()))
            write_directory(_find_source(path), folder)
            path = folder
        return read_ids(path, cppmill_core.load_tokenizer(path))
    except (OSError, cppmill_core.CoreError, ImportError) as error:
        raise ConfigError(str(error)) from error


def _find_source(path: Path) -> Source:
    """Find a tokenizer, lossless where it can be."""
    try:
        return find_source(path)
    except cppmill_core.InvalidInputError:
        return find_source(path, allow_lossy=True)


def _write_rows(id_map: pa.Table, least: int, embeddings: Path, init: Path) -> str:
    """Write the rows of the new ids, made of at least so many old ones."""
    try:
        rows = np.load(embeddings, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--embeddings {embeddings}: no rows in it: {error}") from error
    if rows.ndim != 2 or len(rows) < least:
        raise ConfigError(f"--embeddings {embeddings}: its shape is {rows.shape}, the old tokenizer has {least:,} ids")
    new = initial_rows(rows, id_map)
    with whole_file(init) as file:
        np.save(file, new)
    return f"{init}: {new.shape[0]:,} rows of {new.shape[1]:,} numbers, {new.dtype}"
