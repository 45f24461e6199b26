"""The verify program: a finished run or a trial against its receipt, an export against its manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import cppmill_core

from configs import VOCABULARY
from configs.platforms import published_platforms
from pipelines.console.progress import Reporter, Reporters
from pipelines.stages.platforms import made_platforms, make_detect
from pipelines.stages.vocabulary import recorded_digest, travelled_revision
from pipelines.versions.count_checks import check_counts
from pipelines.versions.layout_checks import check_layout
from pipelines.versions.part_checks import check_parts
from pipelines.versions.record_checks import check_records
from schemas.digests import parse_json, same_json
from schemas.errors import ConfigError, CppmillError, IntegrityError, VocabularyConfigError
from schemas.options import REENCODED
from schemas.units import EXPORT_FOLDERS, Stage, is_unit_receipt
from tokenizer_build.artifact import MANIFEST_JSON, find_foreign_contents
from tokenizer_build.lock import LOCK_NAME, RELEASES_NAME, read_lock, read_releases
from tokenizer_build.lock import revision as find_release
from tokenizer_build.vocabulary import VOCABULARY_JSON
from transforms.records.checks import published as copies
from transforms.records.checks.published import read_published, verify_published
from transforms.records.checks.shard_proofs import Reading
from transforms.records.checks.unit_checks import RunUnits, read_units
from transforms.records.checks.verification import verify_run
from transforms.records.manifests import MANIFEST
from transforms.records.receipts import RECEIPT, read_receipt
from transforms.records.record import MALFORMED, malformed
from transforms.records.signatures import check_signature
from transforms.records.trials import is_trial, verify_trial
from transforms.storage.folder import OutputFolder


def verify(
    out: str,
    reencode: float = REENCODED,
    reporter: Reporter | None = None,
    *,
    signed_by: Path | None = None,
    run: str | None = None,
    published: bool = False,
) -> list[str]:
    """Return every difference between OUT, a path or a URL, and its receipt or manifest; empty if there is none.

    Args:
        out: The folder of a run, a trial or an export.
        reencode: The part of a run's documents to encode again, 0 to 1, chosen by the digests of their contents; of an
            export that of its files to make again from `run`.
        reporter: Where the progress of reading a run's token shards goes; nowhere by default.
        signed_by: The file of the signers of whom one must have signed the run's receipt; None if none need have.
        run: The run that an export was made from; None looks at the export alone.
        published: Whether OUT is a copy of what is published of a run, so only that is looked at.

    Raises:
        ConfigError: If that file cannot be read, there is a run for what is no export, or a copy of none is of a run.
    """
    folder = OutputFolder(out)
    signatures = [] if signed_by is None else list(check_signature(folder, signed_by))
    if published and (record(out) == "manifest" or is_trial(folder)):
        raise ConfigError(f"--published: {out} is no copy of a run, but an export or a trial; leave it out")
    if record(out) == "manifest":
        from pipelines.exports.checks import check_export  # loads all that makes exports

        return [*signatures, *check_export(folder, None if run is None else OutputFolder(run), share=reencode)]
    if run is not None:
        raise ConfigError(f"--run {run}: {out} is no export; leave it out")
    if is_trial(folder):
        return [*signatures, *verify_trial(folder)]
    if signatures:
        return signatures
    reading = Reading(
        threads=os.cpu_count() or 1,
        reencode=reencode,
        on_shard=partial(_report_shard, reporter or Reporters()),
        detect=make_detect(_rules(folder), 1),
    )
    return _verify_run(folder, reading, published=published)


def _rules(folder: OutputFolder) -> str:
    """Return the rules by which the platforms of a run are found; those of cppmill if its own cannot be read."""
    try:
        return made_platforms(folder).rules
    except (ConfigError, OSError):
        return published_platforms().rules


def _verify_run(folder: OutputFolder, reading: Reading, *, published: bool) -> list[str]:
    """Return every difference between a run, or what is published of it, and its receipt."""
    try:
        differences = verify_published(folder, reading) if published else verify_run(folder, reading)
        if differences:
            return differences
        receipt = read_receipt(folder)
        if published:
            return [*check_layout(read_published(folder, receipt)), *_check_vocabulary(folder), *_check_built(folder)]
        units = read_units(folder, receipt)
        of_parts = list(check_parts(units))
        return [
            *check_layout(units),
            *_check_vocabulary(folder),
            *_check_built(folder),
            *check_counts(units, remerge=reading.reencode >= 1 and not of_parts),
            *of_parts,
            *_check_build(units, recount=reading.reencode >= 1),
            *check_records(folder, receipt),
        ]
    except FileNotFoundError as error:
        return [f"{error.filename or error}: it went while it was read; a run may be writing to {folder.root}"]
    except IntegrityError as error:
        return [str(error)]
    except MALFORMED as error:
        return [malformed(folder, RECEIPT, error, kind="receipt")]


def _check_build(units: RunUnits, *, recount: bool) -> Iterator[str]:
    """Derive the build of a tokenizer again, if there is one."""
    if units.by_stage[Stage.BUILD]:
        from pipelines.versions.build_checks import check_build  # loads all that builds tokenizers

        yield from check_build(units, recount=recount)


def _report_shard(reporter: Reporter, done: int, shards: int) -> None:
    """Report how many token shards are read back; a unit is a shard."""
    if done:
        reporter.progress(done, 0)
    else:
        reporter.stage_started("verify", shards, 0)


def _check_vocabulary(out: OutputFolder) -> Iterator[str]:
    """Compare what an intact receipt says of the tokenizer's vocabulary and release with the files that say so."""
    facts = read_receipt(out)["tokenizer"]
    recorded = recorded_digest(out)
    found = {recorded, facts.get("vocabulary"), out.digest(f"tokenizer/{VOCABULARY_JSON}") or recorded}
    if len(found) > 1:
        shown = ", ".join(sorted(str(digest) for digest in found))
        yield f"{out.where('tokenizer')}: receipt, manifest and {VOCABULARY_JSON} differ on the vocabulary: {shown}"
    yield from _check_lock(out)
    name, revision = f"tokenizer/{RELEASES_NAME}", travelled_revision(out, facts["digest"])
    allowed = {revision} if out.exists(name) else {revision, find_release(read_releases(VOCABULARY), facts["digest"])}
    if facts["revision"] not in allowed:
        yield f"{out.where(name)}: the revision is {revision} by the releases, the receipt says {facts['revision']}"


def _check_lock(out: OutputFolder) -> Iterator[str]:
    """Check that a lock beside the tokenizer is one, and that no fixed token has another id than it says."""
    where = out.where(f"tokenizer/{LOCK_NAME}")
    if not out.exists(f"tokenizer/{LOCK_NAME}"):
        return
    with out.open_local_folder("tokenizer") as folder:
        try:
            locked = read_lock(folder).by_token
        except VocabularyConfigError as error:
            yield f"{where}: {error}"
            return
        fixed = parse_json((folder / MANIFEST_JSON).read_bytes())["tokens"]
    moved = [token for token in fixed if token["token"] in locked and locked[token["token"]].id != token["id"]]
    for token in moved[:1]:
        yield f"{where}: {token['token']!r} is locked as {locked[token['token']].id}, the manifest says {token['id']}"


def _check_built(out: OutputFolder) -> Iterator[str]:
    """Compare the options of a build with the tokenizer, and `vocab.tsv` with what it is a table of."""
    receipt, place = read_receipt(out), out.where("tokenizer")
    with out.open_local_folder("tokenizer") as folder:
        manifest = parse_json((folder / MANIFEST_JSON).read_bytes())
        if any(is_unit_receipt(name, Stage.BUILD) for name in receipt["files"]):
            kind = receipt["configs"]["build"].get("kind", "bpe")
            if (manifest.get("kind") or "bpe") != kind.partition("-")[0]:
                yield f"{place}: its kind is {manifest.get('kind')}, the options of the receipt say {kind}"
            for name in ("vocab_size", "profile"):
                found, said = manifest.get(name), receipt["configs"]["build"].get(name)
                if name in manifest and not same_json(found, said):
                    yield f"{place}: its {name} is {found}, the options of the receipt say {said}"
        for name, reason in find_foreign_contents(folder, cppmill_core.load_tokenizer(folder)):
            yield f"{out.where(f'tokenizer/{name}')}: {reason}"


def count_absent(out: str) -> dict[str, int]:
    """Return how many files of a run a copy of it lacks, by folder; none if its receipt cannot be read."""
    folder = OutputFolder(out)
    try:
        return copies.count_absent(folder, read_receipt(folder))
    except (CppmillError, *MALFORMED):
        return {}


def record(out: str) -> Literal["receipt", "manifest"]:
    """Return the record of a folder: the manifest of an export, finished or not, else the receipt."""
    folder = OutputFolder(out)
    unfinished = not folder.exists(RECEIPT) and any(any(folder.files(name)) for name in EXPORT_FOLDERS)
    return "manifest" if unfinished or folder.exists(MANIFEST) else "receipt"
