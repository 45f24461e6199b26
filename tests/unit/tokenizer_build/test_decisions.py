from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from schemas.options import BuildOptions
from schemas.tables import TERMS
from tokenizer_build.decisions import Decision, Rule, Shape, cut_tokens, decide, name_parts, name_shape
from tokenizer_build.lock import Lock, LockedId, read_lock
from tokenizer_build.vocabulary import Vocabulary, read_vocabulary

DOCUMENTS = 1000
NO_FLOORS = {"min_category_hits_per_name": 0, "min_category_projects": 0, "min_category_hit_share": 0.0}
OPTIONS = BuildOptions().model_copy(update=NO_FLOORS)
Row = tuple[str, str, int, int, int]


def table(*rows: Row) -> pa.Table:
    columns = ("term", "category", "hits", "documents", "projects")
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=TERMS)


def decided(
    vocabulary: Vocabulary,
    terms: pa.Table,
    lock: Lock | None = None,
    options: BuildOptions = OPTIONS,
    documents: int = DOCUMENTS,
) -> dict[tuple[str, str], Decision]:
    lock = lock or read_lock(vocabulary.directory)
    return {(d.token, d.category): d for d in decide(vocabulary, lock, terms, documents, options)}


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
        ("device_vector", "thrust_cub", 50, 20, Rule.USED),
        ("device_vector", "thrust_cub", 500, 21, Rule.COMPOUND),
        ("device_vector", "thrust_cub", 500, 100, Rule.COMPOUND),
        ("device_vector", "thrust_cub", 500, 101, Rule.GENERIC),
        ("DescriptorPool", "protobuf", 9, 9, Rule.RARE),
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
    options = OPTIONS.model_copy(update={"generic_document_share": 0.5, "min_hits": 5})
    kept = {d.token for d in decide(vocabulary, lock, terms, DOCUMENTS, options) if d.rule is Rule.USED}
    assert kept == {"Channel"}


@pytest.mark.parametrize(
    ("changes", "token", "category", "rule"),
    [
        ({}, "EXPECT_EQ", "gtest", Rule.DISTINCTIVE),
        ({"distinctive_shapes": ("api_prefix", "compound")}, "EXPECT_EQ", "gtest", Rule.COMPOUND),
        ({"distinctive_shapes": ("screaming_case",)}, "cudaMalloc", "cuda_runtime", Rule.GENERIC),
        ({"compound_parts": 3}, "device_vector", "thrust_cub", Rule.GENERIC),
        ({"compound_parts": 3}, "CodedInputStream", "protobuf", Rule.COMPOUND),
        ({"compound_document_share": 0.01}, "device_vector", "thrust_cub", Rule.GENERIC),
    ],
)
def test_which_shapes_are_distinctive_is_an_option(
    vocabulary: Vocabulary, changes: dict[str, object], token: str, category: str, rule: Rule
) -> None:
    options = OPTIONS.model_copy(update=changes)
    assert decided(vocabulary, table((token, category, 500, 50, 3)), options=options)[token, category].rule is rule


def category(name: str, tokens: dict[str, tuple[int, int, int]]) -> pa.Table:
    return table(*((token, name, *found) for token, found in tokens.items()))


# Each published case, in kind: hits, documents and projects of one category among 1,435,084 documents.
PUBLISHED_DOCUMENTS = 1_435_084


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("mongodb_dollar", {"$match": (100, 90, 5), "$group": (48, 40, 3)}),
        ("redis_commands", {"HSET": (300, 200, 4), "LPUSH": (130, 100, 3)}),
        ("cpp_orms", {"insert_into": (401, 300, 6)}),
        ("cmake", {"find_package": (1_685, 900, 20)}),
        ("proto_keywords", {"stream": (1_390_000, 300_000, 300)}),
    ],
)
def test_the_categories_that_fell_in_the_published_scan_fall(
    vocabulary: Vocabulary, name: str, tokens: dict[str, tuple[int, int, int]]
) -> None:
    decisions = decided(vocabulary, category(name, tokens), options=BuildOptions(), documents=PUBLISHED_DOCUMENTS)
    fallen = {d.token: d.rule for d in decisions.values() if d.category == name and d.rule is not Rule.OTHER_BAND}
    assert set(fallen) >= set(tokens)
    assert set(fallen.values()) <= {Rule.RARE, Rule.GENERIC, Rule.CATEGORY, Rule.MORPHEME}


@pytest.fixture
def two_names(tiny_vocabulary: Path) -> Vocabulary:
    """A category of two names, and a keyword that it counts too."""
    tokens = '[candidates.tokens]\n5300 = "Channel"\n5301 = "Server"\n'
    group = f'[[candidates]]\ncategory = "grpc"\nmatch = "ident"\nelsewhere = ["auto"]\n{tokens}'
    (tiny_vocabulary / "domain.toml").write_text(f'band = "domain"\n{group}')
    return read_vocabulary(tiny_vocabulary)


@pytest.mark.parametrize(
    ("options", "tokens", "rule"),
    [
        ({"min_category_hits_per_name": 25_000}, {"Channel": (50, 5, 3)}, Rule.USED),
        ({"min_category_hits_per_name": 25_001}, {"Channel": (50, 5, 3)}, Rule.CATEGORY),
        ({"min_category_hits_per_name": 25_001}, {"Channel": (50, 5, 3), "Server": (10, 2, 1)}, Rule.USED),
        ({"min_category_hits_per_name": 25_001}, {"Channel": (50, 5, 3), "Server": (9, 2, 1)}, Rule.CATEGORY),
        ({"min_category_hit_share": 0.5}, {"Channel": (50, 5, 3), "Server": (50, 21, 3)}, Rule.USED),
        ({"min_category_hit_share": 0.5}, {"Channel": (50, 5, 3), "Server": (51, 21, 3)}, Rule.CATEGORY),
        ({"min_category_hit_share": 0.5}, {"Channel": (50, 5, 3), "auto": (50, 30, 3)}, Rule.USED),
        ({"min_category_hit_share": 0.5}, {"Channel": (50, 5, 3), "auto": (51, 30, 3)}, Rule.CATEGORY),
        ({"min_category_projects": 3}, {"Channel": (50, 5, 3)}, Rule.USED),
        ({"min_category_projects": 3}, {"Channel": (50, 5, 2), "Server": (50, 21, 3)}, Rule.CATEGORY),
    ],
)
def test_each_category_floor_at_its_border(
    two_names: Vocabulary, options: dict[str, float], tokens: dict[str, tuple[int, int, int]], rule: Rule
) -> None:
    floors = OPTIONS.model_copy(update=options)
    decision = decided(two_names, category("grpc", tokens), options=floors)["Channel", "grpc"]
    assert (decision.rule, decision.own_rule) == (rule, Rule.USED)


def test_in_a_corpus_of_one_project_no_category_falls_by_its_projects(vocabulary: Vocabulary) -> None:
    options = OPTIONS.model_copy(update={"min_category_projects": 2})
    one_project = category("grpc", {"Channel": (50, 5, 1)})
    assert decided(vocabulary, one_project, options=options)["Channel", "grpc"].rule is Rule.USED


def test_what_falls_with_a_category_is_kept_by_another_one_and_by_the_lock(vocabulary: Vocabulary) -> None:
    options = OPTIONS.model_copy(update={"min_category_projects": 2})
    found = [("CHECK", "catch_boost_test", 50, 5, 1), ("CHECK", "sql_keywords", 30, 4, 2)]
    found += [("REQUIRE", "catch_boost_test", 50, 5, 1), ("SECTION", "catch_boost_test", 50, 5, 1)]
    lock = Lock.from_entries([LockedId("REQUIRE", vocabulary.by_token["REQUIRE"].id, "1.0", "ids.lock:1")])
    decisions = decided(vocabulary, table(*found), lock, options)
    rules = [decisions[token, "catch_boost_test"].rule for token in ("CHECK", "REQUIRE", "SECTION")]
    assert rules == [Rule.OTHER_CATEGORY, Rule.LOCKED, Rule.CATEGORY]


def test_no_documents_cut_by_the_floor_and_divide_by_nothing(vocabulary: Vocabulary) -> None:
    decisions = decide(vocabulary, read_lock(vocabulary.directory), table(), 0, OPTIONS)
    assert {d.document_share for d in decisions} == {0.0}


@pytest.mark.parametrize(
    ("token", "prefixes", "shape"),
    [
        ("__global__", [], Shape.DOUBLE_UNDERSCORE),
        ("a__b", [], Shape.DOUBLE_UNDERSCORE),
        ("EXPECT_EQ", [], Shape.SCREAMING_CASE),
        ("BOOST_TEST2_A", [], Shape.SCREAMING_CASE),
        ("TEST", [], Shape.NONE),
        ("_TEST", [], Shape.NONE),
        ("Test_Case", [], Shape.COMPOUND),
        ("cudaMalloc", ["cuda"], Shape.API_PREFIX),
        ("cuda", ["cuda"], Shape.NONE),
        ("cudamalloc", ["cuda"], Shape.NONE),
        ("cudaMalloc", ["nccl"], Shape.COMPOUND),
        ("sqlite3_step", ["sqlite3_"], Shape.API_PREFIX),
        ("SQLExecute", ["SQL"], Shape.API_PREFIX),
        ("hipblasCreate", ["rocblas_", "hipblas"], Shape.API_PREFIX),
        ("thread_block_tile", [], Shape.COMPOUND),
        ("DescriptorPool", [], Shape.COMPOUND),
        ("threadIdx", [], Shape.COMPOUND),
        ("SQLExecute", [], Shape.COMPOUND),
        ("device_vector", ["device_"], Shape.API_PREFIX),
        ("size_t", [], Shape.NONE),
        ("mValue", [], Shape.NONE),
        ("dim3", [], Shape.NONE),
        ("float16", [], Shape.NONE),
        ("Descriptor", [], Shape.NONE),
        ("query", [], Shape.NONE),
        ("$graphLookup", [], Shape.NONE),
        ("#pragma once", [], Shape.NONE),
    ],
)
def test_the_shape_of_a_name(token: str, prefixes: list[str], shape: Shape) -> None:
    assert name_shape(token, prefixes) is shape


def test_a_shape_that_is_not_asked_for_gives_way_to_the_next() -> None:
    assert name_shape("CUDA_CHECK__", [], shapes=["api_prefix", "compound"]) is Shape.COMPOUND
    assert name_shape("CUDA_CHECK__", ["CUDA"], shapes=["api_prefix", "compound"]) is Shape.API_PREFIX
    assert name_shape("CUDA_CHECK__", [], shapes=[]) is Shape.NONE


def test_a_compound_has_as_many_words_as_asked_for() -> None:
    shapes = [name_shape(name, [], compound_parts=3) for name in ("thread_block_tile", "device_vector", "ThreadBlock")]
    assert shapes == [Shape.COMPOUND, Shape.NONE, Shape.NONE]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("thread_block_tile", ["thread", "block", "tile"]),
        ("XMLHttpRequest2", ["XML", "Http", "Request"]),
        ("__half2float", ["half", "float"]),
        ("m_x", []),
        ("std::vector", []),
        ("", []),
    ],
)
def test_the_parts_of_a_name_are_its_words(name: str, parts: list[str]) -> None:
    assert name_parts(name) == parts
