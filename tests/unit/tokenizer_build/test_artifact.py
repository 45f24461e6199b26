"""The properties of a written tokenizer directory, on a small tokenizer of real headers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import cppmill_core
import pytest
from cppmill_core.byte_alphabet import CHARACTERS
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from schemas.digests import canonical_json, sha256_file

VOCAB_SIZE = 12_288
BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}
LEFT = (
    "",
    " ",
    "\t",
    "\n",
    "\n    ",
    "(",
    "*",
    "->",
    "::",
    ", ",
    "<",
    "{",
    '"',
    "é",
    "€",
    "return ",
    "#define X ",
    "1.",
)
RIGHT = (
    "",
    " ",
    "\n",
    "(",
    ";",
    ",",
    "<",
    ">",
    "::",
    " x",
    "*",
    "[0]",
    '"',
    "é",
    "€",
    " = 1;\n",
    "...",
    "\r\n",
    "\\\n",
)


@pytest.fixture(scope="module")
def manifest(small_tokenizer: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((small_tokenizer / "manifest.json").read_bytes())
    return manifest


@pytest.fixture(scope="module")
def hf(small_tokenizer: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(small_tokenizer / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


def of_strength(manifest: dict[str, Any], *strengths: str) -> list[dict[str, Any]]:
    return [token for token in manifest["tokens"] if token["strength"] in strengths]


def test_every_id_below_the_size_is_named_once(hf: Tokenizer, manifest: dict[str, Any]) -> None:
    vocab = hf.get_vocab(with_added_tokens=True)
    assert len(vocab) == manifest["vocab_size"] == VOCAB_SIZE
    assert sorted(vocab.values()) == list(range(VOCAB_SIZE))


def test_all_256_bytes_are_tokens(hf: Tokenizer) -> None:
    assert set(CHARACTERS) <= hf.get_vocab().keys()


def test_each_fixed_token_alone_is_its_one_id(hf: Tokenizer, manifest: dict[str, Any]) -> None:
    fixed = of_strength(manifest, "pinned", "atomic")
    assert len(fixed) > 2300
    assert [t for t in fixed if hf.encode(t["token"], add_special_tokens=False).ids != [t["id"]]] == []


def test_each_atomic_token_is_its_id_in_any_context(hf: Tokenizer, manifest: dict[str, Any]) -> None:
    rng = random.Random(20240520)
    atomic = of_strength(manifest, "atomic")
    assert len(atomic) > 300
    broken = []
    for token in atomic:
        texts = [rng.choice(LEFT) + token["token"] + rng.choice(RIGHT) for _ in range(40)]
        encodings = hf.encode_batch(texts, add_special_tokens=False)
        broken += [text for text, found in zip(texts, encodings, strict=True) if token["id"] not in found.ids]
    assert broken == []


def test_the_characters_of_a_control_token_are_ordinary_text(hf: Tokenizer, manifest: dict[str, Any]) -> None:
    control = of_strength(manifest, "control")
    ids = {token["id"] for token in control}
    reserved = {i for first, last in manifest["reserved"] for i in range(first, last + 1)}
    for token in control:
        text = f"x{token['token']}y {token['token']}\n"
        found = hf.encode(text, add_special_tokens=False).ids
        assert not set(found) & (ids | reserved)
        assert hf.decode(found, skip_special_tokens=False) == text


def test_no_token_spells_a_control_or_reserved_name(hf: Tokenizer, manifest: dict[str, Any]) -> None:
    named = {token["id"] for token in of_strength(manifest, "control")}
    named |= {i for first, last in manifest["reserved"] for i in range(first, last + 1)}
    names = {hf.id_to_token(i) for i in named}
    spelled = {token for token, i in hf.get_vocab().items() if i not in named}
    assert len(names) == 48 + 216
    assert not names & spelled
    assert all(character in BYTES for token in spelled for character in token)


def test_text_survives_encoding_and_decoding(hf: Tokenizer, documents: list[bytes]) -> None:
    for document in documents[:40]:
        text = document.decode("utf-8", "replace")
        ids = hf.encode(text, add_special_tokens=False).ids
        assert b"".join(bytes(BYTES[c] for c in hf.id_to_token(i)) for i in ids) == text.encode()


def test_transformers_loads_it_offline_and_agrees(
    small_tokenizer: Path, hf: Tokenizer, documents: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    auto = AutoTokenizer.from_pretrained(small_tokenizer, local_files_only=True)
    assert len(auto) == auto.vocab_size == VOCAB_SIZE
    assert (auto.pad_token_id, auto.unk_token_id, auto.bos_token_id, auto.eos_token_id) == (0, 1, 2, 3)
    texts = [document.decode("utf-8", "replace") for document in documents[:40]]
    for text in [*texts, "a <EOS> b<PAD>", "<FIM_PREFIX>", " leading", "tail \n", "\t\tx ,y ! z"]:
        ids = hf.encode(text, add_special_tokens=False).ids
        assert auto.encode(text) == auto.encode(text, add_special_tokens=False) == ids
        assert auto.decode(ids) == text


def test_the_native_encoder_loads_it_and_agrees(
    small_tokenizer: Path, hf: Tokenizer, documents: list[bytes], manifest: dict[str, Any]
) -> None:
    native = cppmill_core.Tokenizer.from_dir(small_tokenizer)
    assert (native.vocab_size, native.pattern) == (VOCAB_SIZE, manifest["pattern"])
    for document in [*documents[:40], b"a <EOS> b<PAD>", *(t["token"].encode() for t in manifest["tokens"])]:
        text = document.decode("utf-8", "replace")
        assert native.encode(text).to_pylist() == hf.encode(text, add_special_tokens=False).ids


def test_the_manifest_says_what_is_there(small_tokenizer: Path, manifest: dict[str, Any]) -> None:
    assert set(manifest) == {"format", "profile", "pattern", "vocab_size", "files", "bands", "tokens", "reserved"}
    assert (small_tokenizer / "manifest.json").read_bytes() == canonical_json(manifest)
    assert manifest["pattern"] == "cpp-words-1"
    assert manifest["reserved"] == [[48, 63], [7000, 7199]]
    files = {name: sha256_file(small_tokenizer / name) for name in manifest["files"]}
    assert files == manifest["files"]
    assert set(files) == {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    assert manifest["bands"][-1] == {"name": "learned", "first": 7200, "last": VOCAB_SIZE - 1, "strength": "learned"}


def test_the_table_has_a_line_for_each_id(small_tokenizer: Path) -> None:
    lines = (small_tokenizer / "vocab.tsv").read_text().splitlines()
    assert len(lines) == VOCAB_SIZE + 1
    assert lines[0] == "id\ttoken\tstrength\tband"
    assert lines[1] == "0\t<PAD>\tcontrol\tcontrol"
    assert lines[1 + 48] == "48\t<RESERVED_48>\treserved\tcontrol"
    assert lines[1 + 386] == "386\t\\\\n\tpinned\toperators"
    assert lines[1 + 1208] == "1208\t\\t\tpinned\twhitespace"
    assert all(line.count("\t") == 3 and line.isascii() for line in lines)
