"""Types of the compiled module."""

import pyarrow as pa

__version__: str

PATTERNS: dict[str, str]
"""The pre-token patterns with a native splitter: name to regular expression, as `tokenizer.json` holds it."""

class CoreError(RuntimeError): ...
class InvalidInputError(CoreError): ...
class CorruptDataError(CoreError): ...
class VocabularyError(CoreError): ...

def split(pattern: str, data: bytes) -> pa.BinaryArray:
    """Split `data`, any bytes, into the words of the pattern called `pattern`; joined they are `data`.

    Valid UTF-8 is cut where `tokenizers` cuts it with the pattern's regular expression; text that is not UTF-8 into its
    maximal valid runs, each split by itself, with every invalid byte a word of one byte between them.

    Raises:
        InvalidInputError: no pattern of that name; the message names the known ones.

    Example:
        >>> split("cpp-words-1", b"int x;").to_pylist()
        [b'int', b' x', b';']
    """
