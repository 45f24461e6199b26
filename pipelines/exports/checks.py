"""Verification of an export: against its manifest, in itself, and against its run where that is at hand.

Digests show damage. That the files are those of the run is shown by making them again: the plan, which is every key,
file and total, of the whole export, and the bytes of a sample of the files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cppmill_core
import pyarrow.parquet as pq
from pydantic import ValidationError

from configs.execution import usable_threads
from pipelines.exports import sequences, shards
from pipelines.exports.frame import ExportSource, open_source
from schemas.digests import HEX_DIGEST, add_digests, choose_share, differing_keys, same_json
from schemas.errors import CppmillError, IntegrityError
from schemas.export_options import SequenceOptions, ShardOptions
from schemas.options import REENCODED, Options
from schemas.units import OutputFile, Stage, Unit, UnitReceipt, current_path, is_unit_receipt
from transforms.exports.sequences import checks as sequence_checks
from transforms.exports.sequences.export import sequence_unit
from transforms.exports.shards import checks as shard_checks
from transforms.exports.shards.writer import write_shard
from transforms.records.code import code_versions, names_versions
from transforms.records.manifests import MANIFEST, ExportFacts, make_manifest, read_manifest, verify_export
from transforms.records.receipts import read_receipt
from transforms.records.record import MALFORMED, malformed
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import scratch_folder
from transforms.units.flow import Flow, run_flow

_CORE = "cppmill-core"
"""The package whose version the keys of units hold."""

Made = tuple[list[Unit], Callable[[Unit], UnitReceipt]]
"""The units of an export, and what makes one of them."""


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """How exports of a kind are checked.

    Attributes:
        options: The model of their options.
        sum_totals: Adds up the receipts of their units.
        describe: What the manifest says of files besides path, SHA-256, bytes and rows.
        check: Checks files and receipts by themselves, given the manifest.
        plan: Plans them again, to be made in a folder.
        check_totals: Compares what they add up to with the run; raises IntegrityError.
    """

    options: type[Options]
    sum_totals: Callable[[Sequence[UnitReceipt]], Mapping[str, Any]]
    describe: Callable[[Sequence[UnitReceipt]], dict[str, dict[str, Any]]]
    check: Callable[[OutputFolder, dict[str, Any], Any, Sequence[UnitReceipt]], Iterator[str]]
    plan: Callable[[ExportSource[Any], OutputFolder], Made]
    check_totals: Callable[[ExportSource[Any], Any, str], None]


def check_export(out: OutputFolder, run: OutputFolder | None = None, *, share: float = REENCODED) -> list[str]:
    """Return every difference between an export, its manifest and its run.

    Args:
        out: The folder of the export.
        run: The run that it was made from; None looks at the export alone.
        share: The part of its files to make again from the run, 0 to 1; above 0 at least one.
    """
    try:
        differences = verify_export(out)
        if differences:
            return differences
        manifest = read_manifest(out) or {}
        kind = _KINDS[manifest["export"]]
        options = kind.options.model_validate(manifest["options"])
        receipts = [
            UnitReceipt.from_bytes(out.read_bytes(name), where=out.where(name)) for name in sorted(manifest["receipts"])
        ]
        differences = [
            *_check_receipts(out, manifest, receipts),
            *_check_manifest(out, manifest, kind, options, receipts, run),
        ]
        differences = differences or list(kind.check(out, manifest, options, receipts))
        if differences or run is None:
            return differences
        return list(_check_made(out, manifest, kind, options, receipts, run, share))
    except (CppmillError, cppmill_core.CoreError) as error:
        return [str(error)]
    except ValidationError as error:
        return [malformed(out, MANIFEST, ValueError(f"options: {error.errors()[0]['msg']}"), kind="manifest")]
    except (*MALFORMED, IndexError) as error:
        return [malformed(out, MANIFEST, error, kind="manifest")]


def _check_receipts(out: OutputFolder, manifest: dict[str, Any], receipts: Sequence[UnitReceipt]) -> Iterator[str]:
    """Compare unit receipts with their places, and what they say of files with these."""
    stage, inputs = Stage(manifest["export"]), dict[str, str]()
    names, there = {current_path(name): name for name in manifest["receipts"]}, set(out.files())
    for receipt in receipts:
        if receipt.stage is not stage or receipt.path not in names or receipt.ledger:
            yield f"{out.where(receipt.path)}: no receipt of a unit of {stage} by its stage, key or ledger"
        receipt.check_facts(where=out.where(receipt.path))
        for path, digest in receipt.inputs.items():
            if inputs.setdefault(path, digest) != digest:
                yield f"{out.where(receipt.path)}: its input {path} has another SHA-256 than in other unit receipts"
        if receipt.outputs and not receipt.inputs:
            yield f"{out.where(receipt.path)}: it has files, and no token shard that they were made from"
        for output in receipt.outputs:
            if output.path not in there or out.describe(output.path, rows=output.rows) != output:
                yield f"{out.where(receipt.path)}: {output.path} has another size or SHA-256 than it says"
    if len({receipt.path for receipt in receipts}) != len(names) or not all(is_unit_receipt(n, stage) for n in names):
        yield f"{out.where(MANIFEST)}: it does not name each receipt of a unit of {stage} once"


def _check_manifest(
    out: OutputFolder,
    manifest: dict[str, Any],
    kind: _Kind,
    options: Options,
    receipts: Sequence[UnitReceipt],
    run: OutputFolder | None,
) -> Iterator[str]:
    """Make the manifest again from the unit receipts, and from the run's receipt if that is at hand."""
    source: dict[str, Any] = {
        "tokenizer": manifest["tokenizer"],
        "dataset": {"digest": manifest["dataset"]["digest"]},
        "digest": manifest["dataset"]["receipt"],
        "platform_vocab": manifest.get("platform_vocab", {}),
    }
    facts = ExportFacts(
        run=source if run is None else read_receipt(run),
        stage=Stage(manifest["export"]),
        options=options.to_json(),
        files=[output for receipt in receipts for output in receipt.outputs],
        facts=kind.describe(receipts),
        receipts=manifest["receipts"],
        totals=dict(kind.sum_totals(receipts)),
        code=manifest["code"],
    )
    made = make_manifest(facts)
    named = "unit receipts" if run is None else f"unit receipts and {run.root}"
    differing = (name for name in differing_keys(made, manifest) if name != "digest")
    yield from (f"{out.where(MANIFEST)}: its {name} is not what {named} give" for name in differing)
    facts_of = [fact for name in ("tokenizer", "dataset", "platform_vocab") for fact in manifest.get(name, {}).items()]
    for name, digest in facts_of:
        if name in ("digest", "receipt") and not (isinstance(digest, str) and HEX_DIGEST.fullmatch(digest)):
            yield f"{out.where(MANIFEST)}: {digest!r} is no SHA-256"
    for size in (manifest["tokenizer"]["vocab_size"], manifest.get("platform_vocab", {}).get("size", 1)):
        if type(size) is not int or size < 1:
            yield f"{out.where(MANIFEST)}: {size!r} is no size of a vocabulary"
    if manifest["code"].keys() != code_versions().keys() or not names_versions(manifest["code"]):
        yield f"{out.where(MANIFEST)}: its code is no list of versions"


def _check_shards(
    out: OutputFolder, manifest: dict[str, Any], options: ShardOptions, receipts: Sequence[UnitReceipt]
) -> Iterator[str]:
    facts = shard_checks.ShardFacts(
        out=out,
        options=options,
        vocab_size=manifest["tokenizer"]["vocab_size"],
        platforms=manifest.get("platform_vocab", {}).get("size", 0),
    )
    if add_digests(receipt.totals["dataset_digest"] for receipt in receipts) != manifest["dataset"]["digest"]:
        yield f"{out.where(MANIFEST)}: the digests of its files do not sum to that of the dataset"
    misnamed = list(_problems([partial(shard_checks.check_files, receipts, facts)]))
    yield from misnamed or _problems(partial(shard_checks.check_unit, receipt, facts) for receipt in receipts)


def _check_sequences(
    out: OutputFolder, manifest: dict[str, Any], options: SequenceOptions, receipts: Sequence[UnitReceipt]
) -> Iterator[str]:
    facts = sequence_checks.SequenceFacts(
        out=out,
        options=options,
        tokenizer=manifest["tokenizer"]["digest"],
        vocab_size=manifest["tokenizer"]["vocab_size"],
        platforms=manifest.get("platform_vocab", {}).get("size", 0),
    )
    yield from _problems(partial(sequence_checks.check_unit, receipt, facts) for receipt in receipts)


def _problems(checks: Any) -> Iterator[str]:  # noqa: ANN401 - any number of calls
    for check in checks:
        try:
            check()
        except (IntegrityError, cppmill_core.CorruptDataError) as error:
            yield str(error)


def _plan_shards(source: ExportSource[ShardOptions], out: OutputFolder) -> Made:
    settings = shards.shard_settings(source, out, threads=usable_threads())
    return list(shards.plan_units(source, settings, _run_here)), partial(write_shard, settings=settings)


def _check_splits(source: ExportSource[ShardOptions], totals: Mapping[str, dict[str, Any]], where: str) -> None:
    shards.check_splits(source, totals, more=shards.find_borders(source).more, where=where)


def _plan_sequences(source: ExportSource[SequenceOptions], out: OutputFolder) -> Made:
    settings = sequences.sequence_settings(source, out, threads=usable_threads())
    return sequences.plan_units(source, settings, _run_here), partial(sequence_unit, settings=settings)


def _run_here(_stage: Stage, units: Sequence[Unit], flow: Flow) -> list[UnitReceipt]:
    found = {receipt.key: receipt for receipt in run_flow(flow, units)}
    return [found[unit.key] for unit in units]


def _check_made(
    out: OutputFolder,
    manifest: dict[str, Any],
    kind: _Kind,
    options: Options,
    receipts: Sequence[UnitReceipt],
    run: OutputFolder,
    share: float,
) -> Iterator[str]:
    """Plan the export again, make a sample of its files again, and compare."""
    source = open_source(run, options, core_version=manifest["code"][_CORE])
    with tempfile.TemporaryDirectory(dir=scratch_folder(), ignore_cleanup_errors=True) as name:
        folder = OutputFolder(name)
        units, make = kind.plan(source, folder)
        found, expected = {receipt.key for receipt in receipts}, {unit.key for unit in units}
        if found != expected:
            yield (
                f"{out.where(MANIFEST)}: of its {len(found)} units {len(found - expected)} are not of {run.root} with "
                f"these options, and {len(expected - found)} of that are missing"
            )
            return
        kind.check_totals(source, kind.sum_totals(receipts), out.root)
        by_key = {receipt.key: receipt for receipt in receipts}
        for unit in units:
            if not same_json(by_key[unit.key].inputs, unit.planned_inputs):
                yield f"{out.where(by_key[unit.key].path)}: its inputs are not those that the run gives"
        for number in choose_share([unit.key for unit in units], share):
            unit = units[number]
            yield from _compare(out, folder, by_key[unit.key], make(unit), manifest["code"])


def _compare(
    out: OutputFolder, folder: OutputFolder, said: UnitReceipt, made: UnitReceipt, code: Mapping[str, str]
) -> Iterator[str]:
    """Compare a unit receipt with that of the same unit, made again in another folder, which is cleared.

    Bytes of Parquet depend on the version of its library; if another one wrote the file, rows are compared. Only other
    versions of cppmill, which the unit's key names, may lack totals.
    """
    files, is_same_version = {output.path: output for output in made.outputs}, code[_CORE] == code_versions()[_CORE]
    for output in said.outputs:
        again = files.get(output.path)
        if again != output and (code == code_versions() or not _same_rows(out, folder, output)):
            yield f"{out.where(output.path)}: made again from the run, it has SHA-256 {again and again.sha256}"
    totals = {name: value for name, value in made.totals.items() if is_same_version or name in said.totals}
    for name, one, other in (
        ("outputs", [output.path for output in said.outputs], [output.path for output in made.outputs]),
        ("totals", said.totals, totals),
    ):
        if not same_json(one, other):
            yield f"{out.where(said.path)}: its {name} are not those that the run gives"
    for output in made.outputs:
        folder.remove(output.path)


def _same_rows(out: OutputFolder, folder: OutputFolder, output: OutputFile) -> bool:
    if not output.path.endswith(".parquet"):
        return False
    with out.open_local(output.path) as one, folder.open_local(output.path) as other:
        return bool(pq.read_table(one, partitioning=None).equals(pq.read_table(other, partitioning=None)))


_KINDS = {
    str(Stage.SHARDS): _Kind(
        options=ShardOptions,
        sum_totals=shards.sum_splits,
        describe=shards.describe_files,
        check=_check_shards,
        plan=_plan_shards,
        check_totals=_check_splits,
    ),
    str(Stage.SEQUENCES): _Kind(
        options=SequenceOptions,
        sum_totals=sequences.sum_totals,
        describe=lambda _receipts: {},
        check=_check_sequences,
        plan=_plan_sequences,
        check_totals=lambda source, totals, where: sequences.check_totals(source, totals, where=where),
    ),
}
