"""The validate program: token shards and documents to proofs, and the receipt of the run."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import cppmill_core
from cppmill_core.manifests import MANIFEST

from configs.platforms import Platforms
from pipelines.stages.benchmarks import recorded_options
from pipelines.stages.build import is_installed
from pipelines.stages.document_units import document_shards
from pipelines.stages.platforms import made_platforms, publish_platforms
from pipelines.stages.program import StagePlan, StageProgram, plan_units, to_run
from pipelines.stages.session import Session
from pipelines.stages.standing import build_receipts, is_of_other_documents, scan_receipts
from pipelines.stages.tokenize import tokenize_settings
from pipelines.stages.vocabulary import find_revision
from schemas.digests import canonical_json
from schemas.errors import ConfigError, IntegrityError
from schemas.tables import PLATFORM_VOCAB_SIZE
from schemas.units import (
    RUN_PREFIXES,
    TOKENIZER_STAGES,
    OutputFile,
    Stage,
    Unit,
    UnitReceipt,
    is_unit_receipt,
    unit_key,
)
from tokenizer_build.lock import LOCKS
from transforms.filters.verdicts import plugin_versions
from transforms.records.code import code_versions
from transforms.records.exclusion import EXCLUSION, describe_exclusion
from transforms.records.platforms import PLATFORM_VOCAB
from transforms.records.receipts import (
    COMPARED_TOTALS,
    RECEIPT,
    SIGNATURE,
    RunFacts,
    TokenizerFacts,
    describe_receipt,
    make_receipt,
)
from transforms.records.recorded import find_whole_receipt, recorded_files
from transforms.sources.document import display_path, is_utf8
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import check_origin
from transforms.tokens.tokenizer import TokenizeSettings, manifest_digest, open_tokenizer, read_manifest
from transforms.tokens.validate import validate_unit
from transforms.units.flow import Flow, RunUnits


def validate(session: Session, documents: Sequence[UnitReceipt], tokens: Sequence[UnitReceipt]) -> list[UnitReceipt]:
    """Prove every token shard, write the receipt, remove what it does not name, and return the receipts of the proofs.

    Args:
        session: The session.
        documents: Receipts of the ingest units.
        tokens: Receipts of the token shards.
    """
    settings = validate_settings(session)
    made = (Stage.INGEST, Stage.TOKENIZE, *(TOKENIZER_STAGES if build_receipts(session) else ()))
    session.check_options(made)
    if tokens:
        _check_origin(session.out, tokens[0].outputs[0], settings)
    _check_rows(session.out, documents, tokens)
    units = plan_validate(tokens, settings)
    proofs = session.run_units(Stage.VALIDATE, units, validate_shards(session))
    _check_totals(session.out, tokens, proofs)
    _publish_receipt(session, documents, tokens, proofs)
    return proofs


def _check_origin(out: OutputFolder, shard: OutputFile, settings: TokenizeSettings) -> None:
    """Check that a token shard was made with the tokenizer.

    Raises:
        IntegrityError: If it was not, or if its footer says so because its bytes are not those of its receipt.
    """
    try:
        check_origin(out, shard.path, open_tokenizer(settings))
    except IntegrityError:
        out.check_bytes({shard.path: shard.sha256})
        raise


def _check_rows(out: OutputFolder, documents: Sequence[UnitReceipt], tokens: Sequence[UnitReceipt]) -> None:
    """Check that the rows of each token shard are as many as the receipts say of its documents shard.

    Raises:
        IntegrityError: Naming the first documents shard of which this is not true.
    """
    rows = {shard.path: shard.rows for shard in document_shards(documents)}
    for token in tokens:
        for name in token.inputs:
            if rows.get(name) != token.totals["documents"]:
                raise IntegrityError(
                    f"{out.where(name)}: {token.totals['documents']} documents were tokenized, its unit receipt has "
                    f"{rows.get(name)}; remove the file and run again"
                )


def _check_totals(out: OutputFolder, tokens: Sequence[UnitReceipt], proofs: Sequence[UnitReceipt]) -> None:
    """Compare the receipts of token shards with their proofs; those that differ are set aside, as either may be false.

    Raises:
        IntegrityError: Naming the first shard whose receipts differ.
    """
    differing = [
        (token, proof)
        for token, proof in zip(tokens, proofs, strict=True)
        if any(token.totals[name] != proof.totals[name] for name in COMPARED_TOTALS)
    ]
    for receipts in differing:
        for receipt in receipts:
            out.set_aside(receipt.path)
    if differing:
        where = out.where(differing[0][0].outputs[0].path)
        raise IntegrityError(
            f"{where}: its receipt and its proof differ on its documents or tokens; both are set aside, so run again, "
            "which makes them again"
        )


def validate_shards(session: Session) -> Flow:
    """Return the flow of the stage's units, with the tokenizer that OUT has now."""
    return (RunUnits(work=validate_unit, settings=validate_settings(session)),)


def validate_settings(session: Session) -> TokenizeSettings:
    """Return what the workers need to prove token shards.

    Raises:
        ConfigError: If other platforms are asked for than OUT was made with.
        IntegrityError: If OUT has no tokenizer, or other platforms than the record of the run names.
    """
    return replace(tokenize_settings(session), platform_vocab_size=_platforms(session).size)


def _platforms(session: Session) -> Platforms:
    """Return the platforms that OUT was made with: those that ingest used, which may be later than the record."""
    made = made_platforms(session.out)
    said = session.remembered_fact(Stage.INGEST, "platforms") or session.out.recorded_digest(PLATFORM_VOCAB)
    if said not in (None, made.digest):
        raise IntegrityError(
            f"{session.out.where(PLATFORM_VOCAB)}: missing, or not the file of SHA-256 {said} that the documents were "
            "made with; restore it, or run `cppmill run` again with the --platforms of the run"
        )
    if session.config.platforms is not None and session.platforms.digest != made.digest:
        raise ConfigError(
            f"--platforms {session.config.platforms}: the documents in {session.out.root} were made with other "
            "platforms; give the file of the run, or run `cppmill run` again"
        )
    return made


def plan(session: Session, documents: Sequence[UnitReceipt], tokens: Sequence[UnitReceipt]) -> StagePlan:
    """Return what `validate` would do."""
    planned = plan_units(session, plan_validate(tokens, validate_settings(session)))
    missing = len(document_shards(documents)) - len(tokens)
    more = [to_run(Stage.VALIDATE, f"{missing} token shards", "to be written first")] if missing else []
    return replace(planned, units=[*planned.units, *more])


def plan_validate(tokens: Sequence[UnitReceipt], settings: TokenizeSettings) -> list[Unit]:
    """Return one unit per token shard."""
    config: dict[str, Any] = {"tokenizer": settings.tokenizer_digest, "options": settings.options.to_json()}
    if settings.platform_vocab_size != PLATFORM_VOCAB_SIZE:
        config["platform_vocab_size"] = settings.platform_vocab_size
    units = []
    for receipt in tokens:
        shard, (documents, _) = receipt.outputs[0], next(iter(receipt.inputs.items()))
        inputs = {shard.path: shard.sha256, **receipt.inputs}
        key = unit_key(Stage.VALIDATE, core_version=cppmill_core.__version__, config=config, inputs=inputs)
        payload = {"shard": shard.path, "documents": documents, "unit": receipt.key, "inputs": inputs}
        units.append(
            Unit(stage=Stage.VALIDATE, key=key, num_bytes=receipt.totals["bytes"], label=shard.path, payload=payload)
        )
    return units


def _publish_receipt(
    session: Session, documents: Sequence[UnitReceipt], tokens: Sequence[UnitReceipt], proofs: Sequence[UnitReceipt]
) -> None:
    out, platforms, digest = session.out, _platforms(session), manifest_digest(session.out)
    publish_platforms(platforms, out)
    revision = find_revision(out, digest, session.vocabulary)
    manifest, listed = read_manifest(out), set(out.files())
    _check_listed(out, listed, manifest)
    built = build_receipts(session)
    counts = scan_receipts(session, built) if built else []
    receipts = [*documents, *tokens, *proofs, *counts, *built]
    keep = _named_files(session, receipts, listed)
    outputs = session.check_outputs(receipts)
    others = sorted(keep - outputs.keys())
    shards = {name for receipt in tokens for name in receipt.files}
    files = {name: outputs[name] for name in outputs.keys() - shards}
    files |= {output.path: output.sha256 for output in out.each(out.describe, others)}
    made = {name for receipt in built for name in receipt.files}
    is_given = session.config.tokenizer is not None
    if is_given:  # every file of it but these has been compared with the given one
        made |= files.keys() - {f"tokenizer/{name}" for name in LOCKS}
    _check_tokenizer_files(out, files, made, is_given=is_given)
    options = recorded_options(session.config.options, out)
    exclusion = _exclusion(out, {name: outputs[name] for name in shards}) if options.ingest.withdrawn else None
    facts = RunFacts(
        documents=documents,
        tokens=tokens,
        proofs=proofs,
        tokenizer=TokenizerFacts(
            digest=digest,
            revision=revision,
            vocab_size=manifest["vocab_size"],
            vocabulary=manifest.get("vocabulary", {}).get("digest"),
            kept=is_of_other_documents(session, documents) or None,
        ),
        options=options,
        platform_vocab_digest=platforms.digest,
        own_platform_vocab_size=platforms.size if platforms.is_own else None,
        code={**code_versions(), **plugin_versions(session.config.options.ingest)},
        files=files,
        exclusion=exclusion,
    )
    receipt = make_receipt(facts)
    data = canonical_json(receipt)
    if not out.exists(RECEIPT) or out.read_bytes(RECEIPT) != data:
        out.remove(SIGNATURE)  # it is of the receipt that goes
        out.publish_bytes(RECEIPT, data)
    for name in listed - keep - {RECEIPT, SIGNATURE}:
        out.remove(name)
    for name in [name for name in out.strangers() if name.startswith(RUN_PREFIXES)]:
        out.remove(name)
    for line in describe_receipt(receipt):
        session.reporter.note(line)


def _exclusion(out: OutputFolder, shards: dict[str, str]) -> dict[str, Any]:
    """Return what the receipt says of the doc_ids of token shards, whose bytes are compared if it says another thing.

    Raises:
        IntegrityError: If a shard is not the one that its unit receipt names.
    """
    found = None
    with suppress(ValueError):  # a doc_id is none, so a shard is damaged
        found = describe_exclusion(out, sorted(shards))
    if found is None or found != (find_whole_receipt(out) or {}).get(EXCLUSION):
        out.check_bytes(shards)
    return found or describe_exclusion(out, sorted(shards))


def _check_tokenizer_files(out: OutputFolder, files: dict[str, str], made: set[str], *, is_given: bool) -> None:
    """Compare the files beside a tokenizer that no unit receipt and no manifest names with the receipt to be replaced.

    Whatever changes or removes them on purpose removes that receipt first.

    Raises:
        IntegrityError: Naming the first that was changed, or is gone.
    """
    for name, recorded in recorded_files(out).items():
        if not name.startswith("tokenizer/") or name in made or is_unit_receipt(name, Stage.BUILD):
            continue
        found = None
        if name in files:
            found = out.hash(name)
        elif is_given or out.exists(name):
            continue  # the given one has none; or it is no part of a tokenizer, and earlier versions took it
        if found != recorded:
            problem = "it is missing" if found is None else f"its SHA-256 is {found}"
            raise IntegrityError(
                f"{out.where(name)}: {problem}, the receipt of the run says {recorded}, and nothing else says what it "
                "was; restore it, or copy the tokenizer again with --tokenizer DIR"
            )


def _check_listed(out: OutputFolder, listed: Collection[str], manifest: dict[str, Any]) -> None:
    """Check that a listing of OUT is not older than what was written: whatever it lacks would not be in the receipt.

    Raises:
        IntegrityError: Naming the first file that is not listed.
    """
    tokenizer = (f"tokenizer/{file}" for file in (MANIFEST, *sorted(manifest["files"])))
    missing = [name for name in (PLATFORM_VOCAB, *tokenizer) if name not in listed]
    if missing:
        raise IntegrityError(
            f"{out.where(missing[0])}: it was written, and a list of all files does not have it; if the store lists "
            "what was there before, run again later; if the file is gone, copy the tokenizer again with --tokenizer DIR"
        )


def _named_files(session: Session, receipts: Sequence[UnitReceipt], listed: Collection[str]) -> set[str]:
    """Return the files that the receipt names: what current units published, and all other files in OUT.

    Beside a tokenizer, those are left out that are no part of it: `verify` takes none.

    Raises:
        IntegrityError: Naming a file whose name no receipt can have.
    """
    named = {name for receipt in receipts for name in (receipt.path, *receipt.files)}
    tokenizer = {name for name in listed if name.startswith("tokenizer/")}
    if any(receipt.stage == Stage.BUILD for receipt in receipts):
        tokenizer &= {*named, *(f"tokenizer/{name}" for name in LOCKS)}
    else:
        from tokenizer_build.own import names_of_tokenizer  # what trains comes with it

        tokenizer &= {f"tokenizer/{name}" for name in names_of_tokenizer(read_manifest(session.out))}
    check_others(session.out, listed)
    others = {name for name in listed if not name.startswith(RUN_PREFIXES) and name not in (RECEIPT, SIGNATURE)}
    return named | tokenizer | others


def check_others(out: OutputFolder, listed: Collection[str]) -> None:
    """Check that a receipt can name what is in OUT besides the folders of a run.

    Args:
        out: The output folder.
        listed: All files in it.

    Raises:
        IntegrityError: Naming what is no file, or has a name that no receipt can have.
    """
    advice = "move it elsewhere, and run again"
    for name in sorted(name for name in listed if not name.startswith(RUN_PREFIXES)):
        if not is_utf8(os.fsencode(name)):
            where = out.where(display_path(name))
            raise IntegrityError(
                f"{where}: its name is not UTF-8 (shown percent-encoded), so no receipt can name it; {advice}"
            )
    for name in sorted(name for name in out.strangers() if not name.startswith(RUN_PREFIXES)):
        where = out.where(display_path(name))
        raise IntegrityError(f"{where}: not a file but a link or the like, so no receipt can name it; {advice}")


def _check_given(session: Session) -> None:
    """Check that the tokenizer that is given is the one in OUT, where `tokenize` has copied it.

    Raises:
        ConfigError: If it is another one, or lacks a file.
    """
    place = session.config.tokenizer
    if place is not None and not is_installed(session, place):
        raise ConfigError(
            f"--tokenizer {place}: not what is in {session.out.where('tokenizer')}; `cppmill tokenize --tokenizer "
            f"{place}` copies it, and tokenizes what another one did"
        )


PROGRAM = StageProgram(
    stage=Stage.VALIDATE, needs=(Stage.INGEST, Stage.TOKENIZE), work=validate, plan=plan, check_alone=_check_given
)

run = PROGRAM.run
