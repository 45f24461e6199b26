"""Encoding: `cppmill_core.Tokenizer.encode_batch` beside `tokenizers`' `encode_batch_fast`, on one tokenizer.json.

Each gets the documents as it likes them best, an Arrow array of bytes and a list of `str`. Theirs ends with Encodings
in native memory: what it takes to get the ids out of them is not in the clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import tokenizers

from benches.harness import Comparison, Contender, Outcome, compare
from benches.peers import OURS, THEIRS, read_sample, read_texts, set_rayon_threads
from pipelines.progress import MEGABYTE

Ids = npt.NDArray[np.uint32]


def measure_encoding(
    tokenizer: Path, sample: Path, *, sample_bytes: int, threads: Iterable[int], rounds: int
) -> Iterator[Comparison]:
    """Measure encoding in MB and tokens a second, one comparison a number of threads.

    Args:
        tokenizer: Tokenizer directory.
        sample: Documents, as `benches.corpus.write_sample` wrote them.
        sample_bytes: Their bytes.
        threads: The numbers of threads.
        rounds: Runs of each side.
    """
    megabytes = sample_bytes / MEGABYTE
    for number in threads:
        contenders: list[Contender[Any]] = [
            Contender(
                name=OURS,
                prepare=partial(load_ours, tokenizer, sample),
                run=partial(encode_ours, number, megabytes),
                threads=number,
            ),
            Contender(
                name=THEIRS,
                prepare=partial(load_theirs, tokenizer, sample, number),
                run=partial(encode_theirs, megabytes),
                threads=number,
            ),
        ]
        yield compare("encode", contenders, input_bytes=sample_bytes, rounds=rounds)


def load_ours(tokenizer: Path, sample: Path) -> tuple[cppmill_core.Tokenizer, pa.Array[Any]]:
    """Load the tokenizer and the documents' bytes."""
    return cppmill_core.Tokenizer.from_dir(tokenizer), read_sample(sample)["content"]


def encode_ours(threads: int, megabytes: float, state: tuple[cppmill_core.Tokenizer, pa.Array[Any]]) -> Outcome:
    """Encode all documents with the native core."""
    tokenizer, contents = state
    encoded = tokenizer.encode_batch(contents, threads)
    amounts = {"MB": megabytes, "tokens": len(encoded.flatten())}
    return Outcome(amounts, lambda: hash_ids(list_ids(encoded)))


def load_theirs(tokenizer: Path, sample: Path, threads: int) -> tuple[tokenizers.Tokenizer, list[str]]:
    """Load the tokenizer and the documents' text; control tokens in it are ordinary text, as for us."""
    set_rayon_threads(threads)
    loaded = tokenizers.Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    loaded.encode_special_tokens = True
    return loaded, read_texts(sample)


def encode_theirs(megabytes: float, state: tuple[tokenizers.Tokenizer, list[str]]) -> Outcome:
    """Encode all documents with `tokenizers`."""
    tokenizer, texts = state
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    amounts = {"MB": megabytes, "tokens": sum(map(len, encoded))}
    return Outcome(amounts, lambda: hash_ids(np.array(encoding.ids, np.uint32) for encoding in encoded))


def list_ids(encoded: pa.ListArray[Any]) -> Iterator[Ids]:
    """Yield the ids of each document."""
    ids, offsets = encoded.values.to_numpy().astype(np.uint32), encoded.offsets.to_numpy()
    yield from (ids[first:last] for first, last in zip(offsets[:-1], offsets[1:], strict=True))


def hash_ids(documents: Iterable[Ids]) -> str:
    """Return the SHA-256 of the ids of documents in their order, each with its length.

    Example:
        >>> a, b = np.array([1, 2], np.uint32), np.array([3], np.uint32)
        >>> hash_ids([a, b]) == hash_ids([a[:1], np.array([2, 3], np.uint32)])
        False
    """
    digest = hashlib.sha256()
    for ids in documents:
        digest.update(len(ids).to_bytes(8, "little") + ids.tobytes())
    return digest.hexdigest()
