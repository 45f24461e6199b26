"""What superwords promise: tokens of several words, and every fixed token as it is without them, in lines too."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core.byte_alphabet import CHARACTERS
from tokenizers import Tokenizer

from schemas.errors import VocabularyConfigError
from schemas.options import BuildOptions
from schemas.tables import WORDS
from tokenizer_build.build import BuildSummary, ScanCounts

Build = Callable[..., BuildSummary]
ScanDocuments = Callable[[list[bytes]], ScanCounts]

AFTER, MAX_WORDS, MAX_BYTES = 0.85, 4, 24
BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}
USAGE = b"""std::vector<std::string> names;
void use(const std::vector<std::string>& names, int flags = 0xDEADBEEF) {
    initialize(names);
    for (const std::string& name : names) {
        add(name);
    }
}
"""
BEFORE = ["", " ", "\t", "\n", "\r\n    ", "(", "*", "->", "::", ", ", "<", "{", '"', "é", "€", "return ", "1.", "x = "]
AFTERWARDS = [
    "",
    " ",
    "\n",
    "\r\n",
    "(",
    ");\n",
    ",",
    "<",
    ">",
    "::",
    " x",
    "*",
    "[0]",
    '"',
    "é",
    " = 1;\n\t",
    "\\\n",
    "+1",
]
LINES = ["", "    if (x) ", "std::vector<int> v;\n", "for (int i = 0; i < n; ++i) {\n    ", "// ", "#define X "]


@pytest.fixture(scope="module")
def options(lenient: BuildOptions) -> BuildOptions:
    bounds = {"max_superword_words": MAX_WORDS, "max_superword_bytes": MAX_BYTES}
    return lenient.model_copy(update={"superwords_after": AFTER, **bounds})


@pytest.fixture(scope="module")
def counts_of(scan_documents: ScanDocuments, documents: list[bytes]) -> Callable[[], ScanCounts]:
    """Count the headers, and a few lines in which the published names stand."""
    return lambda: scan_documents([*documents, *[USAGE + b"%d\n" % number for number in range(400)]])


@pytest.fixture(scope="module")
def tokenizer(
    build: Build, counts_of: Callable[[], ScanCounts], options: BuildOptions, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("superwords") / "tokenizer"
    summary = build(out, counts=counts_of(), options=options)
    assert summary.superwords == options.vocab_size - round(options.vocab_size * AFTER)
    assert any("learned in lines" in line for line in summary.findings)
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


def pieces(native: cppmill_core.Tokenizer, text: str) -> list[bytes | None]:
    return [native.token_bytes(token) for token in native.encode(text).to_pylist()]


def test_the_manifest_says_where_superwords_begin(tokenizer: Path, manifest: dict[str, Any]) -> None:
    assert manifest["pattern"] == "cpp-lines-1"
    model = json.loads((tokenizer / "tokenizer.json").read_text())
    regex = model["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    assert regex == cppmill_core.PATTERNS["cpp-lines-1"]
    merges = [bytes(BYTES[character] for character in left + right) for left, right in model["model"]["merges"]]
    first = manifest["superwords"]["first_merge"]
    words = [len(cppmill_core.split("cpp-words-1", token)) for token in merges[first:]]
    assert max(words) == MAX_WORDS
    assert max(map(len, merges[first:])) <= MAX_BYTES
    assert sum(number > 1 for number in words) > 0.5 * len(words)


def test_ids_are_those_of_tokenizers(
    native: cppmill_core.Tokenizer, hf: Tokenizer, documents: list[bytes], manifest: dict[str, Any]
) -> None:
    tokens = [token["token"] for token in manifest["tokens"]]
    texts = [*(document.decode("utf-8", "replace") for document in documents[:60]), USAGE.decode(), *tokens]
    for text in [*texts, "a <EOS> b", "\r\n\n\t x\r", " \x0b\x0c\u2028x", "no newline", "\n"]:
        assert native.encode(text).to_pylist() == hf.encode(text, add_special_tokens=False).ids, text


def test_random_lines_have_the_ids_of_tokenizers(
    native: cppmill_core.Tokenizer, hf: Tokenizer, manifest: dict[str, Any]
) -> None:
    rng = random.Random(20251121)
    tokens = [token["token"] for token in manifest["tokens"]] + BEFORE + AFTERWARDS + LINES
    for _ in range(3000):
        text = "".join(rng.choices(tokens, k=rng.randrange(1, 12)))
        assert native.encode(text).to_pylist() == hf.encode(text, add_special_tokens=False).ids, text


def test_each_fixed_token_alone_is_its_one_id(native: cppmill_core.Tokenizer, manifest: dict[str, Any]) -> None:
    fixed = [token for token in manifest["tokens"] if token["strength"] in ("pinned", "atomic")]
    assert len(fixed) > 2300
    assert [t for t in fixed if native.encode(t["token"]).to_pylist() != [t["id"]]] == []


def test_tokens_of_several_words_are_fixed(manifest: dict[str, Any], vocabulary: Any) -> None:
    fixed = {token["token"] for token in manifest["tokens"]}
    assert "#pragma once" in fixed
    assert {token.token for token in vocabulary.tokens if " " in token.token.strip()} <= fixed


def test_each_atomic_token_is_its_id_in_any_line(native: cppmill_core.Tokenizer, manifest: dict[str, Any]) -> None:
    rng = random.Random(7)
    atomic = [token for token in manifest["tokens"] if token["strength"] == "atomic"]
    assert len(atomic) > 300
    broken = []
    for token in atomic:
        neighbours = [(before, after) for before in BEFORE for after in AFTERWARDS]
        texts = [rng.choice(LINES) + before + token["token"] + after for before, after in neighbours]
        for text, ids in zip(texts, native.encode_batch(texts).to_pylist(), strict=True):
            broken += [] if token["id"] in ids else [text]
    assert broken == []


def test_the_published_promises_hold(native: cppmill_core.Tokenizer) -> None:
    assert len(pieces(native, "std::vector<std::string>")) <= 3
    assert pieces(native, "0xDEADBEEF") == [b"0xDEADBEEF"]
    assert pieces(native, "initialize") in ([b"initialize"], [b"init", b"ialize"])


def test_threads_and_the_order_of_lines_change_nothing(
    build: Build, counts_of: Callable[[], ScanCounts], options: BuildOptions, tokenizer: Path, tmp_path: Path
) -> None:
    counts = counts_of()
    assert counts.lines is not None
    lines = counts.lines.read_all()
    shuffled = lines.take(pa.array(random.Random(3).sample(range(lines.num_rows), lines.num_rows)))
    build(tmp_path / "out", counts=counts, lines=shuffled.to_reader(100), options=options, threads=2)
    for name in ("manifest.json", "tokenizer.json", "findings.md"):
        assert (tmp_path / "out" / name).read_bytes() == (tokenizer / name).read_bytes()


def test_past_the_bound_the_findings_list_what_was_left_out(
    build: Build, counts_of: Callable[[], ScanCounts], options: BuildOptions, tokenizer: Path, tmp_path: Path
) -> None:
    bounded = options.model_copy(update={"max_held_tokens": 1 << 17})
    for name, threads in (("a", 1), ("b", 2)):
        summary = build(tmp_path / name, counts=counts_of(), options=bounded, threads=threads)
    told = (tmp_path / "a" / "findings.md").read_text()
    assert "did not fit into training (build.max_held_tokens = 131,072)" in told
    assert "only some were kept, chosen by hash, and each counts as" in told
    assert any("did not fit into training" in line for line in summary.findings)
    assert "did not fit" not in (tokenizer / "findings.md").read_text()
    one, two = ((tmp_path / name / "manifest.json").read_bytes() for name in "ab")
    assert one == two != (tokenizer / "manifest.json").read_bytes()


def test_without_superwords_lines_change_nothing(build: Build, small_tokenizer: Path, tmp_path: Path) -> None:
    build(tmp_path / "out", lines=None, line_pattern=None)
    assert (tmp_path / "out" / "manifest.json").read_bytes() == (small_tokenizer / "manifest.json").read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lines": None}, "superwords_after = 0.85: the scan counted no lines; set unit_pattern"),
        ({"line_pattern": None}, "superwords_after = 0.85: the scan counted no lines; set unit_pattern"),
        ({"lines": WORDS.empty_table().to_reader()}, "no units with a count above 0"),
        ({"words": []}, "no words with a count above 0"),
        (
            {"lines": pa.table({"word": [b"int x;"], "count": [3]}, schema=WORDS).to_reader()},
            r"vocab_size = 12288: only \d+ of 1843 superwords could be learned from the lines of the text; set "
            r"superwords_after to (0\.9|1\.0)\d+ or more",
        ),
    ],
)
def test_a_size_that_cannot_be_filled_is_refused_with_the_option_to_set(
    build: Build, options: BuildOptions, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(VocabularyConfigError, match=message):
        build(tmp_path / "out", options=options, **changes)


def test_a_size_that_leaves_too_little_beside_superwords_is_refused_with_the_least(
    build: Build, options: BuildOptions, tmp_path: Path
) -> None:
    greedy = options.model_copy(update={"superwords_after": 0.5})
    message = r"beside superwords after 0\.5 of the ids \(superwords_after\), need at least \d+"
    with pytest.raises(VocabularyConfigError, match=message) as refused:
        build(tmp_path / "refused", options=greedy)
    least = int(str(refused.value).rsplit(" ", 1)[1])
    with pytest.raises(VocabularyConfigError, match=f"need at least {least}"):
        build(tmp_path / "less", options=greedy.model_copy(update={"vocab_size": least - 1}))
