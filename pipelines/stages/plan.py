"""The plan: which units a run would do or skip, and why. Nothing is written.

What is not known before something has run is said as such: the documents of inputs that are unread, the words of
documents that are unwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from configs.runs import RunConfig
from pipelines.console.progress import QuietReporter
from pipelines.engines.execution import open_engine
from pipelines.stages.build import plan_build
from pipelines.stages.ingest import list_units, plan_documents
from pipelines.stages.scan import plan_merge, plan_scan, scan_settings
from pipelines.stages.session import Session, engine_setting
from pipelines.stages.tokenize import plan_tokenize, tokenize_settings
from pipelines.stages.validate import plan_validate
from schemas.units import Stage, Unit, UnitReceipt
from transforms.filters.decontamination import read_benchmark
from transforms.ingest.dedup.clusters import find_near_duplicates
from transforms.ingest.dedup.exact import find_duplicates
from transforms.ingest.first_pass import is_read
from transforms.storage.folder import OutputFolder
from transforms.tokens.tokenizer import manifest_digest


@dataclass(frozen=True)
class PlannedUnit:
    """A unit of the plan.

    Attributes:
        stage: The stage.
        unit: The unit's label.
        action: `run` or `skip`.
        reason: Why.
    """

    stage: str
    unit: str
    action: str
    reason: str


def plan(config: RunConfig) -> list[PlannedUnit]:
    """Return every unit that a run would look at, in the order of the stages."""
    out = OutputFolder(config.out)
    out.load_digests()
    with open_engine("local", engine_setting(config, out)) as engine:  # it is never asked to run anything
        return list(_plan(Session(config=config, out=out, reporter=QuietReporter(), engine=engine)))


def _plan(session: Session) -> Iterator[PlannedUnit]:
    options, out = session.config.options.ingest, session.out
    inputs = list_units(session.config, read_benchmark(options))
    unread = [unit for unit in inputs if session.config.rehash or not is_read(unit, out, options)]
    if unread:
        yield from (_run("read", unit.label, "new, changed, or to be read again") for unit in unread)
        yield _run(
            Stage.INGEST, f"up to {len(inputs)} units", "known once the inputs are read; units without changes are kept"
        )
        yield from _later(session, "its documents are not known before the inputs are read")
        return
    if options.drop_duplicates and find_duplicates(inputs, out) is None:
        yield _run("read", "all inputs", "the copies to keep are to be chosen again")
        yield from _later(session, "its documents are not known before the duplicates are")
        return
    if find_near_duplicates(inputs, out, options) is None:
        yield _run("compare", "all inputs", "near-duplicates are to be found again")
        yield from _later(session, "its documents are not known before the near-duplicates are")
        return
    units = plan_documents(session, inputs)
    yield from _judged(session, units)
    documents = _standing(session, units)
    if len(documents) < len(units):
        yield from _later(session, "documents are to be written first")
    else:
        yield from _plan_tokenizer(session, documents)


def _plan_tokenizer(session: Session, documents: Sequence[UnitReceipt]) -> Iterator[PlannedUnit]:
    if session.config.tokenizer is not None:
        given = manifest_digest(OutputFolder(session.config.tokenizer), "manifest.json")
        if given != manifest_digest(session.out):
            yield _run(Stage.BUILD, "tokenizer", f"to be copied from {session.config.tokenizer}")
            yield _run(Stage.TOKENIZE, "every documents shard", "another tokenizer")
            yield _run(Stage.VALIDATE, "every token shard", "another tokenizer")
            return
    else:
        settings = scan_settings(session)
        units = plan_scan(documents, settings)
        merged = plan_merge(units)
        yield from _judged(session, [*units, merged])
        counts = session.out.find_receipt(merged)
        if counts is None:
            yield _run(Stage.BUILD, "tokenizer", "the counts are to be merged first")
            yield _run(Stage.TOKENIZE, "documents shards", "all if the tokenizer comes out changed, else the new ones")
            yield _run(Stage.VALIDATE, "token shards", "those that are written")
            return
        [built] = _judged(session, [plan_build(session, counts)])
        yield built
        if built.action == "run":
            yield _run(Stage.TOKENIZE, "documents shards", "all if the tokenizer comes out changed, else the new ones")
            yield _run(Stage.VALIDATE, "token shards", "those that are written")
            return
    yield from _plan_tokens(session, documents)


def _plan_tokens(session: Session, documents: Sequence[UnitReceipt]) -> Iterator[PlannedUnit]:
    settings = tokenize_settings(session)
    units = plan_tokenize(documents, settings)
    yield from _judged(session, units)
    tokens = _standing(session, units)
    yield from _judged(session, plan_validate(tokens, settings))
    if len(tokens) < len(units):
        yield _run(Stage.VALIDATE, f"{len(units) - len(tokens)} token shards", "to be written first")


def _judged(session: Session, units: Sequence[Unit]) -> Iterator[PlannedUnit]:
    for unit in units:
        if not session.out.exists(unit.receipt_path):
            yield _run(unit.stage, unit.label, "new or changed")
        elif session.stands(unit):
            yield PlannedUnit(str(unit.stage), unit.label, "skip", "its receipt and its files stand")
        else:
            yield _run(unit.stage, unit.label, "a file of it is missing or damaged, or an input changed while it ran")


def _standing(session: Session, units: Sequence[Unit]) -> list[UnitReceipt]:
    found = (session.out.find_receipt(unit) if session.stands(unit) else None for unit in units)
    return [receipt for receipt in found if receipt is not None]


def _later(session: Session, reason: str) -> Iterator[PlannedUnit]:
    stages = (Stage.TOKENIZE, Stage.VALIDATE)
    for stage in stages if session.config.tokenizer is not None else (Stage.SCAN, Stage.BUILD, *stages):
        yield _run(stage, "what follows", reason)


def _run(stage: str, unit: str, reason: str) -> PlannedUnit:
    return PlannedUnit(str(stage), unit, "run", reason)
