"""Platform detection with cppmill's own rules: every label, code without evidence, the limit, and threads."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
import rfc8785

from configs.platforms import PLATFORM_VOCAB, load_platform_rules

VOCAB: dict[str, Any] = json.loads(PLATFORM_VOCAB.read_text(encoding="utf-8"))
IDS = {(category, label): number for category, ids in VOCAB["categories"].items() for label, number in ids.items()}
SNIPPETS = {
    (category, label): text
    for category, labels in tomllib.loads(Path(__file__).with_name("platform_snippets.toml").read_text()).items()
    for label, text in labels.items()
}
PLAIN = b"""
#include <cstdio>
#include <cmath>
#include "alpha/metal.h"
// For Windows, Linux (x86_64) and CUDA: _WIN32, __linux__, std::expected<int, int>.
namespace demo {
struct Riot { int sparc, avr, metal, alpha, likely, concept, requires, import, module, override, final; };
int sum(const int* values, int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) total += values[i] << 1;
  std::printf("__x86_64__ cudaMalloc nullptr %d\\n", total);
  return total;
}
#error Define _WIN32 or __linux__ and use std::expected
}
"""


@pytest.fixture(scope="module")
def detector() -> cppmill_core.PlatformDetector:
    return cppmill_core.PlatformDetector(load_platform_rules())


def _detect(detector: cppmill_core.PlatformDetector, content: bytes, path: str = "demo/x.cpp") -> dict[str, Any]:
    batch = pa.record_batch({"path": [path], "content": pa.array([content], pa.binary())})
    row: dict[str, Any] = detector.detect(batch).to_pylist()[0]
    return row


def test_every_label_has_a_snippet() -> None:
    assert set(SNIPPETS) == set(IDS)
    assert len(SNIPPETS) == 112


@pytest.mark.parametrize(("category", "label"), list(IDS))
def test_real_code_shows_its_label(detector: cppmill_core.PlatformDetector, category: str, label: str) -> None:
    found = _detect(detector, SNIPPETS[category, label].encode())
    assert IDS[category, label] in found["platform_ids"], found["platform_info"]
    assert json.loads(found["platform_info"])[category][label]


@pytest.mark.parametrize(("category", "label"), list(IDS))
def test_the_same_code_in_comments_and_strings_shows_nothing(
    detector: cppmill_core.PlatformDetector, category: str, label: str
) -> None:
    code = SNIPPETS[category, label]
    commented = "".join(f"// {line}\n" for line in code.splitlines())
    quoted = "".join(f"{json.dumps(line)}\n" for line in code.splitlines())
    for hidden in (commented, f"/*{code}*/", f"const char* text = {quoted};", f'const char* text = R"~({code})~";'):
        assert _detect(detector, hidden.encode()) == {"platform_ids": [], "platform_info": "{}"}


@pytest.mark.parametrize(
    ("condition", "standards"),
    [
        ("__cplusplus >= 201103L", {"c++11"}),
        ("__cplusplus > 199711L", {"c++11"}),
        ("__cplusplus < 201103L", {"c++98", "c++11"}),
        ("__cplusplus >= 201402L", {"c++14"}),
        ("(__cplusplus > 201402L)", {"c++17"}),
        ("defined(__cplusplus) && __cplusplus>=201703L", {"c++17"}),
        ("__cplusplus < 202002L", {"c++20"}),
        ("__cplusplus >= 202302L", {"c++23"}),
        ("__cplusplus > 202302L", {"c++26"}),
        ("defined(__cplusplus)", set()),
        ("__cplusplus", set()),
        ("__STDC_VERSION__ >= 201112L", set()),
    ],
)
def test_a_comparison_shows_the_standard_that_it_asks_for(
    detector: cppmill_core.PlatformDetector, condition: str, standards: set[str]
) -> None:
    found = json.loads(_detect(detector, f"#if {condition}\n#endif\n".encode())["platform_info"])
    assert set(found.get("cpp_std", {})) == standards
    assert set(found) <= {"cpp_std"}


@pytest.mark.parametrize(
    "code",
    [
        "int metal = alpha + avr; riot::sparc(mips);",
        "template <class A> std::vector<std::vector<std::pair<A, A>>>(n);",
        'x = a << b << 3; cout << "<<<" << x;',
        "<<<<<<< HEAD\n=======\n>>>>>>> main\n",
        "bool concept = requires(x); int likely = module.import(y);",
        "void OnKey(wxKeyEvent& kevent) { Skip(kevent); }",
        "throw std::runtime_error(text);",
        "std::experimental::optional<int> x; boost::optional<int> y; absl::span z; my::std_::expected w;",
        '#include "switch.h"\n#include "meta"\n#include "ranges/any"\n',
        "#error This needs _WIN32 and __cplusplus >= 201703L\n",
        "#warning __linux__\n",
    ],
)
def test_words_that_mean_other_things_show_nothing(detector: cppmill_core.PlatformDetector, code: str) -> None:
    assert _detect(detector, code.encode())["platform_info"] == "{}"


def test_plain_code_shows_nothing(detector: cppmill_core.PlatformDetector) -> None:
    assert _detect(detector, PLAIN) == {"platform_ids": [], "platform_info": "{}"}


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("kernels/add.cu", ("gpu", "cuda")),
        ("kernels/add.CUH", ("gpu", "cuda")),
        ("kernels/add.hip", ("gpu", "hip")),
        ("shaders/blur.metal", ("gpu", "metal")),
        ("blink/blink.ino", ("rtos", "arduino")),
        ("src/Win32/window.cpp", ("os", "windows")),
        ("src/arch/aarch64/copy.cpp", ("arch", "arm64")),
    ],
)
def test_folders_and_extensions_show_labels(
    detector: cppmill_core.PlatformDetector, path: str, label: tuple[str, str]
) -> None:
    assert _detect(detector, b"", path)["platform_ids"] == [IDS[label]]


def test_folders_that_mean_other_things_show_nothing(detector: cppmill_core.PlatformDetector) -> None:
    for path in ("metal/alpha.cpp", "riot/avr.h", "windows.cpp", "cuda.h", "cu", ".cu", "src/mycuda/x.h", "x.cu.txt"):
        assert _detect(detector, b"", path)["platform_ids"] == [], path


def test_a_document_keeps_the_labels_with_most_evidence(detector: cppmill_core.PlatformDetector) -> None:
    everything = "\n".join(SNIPPETS.values()).encode()
    found = _detect(detector, everything)
    ids = found["platform_ids"]
    assert len(ids) == VOCAB["max_ids_per_document"] == 20
    assert ids == sorted(set(ids))
    counts = _evidence_counts(everything.decode())
    kept = sorted(counts, key=lambda number: (-counts[number], number))[:20]
    assert ids == sorted(kept)


def _evidence_counts(content: str) -> dict[int, int]:
    """Count the distinct evidence of every label by rules with one piece of evidence each."""
    rules = json.loads(load_platform_rules())
    single, owners = [], {}
    for rule in rules["labels"]:
        for kind in ("identifiers", "includes", "paths", "sequences"):
            for entry in rule.get(kind, []):
                number = len(single) + 1
                owners[number] = rule["id"]
                single.append({"id": number, "category": "all", "label": str(number), kind: [entry]})
    every = cppmill_core.PlatformDetector(json.dumps({"max_ids": len(single), "labels": single}))
    counts: dict[int, int] = {}
    for number in _detect(every, content.encode())["platform_ids"]:
        counts[owners[number]] = counts.get(owners[number], 0) + 1
    return counts


def test_info_is_canonical_json_and_bounded(detector: cppmill_core.PlatformDetector) -> None:
    info = _detect(detector, "\n".join(SNIPPETS.values()).encode())["platform_info"]
    assert info == rfc8785.dumps(json.loads(info)).decode()
    evidence = [pieces for labels in json.loads(info).values() for pieces in labels.values()]
    assert len(evidence) == 20
    assert max(map(len, evidence)) == 5
    assert len(info) < 20 * (5 * 70 + 40)


def test_threads_and_batches_change_nothing(detector: cppmill_core.PlatformDetector) -> None:
    contents = [text.encode() for text in SNIPPETS.values()] * 5 + [b"", b"\xff\xfe", PLAIN]
    paths = [f"x{at}.cpp" for at in range(len(contents))]
    documents = pa.record_batch({"path": paths, "content": pa.array(contents, pa.binary())})
    expected = detector.detect(documents)
    assert expected.num_rows == documents.num_rows
    for threads in (2, 3, 8):
        assert detector.detect(documents, threads=threads).equals(expected)
    halves = [detector.detect(documents.slice(0, 99), threads=2), detector.detect(documents.slice(99), threads=2)]
    assert pa.Table.from_batches(halves).combine_chunks().equals(pa.Table.from_batches([expected]))


def test_the_schema_is_that_of_documents(detector: cppmill_core.PlatformDetector) -> None:
    empty = pa.record_batch({"path": pa.array([], pa.string()), "content": pa.array([], pa.binary())})
    schema = detector.detect(empty).schema
    assert schema.names == ["platform_ids", "platform_info"]
    assert schema.field("platform_ids").type == pa.list_(pa.field("item", pa.uint16(), nullable=False))
    assert schema.field("platform_info").type == pa.string()


@pytest.mark.parametrize(
    ("columns", "threads", "message"),
    [
        ({"path": ["a"]}, 1, "content"),
        ({"path": ["a"], "content": ["b"]}, 1, "string|Utf8"),
        ({"path": [None], "content": [b""]}, 1, "path"),
        ({"path": ["a"], "content": [b""]}, 0, "threads is 0"),
    ],
)
def test_unusable_documents_are_refused_by_name(
    detector: cppmill_core.PlatformDetector, columns: dict[str, list[Any]], threads: int, message: str
) -> None:
    if columns["path"] == [None]:
        columns = {**columns, "path": pa.array([None], pa.string())}
    with pytest.raises(cppmill_core.InvalidInputError, match=message):
        detector.detect(pa.record_batch(columns), threads=threads)
