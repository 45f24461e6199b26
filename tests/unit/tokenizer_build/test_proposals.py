"""What is proposed from counts; here a tokenizer of single bytes, so what an id saves can be counted by hand."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import cppmill_core
import pyarrow as pa

from schemas.options import BuildOptions
from schemas.tables import MORPHEMES, TERMS, WORDS
from tokenizer_build.decisions import Corpus
from tokenizer_build.lint import lint_vocabulary
from tokenizer_build.lock import read_lock
from tokenizer_build.proposals import (
    CATEGORY,
    Gap,
    Proposal,
    Proposals,
    count_identifiers,
    find_gaps,
    propose,
    scanner_config,
)
from tokenizer_build.vocabulary import Vocabulary, read_vocabulary

CORPUS = Corpus(documents=1000, projects=12)


def batch(words: dict[str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"word": word.encode(), "count": count} for word, count in words.items()], schema=WORDS
    )


def bytes_of(texts: Sequence[bytes]) -> list[int]:
    return [len(text) for text in texts]


def saved(vocabulary: Vocabulary, words: dict[str, int]) -> dict[str, int]:
    gaps = find_gaps([batch(words)], vocabulary, bytes_of, names=10, morphemes=10)
    return {gap.name: gap.saved_tokens for gap in gaps if gap.position is None}


def test_identifiers_are_found_with_marks_around_them_and_in_chains() -> None:
    words = {" ab": 1, "(ab": 2, "ab": 4, "std::ab": 8, "1ab": 16, "é_ab": 32, "abé": 64, 'u8"': 128}
    assert count_identifiers([batch(words)]) == {b"ab": 15, b"std": 8, b"u8": 128}


def test_a_name_saves_its_tokens_but_one_and_those_around_it_stay(vocabulary: Vocabulary) -> None:
    assert saved(vocabulary, {"acme": 1, " acme": 10, "::acme": 100}) == {"acme": 111 * 3}
    assert saved(vocabulary, {"x": 100}) == {}


def test_what_has_an_id_is_no_gap_nor_what_would_break_a_token(vocabulary: Vocabulary) -> None:
    assert "#pragma once" in vocabulary.by_token
    assert saved(vocabulary, {"cudaMalloc": 9, "pragma": 9, "once": 9, "pragmas": 9}) == {"pragmas": 54}


def morphemes(vocabulary: Vocabulary, names: Sequence[str]) -> list[Gap]:
    gaps = find_gaps([batch(dict.fromkeys(names, 1))], vocabulary, bytes_of, names=0, morphemes=10)
    return [gap for gap in gaps if gap.position is not None]


def test_a_morpheme_is_a_word_of_many_identifiers(vocabulary: Vocabulary) -> None:
    names = [f"strand_{letter}{letter}" for letter in "abcdefgh"]
    assert morphemes(vocabulary, names) == [Gap("strand", 8 * 5, "component")]
    assert morphemes(vocabulary, names[1:]) == []
    assert morphemes(vocabulary, ["strand"] * 8) == []


def test_a_morpheme_that_longer_words_begin_with_is_counted_as_a_stem(vocabulary: Vocabulary) -> None:
    names = [f"strand_{letter}{letter}" for letter in "abcdefgh"]
    names += [f"stranded_{letter}{letter}" for letter in "abcdefg"]
    assert morphemes(vocabulary, names) == [Gap("strand", 8 * 5, "component")]
    names += [f"strands_{letter}{letter}" for letter in "hi"]
    assert morphemes(vocabulary, names) == [Gap("strand", 8 * 5 + 9 * 5, "cpp_stem")]


def test_the_scanner_counts_every_gap_where_it_would_be_counted() -> None:
    gaps = [Gap("acme_pool", 9), Gap("strand", 9, "component"), Gap("alloca", 9, "cpp_stem")]
    scanner = cppmill_core.Scanner(scanner_config(gaps, "cpp-words-1"))
    source = b"acme_pool strand_a allocate; // acme_pool"
    scanner.add(pa.record_batch({"project": ["p"], "content": pa.array([source])}))
    counts = scanner.finish()
    assert counts["terms"].select(["term", "category", "hits"]).to_pylist() == [
        {"term": "acme_pool", "category": CATEGORY, "hits": 1}
    ]
    assert counts["morphemes"]["hits"].to_pylist() == [1, 1]


def proposed(
    rows: dict[str, tuple[int, int, int]], options: BuildOptions, corpus: Corpus = CORPUS, position: str | None = None
) -> list[str]:
    key, schema = ("term", TERMS) if position is None else ("morpheme", MORPHEMES)
    place = schema.names[1]
    found = [
        dict(zip(schema.names, (name, position or CATEGORY, *counts), strict=True)) for name, counts in rows.items()
    ]
    tables = {"term": TERMS.empty_table(), "morpheme": MORPHEMES.empty_table()}
    tables[key] = pa.Table.from_pylist(found, schema=schema)
    assert place in ("category", "position")
    gaps = [Gap(name, 100 - number, position) for number, name in enumerate(rows)]  # type: ignore[arg-type]
    made = propose(gaps, tables["term"], tables["morpheme"], corpus=corpus, options=options, id_bytes=2)
    assert [row.saved_bytes for row in made] == sorted((row.saved_bytes for row in made), reverse=True)
    return [row.name for row in made]


def test_what_a_build_would_cut_is_not_proposed() -> None:
    rows = {
        "strand": (50, 20, 9),
        "AcmePool": (10, 10, 2),
        "rare": (9, 9, 2),
        "of_one": (50, 9, 1),
        "wide": (50, 30, 9),
    }
    assert proposed(rows, BuildOptions()) == ["strand", "AcmePool"]
    assert proposed(rows, BuildOptions(generic_word_project_share=0.33)) == ["AcmePool"]
    assert "of_one" in proposed(rows, BuildOptions(), Corpus(documents=1000, projects=1))


def test_a_morpheme_needs_the_hits_that_a_build_asks_for() -> None:
    rows = {"strand": (40, 20, 9), "rarer": (39, 20, 9), "of_one": (40, 9, 1)}
    assert proposed(rows, BuildOptions(min_morpheme_hits=40_000), position="component") == ["strand"]
    assert proposed(rows, BuildOptions(), position="component") == ["strand", "rarer"]


def some_proposals() -> list[Proposal]:
    rows = {"term": ["acme_pool"], "category": [CATEGORY], "hits": [12], "documents": [3], "projects": [2]}
    pieces = {"morpheme": ["strand"], "position": ["component"], "hits": [90], "documents": [9], "projects": [3]}
    gaps = [Gap("acme_pool", 40), Gap("strand", 50, "component")]
    tables = pa.table(rows).cast(TERMS), pa.table(pieces).cast(MORPHEMES)
    return propose(gaps, *tables, corpus=CORPUS, options=BuildOptions(), id_bytes=2)


def test_the_columns_are_those_of_the_documents() -> None:
    assert some_proposals()[1].to_json() == {
        **{"name": "acme_pool", "position": None},
        **{"hits": 12, "documents": 3, "projects": 2, "saved_bytes": 80},
    }


def test_the_lines_can_be_a_file_of_a_vocabulary_or_the_end_of_its_own(vocabulary_copy: Path) -> None:
    vocabulary = read_vocabulary(vocabulary_copy)
    lines = Proposals.of(some_proposals(), vocabulary, read_lock(vocabulary_copy), names=5, morphemes=5).to_toml()
    assert '"acme_pool"  # 12 hits, 3 documents, 2 projects, 80 bytes saved' in lines
    assert set(tomllib.loads(lines)) == {"candidates", "morphemes"}
    own = vocabulary_copy / "own.toml"
    for text in (lines, f'band = "domain"\n[[candidates]]\ncategory = "a"\nmatch = "ident"\n{lines}'):
        own.write_text(text)
        found = read_vocabulary(vocabulary_copy)
        new = {token.token: token.band.name for token in found.tokens if token.token not in vocabulary.by_token}
        assert new == {"acme_pool": "domain", "strand": "morphemes"}
        assert ("strand", "component") in {(row.morpheme, row.position) for row in found.morphemes}
        errors = [
            row for row in lint_vocabulary(vocabulary_copy, lambda text: [text.encode()]) if row.severity == "error"
        ]
        assert errors == []


def test_no_more_is_proposed_than_asked_for_or_than_there_are_free_ids(vocabulary: Vocabulary) -> None:
    rows = [Proposal(f"name{number}", None, some_proposals()[0].counts, 1) for number in range(400)]
    lock = read_lock(vocabulary.directory)
    assert list(Proposals.of(rows, vocabulary, lock, names=3, morphemes=3).names) == [6999, 6998, 6997]
    every = Proposals.of(rows, vocabulary, lock, names=400, morphemes=0)
    assert 150 < len(every.names) < 400
    assert json.loads(json.dumps(list(every.names))) == sorted(every.names, reverse=True)
