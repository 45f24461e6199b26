"""What a build promises holds with the second patterns too: the ids of `tokenizers`, fixed tokens in any context."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppmill_core
import pytest
from tokenizers import Tokenizer

from schemas.options import BuildOptions
from tokenizer_build.build import BuildSummary, ScanCounts

Build = Callable[..., BuildSummary]
ScanDocuments = Callable[..., ScanCounts]

PATTERN, LINE_PATTERN = "cpp-words-2", "cpp-lines-2"
USAGE = b"""std::vector<std::string> names;
std::map<std::string, std::vector<int>> map;
std::optional<int> found = std::nullopt;
"""
BEFORE = [
    "",
    " ",
    "\t",
    "\n",
    "\r\n    ",
    "(",
    "((",
    "((((",
    "->",
    "::",
    "a::",
    ", ",
    " = ",
    "<",
    '"',
    "é",
    "1.",
    "// ",
]
AFTER = ["", " ", "\n\n", "\r\n", "(", ");\n", ",", "::", "::b", ":", " x", "[0]", '"', "é", " = 1;\n\t", "\\\n", "+1"]


def check_size_literal(tokenizer: cppmill_core.Tokenizer, before: str, literal: str) -> None:
    """No token ends inside the suffix, and the literal is in two tokens at most."""
    text = f"{before}{literal};"
    ends = tokenizer.byte_offsets(tokenizer.encode(text)).to_pylist()
    start, end = len(before), len(before) + len(literal)
    inside = [place for place in ends if start < place < end]
    assert end - 1 not in inside
    assert len(inside) <= 1


@pytest.fixture(scope="module")
def counts_of(scan_documents: ScanDocuments, documents: list[bytes]) -> Callable[[], ScanCounts]:
    """Count the headers with the second patterns, and a few lines with the names of the standard library."""
    return lambda: scan_documents(
        [*documents, *[USAGE + b"%d\n" % number for number in range(400)]], PATTERN, LINE_PATTERN
    )


@pytest.fixture(scope="module", params=[None, 0.85], ids=["words", "superwords"])
def tokenizer(
    request: pytest.FixtureRequest,
    build: Build,
    counts_of: Callable[[], ScanCounts],
    lenient: BuildOptions,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    out = tmp_path_factory.mktemp("second") / "tokenizer"
    options = lenient.model_copy(update={"superwords_after": request.param})
    lines = LINE_PATTERN if request.param else None
    build(out, counts=counts_of(), options=options, pattern=PATTERN, line_pattern=lines)
    return out


@pytest.fixture(scope="module")
def manifest(tokenizer: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((tokenizer / "manifest.json").read_bytes())
    return read


@pytest.fixture(scope="module")
def native(tokenizer: Path) -> cppmill_core.Tokenizer:
    return cppmill_core.Tokenizer.from_dir(tokenizer)


@pytest.fixture(scope="module")
def hf(tokenizer: Path) -> Tokenizer:
    loaded = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    loaded.encode_special_tokens = True
    return loaded


def test_ids_are_those_of_tokenizers(
    native: cppmill_core.Tokenizer, hf: Tokenizer, documents: list[bytes], manifest: dict[str, Any]
) -> None:
    rng = random.Random(20261123)
    pieces = [token["token"] for token in manifest["tokens"]] + BEFORE + AFTER
    texts = [document.decode("utf-8", "replace") for document in documents[:60]]
    texts += ["".join(rng.choices(pieces, k=rng.randrange(1, 12))) for _ in range(2000)]
    for text in texts:
        assert native.encode(text).to_pylist() == hf.encode(text, add_special_tokens=False).ids, text


def test_each_fixed_token_alone_is_its_one_id(native: cppmill_core.Tokenizer, manifest: dict[str, Any]) -> None:
    fixed = [token for token in manifest["tokens"] if token["strength"] in ("pinned", "atomic")]
    assert len(fixed) > 2300
    assert [token for token in fixed if native.encode(token["token"]).to_pylist() != [token["id"]]] == []


def test_each_atomic_token_is_its_id_in_any_context(native: cppmill_core.Tokenizer, manifest: dict[str, Any]) -> None:
    atomic = [token for token in manifest["tokens"] if token["strength"] == "atomic"]
    assert len(atomic) > 300
    for token in atomic:
        texts = [before + token["token"] + after for before in BEFORE for after in AFTER]
        encoded = native.encode_batch(texts).to_pylist()
        assert [text for text, ids in zip(texts, encoded, strict=True) if token["id"] not in ids] == []


def test_qualified_names_are_few_tokens(native: cppmill_core.Tokenizer) -> None:
    assert len(native.encode("std::")) == 1
    assert len(native.encode("std::vector<std::string>")) <= 3


def test_names_are_counted_as_with_the_first_pattern(scan_documents: ScanDocuments, documents: list[bytes]) -> None:
    first, second = (scan_documents(documents, *patterns) for patterns in [(), (PATTERN, LINE_PATTERN)])
    assert second.terms.sort_by("term").equals(first.terms.sort_by("term"))
    assert second.namespaces.equals(first.namespaces) and second.namespaces.num_rows > 10
    assert second.morphemes.equals(first.morphemes)


@pytest.mark.parametrize("before", ["", " ", "(", " = ", ", ", "[", "return "])
@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 7, 8, 9, 10, 16, 32, 42, 64, 99, 100, 128, 255, 256])
@pytest.mark.parametrize("suffix", ["uz", "UZ", "zu"])
def test_a_size_literal_is_two_tokens_at_most_with_its_suffix_whole(
    native: cppmill_core.Tokenizer, before: str, number: int, suffix: str
) -> None:
    check_size_literal(native, before, f"{number}{suffix}")
