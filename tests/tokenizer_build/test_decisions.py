from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.options import BuildOptions
from schemas.tables import MORPHEMES, TERMS
from tokenizer_build.decisions import (
    DECISIONS,
    Decision,
    Rule,
    Shape,
    cut_tokens,
    decide,
    name_shape,
    write_decisions,
)
from tokenizer_build.lint import load_vocabulary
from tokenizer_build.lock import Lock, LockedId, read_lock
from tokenizer_build.vocabulary import Vocabulary

DOCUMENTS = 1000
OPTIONS = BuildOptions(generic_document_share=0.02, min_hits=10)


def table(*rows: tuple[str, str, int, int, int]) -> pa.Table:
    columns = ("term", "category", "hits", "documents", "projects")
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=TERMS)


def decided(vocabulary: Vocabulary, terms: pa.Table, lock: Lock | None = None) -> dict[tuple[str, str], Decision]:
    lock = lock or read_lock(vocabulary.directory)
    return {(d.token, d.category): d for d in decide(vocabulary, lock, terms, DOCUMENTS, OPTIONS)}


@pytest.mark.parametrize(
    ("token", "prefixes", "shape"),
    [
        ("__global__", [], Shape.DOUBLE_UNDERSCORE),
        ("a__b", [], Shape.DOUBLE_UNDERSCORE),
        ("EXPECT_EQ", [], Shape.SCREAMING_CASE),
        ("BOOST_TEST2_A", [], Shape.SCREAMING_CASE),
        ("TEST", [], Shape.NONE),
        ("_TEST", [], Shape.NONE),
        ("Test_Case", [], Shape.NONE),
        ("cudaMalloc", ["cuda"], Shape.API_PREFIX),
        ("cuda", ["cuda"], Shape.NONE),
        ("cudamalloc", ["cuda"], Shape.NONE),
        ("cudaMalloc", ["nccl"], Shape.NONE),
        ("sqlite3_step", ["sqlite3_"], Shape.API_PREFIX),
        ("SQLExecute", ["SQL"], Shape.API_PREFIX),
        ("hipblasCreate", ["rocblas_", "hipblas"], Shape.API_PREFIX),
    ],
)
def test_the_shape_of_a_name(token: str, prefixes: list[str], shape: Shape) -> None:
    assert name_shape(token, prefixes) is shape


@pytest.mark.parametrize(
    ("token", "category", "hits", "documents", "rule"),
    [
        ("Channel", "grpc", 9, 9, Rule.RARE),
        ("Channel", "grpc", 10, 20, Rule.USED),
        ("Channel", "grpc", 50, 21, Rule.GENERIC),
        ("cudaMalloc", "cuda_runtime", 50, 21, Rule.DISTINCTIVE),
        ("cudaMalloc", "cuda_runtime", 9, 9, Rule.RARE),
        ("EXPECT_EQ", "gtest", 5000, 500, Rule.DISTINCTIVE),
        ("__global__", "cuda_qualifiers", 5000, 500, Rule.DISTINCTIVE),
        ("TEST", "gtest", 5000, 500, Rule.GENERIC),
        ("optional", "proto_keywords", 5000, 500, Rule.OTHER_BAND),
        ("optional", "proto_keywords", 0, 0, Rule.OTHER_BAND),
        ("generator", "cpp23_types", 5000, 500, Rule.MORPHEME),
    ],
)
def test_each_rule_at_its_border(
    vocabulary: Vocabulary, token: str, category: str, hits: int, documents: int, rule: Rule
) -> None:
    decision = decided(vocabulary, table((token, category, hits, documents, 1)))[token, category]
    assert decision.rule is rule
    assert decision.kept is (rule not in (Rule.RARE, Rule.GENERIC))


def test_what_the_scan_did_not_find_is_cut_in_the_domain_band_and_nowhere_else(vocabulary: Vocabulary) -> None:
    cut = cut_tokens(decided(vocabulary, table()).values())
    domain = {token.token for token in vocabulary.tokens if token.band.name == "domain"}
    assert cut == domain - {"generator"}


def test_a_token_of_two_categories_is_kept_if_one_keeps_it(vocabulary: Vocabulary) -> None:
    terms = table(("CHECK", "catch_boost_test", 5000, 500, 3), ("CHECK", "sql_keywords", 30, 4, 1))
    decisions = decided(vocabulary, terms)
    assert decisions["CHECK", "sql_keywords"].rule is Rule.USED
    assert decisions["CHECK", "catch_boost_test"].rule is Rule.OTHER_CATEGORY
    assert "CHECK" not in cut_tokens(decisions.values())


def test_a_locked_token_is_never_cut(vocabulary: Vocabulary) -> None:
    token = vocabulary.by_token["TEST"]
    lock = Lock.from_entries([LockedId("TEST", token.id, "1.0", "ids.lock:1")])
    decision = decided(vocabulary, table(("TEST", "gtest", 5000, 500, 3)), lock)["TEST", "gtest"]
    assert decision.rule is Rule.LOCKED
    assert decision.kept


def test_thresholds_are_options(vocabulary: Vocabulary) -> None:
    terms = table(("Channel", "grpc", 5, 500, 1))
    lock = read_lock(vocabulary.directory)
    options = BuildOptions(generic_document_share=0.5, min_hits=5)
    kept = {d.token for d in decide(vocabulary, lock, terms, DOCUMENTS, options) if d.rule is Rule.USED}
    assert kept == {"Channel"}


def test_no_documents_cut_by_the_floor_and_divide_by_nothing(vocabulary: Vocabulary) -> None:
    decisions = decide(vocabulary, read_lock(vocabulary.directory), table(), 0, OPTIONS)
    assert {d.document_share for d in decisions} == {0.0}


def written(vocabulary_dir: Path, path: Path) -> list[dict[str, Any]]:
    vocabulary, lock = load_vocabulary(vocabulary_dir)
    terms = table(("TEST", "gtest", 50, 30, 7))
    morphemes = pa.Table.from_pylist(
        [{"morpheme": "init", "position": "cpp_stem", "hits": 9, "documents": 5, "projects": 2}], schema=MORPHEMES
    )
    write_decisions(decide(vocabulary, lock, terms, DOCUMENTS, OPTIONS), vocabulary, morphemes, DOCUMENTS, path)
    file = pq.read_table(path)
    assert file.schema.equals(DECISIONS)
    rows: list[dict[str, Any]] = file.to_pylist()
    return rows


def test_the_report_has_a_row_for_each_candidate_and_morpheme(
    vocabulary: Vocabulary, vocabulary_copy: Path, tmp_path: Path
) -> None:
    rows = written(vocabulary_copy, tmp_path / "decisions.parquet")
    assert len(rows) == len(vocabulary.candidates) + len(vocabulary.morphemes)
    assert next(row for row in rows if row["token"] == "TEST") == {
        "token": "TEST",
        "id": 5302,
        "category": "gtest",
        "hits": 50,
        "documents": 30,
        "projects": 7,
        "document_share": 0.03,
        "shape": "none",
        "decision": "cut",
        "rule": "generic",
    }
    init = next(row for row in rows if row["token"] == "init")
    assert (init["category"], init["hits"], init["decision"]) == ("morpheme:cpp_stem", 9, "kept")


def test_the_report_is_the_same_bytes_each_time(vocabulary_copy: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    written(vocabulary_copy, first)
    written(vocabulary_copy, second)
    assert first.read_bytes() == second.read_bytes()
