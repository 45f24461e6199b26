"""The program of `cppmill vocab working-set`: a run's token shards to an allow-list of ids."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa

from configs.outputs import check_file, check_outside
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.texts import documents_shards, read_shards
from schemas.digests import canonical_json
from schemas.errors import ConfigError
from schemas.files import write_file
from tokenizer_build.compare.diff import read_ids
from tokenizer_build.decision_files import DECISIONS_PARQUET
from tokenizer_build.subsets.masks import match_bands, read_named_bands
from tokenizer_build.subsets.working_set import Choice, count_tokens, describe_working_set
from transforms.records.platforms import PLATFORM_VOCAB, read_platform_vocab
from transforms.records.receipts import check_named, read_receipt
from transforms.storage.folder import OutputFolder
from transforms.tokens.tokenizer import check_tokenizer

_DECISIONS = f"tokenizer/{DECISIONS_PARQUET}"


@dataclass(frozen=True, kw_only=True)
class DocumentGlobs:
    """What chooses documents, patterns as of a shell; empty for all.

    Attributes:
        projects: Names of projects.
        platforms: `CATEGORY=LABEL` of platforms, such as `gpu=*`.
        namespaces: Leading namespaces in code, without `::`.
    """

    projects: Sequence[str] = ()
    platforms: Sequence[str] = ()
    namespaces: Sequence[str] = ()


def write_working_set(run: str, file: Path, *, globs: DocumentGlobs, coverage: float, bands: Sequence[str] = ()) -> str:
    """Write the working set of some documents of a finished run.

    Args:
        run: The run's folder, or its URL.
        file: The file to write.
        globs: Which documents.
        coverage: Share of the documents' tokens to cover.
        bands: Patterns of bands that are in the set as a whole.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If there is no finished run, a pattern matches nothing, the coverage is not a share, or the file
            cannot be written there.
        IntegrityError: If the tokens or the documents are not those that the receipt names.
    """
    if not 0 < coverage <= 1:
        raise ConfigError(f"--coverage {coverage}: not allowed; it takes a number above 0 and up to 1")
    check_outside(file, run, option="--out")
    check_file(file, option="--out")
    out = OutputFolder(run)
    receipt = read_receipt(out)
    check_tokenizer(out, receipt)
    if bands and (_DECISIONS in receipt["files"] or out.exists(_DECISIONS)):
        check_named(out, receipt, [_DECISIONS])
    with out.open_local_folder("tokenizer") as tokenizer:
        ids = read_ids(tokenizer, load_tokenizer(tokenizer, argument="RUN"))
        named = read_named_bands(tokenizer, ids) if bands else {}
    whole = {name: ids for glob in bands for name, ids in match_bands(named, glob, argument="--bands").items()}
    projects = globs.projects or ["*"]
    labels = _match_platforms(out, receipt, globs.platforms)
    choice = Choice(
        projects,
        frozenset(labels.values()) if globs.platforms else None,
        _documents_with(out, globs.namespaces) if globs.namespaces else None,
    )
    shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
    check_named(out, receipt, shards)
    histogram = count_tokens(read_shards(out, shards, choice.columns), choice, ids.tokenizer.vocab_size)
    if not histogram.projects:
        raise ConfigError(_nothing(run, globs, projects))
    chosen: dict[str, Any] = {}
    if globs.platforms:
        chosen["platforms"] = {"globs": list(globs.platforms), "labels": sorted(labels)}
    if globs.namespaces:
        chosen["namespaces"] = {"globs": list(globs.namespaces)}
    digest = receipt["dataset"]["digest"]
    made = describe_working_set(
        histogram, ids, globs=projects, coverage=coverage, dataset=digest, bands=whole, chosen=chosen
    )
    write_file(file, canonical_json(made) + b"\n")
    return _describe(made)


def _nothing(run: str, globs: DocumentGlobs, projects: Sequence[str]) -> str:
    if globs.platforms or globs.namespaces:
        return f"{run}: no document meets --projects, --platforms and --namespaces together; leave one of them out"
    return f"--projects {' '.join(projects)}: no project of {run} has such a name; try --projects '*'"


def _match_platforms(out: OutputFolder, receipt: Mapping[str, Any], globs: Sequence[str]) -> dict[str, int]:
    """Return the platforms, `CATEGORY=LABEL`, that one of some patterns matches, with their ids.

    Raises:
        ConfigError: If a pattern matches none, or the run's labels are not known.
        IntegrityError: If the labels are not those that the receipt names.
    """
    if not globs:
        return {}
    vocab = read_platform_vocab(out, receipt)
    if vocab is None:
        raise ConfigError(f"--platforms: {out.where(PLATFORM_VOCAB)} is missing; run again, or leave the option out")
    named = {f"{category}={label}": number for number, (category, label) in vocab.labels.items()}
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in named):
            raise ConfigError(f"--platforms {glob}: no such platform; it takes CATEGORY=LABEL, as in {PLATFORM_VOCAB}")
    return {name: number for name, number in named.items() if any(fnmatchcase(name, glob) for glob in globs)}


def _documents_with(out: OutputFolder, globs: Sequence[str]) -> frozenset[str]:
    """Return the documents in whose code a namespace occurs, by the scan's own count, with the id as the project.

    Raises:
        ConfigError: If the run's documents are gone.
    """
    folder, shards = documents_shards(out.root, argument="RUN")
    found: set[str] = set()
    scanner = cppmill_core.Scanner(json.dumps({"pattern": next(iter(cppmill_core.PATTERNS))}))
    for batch in read_shards(folder, shards, ["doc_id", "content"]):
        scanner.add(pa.record_batch({"project": batch["doc_id"], "content": batch["content"]}))
        counted = scanner.finish()["namespaces"]
        names = zip(counted["namespace"].to_pylist(), counted["project"].to_pylist(), strict=True)
        found |= {document for name, document in names if any(fnmatchcase(name, glob) for glob in globs)}
    return frozenset(found)


def _describe(made: dict[str, Any]) -> str:
    projects, reached = made["projects"], made["coverage"]
    return (
        f"{len(projects['names']):,} projects, {projects['documents']:,} documents, {reached['tokens']:,} tokens: "
        f"{len(made['ids']):,} of {made['tokenizer']['vocab_size']:,} ids cover {reached['reached']:.4%}"
    )
