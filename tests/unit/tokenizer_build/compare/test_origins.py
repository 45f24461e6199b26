"""Which merges made a token: the same tokens as the encoder's, each with the whole of its history."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import cppmill_core
import pytest
from cppmill_core import AnyTokenizer

from schemas.errors import ConfigError
from schemas.options import BuildOptions
from tokenizer_build.bands import Strength
from tokenizer_build.build import BuildSummary, ScanCounts
from tokenizer_build.compare.origins import Origins, Phase, apply_merges, read_bands, read_origins
from tokenizer_build.reference import encode

Build = Callable[..., BuildSummary]
ScanDocuments = Callable[[list[bytes]], ScanCounts]

USAGE = (
    b"#include <vector>\nstd::vector<int> values = initialize(0xDEADBEEF);\n"
    b"// \xff \xe2\x82 \xe2\x82\xac <EOS>\r\n\tend_point\n"
)


@pytest.fixture(scope="module")
def origins(
    build: Build,
    scan_documents: ScanDocuments,
    documents: list[bytes],
    lenient: BuildOptions,
    tmp_path_factory: pytest.TempPathFactory,
) -> Origins:
    """A tokenizer with superwords, from real headers."""
    out = tmp_path_factory.mktemp("origins") / "tokenizer"
    options = lenient.model_copy(update={"superwords_after": 0.85, "max_superword_words": 4, "max_superword_bytes": 24})
    build(
        out, counts=scan_documents([*documents, *[USAGE + b"%d\n" % number for number in range(400)]]), options=options
    )
    return read_origins(out, cppmill_core.Tokenizer.from_dir(out))


def test_the_tokens_are_those_of_the_encoder_for_headers_and_for_any_bytes(
    origins: Origins, documents: list[bytes]
) -> None:
    for text in (USAGE, bytes(range(256)), documents[3], b""):
        assert [token.entry.id for token in origins.explain(text)] == origins.tokenizer.encode(text).to_pylist()


def test_the_merges_of_a_token_build_it_up_from_single_bytes(origins: Origins, documents: list[bytes]) -> None:
    for token in origins.explain(USAGE + documents[3]):
        pieces = [token.entry.token[at : at + 1] for at in range(len(token.entry.token))]
        for merge in token.merges:
            assert merge.left in pieces and merge.right in pieces
            at = next(at for at in range(len(pieces) - 1) if (pieces[at], pieces[at + 1]) == (merge.left, merge.right))
            pieces[at : at + 2] = [merge.made]
        assert pieces == [token.entry.token]


def test_merges_are_applied_as_the_reference_applies_them(origins: Origins) -> None:
    for word in (b"std::vector<int>", b"initialize", b"aaaaaaa", b"\xff\xfe", b""):
        assert apply_merges(word, origins.ranks)[0] == encode(word, origins.ranks)


def test_seed_merges_make_every_fixed_token_and_one_less_does_not(origins: Origins) -> None:
    fixed = [entry.token for entry in origins.entries if entry.strength in (Strength.PINNED, Strength.ATOMIC)]
    seeds = {pair: rank for pair, rank in origins.ranks.items() if rank < origins.first_word_merge}
    assert all(len(encode(token, seeds)) == 1 for token in fixed)
    seeds.popitem()
    assert any(len(encode(token, seeds)) > 1 for token in fixed)


def test_each_phase_is_reported(origins: Origins) -> None:
    phases = {merge.phase for token in origins.explain(USAGE) for merge in token.merges}
    assert phases == {Phase.SEED, Phase.WORDS, Phase.LINES}


def test_a_token_has_the_band_of_its_id_and_a_learned_one_in_a_freed_id_is_learned(origins: Origins) -> None:
    for text, band in ((b"int", "keywords"), (b"vector", "library"), (b"::", "operators"), (b" v", "learned")):
        assert [token.band for token in origins.explain(text)] == [band]
    assert any(entry.strength is Strength.LEARNED for entry in origins.entries[:7000])


def test_a_tokenizer_without_merges_is_refused(tmp_path: Path) -> None:
    class Pieces:
        """Any tokenizer that is not the native one."""

    with pytest.raises(ConfigError, match="its merges cannot be followed"):
        read_origins(tmp_path, cast(AnyTokenizer, Pieces()))


def test_bands_are_those_of_the_manifest(small_tokenizer: Path) -> None:
    manifest = json.loads((small_tokenizer / "manifest.json").read_bytes())
    bands = read_bands(small_tokenizer)
    assert bands is not None
    assert len(bands) == manifest["vocab_size"]
    assert all(bands[row["id"]] == row["band"] for row in manifest["tokens"])
    reserved = {number for first, last in manifest["reserved"] for number in range(first, last + 1)}
    assert {number for number, band in enumerate(bands) if band == "reserved"} == reserved
    assert bands.count("learned") == len(bands) - len(manifest["tokens"]) - len(reserved)
    assert read_bands(small_tokenizer / "tokenizer.json") is None


def test_superwords_are_a_band_of_their_own(build: Callable[..., BuildSummary], lenient: Any, tmp_path: Path) -> None:
    options = lenient.model_copy(update={"superwords_after": 0.95, "max_superword_words": 4, "max_superword_bytes": 24})
    summary = build(tmp_path / "tokenizer", options=options)
    bands = read_bands(tmp_path / "tokenizer")
    assert bands is not None
    assert bands.count("superwords") == summary.superwords > 500
    made = cppmill_core.Tokenizer.from_dir(tmp_path / "tokenizer")
    spelled = [made.token_bytes(number) or b"" for number, band in enumerate(bands) if band == "superwords"]
    assert sum(len(cppmill_core.split("cpp-words-1", token)) > 1 for token in spelled) > 0.5 * len(spelled)
