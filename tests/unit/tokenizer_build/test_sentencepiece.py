"""Training SentencePiece from word counts: pinned ids, an exact size, the same bytes, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cppmill_core.sentencepiece import lossy_properties
from cppmill_core.sentencepiece.proto import Model, PieceType, read_model

from schemas.errors import VocabularyConfigError
from schemas.options import BuildOptions
from schemas.tables import WORDS
from tokenizer_build.sentencepiece import build_sentencepiece

VOCABULARY = Path(__file__).parents[3] / "configs" / "vocab"
LOCKED = {
    int(line.split("\t")[1]): json.loads(line.split("\t")[0])
    for line in (VOCABULARY / "ids.lock").read_text().splitlines()
    if line.startswith('"') and int(line.split("\t")[1]) < 48
}


def build(words: list[pa.RecordBatch], out: Path, **options: Any) -> Model:
    out.mkdir()
    options = {"kind": "sentencepiece-bpe", "vocab_size": 3000, **options}
    build_sentencepiece(
        words, vocabulary_dir=VOCABULARY, options=BuildOptions(**options), pattern="cpp-words-1", out=out
    )
    return read_model((out / "tokenizer.model").read_bytes(), where="model")


def counts(words: dict[bytes, int]) -> list[pa.RecordBatch]:
    columns: list[pa.Array[Any]] = [pa.array(list(words), pa.binary()), pa.array(list(words.values()), pa.uint64())]
    return [pa.RecordBatch.from_arrays(columns, schema=WORDS)]


@pytest.mark.parametrize("kind", ["sentencepiece-bpe", "sentencepiece-unigram"])
def test_control_tokens_have_their_locked_ids_and_bytes_follow(
    words: pa.RecordBatch, kind: str, tmp_path: Path
) -> None:
    model = build([words], tmp_path / "out", kind=kind)
    assert len(LOCKED) == 48
    assert {id_: model.pieces[id_].text for id_ in LOCKED} == LOCKED
    silent = (PieceType.CONTROL, PieceType.UNKNOWN)
    assert all(piece.type in silent for piece in model.pieces[:64])
    assert [piece.text for piece in model.pieces[64:320]] == [f"<0x{byte:02X}>" for byte in range(256)]
    assert len(model.pieces) == 3000
    assert lossy_properties(model) == []


def test_the_manifest_says_what_the_ids_are(words: pa.RecordBatch, tmp_path: Path) -> None:
    build([words], tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert (manifest["kind"], manifest["vocab_size"], manifest["reserved"]) == ("sentencepiece", 3000, [[48, 63]])
    assert {token["id"]: token["token"] for token in manifest["tokens"]} == LOCKED
    digest = hashlib.sha256((tmp_path / "out" / "tokenizer.model").read_bytes()).hexdigest()
    assert manifest["files"] == {"tokenizer.model": digest}


@pytest.mark.parametrize("kind", ["sentencepiece-bpe", "sentencepiece-unigram"])
def test_the_bytes_do_not_depend_on_the_order_or_the_cut_of_the_words(
    words: pa.RecordBatch, kind: str, tmp_path: Path
) -> None:
    words = words.take(pa.array(range(0, words.num_rows, 4)))
    backwards = words.take(pa.array(range(words.num_rows - 1, -1, -1)))
    half = words.num_rows // 3
    build([words], tmp_path / "a", kind=kind, vocab_size=1500)
    build([backwards.slice(half), backwards.slice(0, half)], tmp_path / "b", kind=kind, vocab_size=1500)
    for name in ("tokenizer.model", "manifest.json", "vocab.tsv", "findings.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_spaces_tabs_and_newlines_are_learned_as_they_are_in_words(tmp_path: Path) -> None:
    text = {b" int": 90, b"\t\treturn": 80, b";\n    ": 70, b"\r\n": 60, b"a": 3}
    model = build(counts(text), tmp_path / "out", vocab_size=360)
    pieces = {piece.text for piece in model.pieces if piece.type is PieceType.NORMAL}
    assert {"\u2581int", "\t\treturn", ";\n" + 4 * "\u2581", "\r\n"} <= pieces


def test_words_with_characters_of_the_trainer_are_left_out_and_reported(tmp_path: Path) -> None:
    text = {b"abab": 9, b"\xff": 9, "a\u2581b".encode(): 9, "\u2585".encode(): 9, b"a\0b": 9, "\ufdd1".encode(): 9}
    model = build(counts(text), tmp_path / "out", vocab_size=324)
    assert {piece.text for piece in model.pieces[320:]} == {"ab", "abab", "a", "b"}
    assert "5 words were left out" in (tmp_path / "out" / "findings.md").read_text()


@pytest.mark.parametrize(
    ("text", "vocab_size", "said"),
    [
        ({b"hug": 3, b"pug": 2}, 8000, r"vocab_size = 8000: the text fills only 32\d ids; ask for 32\d"),
        ({bytes([byte]): 9 for byte in range(33, 127)}, 321, r"vocab_size = 321: too small; .* need 414"),
        ({b"\xff": 9}, 8000, "vocab_size = 8000: there are no words to learn from"),
    ],
    ids=["too large", "too small", "no words"],
)
def test_a_size_that_the_text_does_not_fill_names_both_sizes(
    text: dict[bytes, int], vocab_size: int, said: str, tmp_path: Path
) -> None:
    with pytest.raises(VocabularyConfigError, match=said):
        build(counts(text), tmp_path / "out", vocab_size=vocab_size)
    assert not (tmp_path / "out" / "manifest.json").exists()
