"""The scan program: documents shards to counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import apache_beam as beam
import cppmill_core

from configs.runs import RunConfig
from configs.vocabulary import VOCABULARY
from pipelines.stages.document_units import plan_shards
from pipelines.stages.program import StagePlan, StageProgram, plan_units
from pipelines.stages.session import Session
from schemas.digests import sha256_json
from schemas.units import OutputFile, Stage, Unit, UnitReceipt, unit_key
from tokenizer_build.lint import load_vocabulary
from transforms.scan.count import GROUPS, MergeCounts, ScanDocuments, ScanSettings, count_kinds, merged_path


def scan(session: Session, documents: Sequence[UnitReceipt]) -> UnitReceipt:
    """Scan what is new among the documents shards and merge all counts; return the receipt that commits them."""
    settings = scan_settings(session)
    units = plan_scan(documents, settings)
    merged = plan_merge(units)
    standing = session.out.find_receipt(merged)
    if standing is None:
        session.run_units(
            Stage.SCAN, units, partial(_scan_and_merge, settings=settings, num_shards=len(units)), revisit=True
        )
        standing = UnitReceipt(stage=Stage.SCAN, key=merged.key, outputs=_merged_files(session, settings), totals={})
        session.out.publish_receipt(standing)
        session.out.remove_folder(GROUPS)
    else:
        session.run_units(Stage.SCAN, units, lambda found: found | "ScanDocuments" >> ScanDocuments(settings=settings))
    session.remember(Stage.SCAN, [*units, merged])
    return standing


def work(session: Session, documents: Sequence[UnitReceipt]) -> list[UnitReceipt]:
    """Scan, and return the receipt that commits the merged counts."""
    return [scan(session, documents)]


def plan(session: Session, documents: Sequence[UnitReceipt]) -> StagePlan:
    """Return what `scan` would do."""
    units = plan_scan(documents, scan_settings(session))
    merged = plan_merge(units)
    planned = plan_units(session, [*units, merged])
    counts = session.out.find_receipt(merged)
    if counts is None:
        return replace(planned, blocked="the counts are to be merged first")
    return replace(planned, receipts=[counts])


def scan_settings(session: Session) -> ScanSettings:
    """Return what the workers need to scan."""
    return ScanSettings(
        out=session.out,
        scanner_config=scanner_config(session.config),
        word_partitions=session.config.options.scan.word_partitions,
        units=session.config.options.scan.unit_pattern is not None,
        threads=session.config.worker_threads,
        memory_bytes=session.config.memory_bytes,
    )


def scanner_config(config: RunConfig) -> str:
    """Return the configuration of the native scanner, as JSON."""
    options = config.options.scan
    vocabulary, _ = load_vocabulary(VOCABULARY)
    return json.dumps(
        {
            "pattern": options.pattern,
            **({"unit_pattern": options.unit_pattern} if options.unit_pattern else {}),
            "word_partitions": options.word_partitions,
            "candidates": vocabulary.scanner_candidates(),
            "morphemes": vocabulary.scanner_morphemes(),
        }
    )


def plan_scan(documents: Sequence[UnitReceipt], settings: ScanSettings) -> list[Unit]:
    """Return one unit a documents shard."""
    config = {"scanner": sha256_json(json.loads(settings.scanner_config))}
    return plan_shards(Stage.SCAN, documents, config=config)


def plan_merge(units: Sequence[Unit]) -> Unit:
    """Return the unit that stands for the merged counts of `units`."""
    key = unit_key(
        Stage.SCAN, core_version=cppmill_core.__version__, config={}, inputs=sorted(unit.key for unit in units)
    )
    return Unit(stage=Stage.SCAN, key=key, num_bytes=0, label="merged counts", payload={})


def _scan_and_merge(units: beam.PCollection[Unit], *, settings: ScanSettings, num_shards: int) -> beam.PCollection[str]:
    receipts = units | "ScanDocuments" >> ScanDocuments(settings=settings)
    paths: beam.PCollection[str] = receipts | "MergeCounts" >> MergeCounts(settings=settings, num_shards=num_shards)
    return paths


def _merged_files(session: Session, settings: ScanSettings) -> tuple[OutputFile, ...]:
    names = sorted(map(merged_path, count_kinds(settings)))
    return tuple(session.out.describe(name) for name in names)


PROGRAM = StageProgram(stage=Stage.SCAN, needs=(Stage.INGEST,), work=work, plan=plan)

run = PROGRAM.run
