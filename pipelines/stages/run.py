"""The whole run: ingest, scan, build, tokenize, validate."""

from __future__ import annotations

from configs.runs import RunConfig
from pipelines.console.progress import Reporter
from pipelines.stages.build import build, install_tokenizer
from pipelines.stages.ingest import ingest
from pipelines.stages.scan import scan
from pipelines.stages.session import open_session
from pipelines.stages.tokenize import tokenize
from pipelines.stages.validate import validate


def run(config: RunConfig, reporter: Reporter) -> None:
    """Run every stage on the sources; with a tokenizer given, the scan and the build are left out.

    Args:
        config: Sources, output folder and options.
        reporter: Where progress goes.
    """
    with open_session(config, reporter) as session:
        documents = ingest(session)
        if config.tokenizer is None:
            build(session, scan(session, documents).merged)
        else:
            install_tokenizer(session, config.tokenizer)
        validate(session, documents, tokenize(session, documents))
