"""The ingest program: sources to documents shards, in two passes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import cppmill_core
import pyarrow.compute as pc
import pyarrow.parquet as pq

from configs.runs import RunConfig
from pipelines.stages.benchmarks import remember_benchmark
from pipelines.stages.document_units import check_kept
from pipelines.stages.given import check_listed
from pipelines.stages.platforms import make_detect, publish_platforms
from pipelines.stages.program import StagePlan, StageProgram, plan_units, to_run
from pipelines.stages.session import Session
from schemas.digests import sha256_json
from schemas.errors import BadInputError, ConfigError
from schemas.ledger import Ledger
from schemas.options import IngestOptions
from schemas.printing import one_line
from schemas.reasons import Filtered
from schemas.units import REJECTS_PREFIX, Stage, Unit, UnitReceipt
from transforms.filters.decontamination import Benchmark, published, read_benchmark
from transforms.filters.withdrawals import (
    Withdrawals,
    describe_counts,
    keep_withdrawals,
    published_withdrawals,
    read_withdrawals,
)
from transforms.ingest.dedup.candidates import duplicate_partitions
from transforms.ingest.dedup.clusters import (
    ClusterSettings,
    choose_near_duplicates,
    clear_near_duplicates,
    make_clusters,
    merge_near_duplicates,
    near_duplicates_name,
)
from transforms.ingest.dedup.exact import choose_duplicates, clear_duplicates, duplicates_name, merge_duplicates
from transforms.ingest.dedup.lsh import NearSettings, find_near_pairs, near_partitions
from transforms.ingest.fingerprints import fingerprints_name
from transforms.ingest.first_pass import FirstPassSettings, fingerprint_inputs
from transforms.ingest.input_units import UNMARKED, plan_inputs
from transforms.ingest.plan import FirstPass, add_digests, find_first_pass, look_up_choices, plan_ingest, prune_cache
from transforms.ingest.second_pass import WriteSettings, write_units
from transforms.ingest.withdrawn_rows import unmatched_entries
from transforms.records.versions import store_of
from transforms.sources.listing import list_inputs
from transforms.units.flow import Flow


@dataclass(frozen=True)
class Lists:
    """What documents are compared with, as the files that the options name had it when they were read, once a stage.

    Attributes:
        benchmark: The benchmark; None without one.
        withdrawals: The list of withdrawn documents; None without one.
    """

    benchmark: Benchmark | None = None
    withdrawals: Withdrawals | None = None

    @classmethod
    def read(cls, options: IngestOptions) -> Lists:
        """Read the files."""
        return cls(read_benchmark(options), read_withdrawals(options.withdrawn))


NOTHING = Lists()


def ingest(session: Session) -> list[UnitReceipt]:
    """Read what is new among the sources and return the receipts of all ingest units.

    Raises:
        ConfigError: If there is no file in the sources.
        BadInputError: If more documents are dead than allowed; the rejects are written by then.
        NothingKeptError: If no document is kept; the same.
    """
    options = session.config.options.ingest
    lists = Lists.read(options)
    found = run_first_pass(session, lists)
    units = plan_documents(session, found)
    receipts = session.run_units(Stage.INGEST, units, second_pass(session), platforms=session.platforms.digest)
    _note_unmatched(session, lists, units, receipts)
    remember_benchmark(lists.benchmark, session.out)
    keep_withdrawals(lists.withdrawals, session.out)
    publish_platforms(session.platforms, session.out)
    for unit, receipt in zip(units, receipts, strict=True):
        if not receipt.is_final:
            for name in (unit.payload["fingerprints"], fingerprints_name(unit.payload.get(UNMARKED, unit.key))):
                session.out.remove(name)
    prune_cache(found, session.out, options)
    check_dead(session, receipts)
    check_kept(session, receipts)
    return receipts


def _note_unmatched(session: Session, lists: Lists, units: Sequence[Unit], receipts: Sequence[UnitReceipt]) -> None:
    """Say how many entries of a list of withdrawn documents are of no document; a store keeps those of earlier ones."""
    if lists.withdrawals is None or store_of(str(session.out.root)) is not None:
        return
    has_some = [Filtered.WITHDRAWN in receipt.ledger["documents"]["filtered"] for receipt in receipts]
    names = (unit.payload["fingerprints"] for unit in compress(units, has_some))
    left = unmatched_entries(names, session.out, lists.withdrawals)
    if any(left.counts.values()):
        place, counts = session.config.options.ingest.withdrawn, describe_counts(left)
        session.reporter.note(f"{place}: no document that would be kept has these of its entries: {counts}")


def second_pass(session: Session) -> Flow:
    """Return the flow of the units of the second pass."""
    options = session.config.options.ingest
    rules = session.platforms.rules if options.detect_platforms else None
    detect = partial(make_detect, rules, session.config.worker_threads) if rules is not None else None
    threads = session.config.worker_threads
    return write_units(WriteSettings(session.out, options, detect, threads))


def first_pass(session: Session) -> Flow:
    """Return the flow that reads units in the first pass; the candidates that it yields are not complete."""
    return fingerprint_inputs(first_pass_settings(session, Lists.read(session.config.options.ingest), partitions=1))


def first_pass_settings(session: Session, lists: Lists, *, partitions: int) -> FirstPassSettings:
    """Return what the units of the first pass are run with.

    Args:
        session: The session.
        lists: What the options name.
        partitions: How many partitions duplicates are chosen in.
    """
    return FirstPassSettings(
        out=session.out,
        options=session.config.options.ingest,
        partitions=partitions,
        benchmark=lists.benchmark.name if lists.benchmark else "",
        withdrawn=lists.withdrawals.name if lists.withdrawals else "",
        rehash=session.config.rehash,
        threads=session.config.worker_threads,
    )


def list_units(config: RunConfig, lists: Lists = NOTHING) -> list[Unit]:
    """List the sources and return the input units.

    Args:
        config: The configuration of the run.
        lists: What its options name.

    Raises:
        ConfigError: If there is no file in a source, or one is in the output folder.
    """
    options = config.options.ingest
    listing = list_inputs(config.sources, options)
    check_listed(listing, config)
    filled = {item.source for item in listing.inputs}
    empty = [source for number, source in enumerate(config.sources) if number not in filled]
    if empty:  # as a mounted folder is that is not mounted
        raise ConfigError(f"SOURCE {', '.join(empty)}: there is no regular file in it")
    return plan_inputs(listing, options, lists.benchmark, lists.withdrawals)


def run_first_pass(session: Session, lists: Lists) -> FirstPass:
    """Read what is new among the sources, choose which copies are kept, and return what was found.

    Args:
        session: The session.
        lists: What the options name.

    Raises:
        ConfigError: If there is no file in the sources.
    """
    units = list_units(session.config, lists)
    found = find_first_pass(units, session.out, session.config.options.ingest, rehash=session.config.rehash)
    if found.duplicates is None:
        found = read_inputs(session, found, lists)
    if found.near_duplicates is None:
        found = compare_inputs(session, found)
    return found


def read_inputs(session: Session, found: FirstPass, lists: Lists) -> FirstPass:
    """Make the fingerprints of input units that lack them, and choose which copies of duplicates are kept."""
    options, out, unread = session.config.options.ingest, session.out, found.unread
    started = time.monotonic()
    session.reporter.stage_started("read", len(unread), sum(unit.num_bytes for unit in unread))
    settings = first_pass_settings(session, lists, partitions=duplicate_partitions(found.units))
    choose = choose_duplicates(out) if options.drop_duplicates else ()
    clear_duplicates(out)
    watched = {unit: fingerprints_name(unit.key) for unit in unread}
    with published(lists.benchmark, out), published_withdrawals(lists.withdrawals, out):
        session.execute("read", found.marked_units, (*fingerprint_inputs(settings), *choose), watched=watched)
    found = add_digests(found, out)
    if options.drop_duplicates:
        merge_duplicates(duplicates_name(found.units, found.digests), out)
    summary = {"units run": len(unread), **session.repeated(unread)}
    session.reporter.stage_done("read", time.monotonic() - started, summary)
    return look_up_choices(found, out, options)


def compare_inputs(session: Session, found: FirstPass) -> FirstPass:
    """Find near-duplicates among what was read, and choose which documents are kept."""
    options, out, duplicates = session.config.options.ingest, session.out, found.duplicates or ""
    started = time.monotonic()
    session.reporter.stage_started("compare", len(found.units), sum(unit.num_bytes for unit in found.units))
    clear_near_duplicates(out)
    partitions = near_partitions(found.units, options)
    find = NearSettings(out=out, options=options, duplicates=duplicates, partitions=partitions)
    session.execute("compare", found.units, find_near_pairs(find), watched={})
    if make_clusters(out, duplicates):
        session.execute("choose", found.units, choose_near_duplicates(ClusterSettings(out, options)), watched={})
    name = near_duplicates_name(duplicates, options)
    dropped = merge_near_duplicates(name, out)
    session.reporter.stage_done("compare", time.monotonic() - started, {"near-duplicates": dropped})
    return replace(found, near_duplicates=name)


def plan_documents(session: Session, found: FirstPass) -> list[Unit]:
    """Return the units that write the documents of the input units."""
    options = session.config.options.ingest
    config = {"platform_rules": sha256_json(session.platforms.rules) if options.detect_platforms else ""}
    return plan_ingest(found, session.out, options, config=config, core_version=cppmill_core.__version__)


def plan(session: Session) -> StagePlan:
    """Return what `ingest` would do."""
    options = session.config.options.ingest
    inputs = list_units(session.config, Lists.read(options))
    found = find_first_pass(inputs, session.out, options, rehash=session.config.rehash)
    if found.unread:
        units = [to_run("read", unit.label, "new, changed, or to be read again") for unit in found.unread]
        reason = "known once the inputs are read; units without changes are kept"
        units.append(to_run(Stage.INGEST, f"up to {len(inputs)} units", reason))
        return StagePlan(units=units, blocked="its documents are not known before the inputs are read")
    if found.duplicates is None:
        units = [to_run("read", "all inputs", "the copies to keep must be chosen again")]
        return StagePlan(units=units, blocked="its documents are not known before the duplicates are")
    if found.near_duplicates is None:
        units = [to_run("compare", "all inputs", "near-duplicates must be found again")]
        return StagePlan(units=units, blocked="its documents are not known before the near-duplicates are")
    planned = plan_units(session, plan_documents(session, found))
    is_done = len(planned.receipts) == len(planned.units)
    return replace(planned, blocked="" if is_done else "documents must be written first")


def check_dead(session: Session, receipts: list[UnitReceipt]) -> None:
    """Raise BadInputError if a larger share of the documents is dead than the configuration allows."""
    ledger = Ledger.sum(Ledger.from_json(receipt.ledger, where=receipt.path) for receipt in receipts)
    dead, total = sum(ledger.documents.dead.values()), ledger.documents.total
    allowed = session.config.options.max_dead_fraction
    if total and dead / total > allowed:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in sorted(ledger.documents.dead.items()))
        rejects = session.out.where(f"{REJECTS_PREFIX}*.parquet")
        raise BadInputError(
            f"{dead:,} of {total:,} documents ({dead / total:.2%}) could not be used: {reasons}; allowed are "
            f"{allowed:.2%}. {_first_dead(session, receipts)}{rejects} names each; fix the sources, or allow more with "
            "--max-dead-fraction"
        )


def _first_dead(session: Session, receipts: list[UnitReceipt]) -> str:
    """Return a sentence on the first document that could not be used and says more than its reason, or nothing."""
    names = (file.path for receipt in receipts for file in receipt.outputs if file.path.startswith(REJECTS_PREFIX))
    for name in names:
        with session.out.open_local(name) as path:
            rows = pq.read_table(path, filters=pc.field("column") == "dead")
        for row in rows.select(["path", "detail"]).to_pylist():
            if row["detail"]:
                return f"{one_line(row['path'])}: {one_line(row['detail'])}. "
    return ""


PROGRAM = StageProgram(stage=Stage.INGEST, work=ingest, plan=plan)

run = PROGRAM.run
