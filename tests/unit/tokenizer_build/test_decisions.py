from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from schemas.options import BuildOptions
from schemas.tables import MORPHEMES, TERMS
from tokenizer_build.decisions import (
    Decision,
    Rule,
    cut_tokens,
    decide,
    decide_by_use,
    decide_morphemes,
    keep_candidates,
    leave_out,
)
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
    assert "contract_assert" in vocabulary.kept
    assert cut == domain - {"generator"} - vocabulary.kept


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


SECOND = OPTIONS.model_copy(update={"min_distinctive_hits": 1, "generic_word_project_share": 0.33})


@pytest.mark.parametrize(
    ("token", "category", "hits", "documents", "projects", "rule"),
    [
        ("cublasSgemm", "cublas", 1, 1, 1, Rule.DISTINCTIVE),
        ("cublasSgemm", "cublas", 0, 0, 0, Rule.RARE),
        ("source_location", "cpp23_types", 9, 2, 1, Rule.COMPOUND),
        ("source_location", "cpp23_types", 10, 2, 1, Rule.USED),
        ("mdspan", "cpp23_types", 9, 2, 1, Rule.RARE),
        ("stride", "cpp23_ranges", 500, 5, 4, Rule.COMMON),
        ("stride", "cpp23_ranges", 500, 5, 3, Rule.USED),
        ("Message", "protobuf", 500, 5, 4, Rule.COMMON),
        ("stride", "cpp23_ranges", 500, 21, 4, Rule.GENERIC),
        ("DWORD", "windows_types", 500, 5, 12, Rule.USED),
        ("float4", "cuda_vector_types", 500, 5, 12, Rule.USED),
        ("ServerContext", "grpc", 500, 5, 12, Rule.USED),
        ("range", "cpp20_concepts", 9, 5, 12, Rule.RARE),
        ("generator", "cpp23_types", 500, 5, 12, Rule.MORPHEME),
    ],
)
def test_each_second_rule_at_its_border(
    vocabulary: Vocabulary, token: str, category: str, hits: int, documents: int, projects: int, rule: Rule
) -> None:
    """Of twelve projects, a third are four: `$match` is found in all."""
    terms = table((token, category, hits, documents, projects), ("$match", "mongodb_dollar", 20, 12, 12))
    assert decided(vocabulary, terms, options=SECOND)[token, category].rule is rule
    assert decided(vocabulary, terms)[token, category].rule not in (Rule.COMMON, Rule.COMPOUND)


@pytest.mark.parametrize("projects", [1, 2])
def test_a_word_of_few_projects_is_not_common_however_few_there_are(vocabulary: Vocabulary, projects: int) -> None:
    terms = table(("stride", "cpp23_ranges", 500, 5, projects))
    assert decided(vocabulary, terms, options=SECOND)["stride", "cpp23_ranges"].rule is Rule.USED


FLOORS = BuildOptions(min_distinctive_hits=1, generic_word_project_share=0.33)
TWELVE = ("$match", "mongodb_dollar", 20, 12, 12)
CPP23 = [("expected", "cpp23_types", 5000, 15, 12), ("source_location", "cpp23_types", 14, 5, 2)]


def test_names_of_an_api_stay_where_generic_words_have_most_hits_of_their_category(vocabulary: Vocabulary) -> None:
    terms = table(TWELVE, *CPP23, ("mdspan", "cpp23_types", 20, 5, 2))
    rules = {token: decision.rule for (token, _), decision in decided(vocabulary, terms, options=FLOORS).items()}
    names = ("expected", "source_location", "mdspan")
    assert [rules[name] for name in names] == [Rule.COMMON, Rule.USED, Rule.CATEGORY]


def test_names_of_an_api_fall_with_a_category_that_has_too_few_hits_or_projects(vocabulary: Vocabulary) -> None:
    found = [(f"cublas{name}", "cublas", 1, 1, 2) for name in ("Sgemm", "Dgemm")]
    rare = decided(vocabulary, table(TWELVE, *found), options=FLOORS, documents=30_000)
    assert {rare[name, "cublas"].rule for name, *_ in found} == {Rule.CATEGORY}
    assert rare["cublasCreate", "cublas"].rule is Rule.RARE
    of_one = [(name, category, 500, 5, 1) for name, category, *_ in found]
    alone = decided(vocabulary, table(TWELVE, *of_one), options=FLOORS)
    assert {alone[name, "cublas"].rule for name, *_ in found} == {Rule.CATEGORY}


@pytest.mark.parametrize("options", [FLOORS], ids=["second rules"])
def test_the_categories_that_fell_in_the_published_scan_fall_by_the_second_rules_too(
    vocabulary: Vocabulary, options: BuildOptions
) -> None:
    found = [("find_package", "cmake", 1_685, 900, 20), ("insert_into", "cpp_orms", 401, 300, 6)]
    found += [("stream", "proto_keywords", 1_390_000, 300_000, 300), ("rpc", "proto_keywords", 900, 300, 30)]
    decisions = decided(vocabulary, table(*found), options=options, documents=PUBLISHED_DOCUMENTS)
    assert not [token for token, category, *_ in found if decisions[token, category].kept]


def pieces(*rows: Row) -> pa.Table:
    columns = ("morpheme", "position", "hits", "documents", "projects")
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=MORPHEMES)


def test_a_morpheme_is_decided_by_its_hits_in_the_best_of_its_positions(vocabulary: Vocabulary) -> None:
    options = OPTIONS.model_copy(update={"min_morpheme_hits": 10_000})
    table_of = pieces(("intra", "prefix", 9, 5, 2), ("init", "cpp_stem", 10, 5, 2), ("config", "component", 9, 5, 2))
    lock = read_lock(vocabulary.directory)
    decisions = decide_morphemes(vocabulary, lock, table_of, DOCUMENTS, options)
    rules = {(decision.token, decision.category): decision.rule for decision in decisions}
    assert rules["intra", "morpheme:prefix"] is Rule.RARE
    assert rules["init", "morpheme:cpp_stem"] is Rule.MORPHEME
    assert rules["config", "morpheme:component"] is Rule.RARE
    library = {token.token for token in vocabulary.tokens if token.band.name not in ("morphemes", "domain")}
    assert library.isdisjoint(cut_tokens(decisions))
    kept = decide_morphemes(vocabulary, lock, table_of, DOCUMENTS, OPTIONS)
    assert {decision.rule for decision in kept} == {Rule.MORPHEME}


def test_a_morpheme_that_is_kept_as_a_candidate_is_kept_and_a_cut_one_keeps_no_candidate(
    vocabulary: Vocabulary,
) -> None:
    options = OPTIONS.model_copy(update={"min_morpheme_hits": 10_000})
    lock = read_lock(vocabulary.directory)
    morphemes = decide_morphemes(vocabulary, lock, pieces(), DOCUMENTS, options)
    for hits, rule in ((50, Rule.USED), (9, Rule.RARE)):
        terms = table(("generator", "cpp23_types", hits, 5, 2))
        decisions = decide(vocabulary, lock, terms, DOCUMENTS, options, cut_morphemes=cut_tokens(morphemes))
        assert next(d.rule for d in decisions if (d.token, d.category) == ("generator", "cpp23_types")) is rule
        settled = {d.token: d.rule for d in keep_candidates(morphemes, decisions)}
        assert settled["generator"] is (Rule.OTHER_CATEGORY if rule is Rule.USED else Rule.RARE)


def test_the_second_rules_are_not_in_the_canonical_form_while_they_are_off() -> None:
    names = {"min_distinctive_hits", "generic_word_project_share", "min_morpheme_hits", "min_fixed_use"}
    assert names.isdisjoint(BuildOptions().to_json())
    assert names <= set(
        BuildOptions(
            min_distinctive_hits=0, generic_word_project_share=0, min_morpheme_hits=0, min_fixed_use=0
        ).to_json()
    )


def cut_by_use(vocabulary: Vocabulary, uses: dict[bytes, int], lock: Lock | None = None, least: float = 10) -> set[str]:
    lock = lock or Lock.from_entries([])
    return cut_tokens(decide_by_use(vocabulary, lock, vocabulary.tokens, uses, least))


@pytest.mark.parametrize(
    ("token", "band"),
    [("unordered_map", "library"), ("0xFF", "numbers"), ("init", "morphemes"), ("cudaMalloc", "domain")],
)
def test_a_fixed_token_of_any_band_stays_from_the_least_use_on(vocabulary: Vocabulary, token: str, band: str) -> None:
    assert vocabulary.by_token[token].band.name == band
    assert token in cut_by_use(vocabulary, {token.encode(): 9})
    assert token not in cut_by_use(vocabulary, {token.encode(): 10})


def test_control_tokens_keywords_single_bytes_and_what_is_to_be_kept_need_no_use(vocabulary: Vocabulary) -> None:
    cut = cut_by_use(vocabulary, {})
    stays = {token.token for token in vocabulary.tokens if token.token not in cut}
    needed = {token.token for token in vocabulary.tokens if token.band.name in ("control", "keywords")}
    single = {token.token for token in vocabulary.tokens if len(token.token.encode()) == 1}
    assert "contract_assert" in vocabulary.kept and "{" in single
    assert stays == needed | single | vocabulary.kept


@pytest.mark.parametrize(("version", "is_cut"), [("1.0", False), ("cppmill-1", True)])
def test_a_release_of_a_user_keeps_what_is_not_used_and_one_of_cppmill_does_not(
    vocabulary: Vocabulary, version: str, is_cut: bool
) -> None:
    number = vocabulary.by_token["unordered_map"].id
    lock = Lock.from_entries([LockedId("unordered_map", number, version, "ids.lock:1")])
    assert ("unordered_map" in cut_by_use(vocabulary, {}, lock)) is is_cut


@pytest.mark.parametrize(("version", "rule"), [("1.0", Rule.LOCKED), ("cppmill-1", Rule.RARE)])
def test_the_scan_decides_what_a_release_of_cppmill_has(vocabulary: Vocabulary, version: str, rule: Rule) -> None:
    lock = Lock.from_entries([LockedId("cudaMalloc", vocabulary.by_token["cudaMalloc"].id, version, "ids.lock:1")])
    terms = table(("cudaMalloc", "cuda_runtime", 3, 2, 1))
    assert decided(vocabulary, terms, lock)["cudaMalloc", "cuda_runtime"].rule is rule


def test_what_is_not_used_is_cut_in_every_category_that_keeps_it(vocabulary: Vocabulary) -> None:
    terms = table(("CHECK", "catch_boost_test", 50, 5, 3), ("CHECK", "sql_keywords", 3, 3, 1))
    decisions = decide(vocabulary, read_lock(vocabulary.directory), terms, DOCUMENTS, OPTIONS)
    rules = {d.category: d.rule for d in leave_out(decisions, {"CHECK"}) if d.token == "CHECK"}
    assert rules == dict.fromkeys(("catch_boost_test", "sql_keywords"), Rule.UNNEEDED)
    assert [d for d in leave_out(decisions, {"CHECK"}) if d.token != "CHECK"] == [
        d for d in decisions if d.token != "CHECK"
    ]
