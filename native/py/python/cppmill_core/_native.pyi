"""Types of the compiled module."""

import pyarrow as pa

__version__: str

class CoreError(RuntimeError): ...
class InvalidInputError(CoreError): ...
class CorruptDataError(CoreError): ...
class VocabularyError(CoreError): ...

def train_bpe(
    words: list[pa.RecordBatch],
    *,
    seeds: pa.RecordBatch,
    vocab_tokens: int,
    forbidden: list[bytes],
    max_token_bytes: int | None = None,
    threads: int = 1,
) -> pa.RecordBatch: ...
