"""The native scanner as Python sees it: schemas, determinism, and what must hold for any bytes."""

import collections
import json
import re
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

PATTERN = "cpp-words-1"
UNIT_PATTERN = "cpp-lines-1"
CONFIG = json.dumps(
    {
        "pattern": PATTERN,
        "unit_pattern": UNIT_PATTERN,
        "candidates": [
            {"term": "PyObject", "category": "python", "match": "ident"},
            {"term": "shared_ptr", "category": "memory", "match": "ident"},
            {"term": "Py", "category": "prefix", "match": "prefix"},
            {"term": "$match", "category": "mongodb", "match": "dollar"},
            {"term": "SELECT", "category": "sql", "match": "sql_string"},
        ],
        "morphemes": [
            {"morpheme": "re", "position": "prefix"},
            {"morpheme": "er", "position": "suffix"},
            {"morpheme": "alloc", "position": "cpp_stem"},
            {"morpheme": "buffer", "position": "component"},
        ],
        "families": True,
    }
)
COUNTED = [pa.field("hits", pa.uint64(), False), pa.field("documents", pa.uint64(), False)]
WORDS = {"partition": pa.uint16, "word": pa.binary, "count": pa.uint64}
TEXTS = {
    "terms": ["term", "category", "project"],
    "morphemes": ["morpheme", "position", "project"],
    "namespaces": ["namespace", "project"],
}
FRAGMENTS = [
    b"//", b"/*", b"*/", b'"', b"'", b'R"x(', b')x"', b"\\", b"\\\n", b"\r\n", b"\n#", b"include <", b"::", b"std",
]  # fmt: skip

Documents = list[tuple[str, bytes]]


def header_documents() -> Documents:
    """Return real C++ headers of installed packages, each with its package as project."""
    roots = {"numpy": Path(np.get_include()), "pyarrow": Path(pa.get_include())}

    def read() -> Iterator[tuple[str, bytes]]:
        for project, root in roots.items():
            for path in sorted(path for path in root.rglob("*.h") if path.is_file()):
                yield project, path.read_bytes()

    return list(read())


def batch(documents: Documents) -> pa.RecordBatch:
    projects = pa.array([project for project, _ in documents], pa.string())
    return pa.record_batch({"project": projects, "content": pa.array([text for _, text in documents], pa.binary())})


def scan(documents: Documents, *, rows: int = 100, **options: Any) -> dict[str, pa.Table]:
    scanner = cppmill_core.Scanner(CONFIG, **options)
    for start in range(0, len(documents), rows):
        scanner.add(batch(documents[start : start + rows]))
    return finish(scanner)


def finish(scanner: cppmill_core.Scanner) -> dict[str, pa.Table]:
    """Read all words and units, and return every kind as a table."""
    counts = scanner.finish()
    read = {kind: counts.pop(kind).read_all() for kind in ("words", "units") if kind in counts}
    return read | {kind: pa.Table.from_batches([rows]) for kind, rows in counts.items()}


def word_counts(result: dict[str, pa.Table], kind: str = "words") -> dict[bytes, int]:
    words = result[kind].to_pydict()
    return dict(zip(words["word"], words["count"], strict=True))


def statistics(result: dict[str, pa.Table]) -> dict[str, int]:
    return dict(zip(*(column.to_pylist() for column in result["statistics"].columns), strict=True))


def rows(result: pa.Table) -> list[dict[str, Any]]:
    return result.to_pylist()


def test_results_have_the_documented_schemas() -> None:
    result = scan(header_documents()[:20])
    assert set(result) == {"words", "units", "terms", "morphemes", "namespaces", "families", "statistics"}
    for words in ("words", "units"):
        assert result[words].schema == pa.schema([pa.field(name, kind(), False) for name, kind in WORDS.items()])
    assert result["statistics"].schema == pa.schema(
        [pa.field("name", pa.string(), False), pa.field("value", pa.uint64(), False)]
    )
    counts = [*COUNTED, pa.field("names", pa.uint64(), False)]
    assert result["families"].schema == pa.schema([pa.field("family", pa.string(), False), *counts])
    for name, texts in TEXTS.items():
        assert result[name].schema == pa.schema([pa.field(text, pa.string(), False) for text in texts] + COUNTED)


def test_results_are_the_same_for_any_threads_and_batches() -> None:
    documents = header_documents()
    expected = scan(documents, rows=len(documents))
    for threads, size in [(2, len(documents)), (1, 7), (3, 50)]:
        result = scan(documents, threads=threads, rows=size)
        assert all(result[name].equals(expected[name]) for name in expected), (threads, size)


def test_rows_are_sorted_bytewise_and_distinct() -> None:
    result = scan(header_documents(), threads=2)
    assert result["words"].num_rows > 1000
    sorted_by_partition = dict.fromkeys(["words", "units"], ["partition", "word"])
    for name, columns in {**sorted_by_partition, "statistics": ["name"], "families": ["family"], **TEXTS}.items():
        keys = [
            tuple(key.encode() if isinstance(key, str) else key for key in row)
            for row in zip(*(result[name].column(column).to_pylist() for column in columns), strict=True)
        ]
        assert keys == sorted(set(keys)), name


def test_counts_on_real_headers_agree_with_plain_searches() -> None:
    result = scan(header_documents())
    namespaces = {(row["namespace"], row["project"]): row for row in rows(result["namespaces"])}
    mentions = sum(text.count(b"std::") for project, text in header_documents() if project == "pyarrow")
    assert 0.9 * mentions < namespaces["std", "pyarrow"]["hits"] <= mentions
    terms = {(row["term"], row["project"]): row for row in rows(result["terms"])}
    with_term = sum(b"PyObject" in text for project, text in header_documents() if project == "numpy")
    assert 0 < terms["PyObject", "numpy"]["documents"] <= with_term
    families = {row["family"]: row for row in rows(result["families"])}
    documents = [set(re.findall(rb"\bPyArray_\w+", text)) for _, text in header_documents()]
    assert 0 < families["PyArray_"]["documents"] <= sum(map(bool, documents))
    assert 50 < families["PyArray_"]["names"] <= max(map(len, documents))


@pytest.mark.parametrize(("kind", "pattern"), [("words", PATTERN), ("units", UNIT_PATTERN)])
def test_words_and_units_are_those_of_the_splitter(kind: str, pattern: str) -> None:
    documents = header_documents()[:50]
    words = (word for _, text in documents for word in cppmill_core.split(pattern, text).to_pylist())
    assert word_counts(scan(documents, threads=2), kind) == collections.Counter(words)


def test_units_are_counted_only_if_there_is_a_pattern_for_them() -> None:
    scanner = cppmill_core.Scanner(json.dumps({"pattern": PATTERN}))
    scanner.add(batch(header_documents()[:5]))
    assert "units" not in scanner.finish()


def test_words_come_in_partitions_by_their_crc() -> None:
    config = json.dumps({"pattern": PATTERN, "word_partitions": 5})
    scanner = cppmill_core.Scanner(config)
    scanner.add(batch(header_documents()[:50]))
    seen = []
    for words in scanner.finish()["words"]:
        partitions = [zlib.crc32(word) % 5 for word in words["word"].to_pylist()]
        assert words["partition"].to_pylist() == partitions
        assert len(set(partitions)) == 1
        seen.append(partitions[0])
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("memory_bytes", [0, 1 << 30])
def test_words_and_units_come_in_the_partitions_of_their_projects(memory_bytes: int, tmp_path: Path) -> None:
    documents = [(f"p{number % 7}", text) for number, (_, text) in enumerate(header_documents()[:60])]
    config = {"pattern": PATTERN, "unit_pattern": UNIT_PATTERN, "word_partitions": 5, "partition_by_project": True}
    scanner = cppmill_core.Scanner(json.dumps(config), 2, memory_bytes=memory_bytes, spill_dir=tmp_path)
    scanner.add(batch(documents))
    counts = scanner.finish()
    for kind, pattern in (("words", PATTERN), ("units", UNIT_PATTERN)):
        expected = collections.Counter(
            (zlib.crc32(project.encode()) % 5, word)
            for project, text in documents
            for word in cppmill_core.split(pattern, text).to_pylist()
        )
        found = [tuple(row.values()) for words in counts[kind] for row in words.to_pylist()]
        assert {(partition, word): count for partition, word, count in found} == expected
        assert [row[:2] for row in found] == sorted(expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_counts_do_not_depend_on_the_memory(threads: int, tmp_path: Path) -> None:
    documents = header_documents()[:100]
    expected = scan(documents, rows=len(documents))
    for memory_bytes in (0, 2_000_000):
        result = scan(documents, threads=threads, memory_bytes=memory_bytes, spill_dir=tmp_path / "spill")
        assert all(result[name].equals(expected[name]) for name in expected), memory_bytes
    assert list((tmp_path / "spill").iterdir()) == []


def test_a_full_disk_is_reported_and_the_scan_is_lost(tmp_path: Path) -> None:
    program = f"""
import resource, cppmill_core, pyarrow as pa
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
scanner = cppmill_core.Scanner('{{"pattern": "{PATTERN}"}}', memory_bytes=0, spill_dir={str(tmp_path)!r})
text = " ".join(map(str, range(10_000))).encode()
for _ in range(2):
    try:
        scanner.add(pa.record_batch({{"project": ["p"], "content": [text]}}))
    except OSError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith(f"cannot write counts to {tmp_path}: File too large") and "memory_bytes" in first
    assert "are lost" in second
    assert list(tmp_path.iterdir()) == []


def words_reader(rows: dict[bytes, int], rows_per_batch: int = 2) -> pa.RecordBatchReader:
    table = pa.table({"word": pa.array(rows.keys(), pa.binary()), "count": pa.array(rows.values(), pa.uint64())})
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=rows_per_batch)))


def test_merged_words_add_up() -> None:
    parts = [{b"a": 1, b"b": 2, b"c": 3}, {b"b": 2**60}, {}, {b"": 5, b"c": 4, b"d": 1}]
    merged = cppmill_core.merge_words([words_reader(part) for part in parts])
    table = merged.read_all().to_pydict()
    assert list(zip(*table.values(), strict=True)) == [(b"", 5), (b"a", 1), (b"b", 2**60 + 2), (b"c", 7), (b"d", 1)]
    assert cppmill_core.merge_words([]).read_all().num_rows == 0


def test_a_run_that_cannot_be_merged_is_named() -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match='run 1: "a" comes after "b"'):
        cppmill_core.merge_words([words_reader({}), words_reader({b"b": 1, b"a": 1})])
    later = cppmill_core.merge_words([words_reader({}), words_reader({b"0": 1, b"b": 1, b"a": 1})])
    with pytest.raises(pa.ArrowInvalid, match='run 1: "a" comes after "b"'):
        later.read_all()
    with pytest.raises(cppmill_core.InvalidInputError, match='run 0: column "count" is missing'):
        cppmill_core.merge_words([words_reader({}).read_all().select(["word"]).to_reader()])


@given(st.lists(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=6))).map(b"".join), max_size=5))
def test_any_bytes_are_counted_to_the_last(texts: list[bytes]) -> None:
    result = scan([("p", text) for text in texts])
    total = statistics(result)
    assert total["documents"] == len(texts)
    assert total["bytes"] == sum(map(len, texts))
    classes = ["code", "comment", "disabled", "preprocessor", "string", "whitespace"]
    assert sum(total[f"bytes.{name}"] for name in classes) == total["bytes"]
    for kind in ("words", "units"):
        assert sum(len(word) * count for word, count in word_counts(result, kind).items()) == total["bytes"]
    assert total["bytes.non_ascii"] == sum(byte >= 0x80 for text in texts for byte in text)


def test_finish_starts_anew() -> None:
    scanner = cppmill_core.Scanner(CONFIG)
    scanner.add(batch([("p", b"std::shared_ptr")]))
    assert statistics(finish(scanner))["documents"] == 1
    result = finish(scanner)
    assert result["words"].num_rows == 0
    assert set(statistics(result).values()) == {0}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[", "scan configuration"),
        ('{"pattern": "none"}', "cpp-words-1"),
        ('{"pattern": "cpp-lines-1"}', 'pattern "cpp-lines-1" cuts lines'),
        ('{"pattern": "cpp-words-1", "unit_pattern": "cpp-words-1"}', 'unit_pattern "cpp-words-1" cuts no lines'),
        ('{"pattern": "cpp-words-1", "unit_pattern": "cpp-line-1"}', "cpp-lines-1"),
        ('{"pattern": "cpp-words-1", "candidates": [{"term": "a::b", "category": "c", "match": "ident"}]}', '"a::b"'),
        ('{"pattern": "cpp-words-1", "morphemes": [{"morpheme": "re", "position": "middle"}]}', "middle"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused_by_name(config: str, message: str) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=message):
        cppmill_core.Scanner(config)


def test_a_batch_without_the_columns_is_refused_by_name() -> None:
    scanner = cppmill_core.Scanner(CONFIG)
    with pytest.raises(cppmill_core.InvalidInputError, match='no column "content"; their columns are project, text'):
        scanner.add(pa.record_batch([pa.array(["p"]), pa.array([b"x"])], ["project", "text"]))
    with pytest.raises(cppmill_core.InvalidInputError, match='row 1: column "project" is null'):
        scanner.add(pa.record_batch([pa.array(["p", None]), pa.array([b"x", b"y"])], ["project", "content"]))
    assert statistics(finish(scanner))["documents"] == 0


class Announced:
    """A batch that tells when it is taken over: from then on the call is at work on it."""

    def __init__(self, documents: pa.RecordBatch) -> None:
        self.documents, self.taken = documents, threading.Event()

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        self.taken.set()
        return self.documents.__arrow_c_array__(requested_schema)


def test_other_python_threads_run_while_documents_are_counted() -> None:
    documents = Announced(batch([("p", b"int x = read_all(buffer); // no\n" * 200_000)]))
    scanner, done = cppmill_core.Scanner(CONFIG), threading.Event()
    counting = threading.Thread(target=lambda: (scanner.add(documents), done.set()))
    counting.start()
    documents.taken.wait()
    turns = 0
    while not done.is_set():
        time.sleep(0)
        turns += 1
    counting.join()
    assert turns > 10
    assert statistics(finish(scanner))["identifiers"] == 3 * 200_000


def test_words_of_strings_are_counted_with_dots_between_them_and_without() -> None:
    terms = ["mhlo.add", "mhlo", "pallas.program_id"]
    candidates = [{"term": term, "category": "mlir", "match": "string"} for term in terms]
    scanner = cppmill_core.Scanner(json.dumps({"pattern": PATTERN, "candidates": candidates}))
    source = b'f("%0 = mhlo.add, x.mhlo.add mhlo"); mhlo.add(); // mhlo.add\nauto s = R"(pallas.program_id(0))";'
    scanner.add(batch([("p", source)]))
    counts = scanner.finish()["terms"]
    assert dict(zip(counts["term"].to_pylist(), counts["hits"].to_pylist(), strict=True)) == {
        "mhlo": 3,
        "mhlo.add": 1,
        "pallas.program_id": 1,
    }
