"""The scan program: documents shards to counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from configs.runs import RunConfig
from pipelines.console.progress import Reporter
from pipelines.stages.document_units import check_kept, plan_shards
from pipelines.stages.program import StagePlan, StageProgram, plan_units, to_skip
from pipelines.stages.scan_receipts import ScanReceipts, merge_key
from pipelines.stages.session import Session, open_session
from pipelines.stages.standing import KEPT, build_receipts, has_lost_tokenizer, keeps_tokenizer
from schemas.digests import parse_json, sha256_json
from schemas.errors import IntegrityError
from schemas.options import ScanOptions
from schemas.units import OutputFile, Stage, Unit, UnitReceipt
from transforms.scan.count import ScanSettings, scan_documents
from transforms.scan.kinds import count_kinds, part_path
from transforms.scan.merge import GROUPS, merge_shards
from transforms.units.flow import Flow


def run(config: RunConfig, reporter: Reporter) -> None:
    """Scan the documents in OUT, unless the counts there are those of a tokenizer that is kept.

    Counts beside a tokenizer that was copied into OUT belong to no tokenizer, so they may be made.
    """
    with open_session(config, reporter) as session:
        documents = session.current(Stage.INGEST)
        session.check_outputs(documents)
        check_kept(session, documents)
        if config.rebuild_tokenizer or build_receipts(session) or has_lost_tokenizer(session):
            work(session, documents)
        else:
            scan(session, documents)


def scan(session: Session, documents: Sequence[UnitReceipt]) -> ScanReceipts:
    """Scan the new documents shards, and merge all counts unless they are up to date; return the receipts."""
    settings = scan_settings(session)
    return _scan(session, settings, plan_scan(documents, settings))


def _scan(session: Session, settings: ScanSettings, units: list[Unit]) -> ScanReceipts:
    merge = plan_merge(units)
    _set_aside_incomplete(session, settings, units)
    merged = session.out.find_receipt(merge)
    if merged is None:
        session.out.remove_folder(GROUPS)  # what a killed merge left: no receipt says what is in it
        flow = (*scan_documents(settings), *merge_shards(settings, len(units)))
        shards = session.run_units(Stage.SCAN, units, flow, revisit=True)
        session.withdraw([merge])
        merged = UnitReceipt(stage=Stage.SCAN, key=merge.key, outputs=_merged_files(session, settings), totals={})
        session.out.publish_receipt(merged)
        session.out.remove_folder(GROUPS)
    else:
        shards = session.run_units(Stage.SCAN, units, scan_documents(settings))
    session.remember(Stage.SCAN, [*units, merge], vocabulary=session.vocabulary_digest)
    return ScanReceipts(shards=shards, merged=merged)


def _set_aside_incomplete(session: Session, settings: ScanSettings, units: Sequence[Unit]) -> None:
    """Set receipts aside that lack a kind of counts, or have another one, so that their units run again."""
    families = {kind.family for kind in count_kinds(word_partitions=settings.word_partitions, lines=settings.lines)}

    def check(unit: Unit) -> None:
        try:
            found = session.out.read_receipt(unit).files.keys()
        except (FileNotFoundError, IntegrityError):
            return  # the unit runs anyway
        if found != {part_path(family, unit.key) for family in families}:
            session.out.set_aside(unit.receipt_path)

    session.out.each(check, units)


def shards_flow(session: Session) -> Flow:
    """Return the flow of the units of shards, no more at a time than there are threads."""
    settings = scan_settings(session)
    return scan_documents(settings, batch_units=settings.threads)


def work(session: Session, documents: Sequence[UnitReceipt]) -> list[UnitReceipt]:
    """Scan, and return all receipts; none, and counts stay as they are, if the tokenizer in OUT is kept."""
    settings = scan_settings(session)
    units = plan_scan(documents, settings)
    if keeps_tokenizer(session, plan_merge(units)):
        session.reporter.note(f"scan: nothing to count: {KEPT}")
        return []
    receipts = _scan(session, settings, units)
    return [*receipts.shards, receipts.merged]


def plan(session: Session, documents: Sequence[UnitReceipt]) -> StagePlan:
    """Return what `scan` would do."""
    units = plan_scan(documents, scan_settings(session))
    merge = plan_merge(units)
    if keeps_tokenizer(session, merge):
        return StagePlan(units=[to_skip(Stage.SCAN, "documents", KEPT)])
    planned = plan_units(session, [*units, merge])
    is_merged = any(receipt.key == merge.key for receipt in planned.receipts)
    return replace(planned, blocked="" if is_merged else "the counts must be merged first")


def scan_settings(session: Session) -> ScanSettings:
    """Return what the workers need to scan."""
    return ScanSettings(
        out=session.out,
        scanner_config=scanner_config(session.config.options.scan, session.vocabulary),
        word_partitions=session.config.options.scan.word_partitions,
        lines=session.config.options.scan.unit_pattern is not None,
        threads=session.config.worker_threads,
        memory_bytes=session.config.memory_bytes,
    )


def scanner_config(options: ScanOptions, folder: Path) -> str:
    """Return the configuration of the native scanner for the vocabulary of a folder, as JSON."""
    from tokenizer_build.lint import load_vocabulary

    vocabulary, _ = load_vocabulary(folder)
    return json.dumps(
        {
            "pattern": options.pattern,
            **({"unit_pattern": options.unit_pattern} if options.unit_pattern else {}),
            "word_partitions": options.word_partitions,
            **({"partition_by_project": True} if options.partition_by_project else {}),
            "candidates": vocabulary.scanner_candidates(),
            "morphemes": vocabulary.scanner_morphemes(),
        }
    )


def plan_scan(documents: Sequence[UnitReceipt], settings: ScanSettings) -> list[Unit]:
    """Return one unit for each documents shard."""
    return plan_shards(Stage.SCAN, documents, config={"scanner": _config_digest(settings.scanner_config)})


def scan_config(options: ScanOptions, folder: Path) -> dict[str, Any]:
    """Return what the keys of a scan's units depend on, besides the documents, with the vocabulary of a folder."""
    return {"scanner": _config_digest(scanner_config(options, folder))}


@lru_cache(maxsize=1)
def _config_digest(scanner_config: str) -> str:
    return sha256_json(parse_json(scanner_config))


def plan_merge(units: Sequence[Unit]) -> Unit:
    """Return the unit that merges the counts of `units`; its receipt commits the merged counts."""
    key = merge_key(unit.key for unit in units)
    return Unit(stage=Stage.SCAN, key=key, num_bytes=0, label="merged counts", payload={})


def _merged_files(session: Session, settings: ScanSettings) -> tuple[OutputFile, ...]:
    kinds = count_kinds(word_partitions=settings.word_partitions, lines=settings.lines)
    names = sorted(kind.merged_path for kind in kinds)
    return tuple(session.out.describe(name) for name in names)


PROGRAM = StageProgram(stage=Stage.SCAN, needs=(Stage.INGEST,), work=work, plan=plan)
