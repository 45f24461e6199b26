"""Every tokenizer gives the ids of its own library, decodes as it does, and says what bytes its ids stand for."""

from __future__ import annotations

import base64
import gzip
import io
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
from tiktoken_ext import openai_public
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from schemas.errors import ConfigError
from tokenizer_build.compare import candidates
from tokenizer_build.compare.candidates import (
    HuggingFace,
    Native,
    Ranks,
    SentencePiece,
    TokenLists,
    open_candidate,
    pattern_of,
    read_ranks,
)
from tokenizer_build.compare.published_patterns import CL100K, GPT2, O200K

O200K_PATH = Path(str(distribution("bpe-openai").locate_file("bpe_openai/data/o200k_base.tiktoken.gz")))
FAR_ID = (
    Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")).to_str().replace('"b":1', '"b":2147483647').encode()
)
HOSTILE = [b"", b"\n", b"a <EOS> <|endoftext|> <s>", "é€🙂 \u2581x".encode(), b"\r\n\t\x00"]


@pytest.fixture(scope="module")
def texts(documents: list[bytes]) -> list[bytes]:
    """Headers that are UTF-8, and texts that tokenizers trip over."""
    return [document for document in documents[:40] if _is_utf8(document)] + HOSTILE


def _is_utf8(document: bytes) -> bool:
    try:
        document.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.fixture(scope="module")
def train_sentencepiece(documents: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Train a model on lines of headers."""

    def train(**options: object) -> Path:
        lines = [line for document in documents[:30] for line in document.decode("utf-8", "ignore").splitlines()]
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, model_type="bpe", vocab_size=600, byte_fallback=True,
            minloglevel=2, num_threads=1, **options,
        )  # fmt: skip
        path: Path = tmp_path_factory.mktemp("sentencepiece") / "pieces.model"
        path.write_bytes(model.getvalue())
        return path

    return train


@pytest.fixture(scope="module")
def identity_model(train_sentencepiece: Callable[..., Path]) -> Path:
    """A model that changes no text: no normalisation, no space put in front, none taken away."""
    return train_sentencepiece(
        normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False
    )


def encode(candidate: candidates.CandidateTokenizer, texts: list[bytes], threads: int = 2) -> TokenLists:
    return candidate.encoder(pa.array(texts, pa.binary()), threads)()()


def spelled(candidate: candidates.CandidateTokenizer, lists: TokenLists) -> list[bytes]:
    tokens = candidate.token_bytes()
    return [b"".join(tokens[number] or b"" for number in ids) for ids in lists.split()]


@pytest.fixture(scope="module", params=["native", "tokenizers", "ranks"])
def lossless(request: pytest.FixtureRequest, small_tokenizer: Path) -> candidates.CandidateTokenizer:
    """The candidates that lose nothing of any text."""
    paths = {"native": small_tokenizer, "tokenizers": small_tokenizer / "tokenizer.json", "ranks": O200K_PATH}
    return open_candidate(paths[request.param])


def test_texts_decode_to_themselves(lossless: candidates.CandidateTokenizer, texts: list[bytes]) -> None:
    lists = encode(lossless, texts)
    assert lossless.decode(lists, 2).to_pylist() == texts
    assert lists.offsets[-1] == len(lists.ids) > 10_000


def test_the_bytes_of_the_ids_are_the_text(lossless: candidates.CandidateTokenizer, texts: list[bytes]) -> None:
    assert spelled(lossless, encode(lossless, texts)) == texts


def test_ids_do_not_depend_on_threads(lossless: candidates.CandidateTokenizer, texts: list[bytes]) -> None:
    one, two = encode(lossless, texts, 1), encode(lossless, texts, 2)
    assert np.array_equal(one.ids, two.ids)
    assert np.array_equal(one.offsets, two.offsets)


def test_a_part_of_a_batch_is_encoded_as_that_part(lossless: candidates.CandidateTokenizer, texts: list[bytes]) -> None:
    part = pa.array(texts, pa.binary()).slice(7, 5)
    expected = encode(lossless, texts[7:12])
    found = lossless.encoder(part, 2)()()
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.offsets.tolist() == expected.offsets.tolist()


def test_ours_and_tokenizers_give_the_same_ids(small_tokenizer: Path, texts: list[bytes]) -> None:
    ours, theirs = open_candidate(small_tokenizer), open_candidate(small_tokenizer / "tokenizer.json")
    assert isinstance(ours, Native)
    assert isinstance(theirs, HuggingFace)
    assert encode(ours, texts).ids.tolist() == encode(theirs, texts).ids.tolist()
    pairs = list(zip(ours.token_bytes(), theirs.token_bytes(), strict=True))
    assert [pair for pair in pairs if pair[0] is not None and pair[0] != pair[1]] == []
    assert {pair[1] for pair in pairs if pair[0] is None and not (pair[1] or b"").startswith(b"<RESERVED_")} == {None}


def test_ranks_have_the_published_ids() -> None:
    assert encode(open_candidate(O200K_PATH), [b"hello world"]).ids.tolist() == [24912, 2375]


def test_a_sentencepiece_model_without_normalisation_keeps_the_text(identity_model: Path, texts: list[bytes]) -> None:
    candidate = open_candidate(identity_model)
    assert isinstance(candidate, SentencePiece)
    kept = [text for text in texts if b"\x00" not in text and "\u2581".encode() not in text]
    lists = encode(candidate, kept)
    assert candidate.decode(lists, 1).to_pylist() == kept
    assert spelled(candidate, lists) == kept
    model = sentencepiece.SentencePieceProcessor(model_file=str(identity_model))
    assert [ids.tolist() for ids in lists.split()] == model.encode([text.decode() for text in kept])


def test_a_model_that_normalises_shows_in_what_it_decodes_to(train_sentencepiece: Callable[..., Path]) -> None:
    candidate = open_candidate(train_sentencepiece())
    lists = encode(candidate, [b"int  x;", b"int x;"])
    assert candidate.decode(lists, 1).to_pylist() == [b"int x;", b"int x;"]
    assert spelled(candidate, lists) == [b" int x;", b" int x;"]


def test_bytes_that_are_no_text_are_kept_by_ours_alone(small_tokenizer: Path, identity_model: Path) -> None:
    document = [b"int \xff\xfe x;\xe2\x82"]
    for path in (small_tokenizer / "tokenizer.json", O200K_PATH, identity_model):
        candidate = open_candidate(path)
        changed = document[0].decode("utf-8", "replace").encode()
        assert candidate.decode(encode(candidate, document), 1).to_pylist() == [changed], path
    ours = open_candidate(small_tokenizer)
    assert ours.decode(encode(ours, document), 1).to_pylist() == document


def test_added_tokens_are_their_characters_and_special_ones_have_no_text(tmp_path: Path) -> None:
    made = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_tokens(["ab ab"])
    made.add_special_tokens(["<|end|>"])
    made.save(str(tmp_path / "tokenizer.json"))
    candidate = open_candidate(tmp_path)
    assert candidate.token_bytes() == [b"a", b"b", b"ab ab", None]
    assert encode(candidate, [b"aab ab"]).ids.tolist() == [0, 2]


def test_texts_are_neither_cut_nor_padded(small_tokenizer: Path, texts: list[bytes], tmp_path: Path) -> None:
    made = Tokenizer.from_file(str(small_tokenizer / "tokenizer.json"))
    made.enable_truncation(4)
    made.enable_padding()
    made.save(str(tmp_path / "tokenizer.json"))
    whole = encode(open_candidate(small_tokenizer), texts)
    found = encode(open_candidate(tmp_path), texts)
    assert found.ids.tolist() == whole.ids.tolist()
    assert found.offsets.tolist() == whole.offsets.tolist()


def test_a_file_of_ranks_has_the_pattern_that_it_is_given(tmp_path: Path) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"aa": 256, b"a1": 257}
    lines = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    (tmp_path / "mine.tiktoken").write_bytes(lines)
    (tmp_path / "mine.tiktoken.gz").write_bytes(gzip.compress(lines))
    assert read_ranks(tmp_path / "mine.tiktoken") == read_ranks(tmp_path / "mine.tiktoken.gz") == ranks
    whole = open_candidate(tmp_path / "mine.tiktoken", pattern=r"\S+|\s+")
    cut = open_candidate(tmp_path / "mine.tiktoken.gz", pattern="gpt2")
    assert encode(whole, [b"a1"]).ids.tolist() == [257]
    assert encode(cut, [b"a1"]).ids.tolist() == [97, 49]


def test_the_patterns_are_those_that_tiktoken_publishes() -> None:
    """GPT-2's is a constant there; the published ids hold that of o200k_base."""
    published = openai_public.r50k_pat_str
    texts = ["it's 12 a's\n\n  x", "don't  été_1", " \t\r\n-->"]
    sample = {bytes([byte]): byte for byte in range(256)}
    ours, theirs = Ranks("ours", sample, GPT2), Ranks("theirs", sample, published)
    for text in texts:
        assert ours.encoding.encode(text) == theirs.encoding.encode(text)
    assert pattern_of(Path("a/cl100k_base.tiktoken"), None) == CL100K
    assert pattern_of(O200K_PATH, None) == O200K


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("none", None, "no tokenizer; give a directory with manifest.json"),
        ("x.txt", b"x", "no tokenizer; give a directory"),
        ("x.tiktoken", b"YQ== one\n", "a line has a token in base64 and its rank"),
        ("x.tiktoken", b"!! 1\n", "a line has a token in base64 and its rank"),
        ("x.tiktoken", b"", "it is empty"),
        ("x.tiktoken", b"YQ== 0\n", "give --pattern, one of gpt2"),
        ("x.tiktoken.gz", b"YQ== 0\n", "not a file of ranks"),
        ("cl100k_base.tiktoken", b"YQ== 0\nYQ== 1\n", "a token or a rank is there twice"),
        ("cl100k_base.tiktoken", b"YQ== 0\nYg== 0\n", "a token or a rank is there twice"),
        ("cl100k_base.tiktoken", b"YQ== 0\n= 1\n", "not a file of ranks"),
        ("cl100k_base.tiktoken", b"YQ== 0\nYg== -1\n", "a rank is below 0"),
        ("cl100k_base.tiktoken", b"YQ== 0\nYg== 2147483647\n", "or not below 16,777,216"),
        ("far.json", FAR_ID, "its largest id is 2147483647; a tokenizer may have 16,777,216 ids"),
        ("x.model", b"x", "sentencepiece cannot read it"),
        ("tokenizer.json", b"{}", "tokenizers cannot read it"),
    ],
)
def test_what_is_not_a_tokenizer_is_refused(tmp_path: Path, name: str, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=message):
        open_candidate(tmp_path / name)


def test_without_tiktoken_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ConfigError, match=r"cppmill\[compare\]"):
        open_candidate(O200K_PATH)
