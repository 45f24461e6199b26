"""The tokenize program: documents shards and a tokenizer to token shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cppmill_core.manifests import MANIFEST

from pipelines.stages.build import install_tokenizer
from pipelines.stages.document_units import check_kept, plan_shards
from pipelines.stages.given import open_given
from pipelines.stages.program import StagePlan, StageProgram, plan_units, to_run
from pipelines.stages.session import Session
from pipelines.stages.standing import check_recorded
from schemas.digests import sha256_file
from schemas.errors import IntegrityError
from schemas.units import Stage, Unit, UnitReceipt
from transforms.tokens.tokenize import tokenize_unit
from transforms.tokens.tokenizer import TokenizeSettings, manifest_digest
from transforms.units.flow import Flow, RunUnits


def tokenize(session: Session, documents: Sequence[UnitReceipt]) -> list[UnitReceipt]:
    """Tokenize what is new among the documents shards and return the receipts of all token shards.

    Args:
        session: The session; the tokenizer that its configuration names is copied into OUT first.
        documents: Receipts of the ingest units.
    """
    check_kept(session, documents)
    if session.config.tokenizer is not None:
        install_tokenizer(session, session.config.tokenizer)
    settings = tokenize_settings(session)
    units = plan_tokenize(documents, settings)
    return session.run_units(Stage.TOKENIZE, units, tokenize_documents(session))


def tokenize_documents(session: Session) -> Flow:
    """Return the flow of the stage's units, with the tokenizer that OUT has now."""
    return (RunUnits(work=tokenize_unit, settings=tokenize_settings(session)),)


def plan(session: Session, documents: Sequence[UnitReceipt]) -> StagePlan:
    """Return what `tokenize` would do."""
    given = session.config.tokenizer
    if given is not None and _given_digest(given) != manifest_digest(session.out):
        units = [
            to_run(Stage.BUILD, "tokenizer", f"to be copied from {given}"),
            to_run(Stage.TOKENIZE, "every documents shard", "another tokenizer"),
        ]
        return StagePlan(units=units, blocked="another tokenizer")
    return plan_units(session, plan_tokenize(documents, tokenize_settings(session)))


def _given_digest(place: Path | str) -> str:
    with open_given(place) as folder:
        return sha256_file(folder / MANIFEST)


def tokenize_settings(session: Session) -> TokenizeSettings:
    """Return what the workers need to tokenize or to validate.

    Raises:
        IntegrityError: If OUT has no tokenizer, or not the one that the record of the run names.
    """
    if not (session.config.tokenizer or session.config.rebuild_tokenizer):
        check_recorded(session)
    digest = manifest_digest(session.out)
    if not digest:
        manifest = session.out.where("tokenizer/manifest.json")
        raise IntegrityError(
            f"{manifest}: there is no tokenizer; run `cppmill build` first, or give one with --tokenizer DIR"
        )
    return TokenizeSettings(
        out=session.out,
        tokenizer_digest=digest,
        options=session.config.options.tokenize,
        threads=session.config.worker_threads,
    )


def plan_tokenize(documents: Sequence[UnitReceipt], settings: TokenizeSettings) -> list[Unit]:
    """Return one unit a documents shard."""
    config = {"tokenizer": settings.tokenizer_digest, "options": settings.options.to_json()}
    return plan_shards(Stage.TOKENIZE, documents, config=config)


PROGRAM = StageProgram(stage=Stage.TOKENIZE, needs=(Stage.INGEST,), work=tokenize, plan=plan)

run = PROGRAM.run
