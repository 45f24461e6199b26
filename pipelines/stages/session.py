"""What every stage's program does around its pipeline: lock, plan, skip finished units, watch, remember."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Generic

from typing_extensions import TypeVar  # the standard one has no defaults before Python 3.13

from configs.execution import usable_threads
from configs.exports import ExportConfig
from configs.outputs import check_unlisted
from configs.platforms import Platforms
from configs.runs import RunConfig
from pipelines.console.events import log_names, open_log
from pipelines.console.progress import Reporter, Reporters
from pipelines.console.signals import done_before_end
from pipelines.engines.config import EngineConfig
from pipelines.engines.execution import OpenEngine, open_engine
from pipelines.engines.worker_check import check_workers
from pipelines.stages.benchmarks import recorded_options
from pipelines.stages.given import check_own_output, check_urls
from pipelines.stages.platforms import read_platforms
from pipelines.stages.vocabulary import local_vocabulary
from schemas.digests import parse_json, sha256_json, with_digest
from schemas.errors import ConfigError, IntegrityError, StoreError, VocabularyConfigError
from schemas.logs import module_logger
from schemas.places import is_remote
from schemas.resources import check_limits
from schemas.units import (
    RECEIPT_FOLDERS,
    TOKENIZER_STAGES,
    UNITS,
    Stage,
    Unit,
    UnitReceipt,
    is_unit_receipt,
    receipt_folder,
    unit_receipt_path,
)
from tokenizer_build.lock import LOCK_NAME, RELEASES_NAME, vocabulary_digest
from tokenizer_build.vocabulary import read_vocabulary
from transforms.records.manifests import MANIFEST
from transforms.records.receipts import RECEIPT, find_options, find_receipt
from transforms.records.recorded import find_whole_receipt, recorded_files, restore_build_receipt, set_aside_receipt
from transforms.records.versions import Versions, store_of
from transforms.scan.kinds import MERGED_FOLDERS
from transforms.sources import under_way
from transforms.storage.folder import CACHE, SET_ASIDE, OutputFolder, UnsealedError
from transforms.storage.protocol import LOCK, Lock, is_keyed
from transforms.units.claims import clear_claims
from transforms.units.execution import clear_attempts, count_repeated
from transforms.units.flow import Flow
from transforms.units.peer_locks import peer_locks

logger = module_logger(__name__)

_PLACES = sorted(
    {
        str(place)
        for name in (*RECEIPT_FOLDERS.values(), *map(receipt_folder, Stage), *MERGED_FOLDERS)
        for place in (PurePosixPath(name), *PurePosixPath(name).parents[:-1])
    }
)
"""The folders into which runs and exports write, and those around them."""

_WRITTEN = (
    UNITS,
    "counts",
    *(folder for folder in RECEIPT_FOLDERS.values() if not folder.startswith((CACHE, "counts"))),
)
"""The folders from which a run or an export removes files that no receipt names."""

WORKER_LOGS = f"{CACHE}/workers"
"""Where worker processes of an engine write their logs: below OUT if that is local."""


MADE_AGAIN = "run `cppmill run` again, which makes it again"
"""What to do about a lost or damaged unit receipt."""

Work = RunConfig | ExportConfig[Any]
"""The configurations that a session works with: of a run or of an export."""

Config = TypeVar("Config", bound=Work, default=RunConfig)


@dataclass(frozen=True, kw_only=True)
class Session(Generic[Config]):
    """One command at work in one output folder.

    Attributes:
        config: The configuration of the run or the export.
        out: The output folder, locked.
        reporter: Where progress goes.
        engine: Where pipelines run.
        share: Runs units, by the name of their plan, together with other processes, and returns when all are done;
            None if this process is the only one.
    """

    config: Config
    out: OutputFolder
    reporter: Reporter
    engine: OpenEngine
    share: Callable[[str, Sequence[Unit]], None] | None = None

    @cached_property
    def platforms(self) -> Platforms:
        """The platforms that a run finds; the user's file is read once, however long the run takes."""
        return read_platforms(self.config.platforms if isinstance(self.config, RunConfig) else None)

    @property
    def vocabulary(self) -> Path:
        """The folder of the vocabulary to build with, on this machine."""
        return self._vocabulary[0]

    @property
    def vocabulary_digest(self) -> str:
        """The digest of the user's own vocabulary before anything else of it was read; empty for that of cppmill."""
        return self._vocabulary[1]

    @cached_property
    def _vocabulary(self) -> tuple[Path, str]:
        folder = local_vocabulary(self.config.vocab if isinstance(self.config, RunConfig) else None)
        return folder, self._digest_of(folder)

    def read_vocabulary_digest(self) -> str:
        """Return the digest that the vocabulary has now."""
        return self._digest_of(self.vocabulary)

    def _digest_of(self, folder: Path) -> str:
        if not isinstance(self.config, RunConfig) or self.config.vocab is None:
            return ""
        try:
            return vocabulary_digest(read_vocabulary(folder))
        except VocabularyConfigError:
            return ""  # `check_vocabulary` says what is wrong

    def run_units(
        self,
        stage: Stage,
        units: Sequence[Unit],
        flow: Flow,
        *,
        revisit: bool = False,
        **facts: str,
    ) -> list[UnitReceipt]:
        """Run the units that are not up to date, and return the receipts of all, in order.

        Args:
            stage: The stage.
            units: Every unit of the stage.
            flow: What they go through.
            revisit: Send the units that are up to date through the flow too; its steps pass them on without doing them
                again.
            facts: What to remember beside the units.
        """
        reused = self.out.each(self.is_up_to_date, units)
        todo = [unit for unit, done in zip(units, reused, strict=True) if not done]
        self.withdraw(todo)
        started = time.monotonic()
        self.reporter.stage_started(stage, len(todo), sum(unit.num_bytes for unit in todo))
        if todo or revisit:
            watched = {unit: unit.receipt_path for unit in todo}
            self.execute(stage, units if revisit else todo, flow, watched=watched, merges=revisit)
        receipts = list(map(self._renewed, units, self.out.each(self.require, units)))
        self.remember(stage, units, **facts)
        summary = {"units run": len(todo), "units reused": len(units) - len(todo), **self.repeated(todo)}
        self.reporter.stage_done(stage, time.monotonic() - started, summary)
        return receipts

    def execute(
        self,
        name: str,
        units: Sequence[Unit],
        flow: Flow,
        *,
        watched: dict[Unit, str],
        merges: bool = True,
    ) -> None:
        """Send `units` through a flow, and report units as their files appear.

        With other processes, the watched units are shared first. What follows them is then done by this one alone.

        Args:
            name: Names the job.
            units: What the flow starts from.
            flow: What they go through.
            watched: Units to report, with the file, relative to OUT, whose existence means that the unit is done.
            merges: Whether steps follow that bring units together, or that need units which are not watched.
        """
        with self._watched(watched):
            if self.share is not None and watched:
                self.share(name, list(watched))
                if not merges:
                    return
            self.run_flow(name, units, flow)

    def run_flow(self, name: str, units: Sequence[Unit], flow: Flow) -> None:
        """Send `units` through a flow, each process checked before its first one, and wait for the end."""
        self.engine.run((*check_workers(), *flow), units, out=self.out, label=name)

    def repeated(self, units: Sequence[Unit]) -> dict[str, int]:
        """Return, for a stage's summary, how many units ran more than once; nothing if none did."""
        number = count_repeated(units, self.out)
        return {"units that ran more than once": number} if number else {}

    def is_up_to_date(self, unit: Unit) -> bool:
        """Return whether a unit need not run: its receipt and files are intact, and no input changed while it ran."""
        receipt = self.out.find_receipt(unit)
        return receipt is not None and receipt.is_final

    def require(self, unit: Unit) -> UnitReceipt:
        """Return the receipt of a unit that must have one.

        Raises:
            IntegrityError: If there is none that matches the unit's files.
        """
        receipt = self.out.find_receipt(unit)
        if receipt is None:
            raise IntegrityError(
                f"{self.out.where(unit.receipt_path)}: unit {unit.label} left no receipt that matches its files; "
                f"run again"
            )
        return receipt

    def _renewed(self, unit: Unit, receipt: UnitReceipt) -> UnitReceipt:
        """Return the receipt of a unit with the inputs that it is planned for, published again if they have new names.

        A documents shard with the same rows has another name if other files of its unit were left out than before.
        """
        planned = unit.payload.get("inputs")
        if not isinstance(planned, dict) or receipt.inputs in ({}, planned):
            return receipt
        if self.out.is_recorded(receipt.path):
            self.withdraw_receipt()
        renewed = replace(receipt, inputs=planned)
        self.out.replace_receipt(renewed)
        return renewed

    def remember(self, stage: Stage, units: Sequence[Unit], **facts: str) -> None:
        """Record which units are the stage's current ones, and facts of what they made."""
        made = {"units": [unit.key for unit in units], "options": self.config.stage_options(stage)}
        index = {"stage": str(stage), **made, **facts}
        sealed = with_digest(index)
        self.out.publish_changed(_index_path(stage), json.dumps(sealed).encode())
        self.out.save_digests()

    def remembered(self, stage: Stage, **facts: str) -> list[str]:
        """Return the paths of the receipts of the stage's current units; none if other facts were recorded of them."""
        index = self._index(stage)
        is_same = all(index.get(name) == fact for name, fact in facts.items())
        return [unit_receipt_path(stage, key) for key in index.get("units", ()) if is_same]

    def remembered_fact(self, stage: Stage, name: str) -> str | None:
        """Return a fact that was recorded of the stage's current units; None if it was not."""
        return self._index(stage).get(name)

    def forget(self, stage: Stage) -> None:
        """Remove what `remember` wrote for a stage: what OUT has of it comes from elsewhere now."""
        self.out.remove(_index_path(stage))

    def made_options(self, stage: Stage) -> dict[str, Any]:
        """Return the options that what OUT holds of a stage was made with; empty if it is not known.

        What was remembered in another folder, whose cache was copied here, does not count: its units are not here.
        """
        index = self._index(stage)
        is_here = all(self.out.exists(unit_receipt_path(stage, key)) for key in index.get("units", ())[:1])
        made: dict[str, Any] = (is_here and index.get("options")) or {}
        return made

    def options_of_record(self) -> dict[str, dict[str, Any]]:
        """Return the options of each stage that the record of the run has; empty without a record."""
        record = find_whole_receipt(self.out)
        return (record and find_options(record)) or {}

    def has_run(self, unit: Unit) -> bool:
        """Return whether a unit has run here, by the record of the run or by what `remember` wrote."""
        return self.out.is_recorded(unit.receipt_path) or unit.key in self._index(unit.stage).get("units", ())

    def current(self, stage: Stage, *, advice: str = MADE_AGAIN) -> list[UnitReceipt]:
        """Return the receipts of the stage's current units, in order; advice is as for `read_unit`.

        Without the cache (a folder that was copied), every unit receipt of the stage counts, also one that is gone
        and that the record of the run names, or a file that it committed.

        Raises:
            IntegrityError: If the stage has not run here, or a receipt is damaged or, by these, lost.
        """
        remembered = self.remembered(stage)
        names = remembered or sorted({*self.out.receipts(stage), *self.out.recorded_receipts(stage)})
        if not names:
            first = f"; run `cppmill {stage}` first, or `cppmill run` for everything"
            raise IntegrityError(f"{self.out.root}: no {stage} has finished here{advice and first}")
        receipts = self.out.each(lambda name: self.read_unit(name, advice=advice), names)
        named = {name for receipt in receipts for name in receipt.files}
        for name in () if remembered else self.out.files(RECEIPT_FOLDERS[stage]):
            if name not in named and not is_unit_receipt(name, stage):
                where = self.out.where(name)
                raise IntegrityError(f"{where}: no unit receipt names it, so one may be lost{advice and f'; {advice}'}")
        return receipts

    def find_units(self, names: Sequence[str]) -> list[UnitReceipt]:
        """Return unit receipts by their paths; none if one of them is missing or damaged."""
        try:
            return self.out.each(self.read_unit, names)
        except IntegrityError:
            return []

    def check_outputs(self, receipts: Iterable[UnitReceipt]) -> dict[str, str]:
        """Compare the outputs of units with their receipts, and return their SHA-256 by path.

        A stage alone needs it, as no stage before it has looked.

        Raises:
            IntegrityError: Naming the first that is missing or another one.
        """
        named = {name: sha256 for receipt in receipts for name, sha256 in receipt.files.items()}
        for name, found in zip(named, self.out.each(self.out.digest, named), strict=True):
            if found != named[name]:
                raise IntegrityError(
                    f"{self.out.where(name)}: missing, or not the file of SHA-256 {named[name]} that its unit receipt "
                    f"names; {MADE_AGAIN}"
                )
        return named

    def read_unit(self, name: str, *, advice: str = MADE_AGAIN) -> UnitReceipt:
        """Return a unit receipt by its path, as it was left by an earlier command.

        Args:
            name: Its path.
            advice: What to do if it is missing or no receipt, for the message; empty if the caller adds it.

        Raises:
            IntegrityError: If it is missing, damaged or contradicts itself, has the name of another unit's, or is not
                the one that the record of the run names.
        """
        where = self.out.where(name)
        try:
            data = self.out.read_receipt_bytes(name)
        except FileNotFoundError as error:
            raise IntegrityError(f"{where}: missing{advice and f'; {advice}'}") from error
        receipt = UnitReceipt.from_bytes(data, where=where, advice=advice)
        receipt.check_name(name, where=where, advice=advice)
        try:
            self.out.check_recorded(name, data)
        except UnsealedError:
            if receipt.stage not in TOKENIZER_STAGES:  # what a tokenizer was built from is kept, as its ids are
                raise
        receipt.check_facts(where=where)
        return receipt

    def _index(self, stage: Stage) -> dict[str, Any]:
        """Return what `remember` wrote for a stage; empty if it is missing or damaged, as all of the cache may be."""
        try:
            index = parse_json(self.out.read_bytes(_index_path(stage)))
            digest = index.pop("digest", None) if isinstance(index, dict) else ""
            is_whole = digest in (None, sha256_json(index)) and index.get("stage", stage) == stage
            return index if is_whole else {}  # earlier versions wrote neither
        except (FileNotFoundError, ValueError, IntegrityError):
            return {}

    def check_options(self, stages: Sequence[Stage]) -> None:
        """Check that what OUT holds was made with the options of this command.

        Raises:
            ConfigError: Naming the first option that differs, and both values.
        """
        for stage in stages:
            options = self.config.stage_options(stage)
            made = self.made_options(stage)
            if not made and isinstance(self.config, RunConfig):  # a folder that was copied without its cache
                made = self.options_of_record().get(stage, {})
                options = recorded_options(self.config.options, self.out).to_json()[stage] if made else options
            made = made or options
            for name in {**options, **made}:
                value = options.get(name)
                if made.get(name) != value:
                    given, found = json.dumps(value), json.dumps(made.get(name))
                    raise ConfigError(
                        f"{stage}.{name} = {given}: {self.out.root} was made with {found}; "
                        "give the arguments of the run, or run again"
                    )

    def withdraw(self, units: Sequence[Unit]) -> None:
        """Set damaged receipts of units aside that are about to run, and say so."""
        for line in self.out.withdraw(units):
            self.reporter.note(f"{line}; it was set aside in {SET_ASIDE}, and the unit runs again")

    def withdraw_receipt(self) -> None:
        """Remove the run's receipt, as files that it names are about to change."""
        self.out.remove(RECEIPT)

    @contextmanager
    def _watched(self, files: dict[Unit, str]) -> Iterator[None]:
        """Report units as their files appear, from a separate thread."""
        under_way.clear()
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(files, stop), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()

    def _watch(self, files: dict[Unit, str], stop: threading.Event) -> None:
        waiting, done_units, done_bytes = dict(files), 0, 0
        sizes = {unit.key: unit.num_bytes for unit in files}
        while waiting:
            last = stop.wait(self.out.store.poll_seconds)
            try:
                present = self.out.store.present(waiting.values())
            except (StoreError, OSError) as error:
                logger.warning("cannot list finished units, trying again: %s", error)
                present = set()
            found = [unit for unit, name in waiting.items() if name in present]
            for unit in found:
                del waiting[unit]
                sizes.pop(unit.key, None)  # of a source that is named twice, units have one key
            done_units, done_bytes = done_units + len(found), done_bytes + sum(unit.num_bytes for unit in found)
            read = sum(min(number, sizes.get(key, 0)) for key, number in under_way.read_bytes().items())
            self.reporter.progress(done_units, done_bytes + read)
            if last:
                return


def check_run_folder(out: OutputFolder) -> None:
    """Check that a run may write into a folder.

    Raises:
        ConfigError: If it is that of an export or a store, is in one or in another run, or holds files that no run
            wrote.
    """
    check_apart(out)
    check_version_folder(out)


def check_apart(out: OutputFolder) -> None:
    """Check that a folder is not in a store in use, and not in the folder of another run, which would remove it.

    Of a store at a URL, only its versions are known by their path.

    Raises:
        ConfigError: Naming the store, or the record of what is in the folder.
    """
    check_unlisted(out.root, option="--out")
    if is_remote(out.root) and (store := store_of(out.root)) is not None and Versions(store).current is not None:
        raise ConfigError(f"--out {out.root}: {store} is a store of versions; name another folder")


def check_version_folder(out: OutputFolder) -> None:
    """Check that a run may write into a folder, also if it is a version of a store.

    Raises:
        ConfigError: If it is that of an export or a store, or holds files that no run wrote.
    """
    if out.exists(MANIFEST):
        raise ConfigError(f"--out {out.root}: it holds {MANIFEST}, which an export wrote; name another folder")
    check_unused(out)


@contextmanager
def open_session(
    config: Config, reporter: Reporter, check: Callable[[OutputFolder], None] = check_run_folder
) -> Iterator[Session[Config]]:
    """Lock the output folder, remove what a crashed run left, and yield the session.

    Args:
        config: The run or the export.
        reporter: Where progress goes.
        check: Raises an error if the folder belongs to something else.

    Raises:
        ConfigError: For options that Beam does not know, a source or tokenizer at a URL that does not exist, a folder
            that cannot be written or holds other files, and everything that the engine lacks.
        StoreError: If a store fails, or refuses the credentials.
        LockedError: If another run, or a peer of one, is writing there.
        ResourceError: If a limit is too low for any run: of address space, data or threads.
    """
    if isinstance(config, RunConfig):
        check_own_output(config)
        check_urls(config)
    out = OutputFolder(config.out)
    check_limits(out.root)
    check(out)  # before the lock is written there
    with open_engine(config.engine, engine_config(config, out)) as engine, locked(out):
        check(out)  # others may have written since
        out.each(lambda name: out.store.lock(name).release(), peer_locks(out))
        clear_crashed(out)
        with (
            _cleared_at_a_stop(out),
            logged(Session(config=config, out=out, reporter=reporter, engine=engine)) as session,
        ):
            yield session


@contextmanager
def _cleared_at_a_stop(out: OutputFolder) -> Iterator[None]:
    """Remove temporary files if a signal ends the process: the threads that write them are not waited for."""
    with done_before_end(out.store.clear_temporary):
        try:
            yield
        except KeyboardInterrupt:
            out.store.clear_temporary()
            raise


def clear_crashed(out: OutputFolder) -> None:
    """Remove what crashed runs left that no run needs; only while no other process writes in OUT."""
    out.store.clear_temporary()
    clear_attempts(out)
    clear_claims(out)


_LOCKS = tuple(f"tokenizer/{name}" for name in (LOCK_NAME, RELEASES_NAME))
"""Files beside a tokenizer that runs add later."""


@contextmanager
def logged(session: Session[Config]) -> Iterator[Session[Config]]:
    """Yield a session whose folder is locked, with an event log and remembered digests."""
    out, engine = session.out, session.engine
    out.load_digests()
    recorded = recorded_files(out)
    damaged = None if recorded or not _makes_receipt(session) else set_aside_receipt(out)
    out.hold_receipts(recorded)
    out.move_receipts()
    restored = restore_build_receipt(out, recorded, beside=_LOCKS)
    with open_log(out, engine=engine.name, threads=usable_threads()) as log:
        reporters = Reporters(session.reporter, log)
        if engine.name != "local":
            reporters.note(engine.describe())
        for line in filter(None, (damaged, restored)):
            reporters.note(line)
        yield replace(session, reporter=reporters)
        out.save_digests()


def _index_path(stage: Stage) -> str:
    """Return the path of what `Session.remember` writes for a stage."""
    return f"{CACHE}/stages/{stage}.json"


def _makes_receipt(session: Session[Any]) -> bool:
    """Return whether a run can do without the receipt of the one before, if that is damaged.

    It cannot if the receipt may be all that names the build of the tokenizer in OUT.
    """
    config, out = session.config, session.out
    is_known = bool(out.receipts(Stage.BUILD)) or not any(out.files("counts"))
    return isinstance(config, RunConfig) and (is_known or config.tokenizer is not None)


def check_unused(out: OutputFolder, *, is_export: bool = False) -> None:
    """Check that the folders to be written and cleaned up hold no other files: `--out ~/src`, by mistake.

    A log proves that they are written here: one is opened behind this check, before anything else. The first files of
    an export have nothing else beside them when it is killed.

    Args:
        out: The folder of a run or an export.
        is_export: Whether it has the manifest of an export, which proves it too.

    Raises:
        ConfigError: Naming the first such file, what is in the place of a folder, or that it is a store of versions.
    """
    if not is_remote(out.root):
        _check_places(Path(out.root), _PLACES)
    if Versions(out.root).names:
        raise ConfigError(
            f"--out {out.root}: a store of versions, which `cppmill retokenize --store` writes; name another folder"
        )
    if is_export or any(out.files(f"{CACHE}/plans")) or log_names(out) or _has_receipt(out):
        return
    found = [name for folder in _WRITTEN for name in out.files(folder)] + [RECEIPT] * out.exists(RECEIPT)
    given = out.exists("tokenizer/manifest.json")
    foreign = [name for name in found if not (given and name.startswith("tokenizer/"))]
    if foreign and not any(map(is_keyed, found)):
        raise ConfigError(f"--out {out.root}: it holds {foreign[0]}, which no run wrote; name another folder")


def _check_places(root: Path, folders: Sequence[str]) -> None:
    """Check that some folders are no other things, and that `.cache`, all in it, and the lock are folders or files.

    Args:
        root: OUT, or a store.
        folders: Relative to it; they need not exist.

    Raises:
        ConfigError: Naming the first link, pipe, socket or device, or what is in the place of a folder.
    """
    for path in (*(root / folder for folder in folders), root / CACHE, root / LOCK, *_cached(root)):
        name = str(path.relative_to(root))
        if path.is_symlink():
            raise ConfigError(
                f"{root}: {name} is a link, behind which nothing is compared or removed; put the folder or file "
                "itself there, or name another folder"
            )
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        is_folder = name in (*folders, CACHE)
        if not (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and not is_folder)):
            kind = "folder" if is_folder else "file"
            raise ConfigError(f"{root}: {name} is no {kind}; remove it, or name another folder")


def _cached(root: Path) -> Iterator[Path]:
    """Yield what lies in `.cache`, and what is no file below it; a peer may remove folders meanwhile."""
    with suppress(FileNotFoundError, NotADirectoryError):
        yield from sorted((root / CACHE).iterdir())
        yield from (root / name for name in OutputFolder(root).strangers(CACHE))


def _has_receipt(out: OutputFolder) -> bool:
    """Return whether a folder has a receipt that a run wrote, and not another file of this name."""
    try:
        return find_receipt(out) is not None
    except IntegrityError:
        return False


@contextmanager
def locked(out: OutputFolder, name: str = LOCK) -> Iterator[Lock]:
    """Hold the one-writer lock, or another one, and release it even if a signal ends the process early.

    Raises:
        ConfigError: If the lock, or something in `.cache`, is no file or folder: files would be written elsewhere.
    """
    if not is_remote(out.root):
        _check_places(Path(out.root), ())
    lock = out.store.lock(name)
    with lock, done_before_end(lock.release):
        yield lock


def engine_config(config: Work, out: OutputFolder) -> EngineConfig:
    """Return the configuration of the engine."""
    return EngineConfig(
        out=out.root,
        log_folder=out.store.local_folder(WORKER_LOGS),
        cpus=usable_threads(),
        beam_options=config.beam_options,
    )
