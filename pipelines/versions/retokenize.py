"""Scheduled retokenization: a new version of a dataset beside the last one, with the same ids.

The previous version gives the tokenizer, the options, and every file that is the same. Only what has changed in the
sources is made again. The pointer `current` moves when the new version is complete (`transforms.records.versions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from cppmill_core.platforms import parse_platform_vocab

from configs.layers import Layer, receipt_layer
from configs.outputs import check_unlisted
from configs.runs import RunConfig, load_run_config
from configs.tables import STORE_FLAGS
from pipelines.console.events import BLOCKED, FAILED, EventLog, open_log
from pipelines.console.progress import Reporter
from pipelines.stages import run
from pipelines.stages.benchmarks import recorded_options
from pipelines.stages.platforms import read_platforms
from pipelines.stages.session import check_version_folder, locked, open_session
from pipelines.versions.changes import FinishedRun, damaged_files, find_changes, is_same, made_with
from pipelines.versions.drift import count_parts, record_drift
from pipelines.versions.record_checks import check_current
from pipelines.versions.trend import record_version
from schemas.errors import (
    BadInputError,
    BlockedError,
    ConfigError,
    CppmillError,
    IntegrityError,
    LockedError,
    NothingKeptError,
)
from schemas.printing import count
from schemas.study_options import DriftOptions
from schemas.units import Stage
from transforms.filters.withdrawals import WITHDRAWN, Withdrawals, read_withdrawals, withdrawn_in
from transforms.records.affected import check_own_list, check_remembered, known_withdrawals
from transforms.records.in_toto import products
from transforms.records.platforms import PLATFORM_VOCAB, has_own_platforms, read_platform_vocab
from transforms.records.receipts import RECEIPT, read_receipt
from transforms.records.versions import Versions
from transforms.storage.folder import OutputFolder


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks for.

    Attributes:
        file: The TOML file of the run; None if there is none.
        flags: Values by flag, `--store` among them; they win over the file, both over the version before.
        options: What wins over the flags, as the keyword arguments of a program; None if there is nothing.
        keep: How many versions stay.
        drift: What is recorded of drift, and the thresholds of its alerts.
        withdrawals: What is withdrawn from now on, besides what the store's list has.
    """

    file: Path | None
    flags: Mapping[str, object]
    options: Layer | None = None
    keep: int
    drift: DriftOptions = field(default_factory=DriftOptions)
    withdrawals: Withdrawals = field(default_factory=Withdrawals)


@dataclass(frozen=True, kw_only=True)
class Retokenization:
    """How a retokenization ended.

    Attributes:
        version: The current version.
        place: Where it is, a path or a URL.
        changes: What it changed; None if there was nothing to do.
        drift: The record of its drift; None if there was nothing to do, or if drift is off.
        removed: The versions that went.
    """

    version: str
    place: str
    changes: dict[str, Any] | None
    drift: dict[str, Any] | None = None
    removed: tuple[str, ...]

    @property
    def summary(self) -> str:
        """One line for people."""
        done = "complete" if self.changes else "up to date, so there is nothing to do"
        return "; ".join([f"{self.version} is {done}", *(alert["message"] for alert in self.alerts)])

    @property
    def alerts(self) -> list[dict[str, Any]]:
        """Where its drift goes beyond a threshold (`transforms.drift.record.find_alerts`)."""
        return self.drift["alerts"] if self.drift else []

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "version": self.version,
            "place": self.place,
            "nothing_to_do": self.changes is None,
            "changes": self.changes,
            "drift": self.drift,
            "removed": list(self.removed),
        }


def retokenize(request: Request, reporter: Reporter) -> Retokenization:
    """Make a new version of a store if there is anything new, and return what it changed.

    Raises:
        BlockedError: If another run is at work in the store.
        ConfigError: For a configuration that cannot be used, or a store that is the folder of a run.
        BadInputError: If the sources hold no document any more.
        IntegrityError: If it is not known which version counts.
    """
    try:
        config = _load_asked(request)
    except ConfigError as error:
        _leave_word(str(request.flags.get("--store")), FAILED, error)
        raise
    versions = Versions(config.out)
    check_unlisted(versions.folder.root, option="--store")
    versions.check_place()
    try:
        with locked(versions.folder):
            versions.check_place()  # others may have written since
            return _log_and_retokenize(request, config, versions, reporter)
    except BlockedError:
        raise
    except LockedError as error:
        _leave_word(config.out, BLOCKED, error)
        raise BlockedError(str(error)) from error


def _leave_word(place: Path | str, outcome: str, error: CppmillError) -> None:
    """Log in a store, if there is one, that a command could not begin; a failure to log is ignored."""
    with suppress(CppmillError, OSError):
        versions = Versions(place)
        if versions.names:
            EventLog(versions.folder).ended(outcome, str(error))


def _log_and_retokenize(request: Request, asked: RunConfig, versions: Versions, reporter: Reporter) -> Retokenization:
    """Retokenize, and log in the store how it ended; what a run does is in the log of its version."""
    log_folder = OutputFolder(versions.folder.root)  # one that does not ask for the lock: it is written to the very end
    with open_log(log_folder, engine=asked.engine, threads=asked.threads) as log:
        try:
            outcome = _retokenize(request, asked, versions, reporter)
        except LockedError as error:
            raise BlockedError(str(error)) from error
        log.note(outcome.summary)
        if outcome.alerts:
            log.drifted(outcome.version, outcome.alerts)
    return outcome


def _retokenize(request: Request, asked: RunConfig, versions: Versions, reporter: Reporter) -> Retokenization:
    versions.folder.store.clear_temporary()
    versions.check_pointer()
    current = versions.current
    before = None if current is None else _finished(versions, current)
    if before is not None and current is not None:
        check_current(versions, current, before.receipt)
    config = asked if before is None else _go_on(request, asked, before)
    if before is not None and config.tokenizer == f"{before.out.root}/tokenizer":
        _check_handed_on(before, "tokenizer/manifest.json", before.receipt["tokenizer"]["digest"])
        for name, digest in products(dict(before.receipt), "tokenizer").items():
            _check_handed_on(before, name, digest)
    config = _with_withdrawals(request, config, versions)
    if before is not None and is_up_to_date(config, before):
        versions.discard()
        return _outcome(versions, None, request.keep)
    name = versions.begin(current)
    place = versions.out(name).root
    reporter.note(f"{name}: {'the first version' if current is None else f'beside {current}'}, in {place}")
    try:
        after = _run(config.model_copy(update={"out": place}), reporter, before, request.drift)
    except NothingKeptError as error:
        raise _discard_emptied(versions, before, error) from error
    if after is None:
        if current is not None:
            versions.keep_first_pass(name, current)
        versions.discard()
        return _outcome(versions, None, request.keep)
    if before is not None and is_same(before, after):
        before = FinishedRun(after.out, before.receipt)  # the same files, and these are whole
    changes = {"version": name, "previous": current, **find_changes(before, after)}
    record_version(versions, name, changes, before, after)
    drift = None
    if request.drift.drift:
        options, note = request.drift, reporter.note
        drift = record_drift(versions, changes, before, after, options, threads=config.threads, note=note)
    versions.finish(name, changes, replaced=current)
    return _outcome(versions, changes, request.keep, drift)


def _run(config: RunConfig, reporter: Reporter, before: FinishedRun | None, drift: DriftOptions) -> FinishedRun | None:
    """Run all stages in the folder of a version, and count what drift needs; None if the version before is the same.

    If files of that one are damaged, this one replaces it.
    """
    with open_session(config, reporter, check_version_folder) as session:
        run.run_stages(session)
        after = FinishedRun(session.out, read_receipt(session.out))
        if before is not None and is_same(before, after):
            damaged = damaged_files(before)
            if not damaged:
                return None
            reporter.note(
                f"{before.out.where(damaged[0])}: missing, or not a file that the receipt names "
                f"({count(len(damaged), 'such file')}); this version replaces that one"
            )
        if drift.drift:
            count_parts(session, after.receipt)
    return after


def is_up_to_date(config: RunConfig, before: FinishedRun) -> bool:
    """Return whether a run would find every unit of a finished one up to date, and no other unit; nothing is written.

    It would also find every file that no unit makes.

    Args:
        config: The configuration, with the tokenizer to use.
        before: The finished run.
    """
    try:
        options = recorded_options(config.options, before.out).to_json()
    except ConfigError:  # it was made with another benchmark or list
        return False
    if options != made_with(before.receipt) or not _has_platforms(before):
        return False
    planned = run.plan(config.model_copy(update={"out": before.out.root}))
    shards = {unit.unit for unit in planned if unit.stage == Stage.VALIDATE}
    is_done = all(unit.action == "skip" for unit in planned) and shards == set(before.shards.values())
    return is_done and not damaged_files(before)


def _has_platforms(before: FinishedRun) -> bool:
    """Return whether the vocabulary of a run's own platforms is whole."""
    if not has_own_platforms(before.receipt):
        return True
    expected: str = before.receipt["platform_vocab"]["digest"]
    return before.out.digest(PLATFORM_VOCAB) == expected


def _go_on(request: Request, asked: RunConfig, before: FinishedRun) -> RunConfig:
    """Return the configuration of the next version; the previous one supplies what is not given.

    Raises:
        IntegrityError: If files that the previous one hands on are not those of its receipt.
    """
    check_own_list(before.out, before.receipt)
    if asked.platforms is not None:
        _check_platform_ids(before, asked.platforms)
    elif has_own_platforms(before.receipt):
        _check_handed_on(before, PLATFORM_VOCAB, before.receipt["platform_vocab"]["digest"])
    base = receipt_layer(
        before.receipt["configs"],
        origin=before.out.where(RECEIPT),
        with_tokenizer=asked.tokenizer is None,
        platforms=f"{before.out.root}/{PLATFORM_VOCAB}" if has_own_platforms(before.receipt) else None,
    )
    if asked.rebuild_tokenizer:
        return _load(request, base)
    config = _load(_without_first(request), base)
    if config.tokenizer is not None:
        return config
    return config.model_copy(update={"tokenizer": f"{before.out.root}/tokenizer"})


def _check_handed_on(before: FinishedRun, name: str, digest: str) -> None:
    """Check a file that a version hands on, such as the tokenizer: another one would move ids that models have.

    Raises:
        IntegrityError: If it is missing, or not the one that the receipt names.
    """
    if before.out.digest(name) != digest:
        raise IntegrityError(
            f"{before.out.where(name)}: missing, or not the file of SHA-256 {digest} that the receipt names; restore "
            "it, give a whole one with --tokenizer or --platforms, or let `current` name a version that has one"
        )


def _check_platform_ids(before: FinishedRun, place: Path | str) -> None:
    """Check that no platform of the version before gets another id; models have rows for these ids.

    Raises:
        ConfigError: If one does, or the file cannot be used.
    """
    try:
        known = read_platform_vocab(before.out, before.receipt)
    except IntegrityError:  # it is damaged, and the file takes its place
        known = None
    where = f"--platforms {place}"
    given = parse_platform_vocab(read_platforms(place).vocab, where=where)
    ids = {label: number for number, label in given.labels.items()}
    for number, label in () if known is None else known.labels.items():
        if (found := ids.get(label, number)) != number or given.labels.get(number, label) != label:
            now = f"its id is {found}" if found != number else f"that is {'.'.join(given.labels[number])}"
            version = before.out.where(PLATFORM_VOCAB)
            raise ConfigError(
                f"{where}: {'.'.join(label)} has the id {number} in {version}, and here {now}; ids of a store do not "
                "move: give what is new another id, or begin another store"
            )


def _with_withdrawals(request: Request, config: RunConfig, versions: Versions) -> RunConfig:
    """Return the configuration with the store's list of withdrawn documents, after adding what is new to it.

    What was withdrawn stays withdrawn: also what the list of any version has, and of a file that is given.
    """
    kept = withdrawn_in(versions.folder)
    lists = [known_withdrawals(versions), read_withdrawals(config.options.ingest.withdrawn)]
    check_remembered(versions, *lists)
    wanted = reduce(or_, filter(None, lists), request.withdrawals)
    if not any(lists) and not any(wanted.counts.values()):
        return config
    if wanted != kept:
        versions.folder.publish_bytes(WITHDRAWN, wanted.to_bytes())
    ingest = config.options.ingest.model_copy(update={"withdrawn": f"{versions.folder.root}/{WITHDRAWN}"})
    return config.model_copy(update={"options": config.options.model_copy(update={"ingest": ingest})})


def _without_first(request: Request) -> Request:
    """Return a request without what only the first version takes: what its tokenizer is built with."""
    first_only = ("scan", "build")
    flags = {name: value for name, value in request.flags.items() if not _is_of(name, first_only)}
    options = request.options
    if options is not None:
        values = {table: keys for table, keys in options.values.items() if table not in first_only}
        options = replace(options, values=values)
    return replace(request, flags=flags, options=options)


def _is_of(flag: str, tables: Sequence[str]) -> bool:
    return flag in STORE_FLAGS and STORE_FLAGS[flag].table in tables


def _load(request: Request, base: Layer | None = None) -> RunConfig:
    return load_run_config(
        file=request.file,
        flags=request.flags,
        names=STORE_FLAGS,
        needs_sources=True,
        base=base,
        options=request.options,
    )


def _load_asked(request: Request) -> RunConfig:
    """Return what is asked for; what cannot be used alone may be with the options of the current version.

    Raises:
        ConfigError: If it cannot be used with them either.
    """
    try:
        return _load(request)
    except ConfigError as error:
        with suppress(CppmillError, OSError, KeyError):
            versions = Versions(str(request.flags["--store"]))
            if versions.current is not None:
                out, is_given = versions.out(versions.current), request.flags.get("--tokenizer") is not None
                configs = read_receipt(out)["configs"]
                return _load(request, receipt_layer(configs, origin=out.where(RECEIPT), with_tokenizer=not is_given))
        raise error from None


def _finished(versions: Versions, name: str) -> FinishedRun:
    out, others = versions.out(name), [other for other in versions.names if other != name]
    named = f"let `current` name another one of {', '.join(others)}, " if others else ""
    advice = f"{name} is the current version; restore the file, {named}or name another --store"
    if not out.exists(RECEIPT):
        raise IntegrityError(f"{out.where(RECEIPT)}: there is none, and {advice}")
    return FinishedRun(out, read_receipt(out, advice=advice))


def _discard_emptied(versions: Versions, before: FinishedRun | None, error: NothingKeptError) -> BadInputError:
    """Discard a version of sources of which nothing is kept, and return the error that says so."""
    documents = 0 if before is None else int(before.receipt["dataset"]["documents"])
    versions.discard()
    if not documents:
        return error
    return BadInputError(
        f"{versions.folder.root}: nothing is left of the {documents:,} documents of {versions.current}, which "
        "stays the current version; name the sources that hold them, or begin another --store"
    )


def _outcome(
    versions: Versions, changes: dict[str, Any] | None, keep: int, drift: dict[str, Any] | None = None
) -> Retokenization:
    """Let go of old versions, and return what there is."""
    removed = versions.prune(keep)
    current = versions.current or ""
    place = versions.out(current).root
    return Retokenization(version=current, place=place, changes=changes, drift=drift, removed=tuple(removed))
