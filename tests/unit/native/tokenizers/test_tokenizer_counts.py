"""Counting gives the numbers of ids that encoding gives."""

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core import Tokenizer


def test_counts_are_the_numbers_of_ids_whatever_the_threads(tokenizer: Tokenizer, headers: list[bytes]) -> None:
    documents = [b"", *headers, b"\xff\xfe", b"a" * 1000]
    ids = tokenizer.encode_batch(documents)
    expected = pa.array([len(row) for row in ids], pa.uint64())
    for threads in (1, 2, 5):
        assert tokenizer.count_batch(documents, threads=threads).equals(expected)
    assert tokenizer.count_batch(pa.array(documents[:3], pa.large_binary())).equals(expected[:3])
    assert [tokenizer.count(document) for document in documents[-5:]] == expected[-5:].to_pylist()
    assert tokenizer.count("int é;") == len(tokenizer.encode("int é;"))
    assert tokenizer.count_batch([]).type == pa.uint64()


def test_a_null_is_refused_by_its_row(tokenizer: Tokenizer) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match="null at row 1"):
        tokenizer.count_batch(pa.array([b"a", None]))
