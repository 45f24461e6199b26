"""Types of the compiled module."""

import pyarrow as pa

__version__: str

PATTERNS: dict[str, str]
"""The pre-token patterns with a native splitter: name to regular expression, as `tokenizer.json` holds it."""

class CoreError(RuntimeError): ...
class InvalidInputError(CoreError): ...
class CorruptDataError(CoreError): ...
class VocabularyError(CoreError): ...

class PlatformDetector:
    """Finds which platforms documents are written for, by rules that `configs/platforms.toml` explains.

    Example:
        >>> windows = {"id": 1, "category": "os", "label": "windows", "identifiers": ["_WIN32"]}
        >>> rules = json.dumps({"max_ids": 20, "labels": [windows]})
        >>> documents = pa.record_batch({"path": ["a.h"], "content": [b"#ifdef _WIN32"]})
        >>> PlatformDetector(rules).detect(documents).to_pylist()
        [{'platform_ids': [1], 'platform_info': '{"os":{"windows":["_WIN32"]}}'}]
    """

    def __init__(self, rules: str) -> None:
        """Compile rules, the JSON text that `configs.platforms.load_platform_rules` gives.

        Raises:
            InvalidInputError: the text has another form, or one of its rules cannot be used.
        """

    def detect(self, documents: pa.RecordBatch, threads: int = 1) -> pa.RecordBatch:
        """Find the platforms of every document.

        Args:
            documents: Columns `path` (string) and `content` (binary); others do not matter. No nulls.
            threads: How many documents are read at once; the result is the same for any number.

        Returns:
            As many rows, with the columns `platform_ids` (list of uint16, ascending) and `platform_info` (string:
            canonical JSON, category to label to at most 5 pieces of evidence).

        Raises:
            InvalidInputError: a column is missing, has another type or a null, or `threads` is 0.
        """

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
