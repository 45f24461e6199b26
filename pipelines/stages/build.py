"""The build program: counts and vocabulary configuration to a tokenizer directory, in one process."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core.hugging_face import surrounding_tokens
from cppmill_core.manifests import BOS, MANIFEST, TOKENIZER
from cppmill_core.manifests import read_manifest as read_given_manifest

from configs.runs import RunConfig
from pipelines.console.progress import Reporter, Summary
from pipelines.stages.given import open_given
from pipelines.stages.program import StagePlan, StageProgram, plan_units, to_run, to_skip
from pipelines.stages.scan_receipts import split_receipts
from pipelines.stages.session import Session, open_session
from pipelines.stages.standing import (
    KEPT,
    build_receipts,
    check_intact,
    check_standing,
    has_tokenizer,
    keeps_any,
    keeps_tokenizer,
    scan_receipts,
)
from pipelines.stages.vocabulary import vocabulary_key
from schemas.digests import parse_json, sha256_file
from schemas.errors import ConfigError, IntegrityError, VocabularyConfigError
from schemas.options import RunOptions, TokenizeOptions
from schemas.places import is_remote
from schemas.printing import one_line
from schemas.resources import naming_file
from schemas.tables import GROUPED_WORDS, WORDS, column_problems
from schemas.units import OutputFile, Stage, Unit, UnitReceipt, unit_key
from tokenizer_build.artifact import find_foreign_contents
from tokenizer_build.decision_files import DECISIONS, DECISIONS_PARQUET
from tokenizer_build.lock import LOCKS
from transforms.scan.kinds import Family, Kind
from transforms.scan.tables import read_counts, read_statistics
from transforms.storage.folder import OutputFolder
from transforms.storage.footers import check_footer
from transforms.storage.scratch import temporary_folder
from transforms.tokens.tokenizer import document_ends, end_name, keep_loaded, manifest_digest
from transforms.units.prefetch import prefetch

if TYPE_CHECKING:
    from tokenizer_build.build import ScanCounts


def run(config: RunConfig, reporter: Reporter) -> None:
    """Build the tokenizer from the counts in OUT, and report all findings; one that is given is copied instead."""
    from tokenizer_build.findings import FINDINGS_MD

    with open_session(config, reporter) as session:
        if config.tokenizer is not None:
            install_tokenizer(session, config.tokenizer)
            return
        check_standing(session)
        keeps = keeps_any(session)
        built = build_receipts(session) if keeps else []
        if keeps and not built:
            check_intact(session)
            session.reporter.note(f"build: {KEPT}")
            return
        counts = scan_receipts(session, built) if built else session.current(Stage.SCAN)
        if not built:
            _check_counted(session)
        session.check_outputs(counts)
        session.check_options([Stage.SCAN])
        work(session, counts)
        for line in session.out.read_bytes(f"tokenizer/{FINDINGS_MD}").decode().splitlines():
            reporter.note(line)


def _check_counted(session: Session) -> None:
    """Check that the counts in OUT are of the vocabulary of this command.

    Raises:
        ConfigError: If they are of another one.
    """
    if session.remembered_fact(Stage.SCAN, "vocabulary") not in (None, session.vocabulary_digest):
        raise ConfigError(
            f"--vocab {session.config.vocab or 'is not given'}: {session.out.root} was scanned with another one; run "
            "`cppmill scan` again, or `cppmill run` for everything"
        )


def build(session: Session, counts: UnitReceipt) -> UnitReceipt:
    """Build the tokenizer from merged counts unless it is up to date, and report the findings in a few lines.

    Args:
        session: The session.
        counts: The receipt that commits the merged counts.
    """
    unit = plan_build(session, counts)
    started = time.monotonic()
    receipt = session.out.find_receipt(unit)
    if receipt is not None and receipt.inputs != counts.files:
        where = session.out.where(unit.receipt_path)
        session.reporter.note(f"{where}: names other counts than those of its key; the tokenizer is built again")
        receipt = None
    session.reporter.stage_started(Stage.BUILD, int(receipt is None), unit.num_bytes if receipt is None else 0)
    if receipt is None:
        session.withdraw([unit])
        receipt, findings = _build(session, unit, counts)
        session.reporter.progress(1, unit.num_bytes)
        summary: Summary = {"ids": session.config.options.build.vocab_size}
    else:
        findings, summary = (), {"tokenizer": "reused"}
    session.remember(Stage.BUILD, [unit], manifest=manifest_digest(session.out))
    session.reporter.stage_done(Stage.BUILD, time.monotonic() - started, summary)
    for line in findings:
        session.reporter.note(f"build: {line[0].lower()}{line[1:]}")
    return receipt


def work(session: Session, counts: Sequence[UnitReceipt]) -> list[UnitReceipt]:
    """Build from the receipts of a scan, and return the receipt of the tokenizer; none if the one in OUT is kept."""
    if not counts:
        return []
    merged = split_receipts(counts, where=session.out.root).merged
    if keeps_tokenizer(session, plan_build(session, merged)):
        session.reporter.note(f"build: {KEPT}")
        return []
    return [build(session, merged)]


def plan(session: Session, counts: Sequence[UnitReceipt]) -> StagePlan:
    """Return what `build` would do."""
    merged = split_receipts(counts, where=session.out.root).merged if counts else None
    if merged is None or keeps_tokenizer(session, plan_build(session, merged)):
        return StagePlan(units=[to_skip(Stage.BUILD, "tokenizer", KEPT)])
    planned = plan_units(session, [plan_build(session, merged)])
    if planned.receipts:
        return planned
    units = [to_run(Stage.BUILD, "tokenizer", "rebuilt: learned ids move")] if has_tokenizer(session) else planned.units
    return replace(planned, units=units, blocked="everything if the tokenizer changes, else what is new")


def plan_build(session: Session, counts: UnitReceipt) -> Unit:
    """Return the unit of the build: keyed by the counts' digests, the vocabulary files and the options."""
    config = build_config(session.config.options, session.vocabulary, is_own=session.config.vocab is not None)
    key = unit_key(Stage.BUILD, core_version=cppmill_core.__version__, config=config, inputs=counts.files)
    size = sum(output.num_bytes for output in counts.outputs)
    return Unit(stage=Stage.BUILD, key=key, num_bytes=size, label="tokenizer", payload={})


def build_config(options: RunOptions, vocabulary: Path, *, is_own: bool) -> dict[str, Any]:
    """Return what the key of a build depends on, besides the counts.

    Args:
        options: The run's options.
        vocabulary: The folder of the vocabulary.
        is_own: Whether it is the user's own.
    """
    from tokenizer_build.sentencepiece import trainer_version

    return {
        "build": options.build.to_json(),
        "pattern": options.scan.pattern,
        **_unit_pattern(options),
        **({} if options.build.kind == "bpe" else {"sentencepiece": trainer_version()}),
        "vocabulary": vocabulary_key(vocabulary, is_own=is_own),
    }


def install_tokenizer(session: Session, place: Path | str) -> None:
    """Copy a tokenizer directory, local or on an object store, to OUT/tokenizer, unless it is already there.

    That of another program is adopted first.

    Raises:
        ConfigError: If there is no tokenizer, or one whose files differ from its manifest, or do not keep what it
            promises.
    """
    with _open_checked(place, session.config) as (source, tokenizer, others):
        if _install(session, source, others):
            session.reporter.note(f"tokenizer {tokenizer.digest} of {tokenizer.vocab_size:,} ids copied from {place}")
        session.forget(Stage.BUILD)
        keep_loaded(session.out, tokenizer)
        if "kind" in parse_json((source / MANIFEST).read_bytes()):
            from cppmill_core.adoption import program_of

            session.reporter.note(f"tokenizer run by {program_of(tokenizer)}")
        for line in template_notes(tokenizer, source, session.config.options):
            session.reporter.note(line)


def check_given(config: RunConfig) -> None:
    """Check the tokenizer that a run is given, before any document is read; one at a URL is read only once it is used.

    Raises:
        ConfigError: As `install_tokenizer`.
    """
    if config.tokenizer is not None and not is_remote(str(config.tokenizer)):
        with _open_checked(config.tokenizer, config):
            pass


@contextmanager
def _open_checked(place: Path | str, config: RunConfig) -> Iterator[tuple[Path, cppmill_core.AnyTokenizer, list[str]]]:
    """Copy the directory of a given tokenizer, check the copy, and load it: the directory may change meanwhile.

    Yields:
        The copy, the tokenizer, and the names of what lies in the directory and is no part of it.
    """
    from tokenizer_build.own import check_side_files

    with temporary_folder() as folder:
        source = Path(folder)
        try:
            with naming_file(OutputFolder(config.out).where("tokenizer"), source):
                others = _copy_given(place, source)
            tokenizer = cppmill_core.load_tokenizer(source)
            check_side_files(source)
            _check_decisions(source / DECISIONS_PARQUET)
        except (cppmill_core.CoreError, VocabularyConfigError) as error:
            kind = VocabularyConfigError if isinstance(error, VocabularyConfigError) else ConfigError
            raise kind(f"--tokenizer {place}: {str(error).replace(folder, str(place))}") from error
        for name, reason in find_foreign_contents(source, tokenizer):
            raise ConfigError(f"--tokenizer {place}: {name}: {reason}; restore the directory, or build again")
        check_ends(tokenizer, config.options.tokenize, where=f"--tokenizer {place}")
        yield source, tokenizer, others


def _check_decisions(path: Path) -> None:
    """Check the decisions beside a given tokenizer, if there are any, as `verify` does once they are in OUT.

    Raises:
        VocabularyConfigError: If the file is damaged, or has other columns.
    """
    if not path.is_file():
        return
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as table:
            table.read(use_threads=False)
            wrong = column_problems(table, DECISIONS, complete=True)
            problem = next(chain(wrong, check_footer(path, table, "footer")), None)
    except (pa.ArrowException, OSError) as error:
        problem = str(error)
    if problem is not None:
        raise VocabularyConfigError(f"{path}: damaged ({problem}); restore it, or remove it")


def _copy_given(place: Path | str, folder: Path) -> list[str]:
    """Copy the files of a tokenizer directory, and return the names of what is no part of it.

    Raises:
        ConfigError: If it is none, or a file of it goes meanwhile.
        CorruptDataError: If its manifest is none, or a file is not the one that it names.
    """
    from tokenizer_build.own import split_files  # what trains comes with it

    with open_given(place) as source:
        try:
            read_given_manifest(source, None)
            names, others = split_files(source)
            for name in names:
                shutil.copyfile(source / name, folder / name)
            is_torn = (source / MANIFEST).read_bytes() != (folder / MANIFEST).read_bytes()
        except FileNotFoundError:
            is_torn = True
        if is_torn:
            raise ConfigError(f"--tokenizer {place}: it changed while it was copied; run again")
    return others


def template_notes(tokenizer: cppmill_core.AnyTokenizer, folder: Path, options: RunOptions) -> Iterator[str]:
    """Yield where the template of a given tokenizer contradicts the run: its policy, or the template asked for."""
    asked = options.build.hf_template
    if asked not in ("none", parse_json((folder / MANIFEST).read_bytes()).get("hf_template")):
        yield f"hf_template = {asked} is for a build; `cppmill adopt DIR --hf-template {asked}` changes a tokenizer"
    if not (folder / TOKENIZER).is_file():
        return
    around = {id_ for id_ in document_ends(tokenizer, options.tokenize) if id_ is not None}
    more = [name for name, id_ in surrounding_tokens(folder / TOKENIZER).items() if id_ not in around]
    if more:
        yield f"tokenizers and transformers put {' and '.join(more)} around a text, and this run's documents have none"


def check_ends(tokenizer: cppmill_core.AnyTokenizer, options: TokenizeOptions, *, where: str) -> None:
    """Refuse a tokenizer without a control token that the policy puts around documents.

    Raises:
        ConfigError: Naming the token and what to do.
    """
    for key, name in (("bos", BOS), ("eos", end_name(tokenizer, options))):
        if not getattr(options, key):
            continue
        try:
            tokenizer.control_id(name)
        except cppmill_core.InvalidInputError as error:
            raise ConfigError(
                f"{where}: it has no {name}, which is put around documents; set {key} = false in [tokenize], or name "
                f"a control token of it with `cppmill adopt --{key} NAME`"
            ) from error


def is_installed(session: Session, place: Path | str) -> bool:
    """Return whether OUT's tokenizer is that of a tokenizer directory, with all its files and no others."""
    from tokenizer_build.own import split_files

    with open_given(place) as source:
        return _has_files(session, source, split_files(source)[0])


def _has_files(session: Session, source: Path, names: Sequence[str]) -> bool:
    return _is_same(session, source, names) and not _other_files(session, names)


def _is_same(session: Session, source: Path, names: Sequence[str]) -> bool:
    """Return whether OUT's tokenizer has files of a tokenizer directory."""
    return all(session.out.digest(f"tokenizer/{name}") == sha256_file(source / name) for name in names)


def _other_files(session: Session, names: Sequence[str]) -> list[str]:
    """Return what is beside these files in OUT's tokenizer, but for the locks of a run that found a release."""
    return sorted(set(session.out.files("tokenizer")) - {f"tokenizer/{name}" for name in (*names, *LOCKS)})


def _remove_others(session: Session, names: Sequence[str]) -> None:
    """Remove what is beside these files of OUT's tokenizer, such as the receipt of its build."""
    others = _other_files(session, names)
    if others:
        session.withdraw_receipt()
        session.forget(Stage.BUILD)
    for name in others:
        session.out.remove(name)


def _install(session: Session, source: Path, others: Sequence[str]) -> bool:
    """Publish the copied files of a tokenizer directory as OUT's tokenizer; False if it has them already."""
    names = sorted(path.name for path in source.iterdir())
    if _is_same(session, source, names):
        _remove_others(session, names)
        return False
    if others:
        session.reporter.note(f"not copied, as it is no part of the tokenizer: {', '.join(map(one_line, others))}")
    with _staging_folder(session) as staged:
        for name in names:
            shutil.copyfile(source / name, staged / name)
        _publish(session, staged)
    return True


def _build(session: Session, unit: Unit, counts: UnitReceipt) -> tuple[UnitReceipt, tuple[str, ...]]:
    """Build, publish, and return the receipt and the few lines of findings."""
    out, options = session.out, session.config.options
    out.check_bytes(counts.files)
    found = read_scan_counts(out, list(counts.files), by_group=options.build.project_cap is not None)
    with _staging_folder(session) as staged:
        findings = write_tokenizer(
            found,
            options,
            staged,
            vocabulary=session.vocabulary,
            is_own_vocabulary=session.config.vocab is not None,
            threads=session.config.threads,
        )
        if session.read_vocabulary_digest() != session.vocabulary_digest:
            raise ConfigError(f"--vocab {session.config.vocab}: it changed while the run used it; run again")
        receipt = UnitReceipt(
            stage=Stage.BUILD,
            key=unit.key,
            outputs=tuple(_describe(path) for path in sorted(staged.iterdir()) if path.name not in LOCKS),
            totals={},
            inputs=counts.files,
        )
        _publish(session, staged, receipt)
    return receipt, findings


def write_tokenizer(
    counts: ScanCounts,
    options: RunOptions,
    folder: Path,
    *,
    vocabulary: Path,
    is_own_vocabulary: bool = False,
    threads: int,
) -> tuple[str, ...]:
    """Write the tokenizer of the kind that is asked for, and return the few lines of findings.

    Args:
        counts: What the scan counted.
        options: The run's options.
        folder: An existing, empty folder.
        vocabulary: The vocabulary folder.
        is_own_vocabulary: Whether it is the user's own, and recorded in the tokenizer.
        threads: Threads of the native core; the bytes do not depend on them.
    """
    from tokenizer_build.build import build_tokenizer  # what trains is loaded where a tokenizer is built
    from tokenizer_build.sentencepiece import build_sentencepiece

    if options.build.kind != "bpe":
        return build_sentencepiece(
            counts.words, vocabulary_dir=vocabulary, options=options.build, pattern=options.scan.pattern, out=folder
        )
    built = build_tokenizer(
        counts,
        vocabulary_dir=vocabulary,
        options=options.build,
        pattern=options.scan.pattern,
        line_pattern=options.scan.unit_pattern,
        out=folder,
        threads=threads,
        is_recorded=is_own_vocabulary,
    )
    return built.findings


def read_scan_counts(out: OutputFolder, names: Sequence[str], *, by_group: bool) -> ScanCounts:
    """Return the merged counts of a scan, whose files have these names; words and lines are read later.

    Args:
        out: The output folder.
        names: Paths of the files, relative to it.
        by_group: Whether words and lines come with the number of their file, which is that of their projects.
    """
    from tokenizer_build.build import ScanCounts

    words, lines = ([name for name in names if name.startswith(f"counts/{kind}/")] for kind in ("words", "units"))
    for name in (*words, *lines):  # once they are read, by the native core, an error is text with a traceback
        with out.open_ranges(name) as file:
            if (columns := pq.read_schema(file).names) != WORDS.names:
                raise pa.ArrowInvalid(f"its columns are {', '.join(columns)}")

    def read(files: Sequence[str]) -> pa.RecordBatchReader:
        # The next row group is read while the native core works on one.
        if by_group:
            return pa.RecordBatchReader.from_batches(GROUPED_WORDS, prefetch(_read_groups(out, files)))
        return pa.RecordBatchReader.from_batches(WORDS, prefetch(_read_batches(out, files)))

    return ScanCounts(
        words=read(words),
        lines=read(lines) if lines else None,
        reread=lambda: read(lines or words),
        reread_words=lambda: read(words),
        terms=read_counts(out, Family.TERMS),
        morphemes=read_counts(out, Family.MORPHEMES),
        namespaces=read_counts(out, Family.NAMESPACES),
        statistics=read_statistics(out),
    )


def _read_batches(out: OutputFolder, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the words or lines of merged files, a row group at a time."""
    for name in names:
        with out.open_local(name) as path, pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield from file.read_row_group(number).cast(WORDS).to_batches()


def _read_groups(out: OutputFolder, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the words or lines of merged files with the number of their file."""
    for name in names:
        group = Kind.of_merged(name).partition
        for batch in _read_batches(out, [name]):
            yield batch.append_column(GROUPED_WORDS.field("group"), pa.array([group] * batch.num_rows, pa.uint16()))


def _unit_pattern(options: RunOptions) -> dict[str, str]:
    """Return the pattern that superwords are learned with, for the key of the unit; empty without superwords."""
    superwords = options.build.superwords_after is not None
    return {"unit_pattern": options.scan.unit_pattern} if superwords and options.scan.unit_pattern else {}


@contextmanager
def _staging_folder(session: Session) -> Iterator[Path]:
    """Make a folder for the block, which writes a tokenizer in it and publishes it.

    What the machine refuses is an error that names the tokenizer's place in OUT; nothing is left of what was written.
    """
    with tempfile.TemporaryDirectory(dir=session.out.temporary) as folder:
        staged = Path(folder)
        with naming_file(session.out.where("tokenizer"), staged):
            yield staged


def _describe(path: Path) -> OutputFile:
    return OutputFile(path=f"tokenizer/{path.name}", sha256=sha256_file(path), num_bytes=path.stat().st_size, rows=0)


def _publish(session: Session, staged: Path, receipt: UnitReceipt | None = None) -> None:
    """Move a finished tokenizer into OUT: the run's receipt goes first, the manifest comes last.

    So a manifest without a receipt of the build is that of a tokenizer that was copied, not of a build that was killed.
    Files that the old tokenizer has too are replaced, not removed: its vocabulary may be the one that this was asked
    to be built with, and its lock the only one.
    """
    files = sorted((path for path in staged.iterdir()), key=lambda path: (path.name == MANIFEST, path.name))
    if not files or files[-1].name != MANIFEST:
        raise IntegrityError(f"{staged}: the build left no {MANIFEST}")
    _note_moved_ids(session, staged)
    session.withdraw_receipt()
    session.forget(Stage.BUILD)
    session.out.remove(f"tokenizer/{MANIFEST}")
    kept = {f"tokenizer/{path.name}" for path in files}
    for name in sorted(set(session.out.files("tokenizer")) - kept):
        session.out.remove(name)
    for path in files[:-1]:
        session.out.adopt(f"tokenizer/{path.name}", path, rows=0)
    if receipt is not None:
        session.out.publish_receipt(receipt)
    session.out.adopt(f"tokenizer/{MANIFEST}", files[-1], rows=0)


def _note_moved_ids(session: Session, staged: Path) -> None:
    """Say how many ids another tokenizer moves, if it takes the place of one."""
    if not session.out.exists(f"tokenizer/{MANIFEST}"):
        return
    from tokenizer_build.compare.diff import diff_directories

    with session.out.open_local_folder("tokenizer") as old:
        try:
            found = diff_directories(old, staged)
        except (cppmill_core.CoreError, OSError) as error:
            session.reporter.note(f"ids: not compared, because the previous tokenizer cannot be read: {error}")
            return
    counts = ", ".join(f"{number:,} {name}" for name, number in found.counts().items())
    fixed = sum(old.fixed and new.fixed for old, new in found.moved)
    session.reporter.note(f"ids: {counts}, compared with the previous tokenizer; {fixed:,} of the moved ids are fixed")


PROGRAM = StageProgram(stage=Stage.BUILD, needs=(Stage.SCAN,), work=work, plan=plan)
