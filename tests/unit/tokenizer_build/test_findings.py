from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.options import BuildOptions
from schemas.tables import MORPHEMES, NAMESPACES, TERMS
from tokenizer_build.decisions import Counts, Decision, Rule, decide
from tokenizer_build.findings import DomainSlots, Findings, renyi_efficiency
from tokenizer_build.layout import BandUse
from tokenizer_build.lock import Lock, LockedId, read_lock
from tokenizer_build.shapes import Shape
from tokenizer_build.training import LeftOut
from tokenizer_build.vocabulary import Vocabulary, read_vocabulary

CATEGORIES = {
    "gtest": ("ident", ["EXPECT_EQ", "TEST", "TEST_P"]),
    "grpc": ("ident", ["Channel"]),
    "proto_keywords": ("ident", ["stream", "service"]),
    "mongodb_dollar": ("dollar", ["$match", "$group"]),
    "mongodb_cpp": ("ident", ["find_one"]),
    "redis_commands": ("ident", ["HSET"]),
    "cudnn": ("ident", ["cudnnCreate"]),
    "catch_boost_test": ("ident", ["CHECK"]),
}
DOCUMENTS = 10_000
OPTIONS = BuildOptions(min_category_hits_per_name=1_500)
FOUND = {
    ("EXPECT_EQ", "gtest"): (900, 300, 7),
    ("TEST", "gtest"): (800, 250, 9),
    ("Channel", "grpc"): (60, 12, 2),
    ("stream", "proto_keywords"): (4_000, 2_500, 9),
    ("service", "proto_keywords"): (90, 30, 5),
    ("$match", "mongodb_dollar"): (30, 10, 1),
    ("find_one", "mongodb_cpp"): (14, 5, 3),
    ("HSET", "redis_commands"): (3, 2, 2),
    ("CHECK", "catch_boost_test"): (200, 50, 4),
    ("CHECK", "sql_keywords"): (190, 40, 4),
}


def table(schema: pa.Schema, *rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


@pytest.fixture
def vocabulary(tiny_vocabulary: Path) -> Vocabulary:
    ids = itertools.count(5300)
    groups = []
    for category, (match, tokens) in CATEGORIES.items():
        lines = "".join(f'{next(ids)} = "{token}"\n' for token in tokens)
        groups.append(f'[[candidates]]\ncategory = "{category}"\nmatch = "{match}"\n[candidates.tokens]\n{lines}')
    groups.append('[[candidates]]\ncategory = "sql_keywords"\nmatch = "sql_string"\nelsewhere = ["CHECK", "auto"]\n')
    (tiny_vocabulary / "domain.toml").write_text('band = "domain"\n' + "".join(groups))
    return read_vocabulary(tiny_vocabulary)


@pytest.fixture
def findings(vocabulary: Vocabulary) -> Findings:
    terms = table(TERMS, *((*names, *numbers) for names, numbers in FOUND.items()))
    morphemes = table(MORPHEMES, ("init", "cpp_stem", 50_000, 4_000, 9), ("er", "suffix", 24_000, 5_000, 11))
    namespaces = table(NAMESPACES, ("boost", 200, 50, 3), ("absl", 200, 90, 2), ("std", 1_600, 800, 9))
    return Findings(
        decisions=decide(vocabulary, read_lock(vocabulary.directory), terms, DOCUMENTS, OPTIONS),
        morphemes=morphemes,
        namespaces=namespaces,
        statistics={"documents": DOCUMENTS, "bytes": {"total": 123_456_789}},
        morphemes_proposed=129,
        slots=DomainSlots(proposed=12, kept=3, learned=58_000, split=["e+"]),
        options=OPTIONS,
    )


def test_the_report_begins_with_what_was_scanned(findings: Findings) -> None:
    assert findings.report()[0] == "Scanned 10,000 files, 123,456,789 bytes, of 11 projects."


@pytest.mark.parametrize(
    "line",
    [
        # CHECK counts once: 900 + 800 + 60 + 4,000 + 90 + 30 + 14 + 3 + 200.
        "- 129 morphemes have 74,000 hits. Of 13 tokens proposed in 9 categories, 9 were found, with 6,097 hits. "
        "Morphemes have 12.1 times as many hits.",
        "- 2,000 namespace references: `std::` 1,600 (80.0%, 9 projects), `absl::` 200 (10.0%, 2 projects), `boost::` "
        "200 (10.0%, 3 projects).",
        "- 2 of 9 found tokens are generic words (2.5% to 25.0% of the files): `stream`, `TEST`.",
        "- Kept 3 of 12 candidate library tokens (band `domain`), with their fixed ids. The ids of the other 9 are "
        "used for learned tokens. The build learned 58,000 tokens of two bytes or more.",
        "- Without a fixed id, because the pre-token pattern splits them: `e+`.",
        "- No token was kept from 5 of 9 categories. A hit counts only if its name is neither generic nor rare, nor in "
        "another band:",
        "  - `cudnn` (1 proposed): not found",
        "  - `redis_commands` (1 proposed): 3 hits, all of names with fewer than 10 hits",
        "  - `mongodb_dollar` (2 proposed): 30 of 30 hits count, but none of its names is in more than 1 project",
        "  - `mongodb_cpp` (1 proposed): 14 of 14 hits count, but at least 15 must",
        "  - `proto_keywords` (2 proposed): 90 of 4,090 hits count, but at least 20% must",
    ],
)
def test_the_report_says(findings: Findings, line: str) -> None:
    assert line in findings.report()


def test_words_and_lines_that_training_left_out_are_reported(findings: Findings) -> None:
    left_out = LeftOut(words_below=4, words=1_000, lines_below=3, lines=20_000)
    report = replace(findings, left_out=left_out).report()
    bound = "(build.max_held_tokens = 268,435,456)"
    assert f"- 1,000 words that occur fewer than 4 times did not fit into training {bound}." in report
    assert any(line.startswith(f"- 20,000 lines did not fit into training {bound}: of those") for line in report)
    assert not any("did not fit" in line for line in findings.report())


def test_the_table_has_a_row_for_each_category_that_adds_up(findings: Findings) -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in findings.report() if line.startswith("|")]
    assert rows[0] == ["category", "proposed", "found", "hits", "kept", "generic", "rare", "category"]
    assert len(rows) == 2 + 9
    assert ["gtest", "3", "2", "1,700", "1", "1", "1", "0"] in rows
    assert ["mongodb_dollar", "2", "1", "30", "0", "0", "1", "1"] in rows
    for _, proposed, *_, kept, generic, rare, category in rows[2:]:
        assert int(proposed) == int(kept) + int(generic) + int(rare) + int(category)


def test_every_line_of_the_table_is_as_wide(findings: Findings) -> None:
    assert len({len(line) for line in findings.report() if line.startswith("|")}) == 1


def test_the_summary_is_short_and_says_what_the_lock_keeps(findings: Findings, vocabulary: Vocabulary) -> None:
    assert findings.summary()[-1] == "No token was kept from 5 of 9 categories; tokenizer/findings.md says why."
    lock = Lock.from_entries([LockedId("TEST", vocabulary.by_token["TEST"].id, "1.0", "ids.lock:1")])
    decided = decide(vocabulary, lock, table(TERMS, ("TEST", "gtest", 800, 250, 9)), DOCUMENTS, OPTIONS)
    locked = replace(findings, decisions=decided)
    said = "The scan would cut 1 locked token, which stays for life: `TEST`."
    assert said in locked.summary()
    assert f"- {said}" in locked.report()


def test_an_empty_scan_has_findings_too(findings: Findings, vocabulary: Vocabulary) -> None:
    nothing = replace(
        findings,
        decisions=decide(vocabulary, read_lock(vocabulary.directory), TERMS.empty_table(), 0, OPTIONS),
        morphemes=MORPHEMES.empty_table(),
        namespaces=NAMESPACES.empty_table(),
        statistics={"documents": 0, "bytes": {"total": 0}},
    )
    report = nothing.report()
    assert report[0] == "Scanned 0 files, 0 bytes, of 0 projects."
    assert "- 0 namespace references." in report
    assert "- 0 of 0 found tokens are generic words (in more than 2.0% of the files)." in report


def test_the_report_does_not_depend_on_the_order_of_the_tables(findings: Findings) -> None:
    backwards = findings.namespaces.take(list(reversed(range(findings.namespaces.num_rows))))
    assert replace(findings, namespaces=backwards).report() == findings.report()


def test_morphemes_are_reported_by_class_with_those_that_were_cut(findings: Findings, vocabulary: Vocabulary) -> None:
    rules = {"init": Rule.MORPHEME, "er": Rule.MORPHEME, "intra": Rule.RARE}
    rows = [("init", "cpp_stem", 50_000), ("er", "suffix", 24_000), ("intra", "prefix", 0)]
    decided = [
        Decision(token, 4700, f"morpheme:{position}", Counts(hits), 0.0, Shape.NONE, rules[token], rules[token])
        for token, position, hits in rows
    ]
    statistics = {**findings.statistics, "identifiers": 37_000, "bytes": {"total": 1_000_000, "non_ascii": 25}}
    report = replace(findings, morpheme_decisions=decided, statistics=statistics).report()
    assert (
        "- Morpheme hits by class: `cpp_stem` 50,000 (1 of 1 found), `suffix` 24,000 (1 of 1 found), `prefix` 0 (0 of "
        "1 found); 2.00 per identifier." in report
    )
    assert "- Cut 1 morpheme with too few hits in each position: `intra`." in report
    assert "- 99.9975% of the bytes are ASCII." in report


def test_common_words_are_reported_and_counted_as_generic(vocabulary: Vocabulary, findings: Findings) -> None:
    terms = table(TERMS, *((*names, *numbers) for names, numbers in FOUND.items()))
    options = OPTIONS.model_copy(update={"generic_word_project_share": 0.5})
    decided = decide(vocabulary, read_lock(vocabulary.directory), terms, DOCUMENTS, options)
    report = replace(findings, decisions=decided, options=options).report()
    assert "- Cut 1 plain word that 5 projects or more use: `service`." in report
    cells = next([cell.strip() for cell in line.split("|")] for line in report if line.startswith("| proto_keywords"))
    assert cells[2:9] == ["2", "2", "4,090", "0", "2", "0", "0"]


def test_the_use_of_each_band_adds_up(findings: Findings) -> None:
    use = [BandUse("domain", 2, (3, 0), 12), BandUse("learned", 2, (5, 4), 24)]
    report = replace(findings, use=use).report()
    assert "- Coverage: fixed tokens are 25.0% of the tokens and 33.3% of the bytes." in report
    assert any(
        line.startswith("- Evenness") and f"efficiency {renyi_efficiency([3, 0, 5, 4]):.4f}" in line for line in report
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report if line.startswith("|")][:4]
    assert rows[2:] == [["domain", "2", "1", "3", "25.0%", "33.3%"], ["learned", "2", "2", "9", "75.0%", "66.7%"]]


@pytest.mark.parametrize(
    ("counts", "order", "efficiency"),
    [([7] * 64, 2.5, 1.0), ([1, 0, 0, 0], 2.5, 0.0), ([], 2.5, 0.0), ([3], 2.5, 0.0), ([2, 2, 0, 0], 2.0, 0.5)],
)
def test_the_renyi_efficiency_of_known_frequencies(counts: list[int], order: float, efficiency: float) -> None:
    assert renyi_efficiency(counts, order) == pytest.approx(efficiency)


def test_the_renyi_efficiency_nears_that_of_shannon_as_the_order_nears_one() -> None:
    counts = [50, 30, 15, 5]
    shannon = -sum(n / 100 * math.log(n / 100) for n in counts) / math.log(4)
    assert renyi_efficiency(counts, 1 + 1e-6) == pytest.approx(shannon, abs=1e-5)
