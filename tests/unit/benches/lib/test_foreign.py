"""Vocabularies of others: the published ids, the words of the regular expression, the merges of `tokenizers`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import regex
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

import benches.lib.foreign
from benches.lib.foreign import count_cl100k, count_o200k, o200k_base
from benches.lib.harness import BenchmarkError
from benches.lib.texts import SourceText, list_tree
from benches.lib.vocabularies import merge_ours, spell_merges
from tokenizer_build.compare.published_patterns import CL100K

VOCAB_SIZE = 1000


@pytest.fixture(scope="module")
def contents() -> list[str]:
    return [text.content for text in list_tree(Path(np.get_include())).texts()]


def test_o200k_base_has_its_published_ids() -> None:
    assert o200k_base().encode_ordinary("hello world") == [24912, 2375]
    assert count_o200k([SourceText("p", "hello world"), SourceText("p", "hello")], 1) == 3


def test_other_ranks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benches.lib.foreign, "O200K_SHA256", "0" * 64)
    with pytest.raises(BenchmarkError, match="not the published one"):
        o200k_base()


def test_words_of_the_cl100k_pattern_are_those_of_the_regular_expression(contents: list[str]) -> None:
    expected = Counter(word.encode() for content in contents for word in regex.findall(CL100K, content))
    (words,) = count_cl100k(contents)
    assert dict(zip(words["word"].to_pylist(), words["count"].to_pylist(), strict=True)) == expected


def test_plain_bpe_on_them_is_that_of_tokenizers(contents: list[str]) -> None:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(CL100K), "isolated")
    spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, spelled])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB_SIZE, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(contents, trainer)
    theirs = json.loads(tokenizer.to_str())["model"]["merges"]
    assert spell_merges(merge_ours(count_cl100k(contents), VOCAB_SIZE, 1)) == [tuple(merge) for merge in theirs]
