"""The ingest program: sources to documents shards, in two passes."""

from __future__ import annotations

import time
from functools import partial

import apache_beam as beam
import cppmill_core
import pyarrow as pa

from configs.platforms import load_platform_rules
from configs.runs import RunConfig
from pipelines.console.progress import Reporter
from pipelines.stages.benchmarks import remember_benchmark
from pipelines.stages.session import Session, open_session
from schemas.digests import sha256_json
from schemas.errors import BadInputError, ConfigError
from schemas.ledger import Ledger
from schemas.units import Stage, Unit, UnitReceipt
from transforms.filters.decontamination import Benchmark, published, read_benchmark
from transforms.ingest.dedup.clusters import (
    ChooseNearDuplicates,
    clear_near_duplicates,
    find_near_duplicates,
    make_clusters,
    merge_near_duplicates,
)
from transforms.ingest.dedup.exact import ChooseDuplicates, clear_duplicates, find_duplicates, merge_duplicates
from transforms.ingest.dedup.lsh import FindNearPairs, near_partitions
from transforms.ingest.document_shards import Detect
from transforms.ingest.first_pass import FingerprintInputs, duplicate_partitions, fingerprints_name, is_read
from transforms.ingest.input_units import plan_inputs
from transforms.ingest.plan import plan_ingest, prune_cache
from transforms.ingest.second_pass import WriteDocuments
from transforms.sources.listing import list_inputs


def run(config: RunConfig, reporter: Reporter) -> None:
    """Read the sources into OUT/documents."""
    with open_session(config, reporter) as session:
        ingest(session)


def ingest(session: Session) -> list[UnitReceipt]:
    """Read what is new among the sources and return the receipts of all ingest units.

    Raises:
        ConfigError: If there is no file in the sources.
        BadInputError: If more documents are dead than allowed; the rejects are written by then.
    """
    benchmark = read_benchmark(session.config.options.ingest)
    inputs = list_units(session.config, benchmark)
    read_inputs(session, inputs, benchmark)
    compare_inputs(session, inputs)
    units = plan_documents(session, inputs)
    rules = load_platform_rules() if session.config.options.ingest.detect_platforms else None
    write = WriteDocuments(
        out=session.out,
        options=session.config.options.ingest,
        make_detect=partial(_make_detect, rules, session.config.worker_threads) if rules is not None else None,
    )
    receipts = session.run_units(Stage.INGEST, units, lambda found: found | "WriteDocuments" >> write)
    remember_benchmark(benchmark, session.out)
    for unit, receipt in zip(units, receipts, strict=True):
        if not receipt.is_final:
            session.out.remove(str(unit.payload["fingerprints"]))
    prune_cache(inputs, session.out, session.config.options.ingest)
    check_dead(session, receipts)
    return receipts


def list_units(config: RunConfig, benchmark: Benchmark | None = None) -> list[Unit]:
    """List the sources and return the input units.

    Args:
        config: The configuration of the run.
        benchmark: What `read_benchmark` makes of its options.

    Raises:
        ConfigError: If there is no file in the sources.
    """
    units = plan_inputs(list_inputs(config.sources, config.options.ingest), config.options.ingest, benchmark)
    if not units:
        raise ConfigError(f"SOURCE {', '.join(config.sources)}: there is no regular file in it")
    return units


def read_inputs(session: Session, inputs: list[Unit], benchmark: Benchmark | None) -> None:
    """Make the fingerprints of input units that lack them, and choose which copies of duplicates are kept."""
    options, out = session.config.options.ingest, session.out
    read = out.each(lambda unit: is_read(unit, out, options), inputs)
    unread = [unit for unit, known in zip(inputs, read, strict=True) if session.config.rehash or not known]
    if not unread and (not options.drop_duplicates or find_duplicates(inputs, out) is not None):
        return
    started = time.monotonic()
    session.reporter.stage_started("read", len(unread), sum(unit.num_bytes for unit in unread))
    fingerprint = FingerprintInputs(
        out=out,
        options=options,
        partitions=duplicate_partitions(inputs),
        benchmark=benchmark.name if benchmark else "",
        rehash=session.config.rehash,
    )

    def construct(units: beam.PCollection[Unit]) -> object:
        candidates = units | "FingerprintInputs" >> fingerprint
        return candidates | "ChooseDuplicates" >> ChooseDuplicates(out=out) if options.drop_duplicates else candidates

    clear_duplicates(out)
    with published(benchmark, out):
        session.execute("read", inputs, construct, watched={unit: fingerprints_name(unit.key) for unit in unread})
    if options.drop_duplicates:
        merge_duplicates(inputs, out)
    session.reporter.stage_done(
        "read", time.monotonic() - started, {"units run": len(unread), **session.repeated(unread)}
    )


def compare_inputs(session: Session, inputs: list[Unit]) -> None:
    """Find near-duplicates among what was read, if the options say so, and choose which documents are kept."""
    options, out = session.config.options.ingest, session.out
    duplicates = find_duplicates(inputs, out)
    if duplicates is None or find_near_duplicates(inputs, out, options) is not None:
        return
    started = time.monotonic()
    session.reporter.stage_started("compare", len(inputs), sum(unit.num_bytes for unit in inputs))
    clear_near_duplicates(out)
    find = FindNearPairs(out=out, options=options, duplicates=duplicates, partitions=near_partitions(inputs, options))
    session.execute("compare", inputs, lambda units: units | "FindNearPairs" >> find, watched={})
    if make_clusters(out, duplicates):
        choose = ChooseNearDuplicates(out=out, options=options)
        session.execute("choose", inputs, lambda units: units | "ChooseNearDuplicates" >> choose, watched={})
    dropped = merge_near_duplicates(inputs, out, options)
    session.reporter.stage_done("compare", time.monotonic() - started, {"near-duplicates": dropped})


def plan_documents(session: Session, inputs: list[Unit]) -> list[Unit]:
    """Return the units that write the documents of input units, once the inputs are read."""
    options = session.config.options.ingest
    config = {"platform_rules": sha256_json(load_platform_rules()) if options.detect_platforms else ""}
    return plan_ingest(inputs, session.out, options, config=config, core_version=cppmill_core.__version__)


def check_dead(session: Session, receipts: list[UnitReceipt]) -> None:
    """Raise BadInputError if a larger share of the documents is dead than the configuration allows."""
    ledger = Ledger.sum(Ledger.from_json(receipt.ledger, where=receipt.path) for receipt in receipts)
    dead, total = sum(ledger.documents.dead.values()), ledger.documents.total
    allowed = session.config.options.max_dead_fraction
    if total and dead / total > allowed:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in sorted(ledger.documents.dead.items()))
        rejects = session.out.where("documents/rejects-*.parquet")
        raise BadInputError(
            f"{dead:,} of {total:,} documents ({dead / total:.2%}) could not be used: {reasons}; "
            f"allowed are {allowed:.2%}. {rejects} names each; mend the sources, or allow more with --max-dead-fraction"
        )


def _make_detect(rules: str, threads: int) -> Detect:
    detector = cppmill_core.PlatformDetector(rules)

    def detect(documents: pa.RecordBatch) -> pa.RecordBatch:
        return detector.detect(documents, threads=threads)

    return detect
