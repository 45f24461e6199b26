from __future__ import annotations

from pathlib import Path

import cppmill_core
import pytest

from schemas.errors import VocabularyConfigError
from tokenizer_build.lint import Severity, lint_tokens, lint_vocabulary, load_vocabulary
from tokenizer_build.vocabulary import Vocabulary, read_vocabulary

PRAGMAS = {f"#pragma {name}" for name in ("once", "pack", "comment", "push_macro", "pop_macro")}
SPLIT_BY_CPP_WORDS_1 = PRAGMAS | {"e+", "e-", "E+", "E-"}
MLIR = ("mhlo.", "stablehlo.", "pallas.")


def split(text: str) -> list[bytes]:
    words: list[bytes] = cppmill_core.split("cpp-words-1", text.encode()).to_pylist()
    return words


def test_the_shipped_vocabulary_has_no_errors(vocabulary: Vocabulary) -> None:
    assert lint_tokens(vocabulary) == []


def test_the_shipped_pattern_splits_these_tokens_and_no_others(vocabulary: Vocabulary) -> None:
    findings = lint_vocabulary(vocabulary.directory, split)
    warned = [finding for finding in findings if finding.severity is Severity.WARNING]
    assert {finding.rule for finding in warned} == {"split"}
    operations = {token.token for token in vocabulary.tokens if token.token.startswith(MLIR)}
    assert len(warned) == len(SPLIT_BY_CPP_WORDS_1 | operations)
    assert all(any(repr(token) in finding.message for finding in warned) for token in SPLIT_BY_CPP_WORDS_1 | operations)


def test_unused_ids_are_counted_by_band(tiny_vocabulary: Path) -> None:
    notes = [f.message for f in lint_vocabulary(tiny_vocabulary, split) if f.severity is Severity.NOTE]
    assert "control: 4 ids used, 44 free from 4 on; a build fills them with learned tokens" in notes
    assert "keywords: 2 ids used, 254 free from 66 on; a build fills them with learned tokens" in notes
    assert not any(note.startswith("reserve") for note in notes)


@pytest.mark.parametrize(
    ("promise", "file", "added", "severity", "rule", "said"),
    [
        ("duplicates", "keywords.toml", '66 = "auto"', Severity.ERROR, "duplicate", "'auto' has the ids of"),
        ("duplicates", "keywords.toml", '5300 = "xor"', Severity.ERROR, "duplicate", "id 5300 is given to"),
        ("cannot be reached: split", "keywords.toml", '66 = "a b"', Severity.WARNING, "split", "'a' + ' b'"),
        ("cannot be reached: control", "keywords.toml", '66 = "<EOS>"', Severity.ERROR, "control", "a control token"),
        (
            "cannot be reached: no merges make it",
            "control.toml",
            '4 = "au"\n5 = "ut"\n6 = "to"',
            Severity.ERROR,
            "unreachable",
            'seed "auto" cannot become one token, it stays "a" + "u" + "t" + "o"',
        ),
        (
            "another seed breaks an atomic token",
            "keywords.toml",
            '66 = "TEST("',
            Severity.ERROR,
            "breaks-atomic",
            "holds the atomic token 'TEST' (domain.toml: candidates[gtest].tokens.5300)",
        ),
        (
            "holes",
            "keywords.toml",
            '68 = "xor"',
            Severity.NOTE,
            "holes",
            "keywords: 3 ids used, 253 free from 66 on",
        ),
        ("wrong bands", "keywords.toml", '320 = "xor"', Severity.ERROR, "band", "outside band keywords (64-319)"),
        ("wrong bands", "domain.toml", '[tokens]\n64 = "xor"', Severity.ERROR, "band", "outside band domain"),
        ("wrong bands", "keywords.toml", '7001 = "xor"', Severity.ERROR, "band", "id 7001 is reserved"),
    ],
)
def test_the_lint_names_what_it_promises_before_a_build(
    tiny_vocabulary: Path, promise: str, file: str, added: str, severity: Severity, rule: str, said: str
) -> None:
    before = {(finding.rule, finding.message) for finding in lint_vocabulary(tiny_vocabulary, split)}
    path = tiny_vocabulary / file
    path.write_text(path.read_text() + added + "\n")
    found = [f for f in lint_vocabulary(tiny_vocabulary, split) if (f.rule, f.message) not in before]
    named = [finding for finding in found if finding.rule == rule and said in finding.message]
    assert [finding.severity for finding in named] == [severity], promise


@pytest.mark.parametrize(
    ("file", "added", "rule", "said"),
    [
        (
            "keywords.toml",
            '66 = "auto"',
            "duplicate",
            ["'auto'", "keywords.toml: tokens.64", "keywords.toml: tokens.66"],
        ),
        ("keywords.toml", '5300 = "xor"', "duplicate", ["id 5300", "keywords.toml", "domain.toml", "free id"]),
        ("keywords.toml", '320 = "xor"', "band", ["tokens.320", "'xor'", "keywords (64-319)"]),
        ("control.toml", '48 = "<NEW>"', "band", ["'<NEW>'", "id 48 is reserved"]),
        ("keywords.toml", '66 = ""', "band", ["tokens.66", "empty token"]),
        ("keywords.toml", '66 = "<EOS>"', "control", ["'<EOS>'", "spells a control token"]),
        ("keywords.toml", '66 = "<RESERVED_7000>"', "control", ["<RESERVED_7000>", "reserved id 7000"]),
        ("keywords.toml", '66 = "TEST "', "breaks-atomic", ["'TEST '", "atomic token 'TEST'", "domain.toml"]),
        ("keywords.toml", '66 = "(EXPECT_EQ"', "breaks-atomic", ["'EXPECT_EQ'", "can never be one token"]),
        (
            "domain.toml",
            '[[candidates]]\ncategory = "c"\nmatch = "ident"\nelsewhere = ["gone"]',
            "candidate",
            ["'gone'"],
        ),
        ("keywords.toml", '[[morphemes]]\nposition = "prefix"\nterms = ["anti"]', "candidate", ["'anti'", "no id"]),
        (
            "keywords.toml",
            '[[morphemes]]\nposition = "prefix"\nterms = ["auto", "auto"]',
            "duplicate",
            ["morphemes[prefix]", "'auto' is listed 2 times"],
        ),
    ],
)
def test_a_planted_fault_is_named_with_place_and_fix(
    tiny_vocabulary: Path, file: str, added: str, rule: str, said: list[str]
) -> None:
    path = tiny_vocabulary / file
    path.write_text(path.read_text() + added + "\n")
    errors = [f for f in lint_tokens(read_vocabulary(tiny_vocabulary)) if f.rule == rule]
    assert errors
    for part in said:
        assert any(part in finding.message for finding in errors)
    with pytest.raises(VocabularyConfigError):
        load_vocabulary(tiny_vocabulary)


def test_a_name_that_only_contains_an_atomic_token_breaks_nothing(tiny_vocabulary: Path) -> None:
    path = tiny_vocabulary / "keywords.toml"
    path.write_text(path.read_text() + '66 = "TESTED"\n67 = "_TEST"\n68 = "::TESTS"\n')
    assert lint_tokens(read_vocabulary(tiny_vocabulary)) == []


def test_a_missing_control_token_is_named(tiny_vocabulary: Path) -> None:
    path = tiny_vocabulary / "control.toml"
    path.write_text(path.read_text().replace("<BOS>", "<BEGIN>"))
    with pytest.raises(VocabularyConfigError, match="no control token '<BOS>'"):
        load_vocabulary(tiny_vocabulary)


def test_the_lint_reports_a_moved_locked_id(tiny_vocabulary: Path) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text() + '"auto"\t65\tpublished\n')
    locked = [finding.message for finding in lint_vocabulary(tiny_vocabulary, split) if finding.rule == "locked"]
    assert len(locked) == 2


def test_a_line_of_a_release_that_there_was_none_of_is_an_error(tiny_vocabulary: Path) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text() + '"gone"\t66\tcppmill-9\n')
    errors = [found.message for found in lint_vocabulary(tiny_vocabulary, split) if found.severity is Severity.ERROR]
    assert len(errors) == 1 and "ids.lock:2: 'gone' is of 'cppmill-9', which releases.lock does not name" in errors[0]


def test_a_locked_id_behind_those_of_fixed_tokens_is_named(tiny_vocabulary: Path) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text() + '"gone"\t99999\tpublished\n')
    with pytest.raises(VocabularyConfigError, match=r"ids\.lock:2: 'gone' has id 99999, which is in no band"):
        load_vocabulary(tiny_vocabulary)
    errors = [found.message for found in lint_vocabulary(tiny_vocabulary, split) if found.severity is Severity.ERROR]
    assert len(errors) == 1 and "99999" in errors[0]
