"""The program of `cppmill vocab working-set`: a run's token shards to an allow-list of ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from configs.outputs import check_outside, check_parent
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.texts import read_shards
from schemas.digests import canonical_json
from schemas.errors import ConfigError
from tokenizer_build.compare.diff import read_ids
from tokenizer_build.working_set import count_tokens, describe_working_set
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder


def write_working_set(run: str, file: Path, *, globs: Sequence[str], coverage: float) -> str:
    """Write the working set of some projects of a finished run.

    Args:
        run: The run's folder, or its URL.
        file: The file to write.
        globs: Patterns of project names.
        coverage: Share of the projects' tokens to cover.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If there is no finished run, no project matches, the coverage is not a share, or the file
            cannot be written there.
    """
    if not 0 < coverage <= 1:
        raise ConfigError(f"--coverage {coverage}: not allowed; it takes a number above 0 and up to 1")
    check_parent(file, option="--out")
    check_outside(file, run, option="--out")
    out = OutputFolder(run)
    receipt = read_receipt(out)
    with out.open_local_folder("tokenizer") as tokenizer:
        ids = read_ids(tokenizer, load_tokenizer(tokenizer, argument="OUT"))
    shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
    batches = read_shards(out, shards, ["project", "token_ids"])
    histogram = count_tokens(batches, globs, ids.tokenizer.vocab_size)
    if not histogram.projects:
        raise ConfigError(f"--projects {' '.join(globs)}: no project of {run} has such a name; try --projects '*'")
    made = describe_working_set(histogram, ids, globs=globs, coverage=coverage, dataset=receipt["dataset"]["digest"])
    file.write_bytes(canonical_json(made) + b"\n")
    return _describe(made)


def _describe(made: dict[str, Any]) -> str:
    projects, reached = made["projects"], made["coverage"]
    return (
        f"{len(projects['names']):,} projects, {projects['documents']:,} documents, {reached['tokens']:,} tokens: "
        f"{len(made['ids']):,} of {made['tokenizer']['vocab_size']:,} ids cover {reached['reached']:.4%}"
    )
