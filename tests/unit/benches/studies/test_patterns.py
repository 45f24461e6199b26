"""The pattern study on small texts: its figures are those of the words, and a pattern that drops text is refused."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from multiprocessing.pool import Pool
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benches.lib.harness import BenchmarkError
from benches.lib.texts import SourceText
from benches.lib.vocabularies import NO_SEEDS, count_text_tokens, words_batch
from benches.studies import patterns
from benches.studies.patterns import Result, app, count_split, count_words, markdown, prove_shipped
from benches.studies.pre_tokens import SHIPPED
from configs import VOCABULARY
from tokenizer_build.compare.published_patterns import GPT2
from tokenizer_build.reference import Merge, encode, ranks_of
from tokenizer_build.vocabulary import read_vocabulary

TEXTS = [SourceText("p", "int main() {\n  return a1;\n}\n"), SourceText("q", "int caf\u00e9;\n")]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with multiprocessing.get_context("spawn").Pool(1) as made:
        yield made


def test_words_are_counted_over_all_documents(pool: Pool) -> None:
    words = count_words(cppmill_core.PATTERNS[SHIPPED], TEXTS, pool)
    assert words[";\n"] == 2 and words["int"] == 2 and words[" caf\u00e9"] == 1
    assert sum(len(word) * count for word, count in words.items()) == sum(len(text.content) for text in TEXTS)


def test_a_pattern_that_drops_text_is_refused(pool: Pool) -> None:
    with pytest.raises(BenchmarkError, match="leaves characters in no word"):
        count_words(r"[a-z]+", TEXTS, pool)


def test_native_and_regular_expression_are_held_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    prove_shipped(TEXTS, SHIPPED)
    monkeypatch.setattr(patterns.cppmill_core, "PATTERNS", {SHIPPED: GPT2})
    with pytest.raises(BenchmarkError, match="cut a document of p differently"):
        prove_shipped(TEXTS, SHIPPED)


def test_tokens_are_those_of_the_readable_encoder() -> None:
    words = Counter({"int": 5, " int": 3, "main": 2, "caf\u00e9": 4})
    seeds = pa.record_batch(NO_SEEDS)
    merges = cppmill_core.train_bpe([words_batch(words)], seeds=seeds, vocab_tokens=4, forbidden=[])
    ranks = ranks_of([Merge(row["left"], row["right"], row["count"], row["phase"]) for row in merges.to_pylist()])
    unseen = Counter({"minting": 7, "caf\u00e9": 1})
    expected = sum(count * len(encode(word.encode(), ranks)) for word, count in unseen.items())
    assert count_text_tokens(merges, [words_batch(unseen)], 1) == expected


def test_split_fixed_tokens_are_counted() -> None:
    vocabulary = read_vocabulary(VOCABULARY)
    assert count_split(cppmill_core.PATTERNS[SHIPPED], vocabulary) < count_split(GPT2, vocabulary)


def test_the_table_compares_with_the_shipped_pattern() -> None:
    rows = [Result("other", 10, 5, 4, 50, 200, 7), Result(SHIPPED, 9, 6, 3, 40, 200, 1)]
    other, shipped = list(markdown(rows))[2:]
    assert "| 4.000 | -20.0% | 7 |" in other
    assert "| 5.000 |  | 1 |" in shipped


@pytest.mark.engines
def test_the_command_prints_every_pattern_and_writes_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    shipped = {SHIPPED: cppmill_core.PATTERNS[SHIPPED], "GPT-2": GPT2}
    monkeypatch.setattr(patterns, "studied", lambda: shipped)
    tree = tmp_path / "tree"
    tree.mkdir()
    for number, source in enumerate((repository / "native").rglob("*.rs")):
        (tree / f"{number}.cpp").write_bytes(source.read_bytes())
    rows = tmp_path / "rows.jsonl"
    options = ["--json", str(rows), "--vocab-size", "600", "--processes", "1"]
    done = CliRunner().invoke(app, [str(tree), str(tree), *options])
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["pattern"] for line in rows.read_text().splitlines()] == list(shipped)
    assert all(f"| {name} |" in done.output for name in shipped)
