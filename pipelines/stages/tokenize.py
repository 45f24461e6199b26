"""The tokenize program: documents shards and a tokenizer to token shards."""

from __future__ import annotations

from collections.abc import Sequence

from configs.runs import RunConfig
from pipelines.console.progress import Reporter
from pipelines.stages.build import install_tokenizer
from pipelines.stages.document_units import plan_shards
from pipelines.stages.session import Session, open_session
from schemas.errors import IntegrityError
from schemas.units import Stage, Unit, UnitReceipt
from transforms.tokens.tokenize import tokenize_unit
from transforms.tokens.tokenizer import TokenizeSettings, manifest_digest
from transforms.units.execution import RunUnits


def run(config: RunConfig, reporter: Reporter) -> None:
    """Tokenize the documents shards that stand in OUT, with its tokenizer or the one given."""
    with open_session(config, reporter) as session:
        if config.tokenizer is not None:
            install_tokenizer(session, config.tokenizer)
        tokenize(session, session.current(Stage.INGEST))


def tokenize(session: Session, documents: Sequence[UnitReceipt]) -> list[UnitReceipt]:
    """Tokenize what is new among the documents shards and return the receipts of all token shards."""
    settings = tokenize_settings(session)
    units = plan_tokenize(documents, settings)
    run = RunUnits(work=tokenize_unit, settings=settings)
    return session.run_units(Stage.TOKENIZE, units, lambda planned: planned | "TokenizeDocuments" >> run)


def tokenize_settings(session: Session) -> TokenizeSettings:
    """Return what the workers need to tokenize or to validate.

    Raises:
        IntegrityError: If OUT has no tokenizer.
    """
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
