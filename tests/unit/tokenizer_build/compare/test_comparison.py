"""A comparison has the figures of a slow twin, of one tokenizer run by two libraries, and of any cut of the text."""

from __future__ import annotations

import hashlib
import io
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest
import sentencepiece

from tokenizer_build.compare.candidates import CandidateTokenizer, Encode, TokenLists, open_candidate
from tokenizer_build.compare.comparison import (
    IDENTIFIERS,
    INDENTATION,
    NUMBERS,
    Comparison,
    Entrant,
    SpanTally,
    Tally,
    compare,
)
from tokenizer_build.compare.origins import read_bands

PROJECTS = ("one", "two", "three")


def batch(documents: Sequence[bytes]) -> pa.RecordBatch:
    """Give documents a project each in turn."""
    columns = {
        "doc_id": pa.array([hashlib.sha256(document).hexdigest() for document in documents]),
        "project": pa.array([PROJECTS[len(document) % 3] for document in documents]),
        "path": pa.array([f"{hashlib.sha256(document).hexdigest()[:8]}.h" for document in documents]),
        "content": pa.array(documents, pa.binary()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def entrant(path: Path, name: str = "one") -> Entrant:
    candidate = open_candidate(path)
    return Entrant(name, candidate, candidate.token_bytes(), read_bands(path))


@pytest.fixture(scope="module")
def texts(documents: list[bytes]) -> list[bytes]:
    return [*documents[:50], b"", b"int \xff x;"]


@pytest.fixture(scope="module")
def found(small_tokenizer: Path, texts: list[bytes]) -> Comparison:
    entrants = [entrant(small_tokenizer), entrant(small_tokenizer / "tokenizer.json", "two")]
    return compare(entrants, [batch(texts[:20]), batch(texts[20:])], threads=2)


def test_the_text_is_counted_as_it_is(found: Comparison, texts: list[bytes]) -> None:
    sizes = Counter[str]()
    for text in texts:
        sizes[PROJECTS[len(text) % 3]] += len(text)
    assert found.text.projects == sizes
    assert found.text.documents == len(texts)
    rows = batch(texts)
    digest = cppmill_core.corpus_digest_sum(rows["doc_id"], rows["project"], rows["path"])
    assert found.text.digest == digest.hex()


def test_figures_are_those_of_a_slow_twin(found: Comparison, small_tokenizer: Path, texts: list[bytes]) -> None:
    """Tokens by project, ids, and identifiers, document by document and token by token."""
    tokenizer = cppmill_core.Tokenizer.from_dir(small_tokenizer)
    projects, ids, spans = Counter[str](), Counter[int](), {"identifier": SpanTally(), "number": SpanTally()}
    for text in texts:
        encoded: list[Any] = tokenizer.encode(text).to_pylist()
        projects[PROJECTS[len(text) % 3]] += len(encoded)
        ids.update(encoded)
        begins, at = [], 0
        for number in encoded:
            begins.append(at)
            at += len(tokenizer.token_bytes(number) or b"")
        lexed: list[Any] = cppmill_core.lex(text).to_pylist()
        for one in lexed:
            if (kind := one["kind"]) in spans:
                spread = bisect_right(begins, one["end"] - 1) - bisect_right(begins, one["start"]) + 1
                spans[kind].tokens += spread
                spans[kind].whole += spread == 1
                spans[kind].measured += 1
    tally = found.tallies[0]
    assert tally.projects == projects
    assert {number: count for number, count in enumerate(tally.counts.tolist()) if count} == ids
    assert (tally.spans[IDENTIFIERS], tally.spans[NUMBERS]) == (spans["identifier"], spans["number"])
    assert found.text.identifiers == spans["identifier"].measured > 10_000
    assert 0 < spans["identifier"].whole < spans["identifier"].measured < spans["identifier"].tokens


def test_one_tokenizer_has_the_same_figures_in_two_libraries(found: Comparison, texts: list[bytes]) -> None:
    """But for the document that is no text, which one of them cannot keep."""
    ours, theirs = found.tallies
    assert (ours.lossy, ours.first_lossy) == ({}, None)
    name = f"{PROJECTS[len(texts[-1]) % 3]}: {hashlib.sha256(texts[-1]).hexdigest()[:8]}.h"
    assert (theirs.lossy, theirs.first_lossy) == ({"not_utf8": 1}, name)
    assert theirs.lossy_bytes == {"not_utf8": len(texts[-1])}
    changed = np.flatnonzero(ours.counts != theirs.counts)
    assert 1 <= len(changed) <= 5
    lost = [one["kind"] for one in cppmill_core.lex(texts[-1]).to_pylist()].count("identifier")
    assert ours.spans[IDENTIFIERS].measured == theirs.spans[IDENTIFIERS].measured + lost


@pytest.mark.parametrize("cuts", [(), (1, 2, 3), (30, 51)])
def test_figures_do_not_depend_on_threads_and_batches(
    found: Comparison, texts: list[bytes], cuts: tuple[int, ...]
) -> None:
    parts = np.split(np.array(texts, object), cuts)
    again = compare(found.entrants, [batch(list(part)) for part in parts], threads=1)
    assert again.text == found.text
    for one, other in zip(again.tallies, found.tallies, strict=True):
        assert one.counts.tolist() == other.counts.tolist()
        assert replace(one, counts=0, timed=[]) == replace(other, counts=0, timed=[])


def test_no_batch_is_timed_but_what_comes_after_the_first_part(found: Comparison) -> None:
    sizes = [[size for size, _ in tally.timed] for tally in found.tallies]
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) == 3
    assert sum(sizes[0]) == found.text.num_bytes
    assert Tally(timed=[(10, 1.0), (6, 2.0), (4, 3.0)]).bytes_a_second == 2.0
    assert Tally(timed=[(10, 2.0)]).bytes_a_second == 5.0


@dataclass(frozen=True)
class Forgetful:
    """A tokenizer that loses spaces and is fast: what it gives is never taken on trust."""

    candidate: CandidateTokenizer
    library: str = "forgetful 1"
    vocab_size: int = 12_288

    def encoder(self, documents: pa.Array[Any], threads: int) -> Encode:
        contents: list[Any] = documents.to_pylist()
        return self.candidate.encoder(pa.array([one.replace(b" ", b"") for one in contents], pa.binary()), threads)

    def decode(self, lists: TokenLists, threads: int) -> pa.Array[Any]:
        return self.candidate.decode(lists, threads)

    def token_bytes(self) -> list[bytes | None]:
        return self.candidate.token_bytes()


def test_ids_that_do_not_decode_to_the_document_are_reported(small_tokenizer: Path) -> None:
    forgetful = Forgetful(open_candidate(small_tokenizer))
    texts = [b"nospace;", b"int x;", b"int y;"]
    found = compare([Entrant("forgetful", forgetful, forgetful.token_bytes())], [batch(texts)], threads=1)
    (tally,) = found.tallies
    assert (tally.lossy, tally.lossy_bytes) == ({"spaces": 2}, {"spaces": 12})
    assert (tally.first_lossy or "").endswith(f"{hashlib.sha256(texts[1]).hexdigest()[:8]}.h")
    assert (found.text.identifiers, tally.spans[IDENTIFIERS].measured) == (5, 1)


def test_numbers_and_indentation_are_measured(small_tokenizer: Path) -> None:
    one = entrant(small_tokenizer)
    texts = [b"\tint x = 1;\n\n    if (x)\n  \t  x = 0x1F + 22'000;", b"y = 4711;\n"]
    (tally,) = compare([one], [batch(texts)], threads=1).tallies
    for kind, spans in ((NUMBERS, ["1", "0x1F", "22'000", "4711"]), (INDENTATION, ["\t", "    ", "  \t  "])):
        found = tally.spans[kind]
        assert found.measured == len(spans)
        assert len(spans) <= found.tokens <= sum(map(len, spans))
        assert 0 < found.whole <= len(spans)


def test_a_space_that_sentencepiece_puts_in_front_moves_no_identifier(documents: list[bytes], tmp_path: Path) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(documents[3].decode().splitlines()),
        model_writer=model,
        model_type="bpe",
        vocab_size=400,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=True,
        minloglevel=2,
    )
    (tmp_path / "pieces.model").write_bytes(model.getvalue())
    pieces = entrant(tmp_path / "pieces.model")
    texts = [b"int x;", b"\n", b"size_t int_of(int x);"]
    (tally,) = compare([pieces], [batch(texts)], threads=1).tallies
    encoded = [pieces.candidate.encoder(pa.array([text], pa.binary()), 1)()() for text in texts]
    assert [sum(len(pieces.tokens[number] or b"") for number in one.ids) for one in encoded] == [7, 2, 22]
    assert (tally.lossy, tally.spans[IDENTIFIERS].measured) == ({}, 6)
    expected = 0
    for text, one in zip(texts, encoded, strict=True):
        owner = [place for place, number in enumerate(one.ids) for _ in pieces.tokens[number] or b""][1:]
        names = re.finditer(rb"\w+", text)
        expected += sum(len(set(owner[name.start() : name.end()])) for name in names)
    assert tally.spans[IDENTIFIERS].tokens == expected > 6
