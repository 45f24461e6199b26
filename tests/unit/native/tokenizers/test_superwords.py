"""A tokenizer with superwords gives the ids of `tokenizers`, whatever its manifest calls the first superword."""

import hashlib
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core import Tokenizer
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as HuggingFace

PATTERNS = {"cpp-lines-1": "cpp-words-1", "cpp-lines-2": "cpp-words-2", "text-sentences-1": "text-words-1"}
"""Patterns of lines, and of the words that these are made of."""
VOCAB_SIZE, SUPERWORDS, ROUND = 3000, 600, 30
FRAGMENTS = [
    *[
        "int",
        " main",
        "()",
        " {\n    ",
        "std::",
        "((",
        "(",
        " x",
        "x",
        " = ",
        "->",
        ";\n",
        "\n",
        "\r\n",
        "\t",
        " ",
        "\\n",
    ],
    *["0", ".5", "'", '"', 'R"(', "é", "名", "\x0b", "return ", "const", "&", "_", "if (", ") {\n"],
]


def real_texts() -> list[str]:
    """Return some of pyarrow's headers."""
    paths = sorted(Path(pa.get_include()).rglob("*.h"))
    return [path.read_text() for path in paths[::6] if path.stat().st_size < 100_000]


def pre_tokenizer(pattern: str) -> pre_tokenizers.PreTokenizer:
    """Return the pre-tokenizer of a pattern."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(cppmill_core.PATTERNS[pattern]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def train_words(texts: list[str], pattern: str) -> dict[str, Any]:
    """Train within words, and return the tokenizer.json."""
    tokenizer = HuggingFace(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer(pattern)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB_SIZE, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    return content


def learn_superwords(content: dict[str, Any], texts: list[str], pattern: str) -> None:
    """Append merges that are frequent in lines to a tokenizer.json, and let it cut lines."""
    content["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = cppmill_core.PATTERNS[pattern]
    tokenizer = HuggingFace.from_str(json.dumps(content))
    units = [cppmill_core.split(pattern, text.encode()).cast(pa.string()).to_pylist() for text in texts]
    lines = [line or "" for unit in units for line in unit]
    tokens = [encoding.tokens for encoding in tokenizer.encode_batch(lines)]
    model = content["model"]
    for _ in range(SUPERWORDS // ROUND):
        pairs = Counter(pair for line in tokens for pair in pairwise(line))
        new = [pair for pair, _ in pairs.most_common(ROUND * 4) if "".join(pair) not in model["vocab"]][:ROUND]
        for left, right in new:
            model["merges"].append([left, right])
            model["vocab"].setdefault(left + right, len(model["vocab"]))
            tokens = [join(line, left, right) for line in tokens]


def join(line: list[str], left: str, right: str) -> list[str]:
    """Apply one merge to the tokens of a line."""
    joined: list[str] = []
    for token in line:
        if joined and token == right and joined[-1] == left:
            joined[-1] = left + right
        else:
            joined.append(token)
    return joined


def write(directory: Path, content: dict[str, Any], first_merge: int | None) -> Path:
    """Write a tokenizer directory."""
    directory.mkdir(parents=True, exist_ok=True)
    written = json.dumps(content).encode()
    (directory / "tokenizer.json").write_bytes(written)
    manifest: dict[str, Any] = {"format": "cppmill-tokenizer-1", "vocab_size": len(content["model"]["vocab"])}
    manifest |= {"files": {"tokenizer.json": hashlib.sha256(written).hexdigest()}, "tokens": [], "reserved": []}
    if first_merge is not None:
        manifest["superwords"] = {"first_merge": first_merge}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return directory


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Real C++."""
    return real_texts()


@pytest.fixture(scope="session", params=PATTERNS)
def lines(request: pytest.FixtureRequest) -> str:
    """The pattern of the lines."""
    return str(request.param)


@pytest.fixture(scope="session")
def content(texts: list[str], lines: str) -> dict[str, Any]:
    """A tokenizer.json with superwords, learned on a part of the real C++."""
    trained = train_words(texts[::2], PATTERNS[lines])
    learn_superwords(trained, texts[::8], lines)
    return trained


@pytest.fixture(scope="session")
def tokenizer(content: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The tokenizer as the native core loads it."""
    first_merge = len(content["model"]["merges"]) - SUPERWORDS
    return Tokenizer.from_dir(write(tmp_path_factory.mktemp("superwords"), content, first_merge))


@pytest.fixture(scope="session")
def hugging_face(content: dict[str, Any]) -> HuggingFace:
    """The tokenizer as `tokenizers` loads it."""
    return HuggingFace.from_str(json.dumps(content))


def test_ids_of_real_files_are_those_of_hugging_face_whatever_the_first_superword(
    texts: list[str], content: dict[str, Any], lines: str, hugging_face: HuggingFace, tmp_path: Path
) -> None:
    expected = [encoding.ids for encoding in hugging_face.encode_batch_fast(texts)]
    merges = len(content["model"]["merges"])
    assert any(max(ids) >= len(content["model"]["vocab"]) - SUPERWORDS for ids in expected)
    for first_merge in (merges - SUPERWORDS, merges - 2 * SUPERWORDS, merges - SUPERWORDS // 2, 0, merges, None):
        tokenizer = Tokenizer.from_dir(write(tmp_path / str(first_merge), content, first_merge))
        assert tokenizer.pattern == lines
        ids = tokenizer.encode_batch(texts)
        assert ids.to_pylist() == expected, first_merge
        assert tokenizer.decode_batch(ids).to_pylist() == [text.encode() for text in texts]


@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(codec="utf-8"), max_size=3)), max_size=60))
def test_ids_of_text_are_those_of_hugging_face(
    tokenizer: Tokenizer, hugging_face: HuggingFace, fragments: list[str]
) -> None:
    text = "".join(fragments)
    assert tokenizer.encode(text).to_pylist() == hugging_face.encode(text).ids


@given(st.binary(max_size=300))
def test_any_bytes_decode_to_themselves(tokenizer: Tokenizer, data: bytes) -> None:
    assert tokenizer.decode(tokenizer.encode(data)) == data


@pytest.mark.parametrize(
    "unit", ["x = y + 1; ", "((", "a.", "->x", ") {", "\n", "\n ", " \x0b\n", "é", "int (*f)(int), "]
)
@pytest.mark.parametrize("repeats", [5, 24, 49, 2000])
def test_ids_of_long_lines_are_those_of_hugging_face(
    tokenizer: Tokenizer, hugging_face: HuggingFace, unit: str, repeats: int
) -> None:
    text = unit * repeats + "x"
    assert tokenizer.encode(text).to_pylist() == hugging_face.encode(text).ids


def test_merges_that_words_and_superwords_share_are_done_line_by_line(
    content: dict[str, Any], texts: list[str], tmp_path: Path
) -> None:
    changed = json.loads(json.dumps(content))
    changed["model"]["merges"].reverse()
    tokenizer = Tokenizer.from_dir(write(tmp_path, changed, 100))
    expected = HuggingFace.from_str(json.dumps(changed)).encode(texts[0]).ids
    assert tokenizer.encode(texts[0]).to_pylist() == expected


def test_superwords_that_the_files_cannot_have_are_refused(content: dict[str, Any], lines: str, tmp_path: Path) -> None:
    merges = len(content["model"]["merges"])
    with pytest.raises(cppmill_core.InvalidInputError, match=f"merge {merges + 1}, but there are {merges}"):
        Tokenizer.from_dir(write(tmp_path, content, merges + 1))
    changed = json.loads(json.dumps(content))
    changed["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = cppmill_core.PATTERNS[PATTERNS[lines]]
    with pytest.raises(cppmill_core.InvalidInputError, match=f"{PATTERNS[lines]} cuts words"):
        Tokenizer.from_dir(write(tmp_path, changed, merges - 1))
