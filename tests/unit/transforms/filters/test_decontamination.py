"""Decontamination: functions of real headers as the benchmark, and documents that hold them or do not."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import ConfigError
from schemas.options import IngestOptions
from schemas.reasons import Filtered
from transforms.filters.decontamination import BENCHMARKS, Benchmark, load_benchmark, published, read_benchmark
from transforms.filters.verdicts import ContentFilter, make_content_filter
from transforms.storage.folder import OutputFolder

NUMPY = Path(np.get_include()) / "numpy"
MATH = (NUMPY / "npy_math.h").read_bytes()
FUNCTION = MATH[MATH.index(b"static inline double npy_creal") :][:700]
LICENSE = (
    b"/* Copyright (c) 2026 Somebody. All rights reserved, and whoever wants to know more of it reads the file. */\n"
)
INCLUDES = b"".join(
    b"#include <%s>\n" % name for name in (b"vector", b"string", b"map", b"cmath", b"memory", b"iostream")
)
CODE = b"""
double mean_of_squares(const std::vector<double>& values) {
    double total = 0;
    for (double value : values) total += value * value;
    return values.empty() ? total : total / values.size();
}
"""


def asked(*places: Path, **more: object) -> IngestOptions:
    return IngestOptions.model_validate({"decontaminate": tuple(map(str, places)), **more})


def read(options: IngestOptions) -> Benchmark:
    benchmark = read_benchmark(options)
    assert benchmark is not None
    return benchmark


@pytest.fixture
def filter_by(tmp_path: Path) -> Callable[..., ContentFilter]:
    """Make the filters with a benchmark of one file: filter_by(name, content, **options)."""

    def make(name: str, content: bytes, **more: object) -> ContentFilter:
        (tmp_path / name).write_bytes(content)
        options = asked(tmp_path / name, **more)
        return make_content_filter(options, read(options))

    return make


def test_a_function_of_the_benchmark_is_found_anywhere_in_a_document(filter_by: Callable[..., ContentFilter]) -> None:
    content_filter = filter_by("real.h", FUNCTION)
    found = content_filter(b"int a;\nint b;\n" + FUNCTION, None)
    assert found.reason == Filtered.CONTAMINATED
    assert found.detail == "13 words of real.h:1 in line 3"
    assert content_filter(MATH, None).reason == Filtered.CONTAMINATED
    assert content_filter(MATH.replace(b"    ", b"\t").upper(), None).reason == Filtered.CONTAMINATED


def test_every_header_but_the_benchmark_itself_is_kept(filter_by: Callable[..., ContentFilter]) -> None:
    content_filter = filter_by("npy_math.h", MATH)
    dropped = {path.name for path in NUMPY.rglob("*.h") if content_filter(path.read_bytes(), None).reason}
    assert dropped == {"npy_math.h"}


def test_other_names_and_shorter_parts_are_kept(filter_by: Callable[..., ContentFilter]) -> None:
    content_filter = filter_by("code.cpp", CODE)
    assert content_filter(CODE, None).detail == "13 words of code.cpp:2 in line 2"
    assert content_filter(CODE[:60], None).reason == ""
    assert content_filter(CODE.replace(b"total", b"sum"), None).reason == ""


def test_licences_includes_numbers_and_letters_are_no_benchmark(filter_by: Callable[..., ContentFilter]) -> None:
    table = b"int t[] = {" + b", ".join(b"%d" % number for number in range(100)) + b"};\n"
    letters = b"void f(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k);\n"
    cases = b"".join(b"  case %d: return %d;\n" % (number, number) for number in range(20))
    boilerplate = LICENSE + INCLUDES + table + letters + cases
    content_filter = filter_by("whole.cpp", boilerplate + CODE)
    assert content_filter(boilerplate, None).reason == ""
    assert content_filter(LICENSE + CODE, None).detail == f"13 words of whole.cpp:{boilerplate.count(10) + 2} in line 3"


def test_a_comment_that_is_not_a_licence_counts(filter_by: Callable[..., ContentFilter]) -> None:
    problem = (
        b"/* Given a list of numbers, return whether any two of them are closer to each other than a threshold. */\n"
    )
    assert filter_by("problem.txt", problem)(b"// " + problem[3:-3], None).reason == Filtered.CONTAMINATED


def test_a_licence_in_a_string_is_code(filter_by: Callable[..., ContentFilter]) -> None:
    text = (
        b'const char* const notice = "see https://x.example/ // for the license and copyright of all of these parts";\n'
    )
    assert filter_by("notice.cpp", text)(text, None).reason == Filtered.CONTAMINATED


def test_as_many_different_n_grams_are_needed_as_asked(filter_by: Callable[..., ContentFilter]) -> None:
    two = CODE[CODE.index(b"double total") : CODE.index(b": total /")]
    content_filter = filter_by("code.cpp", CODE, decontaminate_min_ngrams=3)
    assert content_filter(CODE, None).reason == Filtered.CONTAMINATED
    assert content_filter(two, None).reason == content_filter(3 * two, None).reason == ""
    assert filter_by("code.cpp", CODE, decontaminate_min_ngrams=2)(two, None).reason == Filtered.CONTAMINATED


def test_fewer_words_find_more(filter_by: Callable[..., ContentFilter]) -> None:
    part = b"for (double value : values) total += value * value;"
    assert filter_by("code.cpp", CODE)(part, None).reason == ""
    assert filter_by("code.cpp", CODE, decontaminate_ngram_words=6)(part, None).reason == Filtered.CONTAMINATED


@pytest.mark.parametrize("name", ["b.jsonl", "b.jsonl.gz", "b.parquet", "binary.parquet"])
def test_every_string_of_problems_in_tables_counts(
    name: str, filter_by: Callable[..., ContentFilter], tmp_path: Path
) -> None:
    rows = [
        {"task_id": "CPP/0", "prompt": "int short();", "tests": ["none"]},
        {"task_id": "CPP/1", "prompt": "double mean();", "tests": [CODE.decode(), "é"]},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "made.parquet")
    data = {"b.jsonl": lines, "b.jsonl.gz": gzip.compress(lines), "b.parquet": (tmp_path / "made.parquet").read_bytes()}
    table = pa.table({"path": ["a.cpp", "b.cpp"], "content": pa.array([b"int a;", CODE], pa.large_binary())})
    pq.write_table(table, tmp_path / "made.parquet")
    data["binary.parquet"] = (tmp_path / "made.parquet").read_bytes()
    found = filter_by(name, data[name])(CODE, None)
    assert found.detail == f"13 words of {name}:2 in line 2"


def test_a_folder_is_its_sources_named_below_it(tmp_path: Path) -> None:
    for name, content in (("p/a.cpp", CODE), ("p/README.md", FUNCTION), ("q/b.h", CODE), (".git/c.h", FUNCTION)):
        (tmp_path / "bench" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bench" / name).write_bytes(content)
    options = asked(tmp_path / "bench")
    content_filter = make_content_filter(options, read(options))
    assert content_filter(CODE, None).detail == "13 words of bench/p/a.cpp:2 in line 2"
    assert content_filter(FUNCTION, None).reason == ""


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("short.cpp", b"int a;\n", "short.cpp: no run of 13 words in it"),
        ("licence.cpp", LICENSE, "licence.cpp: no run of 13 words in it"),
        ("broken.jsonl", b'{"a": 1}\n{"a"\n', "broken.jsonl:2: not JSON"),
        ("deep.jsonl", b"[" * 100_000 + b"]" * 100_000, "deep.jsonl:1: not JSON"),
        ("cut.jsonl.gz", gzip.compress(b"{}\n" * 99, mtime=0)[:-9], "cut.jsonl.gz:"),
        ("broken.parquet", b"PAR1", "broken.parquet: not Parquet"),
        ("all.tar.gz", b"", "all.tar.gz: cannot be read (unpack it)"),
    ],
)
def test_a_benchmark_that_cannot_be_read_is_refused(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match="ingest.decontaminate: .*") as caught:
        read(asked(tmp_path / name))
    assert said in str(caught.value)


def test_a_link_in_a_benchmark_is_refused_and_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(CODE)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "a.cpp").write_bytes(FUNCTION)
    (tmp_path / "bench" / "b.cpp").symlink_to(tmp_path / "blob")
    with pytest.raises(ConfigError, match=r"bench: b\.cpp is a link, which is not read; copy what it leads to"):
        read(asked(tmp_path / "bench"))


def test_a_line_of_any_length_is_read(filter_by: Callable[..., ContentFilter]) -> None:
    words = [b"word%d" % number for number in range(300_000)]
    content_filter = filter_by("long.txt", b" ".join(words))
    assert content_filter(b"\n".join(words[-20:]), None).detail.startswith("13 words of ")
    assert content_filter(b"\n".join(words[150_000:150_020]), None).reason == Filtered.CONTAMINATED
    assert content_filter(b"\n".join(reversed(words[:20])), None).reason == ""


def test_memory_does_not_depend_on_the_length_of_an_n_gram(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(b" ".join(b"word%d" % number for number in range(100_000)))
    peaks = []
    for words in (8, 1024):
        tracemalloc.start()
        read(asked(tmp_path / "long.txt", decontaminate_ngram_words=words))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + (100 << 20)


@pytest.mark.parametrize("unit", [b"/* ", b'"\\'])
def test_megabytes_of_what_is_never_closed_are_read(filter_by: Callable[..., ContentFilter], unit: bytes) -> None:
    """A search for the end from each beginning would take hours."""
    content_filter = filter_by("open.cpp", CODE + unit * 1_000_000)
    assert content_filter(CODE, None).reason == Filtered.CONTAMINATED


def test_a_comment_that_is_never_closed_leaves_nothing_out(filter_by: Callable[..., ContentFilter]) -> None:
    for before in (b"see src/*.cpp and the license; ", LICENSE + b"see src/*.cpp and the license; "):
        content_filter = filter_by("problem.txt", before + CODE)
        assert content_filter(CODE, None).reason == Filtered.CONTAMINATED


def test_a_place_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ingest.decontaminate: .*does not exist"):
        read(asked(tmp_path / "gone.cpp"))


def test_the_digest_is_of_what_is_in_the_files_not_of_where_they_are(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.cpp").write_bytes(CODE)
    first, second = (read(asked(tmp_path / folder / "x.cpp")) for folder in ("a", "b"))
    assert first.digest == second.digest
    (tmp_path / "b/x.cpp").write_bytes(LICENSE[:40] + b"*/" + CODE)
    moved = read(asked(tmp_path / "b/x.cpp")).digest
    assert moved == first.digest
    (tmp_path / "b/x.cpp").write_bytes(b"\n" + CODE)
    assert read(asked(tmp_path / "b/x.cpp")).digest != first.digest
    assert read(asked(tmp_path / "a/x.cpp", decontaminate_ngram_words=12)).digest != first.digest


def test_workers_load_what_was_read(tmp_path: Path, out: OutputFolder) -> None:
    (tmp_path / "code.cpp").write_bytes(CODE)
    options = asked(tmp_path / "code.cpp")
    benchmark = read(options)
    with published(benchmark, out):
        loaded = load_benchmark(benchmark.name, out, options)
        assert make_content_filter(options, loaded)(CODE, None) == make_content_filter(options, benchmark)(CODE, None)
        assert loaded.table.equals(benchmark.table)
    assert not list(out.files(BENCHMARKS))


def test_without_benchmarks_nothing_is_read_or_published(out: OutputFolder) -> None:
    assert read_benchmark(IngestOptions()) is None
    with published(None, out):
        assert not list(out.files(BENCHMARKS))
