"""Numbers as large as 64 bits hold neither stop a call nor change its result."""

from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest

LARGEST = 2**64 - 1
SCAN = '{"pattern": "cpp-words-1"}'
DOCUMENTS = pa.record_batch({"project": ["p"], "path": ["a.h"], "content": [b"#ifdef _WIN32"]})
RULES = '{"max_ids": 1, "labels": [{"id": 1, "category": "os", "label": "windows", "identifiers": ["_WIN32"]}]}'


def test_more_threads_than_can_be_started_are_as_many_as_can() -> None:
    content = DOCUMENTS["content"]
    assert cppmill_core.digest_contents(content, LARGEST) == cppmill_core.digest_contents(content)
    detector = cppmill_core.PlatformDetector(RULES)
    assert detector.detect(DOCUMENTS, LARGEST) == detector.detect(DOCUMENTS)
    scanner, counter = cppmill_core.Scanner(SCAN, LARGEST), cppmill_core.WordCounter("cpp-words-1", LARGEST)
    scanner.add(DOCUMENTS)
    counter.add(DOCUMENTS)
    assert scanner.finish()["words"].read_all().num_rows == counter.finish().read_all().num_rows > 0


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_below_the_largest_bound_is_read(tmp_path: Path, *, keep: bool) -> None:
    (tmp_path / "a.cpp").write_bytes(b"int x;")
    found = [
        cppmill_core.read_files(
            bytes(tmp_path), pa.array([b"a.cpp"]), pa.array([1], pa.uint64()), max_bytes=bound, keep=keep
        )
        for bound in (6, LARGEST)
    ]
    assert found[0] == found[1]
    assert found[1]["num_bytes"].to_pylist() == [6]


def test_counts_whose_sum_is_too_large_are_refused() -> None:
    words = pa.record_batch({"word": [b"a"], "count": pa.array([LARGEST], pa.uint64())})
    runs = [pa.RecordBatchReader.from_batches(words.schema, [words]) for _ in range(2)]
    with pytest.raises((OSError, cppmill_core.CorruptDataError), match='counts of "a" add up to more than 64 bits'):
        cppmill_core.merge_words(runs).read_all()
