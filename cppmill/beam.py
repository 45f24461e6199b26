"""The stages of cppmill as Beam transforms, for any reader of documents and any runner.

    import apache_beam as beam
    from cppmill.beam import DetectPlatforms, Encode, WriteTokens

    with beam.Pipeline(runner="PrismRunner") as pipeline:
        _ = (
            pipeline
            | beam.io.ReadFromParquet("documents/*.parquet")
            | DetectPlatforms()
            | Encode(tokenizer="out/mine/tokenizer")
            | WriteTokens(out="out/tokens", shards=4)
        )

Transforms take `pyarrow.RecordBatch` or rows, and return batches; the schemas are here too. This module imports Beam.
"""

from __future__ import annotations

from cppmill.start import require_packages

require_packages()

from pipelines.library.beam.batches import ToBatches, ToRows  # noqa: E402 - only ours, which is checked first
from pipelines.library.beam.counts import CountTokens  # noqa: E402
from pipelines.library.beam.documents import DetectPlatforms, ReadCpp  # noqa: E402
from pipelines.library.beam.rows import Document, TokenFile, Tokens, WordCount  # noqa: E402
from pipelines.library.beam.tokens import Encode, WriteTokens  # noqa: E402
from schemas.tables import DOCUMENTS, REJECTS, TEXTS, WORDS, tokens_schema  # noqa: E402

__all__ = [
    "DOCUMENTS",
    "REJECTS",
    "TEXTS",
    "WORDS",
    "CountTokens",
    "DetectPlatforms",
    "Document",
    "Encode",
    "ReadCpp",
    "ToBatches",
    "ToRows",
    "TokenFile",
    "Tokens",
    "WordCount",
    "WriteTokens",
    "tokens_schema",
]
