"""Counting words alone, against `collections.Counter` over the splitter."""

import collections
import threading
import time
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

PIECES = [b"int", b" ", b"\n", b"\r\n", b"    ", b"\t", b"x1", b"::", b"\\n", b'"', b"\xc3\xa9", b"\xff", b"a" * 40]

Counts = dict[bytes, int]


def batch(texts: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch({"content": pa.array(texts, pa.binary())})


def rows(counter: cppmill_core.WordCounter) -> list[tuple[bytes, int]]:
    table = counter.finish().read_all().to_pydict()
    return list(zip(table["word"], table["count"], strict=True))


def header_texts() -> list[bytes]:
    return [path.read_bytes() for path in sorted(Path(pa.get_include()).rglob("*.h"))[:200]]


def counted(pattern: str, texts: list[bytes]) -> Counts:
    return collections.Counter(word for text in texts for word in cppmill_core.split(pattern, text).to_pylist())


@pytest.mark.parametrize("pattern", cppmill_core.PATTERNS)
def test_words_of_real_headers_are_those_of_the_splitter(pattern: str) -> None:
    texts = header_texts()
    orders = []
    for threads, size in [(1, len(texts)), (2, 7)]:
        counter = cppmill_core.WordCounter(pattern, threads)
        for start in range(0, len(texts), size):
            counter.add(batch(texts[start : start + size]))
        orders.append(rows(counter))
    assert orders[0] == orders[1]
    assert len(orders[0]) == len(dict(orders[0]))
    assert dict(orders[0]) == counted(pattern, texts)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(list(cppmill_core.PATTERNS)),
    st.lists(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4))).map(b"".join), max_size=4),
)
def test_any_bytes_are_counted_to_the_last(pattern: str, texts: list[bytes]) -> None:
    counter = cppmill_core.WordCounter(pattern, threads=2)
    counter.add(batch(texts))
    assert dict(rows(counter)) == counted(pattern, texts)
    assert rows(counter) == []


def test_the_columns_are_those_of_word_counts() -> None:
    schema = cppmill_core.WordCounter("cpp-words-1").finish().schema
    assert schema == pa.schema([pa.field("word", pa.binary(), False), pa.field("count", pa.uint64(), False)])


def test_invalid_input_is_refused_by_name() -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match="cpp-words-1, cpp-lines-1"):
        cppmill_core.WordCounter("cpp-words")
    with pytest.raises(cppmill_core.InvalidInputError, match="threads is 0"):
        cppmill_core.WordCounter("cpp-words-1", 0)
    counter = cppmill_core.WordCounter("cpp-words-1")
    with pytest.raises(cppmill_core.InvalidInputError, match='no column "content"; their columns are text'):
        counter.add(pa.record_batch({"text": [b"x"]}))
    assert rows(counter) == []


def test_other_python_threads_run_while_words_are_counted() -> None:
    counter = cppmill_core.WordCounter("cpp-words-1")
    counting = threading.Thread(target=counter.add, args=(batch([b"int x = read_all(buffer); // no\n" * 200_000]),))
    counting.start()
    turns = 0
    while counting.is_alive():
        time.sleep(0)
        turns += 1
    assert turns > 10
    assert dict(rows(counter))[b"int"] == 200_000
