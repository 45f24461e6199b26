"""The tokenizer that stands in OUT: a run keeps it, so that no id moves unless `--rebuild-tokenizer` asks for it.

New sources are tokenized with it, and nothing is scanned: `counts/` stays what it was built from. Options that disagree
with it are refused before anything is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cppmill_core.manifests import MANIFEST

from configs.problems import show
from configs.tables import FLAGS
from pipelines.stages.document_units import document_shards
from pipelines.stages.scan_receipts import ScanReceipts, is_of_one_scan, split_receipts
from pipelines.stages.session import MADE_AGAIN, Session
from pipelines.stages.vocabulary import recorded_digest, token_pattern
from schemas.errors import ConfigError, IntegrityError
from schemas.units import RECEIPT_FOLDERS, TOKENIZER_STAGES, Stage, Unit, UnitReceipt, is_unit_receipt
from tokenizer_build.lock import vocabulary_digest
from tokenizer_build.vocabulary import read_vocabulary
from transforms.records.receipts import RECEIPT, find_receipt
from transforms.tokens.tokenizer import manifest_digest, read_manifest

KEPT = "the tokenizer in OUT is kept; --rebuild-tokenizer builds another"
"""Why a run does not scan or build."""

_FOLDER = RECEIPT_FOLDERS[Stage.BUILD]
_MANIFEST = f"{_FOLDER}/{MANIFEST}"
_REBUILD = "or --rebuild-tokenizer, which moves learned ids"


def keeps_tokenizer(session: Session, unit: Unit) -> bool:
    """Return whether OUT's tokenizer is kept, so that a unit which would lead to another one does not run.

    A unit that has run before leads to the same one: it is up to date, or repaired.

    Raises:
        ConfigError: If an option disagrees with the tokenizer.
        IntegrityError: If a file of the tokenizer, or of what it was built from, is missing or damaged.
    """
    check_standing(session)
    if not keeps_any(session):
        return False
    if has_tokenizer(session) and not _is_recorded_build(session):
        check_recorded(session)
    if _has_run(session, unit):
        return False
    check_intact(session)
    return True


def _is_recorded_build(session: Session) -> bool:
    """Return whether the build in OUT made the tokenizer that the record names: if there is another, it is damaged."""
    recorded = session.out.recorded_digest(_MANIFEST)
    return any(receipt.files.get(_MANIFEST) == recorded for receipt in build_receipts(session))


def _has_run(session: Session, unit: Unit) -> bool:
    """Return whether a unit has led to the tokenizer in OUT; its receipt may be lost, or the tokenizer."""
    if session.out.exists(unit.receipt_path):
        return True
    if not has_tokenizer(session):
        if session.out.is_recorded(unit.receipt_path):
            return True
        return (bool(build_receipts(session)) or has_lost_tokenizer(session)) and session.has_run(unit)
    if session.out.is_recorded(_MANIFEST):
        return session.out.is_recorded(unit.receipt_path) and bool(build_receipts(session))
    return session.has_run(unit) and _is_remembered(session)


def _is_remembered(session: Session) -> bool:
    """Return whether what is remembered is of the build of OUT's tokenizer, not of one that was here before."""
    built = build_receipts(session)
    if not (built and session.remembered(Stage.BUILD, manifest=manifest_digest(session.out))):
        return False
    there = session.find_units(session.out.receipts(Stage.SCAN))
    return all(receipt.files != built[0].inputs for receipt in there)  # else these are its counts, and none was lost


def check_standing(session: Session) -> None:
    """Refuse options that disagree with the tokenizer in OUT, if there is one and none is given.

    Raises:
        ConfigError: With a line for each option: both values, and what to do.
    """
    if session.config.tokenizer is None and has_tokenizer(session):
        lines = [*([] if session.config.rebuild_tokenizer else _other_options(session)), *_other_vocabulary(session)]
        if lines:
            raise ConfigError("\n".join(lines))


def has_tokenizer(session: Session) -> bool:
    """Return whether OUT has a finished tokenizer: its manifest is written last."""
    return bool(manifest_digest(session.out))


def keeps_any(session: Session) -> bool:
    """Return whether a run keeps whatever tokenizer OUT has, or lost: there is one, and no rebuild is asked for."""
    is_there = has_tokenizer(session) or session.out.is_recorded(_MANIFEST) or bool(session.out.receipts(Stage.BUILD))
    return (is_there or has_lost_tokenizer(session)) and not session.config.rebuild_tokenizer


def has_lost_tokenizer(session: Session) -> bool:
    """Return whether OUT has token shards and it is remembered that a tokenizer was built, which says it was theirs."""
    return bool(session.remembered(Stage.BUILD)) and bool(session.out.receipts(Stage.TOKENIZE))


def build_receipts(session: Session) -> list[UnitReceipt]:
    """Return the receipt of the build of OUT's tokenizer; none if it was copied into OUT.

    Of several, those count whose build made the manifest: others were copied here from another folder, or are none.

    Raises:
        IntegrityError: If it is damaged, or gone though the receipt of the run names it, or, without that one, though
            it is remembered that the tokenizer was built in OUT, and no tokenizer is given: without it, nobody knows
            what the tokenizer was built from.
    """
    found, damaged = list[UnitReceipt](), list[IntegrityError]()
    for name in session.out.receipts(Stage.BUILD):
        try:
            found.append(session.read_unit(name, advice=""))
        except IntegrityError as error:
            damaged.append(error)
    manifest = manifest_digest(session.out)
    made = [receipt for receipt in found if manifest and receipt.files.get(_MANIFEST) == manifest]
    if damaged and not made:
        raise IntegrityError(f"{damaged[0]}; restore the file, {_REBUILD}") from damaged[0]
    try:
        for name, reason in () if found or session.config.tokenizer is not None else _known_builds(session):
            raise IntegrityError(f"{session.out.where(name)}: missing, and {reason}")
    except IntegrityError as error:
        raise IntegrityError(f"{error}; restore the file, {_REBUILD}") from error
    return made or found


def _known_builds(session: Session) -> Iterator[tuple[str, str]]:
    """Yield the paths of the receipts of builds that must be in OUT, and why."""
    recorded = find_receipt(session.out)
    if recorded is None:
        remembered = session.remembered(Stage.BUILD, manifest=manifest_digest(session.out))
        yield from ((name, f"the tokenizer in {session.out.root} was built there") for name in remembered)
    else:
        names = (name for name in recorded["files"] if is_unit_receipt(name, Stage.BUILD))
        yield from ((name, f"{RECEIPT} names it") for name in names)


def scan_receipts(session: Session, built: Sequence[UnitReceipt], *, advice: str = MADE_AGAIN) -> list[UnitReceipt]:
    """Return the receipts of the scan that OUT's tokenizer was built from; advice is as for `Session.read_unit`.

    What is remembered of the scan counts if it is of one scan. Else it is a file that was copied here or changed, and
    what the record of the run names counts, or what there is, if it is that of the tokenizer.

    Args:
        session: The session.
        built: The receipt of the build.
        advice: What to do if a receipt is missing or damaged; empty if the caller adds it.

    Raises:
        IntegrityError: If one is missing or damaged.
    """
    out, (build, *_) = session.out, built
    remembered = session.find_units(session.remembered(Stage.SCAN))
    if is_of_one_scan(remembered):
        return remembered
    for names in (out.recorded_receipts(Stage.SCAN), out.receipts(Stage.SCAN)):
        found = session.find_units(names)
        if is_of_one_scan(found) and split_receipts(found, where=out.root).merged.files == build.inputs:
            return found
    return session.current(Stage.SCAN, advice=advice)


def is_of_other_documents(session: Session, documents: Sequence[UnitReceipt]) -> bool:
    """Return whether OUT's tokenizer was built in it, but from other documents than OUT has now."""
    built = build_receipts(session)
    if not built:
        return False
    scan = split_receipts(scan_receipts(session, built), where=session.out.root)
    counted = scan.merged.files == built[0].inputs
    return not counted or _inputs(scan) != {shard.sha256 for shard in document_shards(documents)}


def scanned_shards(session: Session) -> set[str]:
    """Return the SHA-256 of the documents shards that the tokenizer was built from; none if it was copied into OUT."""
    built = build_receipts(session)
    if not built:
        return set()
    return _inputs(split_receipts(scan_receipts(session, built), where=session.out.root))


def _inputs(scan: ScanReceipts) -> set[str]:
    return {sha256 for receipt in scan.shards for sha256 in receipt.inputs.values()}


def _other_options(session: Session) -> Iterator[str]:
    """Yield a line for each option that is not what the tokenizer was built with."""
    kept = "" if build_receipts(session) else f", --tokenizer {session.out.root}/{_FOLDER}"
    for option, found in _made_options(session).items():
        of_tokens, (table, key) = option == _TOKEN_PATTERN, _PATTERN if option == _TOKEN_PATTERN else option
        options = session.config.stage_options(Stage(table))
        given = token_pattern(session.config.options) if of_tokens else options.get(key)
        if given != found:
            flag = _flag(table, key)
            yield (
                f"{flag} {_shown(given)}: the tokenizer in {session.out.root} was built with {_shown(found)}; "
                f"{'leave it out' if found is None else f'pass {flag} {_shown(found)}'}{kept}, {_REBUILD}"
            )


_PATTERN = (str(Stage.SCAN), "pattern")
_TOKEN_PATTERN = ("manifest", "pattern")
"""The pattern that a manifest has: that of the lines, if there are superwords, which `_PATTERN` is not."""


def _made_options(session: Session) -> dict[tuple[str, str], Any]:
    """Return what the tokenizer was built with, by table and key: all that is recorded, at least what the manifest has.

    Options that are off are None.
    """
    manifest = read_manifest(session.out)
    made = dict[Stage, dict[str, Any]]()
    if build_receipts(session):  # the record first: what is remembered may be of a later scan, or of another folder
        recorded = _recorded_options(session)
        made = {stage: recorded.get(stage, {}) for stage in TOKENIZER_STAGES}
        if not all(made.values()):
            made = {stage: session.made_options(stage) for stage in TOKENIZER_STAGES}
    if made and all(made.values()):
        names = {stage: {*made[stage], *session.config.stage_options(stage)} for stage in made}
        return {(str(stage), name): made[stage].get(name) for stage in made for name in sorted(names[stage])}
    template = {} if "kind" in manifest else {("build", "hf_template"): manifest.get("hf_template")}
    known: dict[tuple[str, str], Any]
    known = {("build", name): manifest[name] for name in ("vocab_size", "profile") if name in manifest}
    return {**known, **template, **({_TOKEN_PATTERN: manifest["pattern"]} if "pattern" in manifest else {})}


def _recorded_options(session: Session) -> dict[str, dict[str, Any]]:
    """Return the options of each stage that the record of the run has; empty without one of OUT's tokenizer."""
    if session.out.recorded_digest(_MANIFEST) != manifest_digest(session.out):
        return {}
    return session.options_of_record()


def _other_vocabulary(session: Session) -> Iterator[str]:
    """Yield a line if the vocabulary is not the one that the tokenizer was built with; a rebuild must name one."""
    config = session.config
    try:
        found = recorded_digest(session.out)
    except IntegrityError:
        if not config.rebuild_tokenizer:
            raise
        found = None
    asked = None if config.vocab is None else vocabulary_digest(read_vocabulary(session.vocabulary))
    own = f"--vocab {session.out.root}/{_FOLDER}"
    if found is not None and config.vocab is None:
        yield (
            f"--vocab: not given, and the tokenizer in {session.out.root} has the vocabulary {found}; give its folder, "
            f"or {own}, which has it too"
        )
    elif asked != found and not config.rebuild_tokenizer:
        has = found or "that comes with cppmill"
        ways = f"give {own}" if found else "leave it out"
        yield (
            f"--vocab {config.vocab}: its digest is {asked}, and the tokenizer in {session.out.root} has the "
            f"vocabulary {has}; {ways}, {_REBUILD}"
        )


def _flag(table: str, key: str) -> str:
    """Return the flag of an option, or its key where it has none."""
    home = "run" if key == "profile" else table
    named = [name for name, flag in FLAGS.items() if (flag.table, flag.key) == (home, key)]
    return named[0] if named else f"{table}.{key} ="


def _shown(value: object) -> str:
    return "none" if value is None else value if isinstance(value, str) else show(value)


def check_recorded(session: Session) -> None:
    """Check that the tokenizer in OUT is the one that the record of the run names, unless it was published since.

    Raises:
        IntegrityError: If it is another one: it was put there by hand, and ids would move.
    """
    out, found = session.out, manifest_digest(session.out)
    if (recorded := out.recorded_digest(_MANIFEST)) not in (None, found):
        raise IntegrityError(
            f"{out.where(_MANIFEST)}: its SHA-256 is {found}, {RECEIPT} says {recorded}; restore the folder, or give "
            f"this tokenizer with --tokenizer DIR, {_REBUILD}"
        )


def check_intact(session: Session) -> None:
    """Check the files of the tokenizer and the counts that it was built from.

    Raises:
        IntegrityError: Naming the first that is missing or damaged.
    """
    out = session.out
    if not has_tokenizer(session):
        left = "the receipt of the build" if out.receipts(Stage.BUILD) else "what is remembered of the build"
        names = RECEIPT if out.is_recorded(_MANIFEST) else left
        raise IntegrityError(f"{out.where(_MANIFEST)}: missing, and {names} names it; restore it, {_REBUILD}")
    check_recorded(session)
    manifest = read_manifest(out)
    expected = {f"{_FOLDER}/{name}": sha256 for name, sha256 in manifest["files"].items()}
    built = build_receipts(session)
    if built:
        try:
            counts = scan_receipts(session, built, advice="")
            merged = split_receipts(counts, where=out.root).merged
        except IntegrityError as error:
            raise IntegrityError(
                f"{error}; {out.where(built[0].path)} says that the tokenizer was built from that scan; restore what "
                f"was there, or keep the tokenizer with --tokenizer {out.where(_FOLDER)}, {_REBUILD}"
            ) from error
        if built[0].inputs not in ({}, merged.files):
            raise IntegrityError(
                f"{out.where(built[0].path)}: names other counts than those in {out.root}, from which the tokenizer "
                "should be built; restore what was there, or keep the tokenizer with --tokenizer "
                f"{out.where(_FOLDER)}, {_REBUILD}"
            )
        for receipt in (*built, *counts):
            expected |= receipt.files
    damaged = [name for name, sha256 in expected.items() if out.digest(name) != sha256]
    if damaged:
        raise IntegrityError(
            f"{out.where(damaged[0])}: missing or damaged, and the tokenizer in {out.root} needs it; restore it, "
            f"{_REBUILD}"
        )
