"""Types of the compiled module."""

import pyarrow as pa

__version__: str

PATTERNS: dict[str, str]
"""The pre-token patterns with a native splitter: name to regular expression, as `tokenizer.json` holds it."""

class CoreError(RuntimeError): ...
class InvalidInputError(CoreError): ...
class CorruptDataError(CoreError): ...
class VocabularyError(CoreError): ...

class Scanner:
    """Counts terms, morphemes, namespaces, statistics and words of C++ documents.

    The counts are sums over documents: the same for any number of threads, order of documents and cut into batches.
    One scanner belongs to one Python thread at a time.

    Args:
        config: JSON text `{"pattern": NAME, "candidates": [{"term", "category", "match"}],
            "morphemes": [{"morpheme", "position"}]}`. `match` is `ident`, `dollar` or `sql_string`; `position` is
            `prefix`, `suffix`, `cpp_stem` or `component`.
        threads: how many threads `add` and `finish` use.

    Raises:
        InvalidInputError: a configuration that cannot be used (the message names the entry), or no threads.

    Example:
        >>> scanner = Scanner('{"pattern": "cpp-words-1"}')
        >>> scanner.add(pa.record_batch({"project": ["p"], "content": [b"std::read_all(x);"]}))
        >>> scanner.finish()["namespaces"].to_pylist()
        [{'namespace': 'std', 'project': 'p', 'hits': 1, 'documents': 1}]
    """

    def __init__(self, config: str, threads: int = 1) -> None: ...
    def add(self, documents: pa.RecordBatch) -> None:
        """Count every document of a batch with the columns `project` (string) and `content` (binary), others ignored.

        The GIL is released. Content may be any bytes, up to 4 GiB a document.

        Raises:
            InvalidInputError: a column is missing, has another type or a null; then no document is counted.
        """

    def finish(self) -> dict[str, pa.RecordBatch]:
        """Give the counts of all documents added so far, and start anew.

        Returns:
            `words` (word binary, count), `terms` (term, category, project, hits, documents), `morphemes` (morpheme,
            position, project, hits, documents), `namespaces` (namespace, project, hits, documents) and `statistics`
            (name, value). Counts are uint64; rows are sorted bytewise by the columns before the counts; rows without
            hits are left out, but `statistics` always has every name.
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
