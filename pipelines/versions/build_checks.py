"""Whether a tokenizer's build is that of the options: keys of scan and build, decisions and fixed ids, derived again.

All of it depends on the vocabulary and on the installation, and a run keeps the tokenizer of an earlier one. So this is
done only if the keys of the scan, which name the version and the candidates, come out as those of the installation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow.parquet as pq

from configs import VOCABULARY
from pipelines.stages.build import build_config, read_scan_counts
from pipelines.stages.scan import scan_config
from pipelines.stages.scan_receipts import merge_key
from pipelines.stages.vocabulary import recorded_digest, token_pattern
from pipelines.versions.part_checks import check_recounted
from schemas.digests import differing_keys, parse_json
from schemas.options import RunOptions
from schemas.units import Stage, UnitReceipt, unit_key
from tokenizer_build.artifact import TOKENIZER_JSON, describe_slots
from tokenizer_build.build import open_vocabulary, pattern_split, plan_vocabulary
from tokenizer_build.decision_files import DECISIONS_PARQUET, DECISIONS_TXT, KEPT, decision_lines, decision_rows
from tokenizer_build.decisions import BY_USE
from tokenizer_build.lock import RELEASES_NAME
from tokenizer_build.sentencepiece import make_model_manifest
from tokenizer_build.training import superword_tokens
from transforms.records.checks.unit_checks import RunUnits
from transforms.records.code import is_installed
from transforms.records.receipts import RECEIPT
from transforms.tokens.tokenizer import read_manifest


def check_build(run: RunUnits, *, recount: bool) -> Iterator[str]:
    """Yield what keys, decisions and manifest of a tokenizer contradict, which a run has built.

    Args:
        run: The run.
        recount: Whether to count all documents again too.
    """
    if not is_installed(run.receipt["code"]):
        return
    options = RunOptions.model_validate(run.receipt["configs"])
    yield from _check_traces(run, options)
    is_own = recorded_digest(run.out) is not None
    (merged,), shards = _split(run)
    with run.out.open_local_folder("tokenizer") as folder:
        vocabulary = folder if is_own else VOCABULARY
        strange = _strange_scans(shards, scan_config(options.scan, vocabulary))
        if not strange:
            yield from _check_keys(run, merged, shards, options, vocabulary, is_own=is_own)
            if options.build.kind == "bpe":
                yield from _check_plan(run, merged, options, vocabulary)
            else:
                yield from _check_model(run, options, vocabulary, folder)
            if recount and not run.receipt["tokenizer"].get("kept"):
                yield from check_recounted(run, shards, options.scan, vocabulary)
        elif len(strange) < len(shards):
            yield f"{run.out.where(strange[0].path)}: options, vocabulary and inputs give it another key"


def _split(run: RunUnits) -> tuple[list[UnitReceipt], list[UnitReceipt]]:
    """Return the receipts of merged counts, and those of the counts of shards."""
    units = run.by_stage[Stage.SCAN]
    return [unit for unit in units if not unit.inputs], [unit for unit in units if unit.inputs]


def _check_traces(run: RunUnits, options: RunOptions) -> Iterator[str]:
    """Compare the options of the scan with the files that it made."""
    for folder, expected in (
        ("counts/words/", options.scan.word_partitions),
        ("counts/units/", options.scan.word_partitions if options.scan.unit_pattern else 0),
    ):
        found = sum(name.startswith(folder) for name in run.files)
        if found != expected:
            yield f"{run.out.where(folder)}: {found} files, and the options of the scan give {expected}"
    for named in filter(None, (options.scan.pattern, options.scan.unit_pattern)):
        if named not in cppmill_core.PATTERNS:
            yield f"{run.out.where(RECEIPT)}: its options have the pattern {named!r}, which there is not"
    manifest = read_manifest(run.out)
    pattern = manifest.get("pattern")
    if pattern not in (None, token_pattern(options)):
        said = token_pattern(options)
        yield f"{run.out.where(RECEIPT)}: its options have the pattern {said}, the tokenizer's manifest {pattern}"
    if options.build.kind == "bpe":
        yield from _check_superwords(run, options, manifest)


def _check_superwords(run: RunUnits, options: RunOptions, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Check that as many tokens were learned in lines as the options give: which merges these are decides ids."""
    said = manifest.get("superwords")
    expected = superword_tokens(options.build.vocab_size, options.build.superwords_after)
    found = 0
    if said is not None:
        rules = parse_json(run.out.read_bytes(f"tokenizer/{TOKENIZER_JSON}"))["model"]
        made = ["".join(merge if isinstance(merge, list) else merge.split(" ")) for merge in rules["merges"]]
        found = len(set(made[said["first_merge"] :]).difference(made[: said["first_merge"]]))
    if (said is None) != (options.build.superwords_after is None) or found != expected:
        yield (
            f"{run.out.where('tokenizer')}: by its manifest {found} tokens were learned in lines, and by the options "
            f"of the receipt {expected}"
        )


def _check_model(run: RunUnits, options: RunOptions, vocabulary: Path, folder: Path) -> Iterator[str]:
    """Derive the manifest of a SentencePiece model again, which says what its control tokens are."""
    expected = make_model_manifest(vocabulary, options.build, options.scan.pattern, folder)
    for name in differing_keys(read_manifest(run.out), expected):
        yield f"{run.out.where('tokenizer')}: {name} of its manifest are not what vocabulary and options give"


def _strange_scans(shards: list[UnitReceipt], config: dict[str, Any]) -> list[UnitReceipt]:
    """Return the units of a scan whose keys a configuration does not give; equal shards are told apart by numbers."""

    def keys(unit: UnitReceipt) -> set[str]:
        (digest,) = unit.inputs.values()
        numbers = range(len(shards)) if len(same[digest]) > 1 else range(1)
        inputs = ([digest, *([number] if number else [])] for number in numbers)
        version = cppmill_core.__version__
        return {unit_key(Stage.SCAN, core_version=version, config=config, inputs=found) for found in inputs}

    same: dict[str, list[str]] = {}
    for unit in shards:
        for digest in unit.inputs.values():
            same.setdefault(digest, []).append(unit.key)
    return [unit for unit in shards if unit.key not in keys(unit)]


def _check_keys(
    run: RunUnits,
    merged: UnitReceipt,
    shards: list[UnitReceipt],
    options: RunOptions,
    vocabulary: Path,
    *,
    is_own: bool,
) -> Iterator[str]:
    """Derive the keys of the merged counts and of the build again."""
    if merged.key != merge_key(unit.key for unit in shards):
        yield f"{run.out.where(merged.path)}: the receipts of the shards' counts give it another key"
    if is_own and f"tokenizer/{RELEASES_NAME}" in run.files:
        return  # a release was noted beside the tokenizer since, and its lock is the later one
    (unit,), inputs = run.by_stage[Stage.BUILD], merged.files
    config = build_config(options, vocabulary, is_own=is_own)
    if unit.key != unit_key(Stage.BUILD, core_version=cppmill_core.__version__, config=config, inputs=inputs):
        yield (
            f"{run.out.where(unit.path)}: options, vocabulary and counts give it another key; is the vocabulary of "
            "this installation that of the run?"
        )


def _check_plan(run: RunUnits, merged: UnitReceipt, options: RunOptions, folder: Path) -> Iterator[str]:
    """Decide the candidates again, and plan the fixed ids; a missing file is one for the check of the layout."""
    parquet, text = f"tokenizer/{DECISIONS_PARQUET}", f"tokenizer/{DECISIONS_TXT}"
    if parquet not in run.files:
        return
    counts = read_scan_counts(run.out, [output.path for output in merged.outputs], by_group=False)
    vocabulary, lock = open_vocabulary(folder, options.build)
    split = pattern_split(token_pattern(options))
    with run.out.open_ranges(parquet) as file:
        found: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    uses = {row["token"].encode(): row["hits"] for row in found if row["category"].startswith(BY_USE)}
    plan = plan_vocabulary(vocabulary, lock, counts, options.build, split, threads=1, given_uses=(uses, _least(found)))
    rows = decision_rows(plan.decisions, [*plan.morphemes, *plan.by_use])
    wrong = next((row["token"] for row, other in zip(found, rows, strict=False) if row != other), None)
    if found != rows:
        yield f"{run.out.where(parquet)}: options and counts decide otherwise, of {wrong!r} for example"
    if text in run.files and run.out.read_bytes(text) != "".join(decision_lines(rows)).encode():
        yield f"{run.out.where(text)}: not the table of the decisions"
    manifest, expected = read_manifest(run.out), describe_slots(plan.slots)
    for name, value in json.loads(json.dumps(expected)).items():
        if manifest.get(name) != value:
            yield f"{run.out.where('tokenizer')}: {name} of its manifest are not those of the vocabulary and decisions"


def _least(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the fewest occurrences of a fixed token that was not left out because of them."""
    kept = [row["hits"] for row in rows if row["category"].startswith(BY_USE) and row["decision"] == KEPT]
    return min(kept, default=float("inf"))
