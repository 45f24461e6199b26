"""Types of the compiled module."""

import os
from collections.abc import Sequence
from typing import Any

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

class Tokenizer:
    """A tokenizer directory, ready to encode any bytes to token ids and to decode them again.

    For valid UTF-8 the ids are those that `tokenizers` gives with the directory's `tokenizer.json` and
    `encode_special_tokens` set: the characters of a control token in text are ordinary text. Other bytes are encoded as
    maximal valid runs, each by itself, and single-byte tokens between them. `decode(encode(data)) == data` for every
    `data`.

    Calls release the GIL and may come from several threads. Each thread that encodes keeps a cache of up to about
    50 MB; a single word (a run of letters, digits or spaces, say) of n bytes takes about 16 n bytes more while it is
    encoded.

    Example:
        >>> tokenizer = Tokenizer.from_dir("out/tokenizer")
        >>> tokenizer.decode(tokenizer.encode("int main() {}"))
        b'int main() {}'
    """

    @staticmethod
    def from_dir(path: str | os.PathLike[str]) -> Tokenizer:
        """Read a tokenizer directory: `manifest.json` and the files that it names, `tokenizer.json` among them.

        Raises:
            OSError: a file cannot be read.
            CorruptDataError: a file is not what its digest in the manifest says, or the files contradict each other.
            InvalidInputError: a pre-token pattern or a setting that the encoder does not know; the message names it.
        """

    def encode(self, data: bytes | str) -> pa.Array[Any]:
        """Encode one text to a uint16 array, or uint32 if the vocabulary has more than 65,536 ids.

        Raises:
            InvalidInputError: the text has 4 GiB or more.
        """

    def encode_batch(self, documents: pa.Array[Any] | Sequence[bytes | str], threads: int = 1) -> pa.ListArray[Any]:
        """Encode many texts, in order: a list of uint16 for each, or of uint32 as `encode`.

        Args:
            documents: A binary or string array without nulls, or a sequence of bytes or str.
            threads: How many threads to use at most; the ids do not depend on it.

        Raises:
            InvalidInputError: another type, a null (with its row), a text of 4 GiB or more, or more than 2^31 - 1
                tokens.
        """

    def decode(self, ids: pa.Array[Any] | Sequence[int], *, skip_control: bool = False) -> bytes:
        """Decode ids to the bytes that they stand for.

        Args:
            ids: An integer array, or a sequence of int.
            skip_control: Leave out control and reserved ids instead of refusing them.

        Raises:
            InvalidInputError: an id that is not below `vocab_size`, or a control or reserved one; the message names it.
        """

    def decode_batch(self, ids: pa.Array[Any], *, skip_control: bool = False) -> pa.BinaryArray:
        """Decode each list of ids; the result is a `pa.LargeBinaryArray` if it has 2 GiB or more.

        Raises:
            InvalidInputError: as `decode`, naming the row too; or `ids` is no list array of integers without nulls.
        """

    def count_control(self, documents: pa.Array[Any] | Sequence[bytes | str]) -> dict[str, int]:
        """Count the control tokens whose characters stand in the texts.

        Returns:
            Name to occurrences, by id, those that occur.
        """

    def token_bytes(self, id: int) -> bytes | None:
        """Return the bytes that an id stands for, None for control and reserved ids.

        Raises:
            InvalidInputError: the id is not below `vocab_size`.
        """

    @property
    def vocab_size(self) -> int:
        """The number of ids; every id is below it."""

    @property
    def digest(self) -> str:
        """The SHA-256 of `manifest.json`, in lower-case hexadecimal digits."""

    @property
    def pattern(self) -> str:
        """The name of the pre-token pattern, a key of `PATTERNS`."""

def corpus_digest_sum(doc_id: pa.Array[Any], project: pa.Array[Any], path: pa.Array[Any]) -> bytes:
    """Sum the row digests of documents: 32 bytes, a big-endian number modulo 2^256.

    A row's digest is the SHA-256 of its `doc_id` (32 bytes), `project` and `path` (each its length as little-endian
    u32, then UTF-8). The sum does not depend on the order of rows, and sums of parts add up.

    Args:
        doc_id: The SHA-256 of each document, 64 lower-case hexadecimal digits; a string array, as the others.
        project: The documents' projects.
        path: The documents' paths.

    Raises:
        InvalidInputError: a wrong type, a null, unequal lengths, or a `doc_id` that is none; names column and row.
    """

def dataset_digest_sum(
    doc_id: pa.Array[Any],
    project: pa.Array[Any],
    path: pa.Array[Any],
    num_bytes: pa.Array[Any],
    token_ids: pa.Array[Any],
    platform_ids: pa.Array[Any],
) -> bytes:
    """Sum the row digests of a dataset: 32 bytes, a big-endian number modulo 2^256.

    A row's digest is the SHA-256 of what `corpus_digest_sum` takes, then, all little-endian, `num_bytes` (u64), the
    number of token ids (u32), the ids (u32 each), the number of platform ids (u32), the platform ids (u16 each).

    Args:
        doc_id: As `corpus_digest_sum`, and `project` and `path` too.
        project: The documents' projects.
        path: The documents' paths.
        num_bytes: The documents' lengths; uint64.
        token_ids: A list array of unsigned integers.
        platform_ids: A list array of uint16.

    Raises:
        InvalidInputError: as `corpus_digest_sum`.
    """
